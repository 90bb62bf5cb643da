"""Tools as servers list them: which schemas can be used, and how they are listed."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.upstream.tools import make_tool, read_listing
from tests.check_tool_schemas import problems

ANCHORED = {
    "properties": {"a": {"$ref": "#text"}, "b": {"$ref": "node"}, "c": {"$ref": "#/$defs/d"}},
    "$defs": {
        "d": {"$anchor": "text", "type": "string"},
        "n": {"$id": "node", "$dynamicAnchor": "n", "properties": {"next": {"$dynamicRef": "#n"}}},
    },
}


@pytest.mark.req("C4")
def test_a_tool_whose_schema_uses_anchors_identifiers_and_dynamic_references_is_listed_and_validated() -> None:
    raw = {"name": "t", "inputSchema": {"type": "object", **ANCHORED}}
    assert read_listing([raw], 10).problems == ()
    tool = make_tool("server", raw)
    assert tool.accepts({"a": "x", "b": {"next": {"next": {}}}})
    assert not tool.accepts({"a": 1})
    assert not tool.accepts({"b": {"next": {"next": 1}}} | {"c": 1})
    assert list(problems(tool.listing())) == []
    assert tool.listing()["inputSchema"]["properties"]["a"] == {"type": "string"}


@pytest.mark.parametrize(
    "schema", [{"$ref": "https://example.com/s"}, {"$id": "x", "properties": {"a": {"$ref": "y"}}}]
)
def test_a_tool_whose_schema_refers_to_another_document_is_skipped_with_the_reason(schema: dict[str, Any]) -> None:
    listing = read_listing([{"name": "t", "inputSchema": schema}], 10)
    assert listing.tools == ()
    assert "another document" in listing.problems[0]
