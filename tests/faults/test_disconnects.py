"""Agents that disconnect: their calls end, and the tabs they held are soon free for others."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent, client, message, stateless
from tests.harness.hub import running_hub
from tests.harness.tenants import act, closing_browser, holders, refused
from tests.harness.waiting import until

GONE = {"lease_orphan": 0}


async def test_client_with_a_broken_stream_keeps_its_tab_only_if_it_reconnects(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, limits=GONE) as hub,
        closing_browser(hub),
        Agent(hub) as one,
        Agent(hub) as two,
    ):
        await act(one, tabId=7)
        (session, _) = hub.hub.sessions.all()
        for _ in range(2):  # it disconnects, and returns in time
            async with one.listening() as events:
                await events.next()
                assert refused(await act(two, tabId=7))["code"] == -32007
            await until(lambda: not session.busy)
            assert session.disconnected_at > session.called
        await act(one)
        assert refused(await act(two, tabId=7))["code"] == -32007, "a client that calls is there without a stream"
        async with one.listening() as events:
            await events.next()
        await until(lambda: not session.busy)
        assert not (await act(two, tabId=7)).get("isError")
        assert "was taken over by raw 1" in refused(await act(one))["text"]


@pytest.mark.req("F16")
@pytest.mark.parametrize("way", ["mcp", "stateless", "rest"])
async def test_client_that_disconnects_during_a_call_leaves_no_call_and_no_lease(tmp_path: Path, way: str) -> None:
    never = asyncio.Event()
    arguments: dict[str, Any] = {"tabId": 7, "code": "return 1"}
    call = {"name": "browser_execute_script", "arguments": arguments}
    async with running_hub(tmp_path, limits=GONE) as hub, closing_browser(hub) as browser, Agent(hub) as other:
        async with Agent(hub) as one, client(hub) as http:
            if way == "mcp":
                path, body, headers = "/mcp", message("tools/call", call), one.headers
            elif way == "rest":
                path, body, headers = "/tools/browser_execute_script/call", arguments, {"Tabhub-Session": "mine"}
            else:
                mine, named = stateless(
                    "tools/call", {"name": "browser_request_tab", "arguments": {"tabId": 7, "reason": "a test"}}
                )
                held = (await http.post("/mcp", json=mine, headers=named)).json()["result"]
                arguments["session"] = held["_meta"]["tabhub/session"]
                path, (body, headers) = "/mcp", stateless("tools/call", call)
            browser.handlers["forwardCDPCommand"] = lambda params: (
                never.wait() if params["method"] == "Runtime.evaluate" else {}
            )
            running = asyncio.create_task(http.post(path, json=body, headers=headers))
            while (asked := await browser.next_request("forwardCDPCommand"))["params"]["method"] != "Runtime.evaluate":
                pass
            assert refused(await act(other, tabId=7))["code"] == -32007
            running.cancel()
            assert (await browser.next_notification("cancel"))["params"] == {"id": asked["id"]}
        await until(lambda: len(hub.hub.engine.calls) == 0)
        browser.handlers["forwardCDPCommand"] = lambda params: {"result": {"type": "string", "value": "x"}}
        assert not (await act(other, tabId=7)).get("isError")
        assert holders(hub) == {7: other.headers["Mcp-Session-Id"]}
