"""Strict JSON: valid input reads as every parser reads it, everything else is refused, and nothing takes long."""

from __future__ import annotations

import json
import time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import ParseError
from tabhub.limits import Limits
from tabhub.wire import strict

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(
    SCALARS.filter(lambda v: v not in (float("inf"), float("-inf"))),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5),
    max_leaves=30,
)
KEYS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6) | st.sampled_from(
    ['"', "\\", ":", "a:b", '{"', "__proto__", '":', "\\u0061", "\n", "ключ", "😀"]
)


def spelled(draw: Any, text: str) -> str:
    """A JSON string of this text, with some of its characters written as escapes."""
    parts = []
    for char in text:
        if draw(st.booleans()):
            units = char.encode("utf-16-be")
            parts += [f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)]
        else:
            parts.append(json.dumps(char, ensure_ascii=False)[1:-1])
    return '"' + "".join(parts) + '"'


@st.composite
def doubled(draw: Any) -> str:
    """A JSON text in which one object, however deep, has one key twice, however it is spelled."""
    key = draw(KEYS)
    names = draw(st.lists(KEYS.filter(lambda name: name != key), unique=True, max_size=3))
    members = [f"{json.dumps(name)}:{json.dumps(draw(VALUES))}" for name in names]
    members += [f"{spelled(draw, key)}:{json.dumps(draw(VALUES))}" for _ in range(2)]
    text = "{" + ",".join(draw(st.permutations(members))) + "}"
    for _ in range(draw(st.integers(0, 8))):
        text = f"[{json.dumps(draw(TEXT))}, {text}]" if draw(st.booleans()) else f'{{"in:[{{": {text}, "b": 1}}'
    return text


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_valid_json_reads_as_the_standard_library_reads_it(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert strict.decode(text.encode()) == json.loads(text)
    assert strict.decode(text) == json.loads(text)


@given(VALUES)
def test_what_is_written_reads_back(value: Any) -> None:
    assert strict.decode(strict.encode(value)) == value


@given(st.binary(max_size=200) | st.text('{}[]":,\\0123e-+.tfnu \n', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = strict.decode(data)
    except ParseError:
        return
    assert value == orjson.loads(data)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        strict.decode(text)
    except ParseError:
        return
    json.loads(text)


@given(doubled())
def test_a_key_written_twice_is_found_at_any_depth_and_in_any_spelling(text: str) -> None:
    json.loads(text)
    with pytest.raises(ParseError, match="same key twice"):
        strict.decode(text)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" ",
        b"NaN",
        b'{"a": Infinity}',
        b"[1,]",
        b'{"a":1,}',
        b"{'a':1}",
        b"// comment\n1",
        b"1 2",
        b'{"a":1}{"b":2}',
        b"01",
        b'"tab\tin it"',
        b'"\\x41"',
        b'"never closed',
        b'{"a":"\\',
    ],
)
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        strict.decode(data)


@pytest.mark.parametrize(
    "data",
    [
        b'"\xff"',
        b'"\xc0\x80"',
        b'"\xed\xa0\x80"',
        b'"\\ud800"',
        b'{"\\udc00": 1}',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
        "{}".encode("utf-16-le"),
        "{}".encode("utf-32"),
    ],
    ids=["byte", "overlong", "surrogate", "lone high", "lone low", "BOM", "UTF-16", "UTF-16LE", "UTF-32"],
)
def test_what_is_not_clean_utf8_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        strict.decode(data)


@pytest.mark.parametrize("text", ['"\ud800"', '{"\udfff":1}', "\ufeff{}"], ids=["surrogate", "in a key", "BOM"])
def test_text_that_is_no_clean_unicode_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        strict.decode(text)


@pytest.mark.req("B5")
@pytest.mark.parametrize(
    "data",
    [
        b"[" * 65 + b"]" * 65,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"[" * 2_000_000,
        b"{" + b",".join(b'"%d":1' % i for i in range(100_000)) + b"}",
        b"[" + b",".join([b'{"a":1}'] * 100_000) + b"]",
        b"9" * 5000,
        b'{"n": -0.' + b"1" * 5000 + b"}",
        b'[1, {"deep": [1e' + b"1" * 5000 + b"]}]",
        b"NaN",
        b'{"a": [NaN]}',
        b'{"a": 1, "b": {"c": 2, "c": 3}}',
        b"[" + b"{}," * 20_000 + b'{"a":1,"\\u0061":2}]',
        b"[" * 65 + b'"' + b'\\"' * 1_900_000,
        b"[" * 65 + b'"' * 1_999_999,
        b"{" * 65 + b'"' + b"\\" * 1_999_999,
    ],
    ids=[
        "arrays 65 deep",
        "objects 65 deep",
        "brackets without end",
        "100,000 keys",
        "100,000 objects",
        "5,000 digits",
        "5,000 decimals",
        "5,000 digits of exponent",
        "NaN",
        "NaN inside",
        "duplicate key",
        "duplicate key behind 60 KB",
        "escaped quotes without end",
        "quotes alone",
        "backslashes alone",
    ],
)
def test_hostile_input_is_refused_at_once(data: bytes) -> None:
    took = []
    for _ in range(5):
        began = time.process_time()  # what it costs, however busy the machine is with other things
        with pytest.raises(ParseError):
            strict.decode(data)
        took.append(time.process_time() - began)
    assert min(took) < 0.05


@given(st.lists(st.sampled_from("[]{}"), min_size=65, max_size=400).map("".join), st.integers(1, 70))
def test_the_depth_that_counts_is_the_deepest_there_is(brackets: str, most: int) -> None:
    limits = Limits(max_depth=most)
    text = json.dumps(nested(brackets))
    deepest = max(depth_of(text), 0)
    if deepest > most:
        with pytest.raises(ParseError, match=f"nested deeper than {most}"):
            strict.decode(text, limits)
    else:
        assert strict.decode(text, limits) == json.loads(text)


def nested(brackets: str) -> list[Any]:
    """A value that goes down for an opening bracket and up for a closing one."""
    root: list[Any] = []
    path = [root]
    for bracket in brackets:
        if bracket in "[{":
            inner: list[Any] = []
            path[-1].append(inner if bracket == "[" else {"a": inner})
            path.append(inner)
        elif len(path) > 1:
            path.pop()
    return root


def depth_of(text: str) -> int:
    depth = deepest = 0
    for char in text:
        depth += (char in "[{") - (char in "]}")
        deepest = max(deepest, depth)
    return deepest


def test_json_that_was_cut_short_is_called_invalid_not_deep() -> None:
    whole = json.dumps([[{"a": [i]} for i in range(200)]])
    for cut in (whole[:-1], whole[: len(whole) // 2], whole + "]" * 100):
        with pytest.raises(ParseError, match="Not valid JSON"):
            strict.decode(cut)


def test_the_bounds_themselves_are_allowed() -> None:
    assert strict.decode(b"[" * 64 + b"]" * 64)
    assert len(strict.decode(b"{" + b",".join(b'"%d":1' % i for i in range(50_000)) + b"}")) == 50_000
    assert strict.decode(b"0." + b"1" * 399) == pytest.approx(1 / 9)


def test_brackets_colons_and_digits_in_strings_do_not_count() -> None:
    text = json.dumps({"a": "[" * 500 + ":" * 60_000 + "7" * 1000 + '"\\' * 300})
    assert strict.decode(text) == json.loads(text)


def test_the_bounds_are_settings() -> None:
    limits = Limits(max_depth=2, max_keys=3, max_digits=10)
    assert strict.decode(b'{"a":[1],"b":2}', limits) == {"a": [1], "b": 2}
    for data in (b"[[[1]]]", b'{"a":1,"b":2,"c":3,"d":4}', b"[12345678901]"):
        with pytest.raises(ParseError, match="Not accepted"):
            strict.decode(data, limits)


@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_all_kinds_of_bytes_are_taken(wrap: type) -> None:
    assert strict.decode(wrap(b'{"a":1}')) == {"a": 1}


def test_dangerous_names_are_plain_keys() -> None:
    value = strict.decode('{"__proto__": {"x": 1}, "constructor": 2, "prototype": null}')
    assert value == {"__proto__": {"x": 1}, "constructor": 2, "prototype": None}
