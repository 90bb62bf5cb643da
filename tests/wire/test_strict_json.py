"""Strict JSON: valid input is read as every parser reads it, and everything else is refused.

A scan stops at the bound that is exceeded, before a value is built. `python -m bench hostile` measures the cost.
"""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import ParseError
from tabhub.limits import Limits
from tabhub.wire import strict_json as strict
from tests.wire.builders import record_parsed_texts

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
    """A JSON string of this text, with some of its characters escaped."""
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
    """A JSON text in which one object, at any depth, has a duplicate key in any spelling."""
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
def test_encoded_values_decode_to_themselves(value: Any) -> None:
    assert strict.decode(orjson.dumps(value)) == value


@given(st.binary(max_size=200) | st.text('{}[]":,\\0123e-+.tfnu \n', max_size=60).map(str.encode))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
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
def test_a_duplicate_key_is_found_at_any_depth_and_in_any_spelling(text: str) -> None:
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
def test_invalid_json_is_refused(data: bytes) -> None:
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
def test_invalid_utf8_is_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        strict.decode(data)


@pytest.mark.parametrize("text", ['"\ud800"', '{"\udfff":1}', "\ufeff{}"], ids=["surrogate", "in a key", "BOM"])
def test_text_with_invalid_unicode_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        strict.decode(text)


KEYS_100_000 = b",".join(b'"%d":1' % i for i in range(100_000))
ONE_KEY = b'{"a":1}'
SIZE = 1_000_000
OVERRUN = 64 * 1024
"""Bytes that may be scanned after the one that exceeds a bound."""


@pytest.mark.req("B5")
@pytest.mark.parametrize(
    ("data", "offence", "message"),
    [
        (b"[" * 65 + b"]" * 65, 64, "nested deeper"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, 64 * 5, "nested deeper"),
        (b"[" * SIZE, 64, "nested deeper"),
        (b"[" * 65 + b'"' + b'\\"' * SIZE, 64, "nested deeper"),
        (b"[" * 65 + b'"' * SIZE, 64, "nested deeper"),
        (b"{" * 65 + b'"' + b"\\" * SIZE, 64, "nested deeper"),
        (b"[" + b"[]," * 100_000 + b"[" * 64 + b"1," * SIZE, 300_064, "nested deeper"),
        (b"{" + KEYS_100_000 + b"}", KEYS_100_000.index(b'"90000":'), "keys"),
        (b"[" + b",".join([ONE_KEY] * 300_000) + b"]", 90_000 * (len(ONE_KEY) + 1), "keys"),
        (b"9" * 5000, 400, "digits"),
        (b'{"n": -0.' + b"1" * 5000 + b"}", 409, "digits"),
        (b'[1, {"deep": [1e' + b"1" * 5000 + b"]}]", 416, "digits"),
        (b'["' + b"1" * SIZE + b'",' + b"1" * 400 + b"," + b"1," * SIZE, SIZE + 404, "digits"),
    ],
    ids=[
        "arrays 65 deep",
        "objects 65 deep",
        "brackets without end",
        "escaped quotes without end",
        "quotes alone",
        "backslashes alone",
        "deep after 300 KB",
        "100,000 keys",
        "300,000 objects",
        "5,000 digits",
        "5,000 decimals",
        "5,000 digits of exponent",
        "400 digits after 1 MB",
    ],
)
def test_scan_stops_where_a_bound_is_exceeded_and_nothing_is_parsed(
    data: bytes, offence: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = record_parsed_texts(monkeypatch)
    with pytest.raises(ParseError, match=f"Not accepted: .*{message}"):
        strict.decode(data)
    assert parsed == [], "a value was built although the text exceeds a bound"

    scan = strict.Scan(data, Limits())
    with pytest.raises(ParseError, match=message):
        scan.run()
    assert offence <= scan.examined, "refused before the bound is exceeded"
    assert scan.examined <= offence + OVERRUN, "scanned on after the bound was exceeded"
    assert scan.keys <= Limits().max_keys + OVERRUN // 2, "counted on after too many keys"


@pytest.mark.req("B5")
@pytest.mark.parametrize(
    "data",
    [
        b"NaN",
        b'{"a": [NaN]}',
        b'{"a": 1, "b": {"c": 2, "c": 3}}',
        b"[" + b"{}," * 20_000 + b'{"a":1,"\\u0061":2}]',
    ],
    ids=["NaN", "NaN inside", "duplicate key", "duplicate key after 60 KB"],
)
def test_ambiguous_values_within_the_bounds_are_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        strict.decode(data)


@pytest.mark.parametrize("window", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    "text",
    [
        rb'{"a":"\\\"[{:","b\\":[1,"\\\\",{"c\"\"":2}]}',
        rb'["' + b"\\\\" * 40 + rb'",{"k":"[[[["}]',
        b'{"n":' + b"1" * 399 + b',"s":"' + b"1" * 900 + b'"}',
        b"[" * 64 + b"]" * 64,
        b"[" + b'"",' * 50 + b"{}]",
    ],
)
def test_scan_counts_the_same_however_the_text_is_divided(text: bytes, window: int) -> None:
    scan = strict.Scan(text, Limits(), window)
    scan.run()
    assert (scan.examined, scan.keys) == (len(text), _keys_in(json.loads(text)))


def _keys_in(value: Any) -> int:
    if isinstance(value, dict):
        return len(value) + sum(map(_keys_in, value.values()))
    return sum(map(_keys_in, value)) if isinstance(value, list) else 0


@given(VALUES, st.integers(1, 40), st.integers(1, 6), st.integers(1, 8), st.integers(2, 12))
def test_scan_refuses_the_same_however_the_text_is_divided(
    value: Any, window: int, depth: int, keys: int, digits: int
) -> None:
    text, limits = json.dumps(value).encode(), Limits(max_depth=depth, max_keys=keys, max_digits=digits)
    refused = []
    for size in (len(text), window):
        try:
            strict.Scan(text, limits, size).run()
            refused.append(False)
        except ParseError:
            refused.append(True)
    assert refused[0] == refused[1]


def test_digits_next_to_a_string_are_not_joined_across_it() -> None:
    text = b"[" + b"1" * 300 + b',"",' + b"1" * 300 + b"]"
    strict.Scan(text, Limits()).run()


def test_scan_stops_at_an_unmatched_closing_bracket() -> None:
    text = b"[]]" + b"1," * SIZE + b"[" * 70
    scan = strict.Scan(text, Limits())
    scan.run()
    assert scan.examined <= OVERRUN
    with pytest.raises(ParseError, match="Not valid JSON"):
        strict.decode(text)


@pytest.mark.parametrize("digits", [1, 10, 33, 400, 1000])
def test_long_number_is_refused_wherever_it_begins(digits: int) -> None:
    limits = Limits(max_digits=digits)
    for offset in range(70):
        before = b"[" + b" " * offset
        strict.Scan(before + b"1" * (digits - 1) + b"]", limits).run()
        with pytest.raises(ParseError, match=f"{digits} digits"):
            strict.decode(before + b"1" * digits + b"]", limits)


def test_long_number_is_refused_across_a_window_boundary() -> None:
    text = b"[" + b"1" * 400 + b"]"
    for window in (1, 7, 200, 399, 400, 401):
        with pytest.raises(ParseError, match="400 digits"):
            strict.Scan(text, Limits(), window).run()


@given(st.lists(st.sampled_from("[]{}"), min_size=65, max_size=400).map("".join), st.integers(1, 70))
def test_the_deepest_nesting_counts(brackets: str, most: int) -> None:
    limits = Limits(max_depth=most)
    text = json.dumps(nested(brackets))
    deepest = max(depth_of(text), 0)
    if deepest > most:
        with pytest.raises(ParseError, match=f"nested deeper than {most}"):
            strict.decode(text, limits)
    else:
        assert strict.decode(text, limits) == json.loads(text)


def nested(brackets: str) -> list[Any]:
    """A value that is one level deeper for an opening bracket and one level higher for a closing one."""
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


def test_truncated_json_is_reported_as_invalid_rather_than_too_deep() -> None:
    whole = json.dumps([[{"a": [i]} for i in range(200)]])
    for cut in (whole[:-1], whole[: len(whole) // 2], whole + "]" * 100):
        with pytest.raises(ParseError, match="Not valid JSON"):
            strict.decode(cut)


def test_values_at_the_bounds_are_accepted() -> None:
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


def test_dangerous_names_are_plain_keys() -> None:
    value = strict.decode('{"__proto__": {"x": 1}, "constructor": 2, "prototype": null}')
    assert value == {"__proto__": {"x": 1}, "constructor": 2, "prototype": None}
