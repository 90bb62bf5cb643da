"""Tokens are counted as o200k_base counts them, from a table that is made from its vocabulary."""

from __future__ import annotations

import base64
import json
import random
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.results.tokens import count_tokens, estimate_tokens
from tests.core.results.token_table import PATH, make_table

ROOT = Path(__file__).parents[3]
CHANCE = random.Random(7)
ROWS = [
    {"id": CHANCE.randrange(10**6), "userName": f"user{i}", "email": f"u{i}@example.com", "price": CHANCE.random()}
    for i in range(120)
]
TYPICAL = {
    "english": "The tabs belong to the person. An agent may call tools, press buttons and fill in forms; whatever is"
    " over the limit is kept, and can be read later on. Internationalization notwithstanding, it works.\n" * 30,
    "json": json.dumps(ROWS),
    "indented json": json.dumps(ROWS, indent=2),
    "html": "".join(
        f'<div class="product-card col-4" data-id="{i}"><a href="https://shop.example.com/p/{i}?ref=list&amp;pos={i}">'
        f'<img src="/img/{i}.webp" alt="Product {i}" width="320"/></a><span class="price">€{i}.99</span></div>\n'
        for i in range(80)
    ),
    "code": "def area(width: float, height: float) -> float:\n    '''How large it is.'''\n    if width < 0:\n"
    "        raise ValueError(f'negative: {width}')\n    return width * height\n\n" * 30,
    "minified code": "!function(e,t){var n=t.exports={};for(var i=0;i<n.length;i++){r=n[i](e,t),o(r)}}(window);" * 30,
    "chinese": "浏览器标签页属于用户。代理可以调用工具。点击按钮。填写表单。并读取页面内容。超出限制的部分会保存下来。"
    * 30,
    "russian": "Вкладки браузера принадлежат пользователю. Агент может вызывать инструменты и нажимать кнопки. " * 30,
    "german": "Die Registerkarten gehören der Person; Geschwindigkeitsbegrenzungen bleiben unberührt. " * 30,
    "french": "Les onglets appartiennent à la personne ; un agent peut remplir des formulaires et cliquer. " * 20,
    "japanese": "ブラウザのタブを操作するエージェントは、許可を得てからボタンをクリックします。人口は約1400万人です。"
    * 20,
    "korean": "브라우저 탭은 사용자의 것입니다. 에이전트는 도구를 호출하고 버튼을 누를 수 있습니다. " * 20,
    "emoji": "".join(CHANCE.choice("😀🎉🚀🔥👍🍕🦄🌍💡📦🧪👋🏽") for _ in range(400)),
    "base64": base64.b64encode(CHANCE.randbytes(6_000)).decode(),
    "hex": CHANCE.randbytes(4_000).hex(),
    "numbers": json.dumps([CHANCE.random() for _ in range(400)]),
    "table": "\n".join("| " + " | ".join(f"cell {i} {j}" for j in range(6)) + " |" for i in range(100)),
}
REAL = [
    *("README.md", "docs/guide.md", "docs/security.md", "CHANGELOG.md"),
    *("src/tabhub/calls/engine.py", "src/tabhub/browser/js/kit/walk.js", "bench/load.c", "extension/manifest.json"),
]


def true_count(text: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the package opens its own tables in a deprecated way
        import bpe_openai  # type: ignore[import-untyped]

    return len(bpe_openai.get_encoding("o200k_base").encode_ordinary(text))


def tree() -> str:
    """A snapshot of a page with many links, whose names are the words of the guide."""
    words = (ROOT / "docs/guide.md").read_text().replace('"', "'").split()
    parts = [" ".join(words[at : at + 1 + at % 9]) for at in range(0, 4_000, 9)]
    return "\n".join(
        f' link "{part}" [ref=e{n}] /guide/{part[:12].lower().replace(" ", "-")}.html#s{n}\n  - "{part}, and more"'
        for n, part in enumerate(parts)
    )


@pytest.mark.parametrize("kind", TYPICAL)
def test_texts_of_many_kinds_are_counted_nearly_as_the_model_counts(kind: str) -> None:
    assert estimate_tokens(TYPICAL[kind]) == pytest.approx(true_count(TYPICAL[kind]), rel=0.06)


@pytest.mark.parametrize("name", REAL)
def test_prose_and_code_are_counted_within_two_percent(name: str) -> None:
    text = (ROOT / name).read_text()[:65_000]
    assert estimate_tokens(text) == pytest.approx(true_count(text), rel=0.015)


def test_a_snapshot_is_counted_within_two_percent() -> None:
    assert estimate_tokens(tree()) == pytest.approx(true_count(tree()), rel=0.015)


@pytest.mark.parametrize("kind", ["english", "json", "chinese", "base64"])
def test_the_sampled_estimate_of_long_data_is_near_the_count(kind: str) -> None:
    part = TYPICAL[kind]
    times = 1 + 1_000_000 // len(part)
    assert estimate_tokens(part * times) == pytest.approx(count_tokens(part) * times, rel=0.05)


def test_a_long_run_without_words_costs_no_more_to_count() -> None:
    assert estimate_tokens("東" * 60_000) == pytest.approx(true_count("東" * 60_000), rel=0.05)


@given(st.text())
def test_tokens_never_exceed_bytes_and_bytes_count_like_their_text(value: str) -> None:
    raw = value.encode()
    assert estimate_tokens(value) == estimate_tokens(raw) <= len(raw)
    assert (estimate_tokens(raw) == 0) == (not raw)


def test_the_table_has_the_tokens_of_the_vocabulary() -> None:
    assert PATH.read_bytes() == make_table(), "run scripts/token_table"
