"""Long results: the agent gets the part that fits and a handle, and reads the rest with `tabhub_read_result`."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tabhub.calls import engine
from tabhub.core.registry import Entry
from tabhub.core.results.budget import Fitted, fit
from tabhub.core.results.tokens import estimate_tokens
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tests.harness.agent import PROGRAM, Agent, client, stateless
from tests.harness.hub import RunningHub, running_hub
from tests.harness.results import both_forms

LIBRARY = Source("plugin", "library")
ROWS = [{"id": n, "title": f"Book number {n}", "price": n % 50} for n in range(20_000)]
LINES = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(5000))
HUGE = ("word " * 19 + "end.\n") * 100_000
_ROW = b'{"id":1,"name":"a name","url":"https://example.com/a","tags":["a","b"],"price":1.5}'


def structured(items: bytes) -> ToolResult:
    """A result whose text repeats its structured content, as a script's does."""
    data = b'{"value":[' + items + b"]}"
    text = json.dumps(data.decode()).encode()
    return ToolResult(b'{"content":[{"type":"text","text":' + text + b'}],"structuredContent":' + data + b"}")


HUGE_RESULTS = {
    "text": ToolResult.text(HUGE),
    "rows": structured(b",".join([_ROW] * (9_900_000 // len(_ROW)))),
    "brackets": structured(b",".join([b"[]"] * 3_300_000)),
}


@pytest.fixture
def library(hub: RunningHub) -> RunningHub:
    """A hub with tools whose results are long."""

    def tool(name: str, make: Any) -> Entry:
        async def run(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
            made: ToolResult = make()
            return made

        return Entry(Tool(f"library_{name}", LIBRARY, name, {"type": "object"}), run)

    hub.hub.tabs.register(
        LIBRARY,
        [
            tool("rows", lambda: both_forms({"rows": ROWS})),
            tool("lines", lambda: ToolResult.text(LINES)),
            *(tool(f"huge_{kind}", lambda made=made: made) for kind, made in HUGE_RESULTS.items()),
            tool("failed", lambda: ToolResult.text(LINES, is_error=True)),
            tool("short", lambda: ToolResult.text("short")),
        ],
    )
    return hub


async def result(agent: Agent, name: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = (await agent.call(name, arguments))["result"]
    return answer


async def handle_of(agent: Agent, name: str) -> str:
    handle: str = (await result(agent, name))["_meta"]["tabhub/result"]["handle"]
    return handle


async def read(agent: Agent, handle: str, **how: Any) -> dict[str, Any]:
    answer = await result(agent, "tabhub_read_result", handle=handle, **how)
    assert "isError" not in answer, answer
    facts: dict[str, Any] = answer["structuredContent"]
    return facts


async def test_the_size_of_one_read_is_a_setting(tmp_path: Path) -> None:
    async def lines(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
        return ToolResult.text(LINES)

    bounds = {"read_chars": 500, "result_tokens": 1_000}
    async with running_hub(tmp_path, limits=bounds) as hub, Agent(hub) as agent:
        hub.hub.tabs.register(LIBRARY, [Entry(Tool("library_lines", LIBRARY, "lines", {"type": "object"}), lines)])
        handle = await handle_of(agent, "library_lines")
        assert 400 < len((await read(agent, handle))["text"]) <= 500
        assert 500 < estimate_tokens((await read(agent, handle, limit=80_000))["text"]) <= 1_000


async def test_a_short_result_is_unchanged(library: RunningHub) -> None:
    async with Agent(library) as agent:
        assert await result(agent, "library_short") == {"content": [{"type": "text", "text": "short"}]}


async def test_a_long_result_is_cut_to_its_budget_with_a_handle_to_the_rest(library: RunningHub) -> None:
    async with Agent(library) as agent:
        answer = await result(agent, "library_lines")
    shown = "".join(block["text"] for block in answer["content"])
    facts = answer["_meta"]["tabhub/result"]
    assert estimate_tokens(shown) <= 25_000
    assert shown.startswith("line 0:")
    assert facts["totalChars"] == len(LINES)
    assert "tabhub_read_result" in answer["content"][-1]["text"]
    assert facts["handle"] in answer["content"][-1]["text"]


async def test_the_whole_result_can_be_read_in_pages(library: RunningHub) -> None:
    async with Agent(library) as agent:
        handle = await handle_of(agent, "library_lines")
        text, offset = "", 0
        while True:
            page = await read(agent, handle, offset=offset, limit=50_000)
            assert (page["offset"], page["totalChars"]) == (offset, len(LINES))
            text += page["text"]
            if "nextOffset" not in page:
                break
            offset = page["nextOffset"]
    assert text == LINES


async def test_a_stored_result_can_be_searched_and_picked_from(library: RunningHub) -> None:
    async with Agent(library) as agent:
        lines, rows = await handle_of(agent, "library_lines"), await handle_of(agent, "library_rows")
        hit = await read(agent, lines, search="line 4321:")
        pattern = await read(agent, lines, search="/line 49[0-9]{2}:/")
        picked = await read(agent, rows, pick="$.rows[19999].title")
    assert hit["matches"] == 1
    assert "line 4321: the quick" in hit["text"]
    assert pattern["matches"] == 100
    assert "Book number 19999" in picked["text"]


async def test_a_failed_result_stays_a_failure_when_cut(library: RunningHub) -> None:
    async with Agent(library) as agent:
        answer = await result(agent, "library_failed")
        assert answer["isError"] is True
        assert (await read(agent, answer["_meta"]["tabhub/result"]["handle"], limit=5))["text"] == "line "
    assert library.hub.engine.audit.recent(5)[-1]["success"] is False


@pytest.mark.parametrize("handle", ["r_" + "x" * 20, "nonsense", "", "r_../../etc/passwd"])
async def test_an_unknown_handle_is_an_error(library: RunningHub, handle: str) -> None:
    async with Agent(library) as agent:
        answer = await result(agent, "tabhub_read_result", handle=handle)
    assert answer["isError"] is True
    assert answer["_meta"]["tabhub/error"]["category"] == "not_found"


async def test_another_sessions_handle_gives_the_same_error_as_a_missing_one(library: RunningHub) -> None:
    async with Agent(library) as mine, Agent(library) as other:
        handle = await handle_of(mine, "library_lines")
        taken = await result(other, "tabhub_read_result", handle=handle)
        made_up = await result(other, "tabhub_read_result", handle="r_" + "y" * 20)
        assert (await read(mine, handle, limit=4))["text"] == "line"
    assert taken["content"][0]["text"].replace(handle, "*") == made_up["content"][0]["text"].replace(
        "r_" + "y" * 20, "*"
    )


async def test_stateless_agents_read_by_the_handle_alone(library: RunningHub) -> None:
    async with client(library) as http:

        async def call(name: str, **arguments: Any) -> Any:
            body, headers = stateless("tools/call", {"name": name, "arguments": arguments})
            return (await http.post(PROGRAM, json=body, headers=headers)).json()["result"]

        handle = (await call("library_lines"))["_meta"]["tabhub/result"]["handle"]
        assert (await call("tabhub_read_result", handle=handle, limit=5))["structuredContent"]["text"] == "line "


@pytest.mark.req("L5")
@pytest.mark.parametrize("kind", HUGE_RESULTS)
async def test_results_of_9_9_mb_at_once_are_budgeted_outside_the_event_loop(
    library: RunningHub, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `python -m bench rows L5` measures how long ten of them block the event loop.
    assert len(HUGE_RESULTS[kind].payload) >= 9.9e6
    threads: list[str] = []

    def noted(payload: bytes, tokens: int) -> Fitted | None:
        threads.append(threading.current_thread().name)
        return fit(payload, tokens)

    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(Agent(library)) for _ in range(3)]
        with monkeypatch.context() as patched:
            patched.setattr(engine, "fit", noted)
            answers = await asyncio.gather(*(result(agent, f"library_huge_{kind}") for agent in agents))
        assert threads == ["tabhub-results_0"] * 3
        for agent, answer in zip(agents, answers, strict=True):
            shown = "".join(block["text"] for block in answer["content"])
            assert estimate_tokens(shown) <= 25_000 * 1.02  # estimated again, as one text
            facts = answer["_meta"]["tabhub/result"]
            assert facts["totalChars"] >= 9.9e6
            tail = await read(agent, facts["handle"], offset=facts["totalChars"] - 5)
            assert (len(tail["text"]), "nextOffset" in tail) == (5, False)
            if kind != "text":  # clients validate it against the tool's schema
                assert 100 <= len(answer["structuredContent"]["value"]) <= 2000


async def test_reading_a_result_is_in_the_audit_log_like_any_call(library: RunningHub) -> None:
    async with Agent(library) as agent:
        await read(agent, await handle_of(agent, "library_rows"), limit=10)
    entry = library.hub.engine.audit.recent(1)[0]
    assert (entry["tool"], entry["plugin"], entry["success"]) == ("tabhub_read_result", "hub", True)
    assert "rows" not in json.dumps(entry)
