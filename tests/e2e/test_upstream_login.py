"""Logging in to an external server, in the person's own browser."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.live import Caller, LiveHub
from tests.harness.ports import free_port
from tests.harness.waiting import eventually
from tests.upstream.servers import python_http


async def connected(agent: Caller) -> dict[str, Any] | None:
    servers = (await agent.http.get("/upstream")).json()["servers"]
    return next((each for each in servers if each["name"] == "guarded" and each["state"] == "ready"), None)


async def returned(agent: Caller) -> dict[str, Any] | None:
    """The tab of the login, once it has been redirected back to the hub."""
    tabs = (await agent.get("browser_list_tabs"))["tabs"]
    return next((tab for tab in tabs if "/oauth/callback" in tab["url"]), None)


async def test_an_oauth_login_in_the_browser_makes_the_tools_available(
    live_hub: LiveHub, agent: Caller, tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "grants"
    async with python_http("guarded", port, "60", str(log)):
        url = f"http://localhost:{port}/mcp"
        try:
            await asyncio.to_thread(live_hub.tabhub, "mcp", "add", "guarded", url)
            facts = await eventually(partial(connected, agent))
            assert [tool["name"] for tool in facts["tools"]] == ["mcp__guarded__greet"]
            assert log.read_text().split() == ["login"]
            back = await eventually(partial(returned, agent))
            await agent.call("browser_close_tab", tabId=back["tabId"])
        finally:
            await asyncio.to_thread(live_hub.tabhub, "mcp", "remove", "guarded")
    assert not list((live_hub.home / "mcp-logins").iterdir())
