"""Arguments repeated as headers: declared in the schema and compared with the call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import HeaderMismatch
from tabhub.wire.param_headers import MARK, ParamHeader, check, declared


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


REGION = schema(region={"type": "string", MARK: "Region"}, count={"type": "integer", MARK: "Count"})


def test_marks_along_properties_are_found() -> None:
    nested = schema(where=schema(tenant={"type": "string", MARK: "Tenant"}), plain={"type": "string"})
    assert declared(nested) == (ParamHeader(("where", "tenant"), b"mcp-param-tenant", "string"),)
    assert [h.header for h in declared(REGION)] == [b"mcp-param-region", b"mcp-param-count"]


@pytest.mark.parametrize(
    "bad",
    [
        schema(a={"type": "string", MARK: "has space"}),
        schema(a={"type": "string", MARK: ""}),
        schema(a={"type": "string", MARK: 5}),
        schema(a={"type": "number", MARK: "A"}),
        schema(a={"type": "object", MARK: "A"}),
        schema(a={MARK: "A"}),
        schema(a={"type": "string", MARK: "A"}, b={"type": "string", MARK: "a"}),
        schema(a={"type": "string", MARK: "A"}, b={"type": "array", "items": {"type": "string", MARK: "B"}}),
        {"allOf": [schema(a={"type": "string", MARK: "A"})]},
        schema(),
    ],
)
def test_one_invalid_mark_disables_all_marks_of_a_schema(bad: dict[str, Any]) -> None:
    assert declared(bad) == ()


def test_headers_that_match_the_arguments_are_accepted() -> None:
    headers = [(b"mcp-param-region", b"eu"), (b"mcp-param-count", b"3"), (b"other", b"x")]
    check(declared(REGION), {"region": "eu", "count": 3}, headers)
    check(declared(REGION), {}, [])
    check(declared(REGION), {"region": None}, [])


@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "eu"}, []),
        ({"region": "eu"}, [(b"mcp-param-region", b"us")]),
        ({"region": "eu"}, [(b"mcp-param-region", b"eu"), (b"mcp-param-region", b"eu")]),
        ({}, [(b"mcp-param-region", b"eu")]),
        ({"region": ["eu"]}, [(b"mcp-param-region", b"eu")]),
        ({"count": 3}, [(b"mcp-param-count", b"3.5")]),
        ({"count": 3}, [(b"mcp-param-count", b"0x3")]),
        ({"count": True}, [(b"mcp-param-count", b"1")]),
    ],
)
def test_headers_that_differ_from_the_arguments_are_refused(
    arguments: dict[str, Any], headers: list[tuple[bytes, bytes]]
) -> None:
    with pytest.raises(HeaderMismatch):
        check(declared(REGION), arguments, headers)


@given(st.integers(-(2**53), 2**53))
def test_whole_numbers_match_in_every_spelling(number: int) -> None:
    wanted = declared(schema(count={"type": "integer", MARK: "Count"}))
    for spelled in (b"%d" % number, b"%d.0" % number):
        check(wanted, {"count": number}, [(b"mcp-param-count", spelled)])
    with pytest.raises(HeaderMismatch):
        check(wanted, {"count": number}, [(b"mcp-param-count", b"%d" % (number + 1))])
