"""Results within the budget are unchanged; others are cut and get a handle."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tabhub.core.results.budget import IMAGE_TOKENS, Fitted, fit, json_lines, prefix_within, tidy_end
from tabhub.core.results.tokens import estimate_tokens
from tabhub.errors import ParseError
from tests.harness.results import both_forms


def result(*blocks: dict[str, Any], **more: Any) -> bytes:
    return orjson.dumps({"content": list(blocks), **more})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def image(size: int = 4_000_000) -> dict[str, Any]:
    return {"type": "image", "data": "A" * size, "mimeType": "image/png"}


def cut(payload: bytes, max_tokens: int = 1_000) -> Fitted:
    fitted = fit(payload, max_tokens)
    assert fitted is not None
    return fitted


def rendered(fitted: Fitted) -> dict[str, Any]:
    value: dict[str, Any] = orjson.loads(fitted.render("res_1"))
    return value


@given(st.text(max_size=300), st.integers(0, 200), st.integers(0, 20))
def test_a_prefix_fits_its_tokens(value: str, tokens: int, start: int) -> None:
    end = prefix_within(value, tokens, start)
    assert end >= min(start, len(value)) or end == start
    assert estimate_tokens(value[start:end]) <= tokens


def test_a_cut_moves_to_the_end_of_a_line_or_behind_a_comma() -> None:
    lines = "first line\nsecond line\nthird line\n"
    assert lines[: tidy_end(lines, 0, 24)] == "first line\nsecond line\n"
    assert tidy_end("aaaa,bbbb,cccc", 0, 12) == 10
    assert tidy_end("x" * 50, 0, 30) == 30
    assert tidy_end("short", 0, 99) == 5


def test_a_payload_with_fewer_bytes_than_the_budget_is_not_parsed() -> None:
    assert fit(b"not json", 8) is None
    with pytest.raises(ParseError, match="not an MCP result"):
        fit(b"not json", 7)


def test_a_result_within_the_budget_is_unchanged() -> None:
    assert fit(result(text("word " * 3_000)), 5_000) is None
    assert fit(both_forms({"rows": ["word " * 2_000]}).payload, 5_000) is None


def test_an_image_counts_as_an_image_and_not_as_its_base64() -> None:
    assert fit(result(text("Here it is."), image()), 2_000) is None
    assert fit(result(*[image(1_000)] * 3), IMAGE_TOKENS * 3) is None


def test_a_long_text_is_cut_with_a_note_on_how_to_read_the_rest() -> None:
    lines = "".join(f"line {i} of the long text\n" for i in range(5_000))
    fitted = cut(result(text(lines)))
    assert (fitted.full_text, fitted.mime) == (lines, "text/plain")
    shown, note = (block["text"] for block in rendered(fitted)["content"])
    assert lines.startswith(shown)
    assert shown.endswith("\n")
    assert f'"handle": "res_1", "offset": {len(shown)}' in note
    assert f"{len(lines):,}" in note
    assert "{handle}" in fitted.head["content"][-1]["text"]


def test_the_cut_is_described_in_meta_next_to_existing_entries() -> None:
    fitted = cut(result(text("word " * 9_000), isError=True, _meta={"mine": 1}, resultType="complete"))
    value = rendered(fitted)
    assert value["_meta"]["mine"] == 1
    assert value["_meta"]["tabhub/result"] == {
        "handle": "res_1",
        "totalChars": 45_000,
        "totalTokens": estimate_tokens(fitted.full_text),
        "mime": "text/plain",
    }
    assert value["isError"] is True
    assert value["resultType"] == "complete"


def test_whole_blocks_are_kept_from_the_front() -> None:
    blocks = [text(f"{i}: " + "word " * 100) for i in range(20)]
    fitted = cut(result(*blocks), 1_000)
    content = rendered(fitted)["content"]
    assert content[:3] == blocks[:3]
    shown = sum(len(block["text"]) + 1 for block in content[:-2]) + len(content[-2]["text"])
    assert fitted.full_text == "\n".join(block["text"] for block in blocks)
    assert f'"offset": {shown}' in content[-1]["text"]


def test_structured_content_is_stored_as_json_lines_and_shortened_in_the_cut_result() -> None:
    data: dict[str, Any] = {"items": [{"id": i, "name": f"item {i}"} for i in range(2_000)], "next": None}
    fitted = cut(both_forms(data).payload)
    value = rendered(fitted)
    part = value["structuredContent"]
    assert part["items"] == data["items"][: len(part["items"])]
    assert part["next"] is None
    assert estimate_tokens(orjson.dumps(part)) <= 1_000
    assert fitted.mime == "application/json"
    assert orjson.loads(fitted.full_text) == data
    assert fitted.full_text.count("\n") > 2_000
    shown, note = (block["text"] for block in value["content"])
    assert fitted.full_text.startswith(shown)
    assert shown.endswith("},\n")
    assert '"pick"' in note
    assert "items, next" in note


def test_json_text_is_stored_as_json_lines_with_unchanged_numbers() -> None:
    big = "12345678901234567890123456789.000"
    fitted = cut(result(text("[" + ",".join([big] * 500) + "]")))
    assert fitted.mime == "application/json"
    assert fitted.full_text.count(big) == 500
    assert "an array of 500" in fitted.head["content"][-1]["text"]


def test_a_text_that_only_begins_like_json_stays_a_text() -> None:
    fitted = cut(result(text("[see below] " + "word " * 5_000)))
    assert fitted.mime == "text/plain"
    assert fitted.full_text.startswith("[see below] word")


def test_a_summary_with_large_structured_content_is_not_cut() -> None:
    data = {"rows": [{"n": i} for i in range(5_000)]}
    fitted = cut(result(text("5,000 rows found."), structuredContent=data))
    content = rendered(fitted)["content"]
    assert content[0]["text"] == "5,000 rows found."
    assert '"offset": 0' in content[-1]["text"]
    assert orjson.loads(fitted.full_text) == data


def test_structured_content_alone_is_shown_in_part() -> None:
    fitted = cut(result(structuredContent={"rows": ["some words"] * 5_000}))
    assert rendered(fitted)["content"][0]["text"].startswith('{\n "rows": [\n')


def test_structured_content_that_cannot_be_shortened_enough_is_left_out() -> None:
    many = {f"key {n}": n for n in range(5_000)}
    assert "structuredContent" not in rendered(cut(result(text("many keys"), structuredContent=many)))


def test_the_first_of_very_many_items_and_the_fields_after_the_list_are_kept() -> None:
    tricky = [{"a": 'x"]},[', "b": "\\"}, ["[", {}], '"', ",", '\\"', -1.5, None, {"c": [1, [2, 3]]}]
    many = [*tricky, *range(400_000)]
    deep: Any = [many]
    for _ in range(40):
        deep = [deep]
    wide = ", " * 200_000  # a text that does not end at the scan limit
    value = {"deep": deep, "items": many, "total": len(many), "texts": ["a", wide * 3, "b", *range(400_000)]}
    fitted = fit(both_forms(value).payload, 25_000)
    assert fitted is not None
    kept = json.loads(fitted.render("r_1"))["structuredContent"]
    assert kept["items"][: len(tricky)] == tricky
    assert kept["items"] == many[: len(kept["items"])]
    assert len(kept["items"]) >= 500
    assert (kept["total"], kept["texts"]) == (len(many), ["a"])
    assert list(kept) == list(value)


def test_images_are_kept_before_text_and_dropped_ones_are_reported() -> None:
    fitted = cut(result(text("word " * 50_000), *[image(10)] * 12), 8_000)
    content = rendered(fitted)["content"]
    assert [block["type"] for block in content] == ["text", *["image"] * 3, "text"]
    assert "Left out and not stored: 9 blocks of type image" in content[-1]["text"]


def test_a_resource_is_cut_as_a_resource() -> None:
    block = {
        "type": "resource",
        "resource": {"uri": "file:///a", "mimeType": "text/markdown", "text": "words " * 9_000},
    }
    fitted = cut(result(block))
    shown = rendered(fitted)["content"][0]
    assert shown["resource"]["uri"] == "file:///a"
    assert len(shown["resource"]["text"]) < 9_000
    assert fitted.mime == "text/markdown"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=60,
)


@given(st.lists(json_values, min_size=1), st.booleans())
@settings(max_examples=60)
def test_formatting_json_changes_no_value(value: list[Any], indented: bool) -> None:
    raw = json.dumps(value * 20, indent=3 if indented else None).encode()
    laid = json_lines(raw)
    assert laid is not None
    assert json.loads(laid) == value * 20


@pytest.mark.parametrize("raw", [b"[1,", b"{]", b"[" * 100_000, b'["\xff"]', b""])
def test_invalid_json_is_not_formatted(raw: bytes) -> None:
    assert json_lines(raw) is None


def test_formatting_very_many_values_does_not_double_the_text() -> None:
    raw = b"[" + b",".join([b"1"] * 1_000_000) + b"]"
    laid = json_lines(raw)
    assert laid is not None
    assert len(laid) < 2 * len(raw)


@given(
    st.lists(st.sampled_from(["text", "image", "json"]), min_size=1, max_size=6),
    st.integers(600, 3_000),
    st.text(min_size=1, max_size=30),
    st.booleans(),
)
@settings(max_examples=80)
def test_a_cut_result_is_within_its_budget(kinds: list[str], budget: int, word: str, structured: bool) -> None:
    made = {"text": text((word + " ") * 700), "image": image(9_000), "json": text(json.dumps([word] * 700))}
    more = {"structuredContent": {"rows": [word] * 900}} if structured else {}
    fitted = fit(result(*(made[kind] for kind in kinds), **more), budget)
    if fitted is None:
        return
    spent = 0
    for block in rendered(fitted)["content"]:
        spent += estimate_tokens(block["text"]) if block["type"] == "text" else IMAGE_TOKENS
    assert spent <= budget
