"""The MCP client of `tabhub agent` and `tabhub demo`: sessions, calls, elicitations and cancellation."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import HubError, HubUnreachable
from tabhub.mcp.client import McpClient
from tests.harness.hub import RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.waiting import until

ASKED = "browser_execute_script"
SCRIPT = {"tabId": 7, "code": "return 1"}
ASKING: dict[str, Any] = {"permissions": {"browser": {"tools": {ASKED: "ask"}}}}


def client(hub: RunningHub, ask: Any = None) -> McpClient:
    return McpClient(f"127.0.0.1:{hub.port}", lambda: hub.token, "test", ask)


async def test_results_and_errors_are_returned_unchanged(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Panel(hub):
        mcp = client(hub)
        await mcp.open()
        assert (await mcp.call_tool("browser_list_tabs", {}))["content"][0]["text"].startswith("browser ")
        wrong = await mcp.call_tool("browser_open_tab", {"url": 5})
        assert wrong["isError"] is True
        assert "Invalid arguments for browser_open_tab: url" in wrong["content"][0]["text"]
        with pytest.raises(HubError, match="browser_list_tabs"):
            await mcp.call_tool("browser_list_tab", {})


async def test_an_ended_session_is_reopened(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Panel(hub):
        mcp = client(hub)
        await mcp.open()
        assert hub.hub.session_control.end(str(mcp.session), "idle")
        assert (await mcp.call_tool("browser_list_tabs", {}))["content"][0]["text"].startswith("browser ")


async def test_an_elicitation_is_answered_by_the_person(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    async def ask(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"action": "accept", "content": {"decision": "allow_once"}}

    async with running_hub(tmp_path, **ASKING) as hub, Panel(hub):
        mcp = client(hub, ask)
        await mcp.open()
        assert not (await mcp.call_tool(ASKED, SCRIPT)).get("isError")
    assert ASKED in asked[0]["message"]


async def test_an_elicitation_answered_in_the_panel_is_withdrawn(tmp_path: Path) -> None:
    withdrawn = asyncio.Event()

    async def ask(params: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            withdrawn.set()
        raise AssertionError

    async with running_hub(tmp_path, **ASKING) as hub, Panel(hub) as panel:
        mcp = client(hub, ask)
        await mcp.open()
        call = asyncio.ensure_future(mcp.call_tool(ASKED, SCRIPT))
        await panel.decide("allow_once")
        assert not (await call).get("isError")
        assert withdrawn.is_set()


async def test_a_cancelled_call_is_cancelled_at_the_hub(tmp_path: Path) -> None:
    async with running_hub(tmp_path, **ASKING) as hub, Panel(hub) as panel:
        mcp = client(hub)
        await mcp.open()
        call = asyncio.ensure_future(mcp.call_tool(ASKED, SCRIPT))
        await panel.request()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: not hub.hub.approvals.pending())


async def test_an_unreachable_or_refusing_hub_is_reported(tmp_path: Path) -> None:
    with pytest.raises(HubUnreachable, match="does not answer"):
        await McpClient("127.0.0.1:1", lambda: None, "test").open()
    async with running_hub(tmp_path) as hub:
        with pytest.raises(HubError, match="The hub answered 401"):
            await McpClient(f"127.0.0.1:{hub.port}", lambda: "wrong", "test").open()
