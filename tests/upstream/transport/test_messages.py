"""What an external server sends: read, mended where half a character is all that is wrong, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.upstream.transport.messages import SurrogateFilter, read_message, replace_surrogates
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
def test_half_a_character_is_replaced_and_nothing_else_changes(written: str, meant: Any, kind: type) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"result":{{"value":{written}}}}}'
    assert read(line if kind is str else line.encode()) == meant


@given(st.text(alphabet=st.characters(codec="utf-8")), st.booleans())
def test_whole_texts_stay_as_they_are(value: str, escaped: bool) -> None:
    assert read(json.dumps(answer(value), ensure_ascii=escaped)) == value


@given(st.lists(st.sampled_from([r"\ud83d", r"\ude00", r"\u0041", "\\\\", r"\n", "u", "d83d", "x"])), st.integers(1, 7))
def test_chunks_are_filtered_like_the_whole(parts: list[str], size: int) -> None:
    data = "".join(parts).encode()
    surrogates = SurrogateFilter()
    chunks = [surrogates.feed(data[start : start + size]) for start in range(0, len(data), size)]
    assert b"".join(chunks) + surrogates.rest == replace_surrogates(data)


def test_the_end_of_an_event_is_not_held_back() -> None:
    event = rb'data: {"text":"say \"hi\""}' + b"\n\n"
    assert SurrogateFilter().feed(event) == event


@pytest.mark.parametrize("data", ["", "{", "[]", r'"\ud800"', '{"jsonrpc":"2.0"}', "\\ud800"])
def test_what_is_no_message_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        read_message(data.encode())


async def test_a_server_that_cuts_its_texts_in_the_middle_of_a_character_is_understood(tmp_path: Path) -> None:
    listing = tmp_path / "tools.json"
    listing.write_text(json.dumps([{"name": "cut", "description": "Cuts \ud83d", "inputSchema": {"type": "object"}}]))
    async with running_hub(tmp_path) as hub, Agent(hub) as agent:
        (facts,) = await hub.hub.upstream.add({"told": python("told", str(listing), "half")})
        assert [tool["description"] for tool in facts["tools"]] == ["Cuts \ufffd"]
        assert text((await agent.call("mcp__told__cut"))["result"]) == "told: cut \ufffd"
