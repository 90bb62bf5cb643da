"""A path picks the values it names; the error for a path without a match says where it stopped and what exists
there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabhub.core.results.json_path import pick_json
from tabhub.errors import InvalidParams
from tests.wire.builders import record_parsed_texts

DATA = {
    "items": [
        {"name": "pen", "price": 2.5, "title": "A Red Pen", "tags": ["ink", "red"], "size": {"mm": 7}, "new": True},
        {"name": "cup", "price": 12, "title": "A cup", "tags": [], "size": {"mm": 80}, "new": False},
        {"name": "jar", "price": 40, "title": "Redware jar", "tags": ["red"], "size": None},
    ],
    "a b": {"c.d": {"it's": 1, 'say "hi"': 2, "": 3}},
    "__proto__": {"polluted": False},
    "constructor": "plain",
    "0": "zero",
    "none": None,
    "empty": [],
    "naïve": "ok",
}


def pick(path: str, data: Any = DATA) -> Any:
    return json.loads(pick_json(json.dumps(data), path))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", DATA),
        ("", DATA),
        ("$.items[0].name", "pen"),
        ("items[0].name", "pen"),
        ("items.1.name", "cup"),
        ("$['items'][2][\"name\"]", "jar"),
        ("items[-1].name", "jar"),
        ("items[*].name", ["pen", "cup", "jar"]),
        ("$.items[:2].price", [2.5, 12]),
        ("items[1:].name", ["cup", "jar"]),
        ("items[-2:].name", ["cup", "jar"]),
        ("items[::2].name", ["pen", "jar"]),
        ("items[5:9]", []),
        ("..name", ["pen", "cup", "jar"]),
        ("$..mm", [7, 80]),
        ("..tags[0]", ["ink", "red"]),
        ("..['c.d'].*", [1, 2, 3]),
        ("items.*.name", ["pen", "cup", "jar"]),
        ("['a b']['c.d']['it\\'s']", 1),
        ('["a b"]["c.d"]["say \\"hi\\""]', 2),
        ("['a b']['c.d']['say \"hi\"']", 2),
        ("['a b']['c.d']['']", 3),
        ("__proto__.polluted", False),
        ("constructor", "plain"),
        ("$.0", "zero"),
        ("none", None),
        ("empty", []),
        ("empty[*]", []),
        ("naïve", "ok"),
        ("['na\\u00efve']", "ok"),
        (" $.items[0].name ", "pen"),
    ],
)
def test_a_path_picks_the_values_it_names(path: str, expected: Any) -> None:
    assert pick(path) == expected


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("itms", r"stops matching at 'itms': \$ is an object with the keys 'items', 'a b'"),
        ("items[0].nmae", r"'.nmae': items\[0\] is an object with the keys 'name', 'price'"),
        (
            "items.name",
            r"items is an array of 3 \(use \[0\] or \[\*\]\); its first item is an object with the keys 'name'",
        ),
        ("items[3]", r"items is an array of 3, 0 to 2"),
        ("empty[0]", "empty is an array of 0, so it has no items"),
        ("none.x", "none is null"),
        ("constructor[0]", 'constructor is "plain"'),
        ("..nmae", r"\$ has no match at any depth"),
        ("items[*].nmae.x", r"stops matching at '.nmae.x': items\[\*\] is an object with the keys 'name'"),
        ("constructor[*]", "constructor is"),
    ],
)
def test_the_error_for_a_path_without_a_match_says_where_it_stopped_and_what_is_there(path: str, message: str) -> None:
    with pytest.raises(InvalidParams, match=message):
        pick(path)


@pytest.mark.parametrize(
    "path",
    [
        "items[", "items[]", "items[x]", "items[?]", "items[?name=='cup']", "a..", "a.", "$$", "a b", "items[::0]",
        "items.[0]", "['\\q']", "x" * 1_001, "items[0]name", "items[99999999999999999999]",
    ],
)  # fmt: skip
def test_an_invalid_path_is_refused_with_an_example(path: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        pick(path)
    assert "$.items[0].name" in caught.value.text()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("path", ["..*..*..*..*", "..a..*..b..*"])
def test_a_path_that_touches_every_value_repeatedly_is_stopped(path: str) -> None:
    nested: Any = {"a": 1}
    for _ in range(60):
        nested = {"a": nested, "b": [nested] if len(str(nested)) < 20_000 else 0}
    with pytest.raises(InvalidParams, match="touches more than"):
        pick(path, nested)


def test_large_numbers_are_kept() -> None:
    assert pick_json("[12345678901234567890123]", "[0]") == "12345678901234567890123"


keys = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["__proto__", "a.b", "[0]", "'", '"', "\\", "*"]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


def leaves(value: Any, path: str = "$", single: str = "$") -> Iterator[tuple[str, str, Any]]:
    """Every leaf with its path, written with double and with single quotes."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            quoted = json.dumps(key)
            other = "'" + quoted[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
            yield from leaves(item, f"{path}[{quoted}]", f"{single}[{other}]")
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]", f"{single}[{index - len(value)}]")
    else:
        yield path, single, value


@given(values)
@settings(max_examples=150)
def test_the_path_to_any_leaf_picks_the_leaf(value: Any) -> None:
    for path, single, leaf in leaves(value):
        assert pick(path, value) == leaf
        assert pick(single, value) == leaf


@given(st.text(max_size=60) | st.text("$.[]*?:'\"@&|=<>~!() ab01-", max_size=40))
@settings(max_examples=300)
def test_any_text_is_a_valid_path_or_is_refused(path: str) -> None:
    with suppress(InvalidParams):
        pick(path)


def test_text_with_too_many_lists_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = record_parsed_texts(monkeypatch)
    with pytest.raises(InvalidParams, match="too many to pick from") as refused:
        pick_json("[" + ",".join(["[]"] * 1_500_000) + "]", "$[0]")
    assert refused.value.hint == "Use offset or search."
    assert len(parsed) == 0, "a text that is too large to pick from was parsed"


def test_text_with_many_numbers_is_picked_from() -> None:
    assert pick_json("[" + "1," * 3_000_000 + "2]", "$[-1]") == "2"
