"""Parsing messages of external servers: valid ones, ones with a lone surrogate, and invalid ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.upstream.transport.messages import read_message
from tests.harness.agent import Agent
from tests.harness.hub import running_hub
from tests.upstream.servers import python, text


def answer(value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": {"value": value}}


def read(data: bytes | str) -> Any:
    message = read_message(data if isinstance(data, bytes) else data.encode())
    assert isinstance(message, types.JSONRPCResponse)
    return message.result["value"]


@pytest.mark.parametrize("kind", [str, bytes])
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (r'"a\ud83d"', "a\ufffd"),
        (r'"\uDE00b"', "\ufffdb"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\ud83d\ude00\ude00"', "😀\ufffd"),
        (r'"\\ud83d \ud83d \\\ud83d"', "\\ud83d \ufffd \\\ufffd"),
        (r'{"\udc00": ["\ud800"]}', {"\ufffd": ["\ufffd"]}),
    ],
)
def test_a_lone_surrogate_is_replaced_and_nothing_else_changes(written: str, meant: Any, kind: type) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"result":{{"value":{written}}}}}'
    assert read(line if kind is str else line.encode()) == meant


@given(st.text(alphabet=st.characters(codec="utf-8")), st.booleans())
def test_other_texts_are_unchanged(value: str, escaped: bool) -> None:
    assert read(json.dumps(answer(value), ensure_ascii=escaped)) == value


@pytest.mark.parametrize("data", ["", "{", "[]", r'"\ud800"', '{"jsonrpc":"2.0"}', "\\ud800"])
def test_invalid_messages_are_refused(data: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        read_message(data.encode())


async def test_texts_cut_inside_a_character_are_accepted(tmp_path: Path) -> None:
    listing = tmp_path / "tools.json"
    listing.write_text(json.dumps([{"name": "cut", "description": "Cuts \ud83d", "inputSchema": {"type": "object"}}]))
    async with running_hub(tmp_path) as hub, Agent(hub) as agent:
        (facts,) = await hub.hub.upstream.add({"listed": python("listed", str(listing), "half")})
        assert [tool["description"] for tool in facts["tools"]] == ["Cuts \ufffd"]
        assert text((await agent.call("mcp__listed__cut"))["result"]) == "listed: cut \ufffd"
