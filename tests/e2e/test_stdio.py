"""Two stdio servers, one hub and a real browser: several clients on one machine."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from tests.e2e.live import Caller, LiveHub
from tests.e2e.site import Site
from tests.harness.hub import AGENT
from tests.harness.waiting import eventually


def stdio(hub: LiveHub, mode: str) -> Client:
    argv = ["-m", "tabhub", "start", "--stdio", "--as", AGENT, "--tools", "all,structured"]
    return Client(stdio_client(StdioServerParameters(command=sys.executable, args=argv, env=hub.env)), mode=mode)


async def data(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


async def bridge_status(hub: LiveHub) -> dict[str, Any]:
    place = json.loads((hub.home / "hub.json").read_text())["socket"]
    reader, writer = await asyncio.open_unix_connection(place)
    writer.write(b'{"type":"STATUS","id":"status_1"}\n')
    answer: dict[str, Any] = json.loads(await reader.readline())
    writer.close()
    return answer


@pytest.mark.req("S004-verification-01", "S004-goals-01", "S004-goals-02", "S004-goals-04")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_two_clients_have_their_own_tabs_that_close_with_them(
    live_hub: LiveHub, agent: Caller, site: Site, mode: str
) -> None:
    before = {tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"]}
    open_before = (await bridge_status(live_hub))["activeSessions"]
    async with stdio(live_hub, mode) as one, stdio(live_hub, mode) as two:
        await asyncio.gather(
            data(one, "browser_execute_script", code="window.owner = 'one'"),
            data(two, "browser_execute_script", code="window.owner = 'two'"),
        )
        sessions = [s for s in (await agent.http.get("/sessions")).json()["sessions"] if s["kind"] == "bridge"]
        assert len({session["id"] for session in sessions}) == len(sessions) == 2
        for client, owner in ((one, "one"), (two, "two")):
            assert (await data(client, "browser_execute_script", code="return window.owner"))["value"] == owner
        opened = {tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"]} - before
        assert len(opened) == 2
        status = await bridge_status(live_hub)
        assert (status["extensionConnected"], status["activeSessions"]) == (True, open_before + 2)
        (first, *_) = sorted(opened)
        named = await data(one, "browser_get_tab_info", tabId=first)
        assert named["tabId"] == first

    async def closed() -> bool:
        return not {tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"]} & opened

    await eventually(closed)
    assert (await bridge_status(live_hub))["activeSessions"] == open_before
