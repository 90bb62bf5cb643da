"""Which entries of `_meta` are forwarded."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.core.forwarded_meta import forwarded_meta


@pytest.mark.parametrize(
    "key", ["note", "example.com/trace", "com.example/x", "progress", "tabhubber/x", "example.tabhub/x", "mcp"]
)
def test_entries_of_agents_and_servers_are_forwarded(key: str) -> None:
    assert forwarded_meta({key: 1}) == {key: 1}


@pytest.mark.parametrize(
    "key",
    [
        "progressToken",
        "tabhub/untrusted",
        "Tabhub/untrusted",
        "tabhub.internal/x",
        "io.modelcontextprotocol/serverInfo",
        "modelcontextprotocol.io/x",
        "MCP/x",
        "tools.mcp.com/x",
    ],
)
def test_entries_of_the_protocol_and_the_hub_are_not_forwarded(key: str) -> None:
    assert forwarded_meta({key: 1, "kept": 2}) == {"kept": 2}


@pytest.mark.parametrize("meta", [None, "text", [], 5])
def test_meta_that_is_not_an_object_is_dropped(meta: Any) -> None:
    assert forwarded_meta(meta) == {}
