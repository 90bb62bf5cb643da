"""Which tab a call works in, and that calls end when their agent no longer waits for them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.e2e.site import Site
from tests.harness.agent import Agent, message
from tests.harness.waiting import until_outside

BEFORE_ITS_DEADLINE = 20
"""Seconds: a call that is not ended runs for 30 s."""


async def active_tabs(agent: Caller) -> list[int]:
    tabs = (await agent.get("browser_list_tabs"))["tabs"]
    return [tab["tabId"] for tab in tabs if tab["active"]]


async def test_the_first_call_opens_a_tab_in_the_background_and_later_ones_use_it(agent: Caller, site: Site) -> None:
    active = await active_tabs(agent)
    went = await agent.get("browser_navigate_tab", url=f"{site.url}/")
    agent.opened.append(went["tabId"])
    info = await agent.get("browser_get_tab_info")
    assert (info["tabId"], info["active"], info["url"]) == (went["tabId"], False, f"{site.url}/")
    await agent.run("window.mark = 7")
    assert await agent.run("return window.mark") == 7
    await agent.call("browser_screenshot_tab")
    assert await active_tabs(agent) == active


async def test_open_new_tab_can_activate_the_tab(agent: Caller, site: Site) -> None:
    before = await active_tabs(agent)
    tab_id = await agent.open(f"{site.url}/", active=True)
    assert await agent.run("return document.visibilityState") == "visible"
    assert set(await active_tabs(agent)) - set(before) == {tab_id}  # each window has one


async def test_a_closed_tab_is_reported_once_and_the_next_call_opens_another(agent: Caller, site: Site) -> None:
    tab_id = await agent.open(f"{site.url}/")
    await agent.get("browser_close_tab")
    error = await agent.fail("browser_execute_script", code="return 1")
    assert error["outcome"] == "not_sent"
    assert f"Tab {tab_id}, which this session was working in, has been closed" in error["text"]
    assert await agent.run("return location.href") == "about:blank"
    fresh = (await agent.get("browser_get_tab_info"))["tabId"]
    assert fresh != tab_id
    agent.opened.append(fresh)


async def test_a_named_tab_is_used_and_stays_bound(agent: Caller, site: Site) -> None:
    first = await agent.open(f"{site.url}/")
    second = await agent.open(f"{site.url}/other")
    assert await agent.run("return document.title") == "Other page"
    assert await agent.run("return document.title", tabId=first) == "Plain page"
    assert await agent.run("return document.title") == "Plain page"
    assert await agent.run("return document.title", tabId=second) == "Other page"


async def test_two_agents_have_two_tabs(live_hub: LiveHub, site: Site) -> None:
    async with live.caller(live_hub) as one, live.caller(live_hub) as two:
        paths = ((one, "/"), (two, "/other"))
        went = await asyncio.gather(*(who.get("browser_navigate_tab", url=site.url + path) for who, path in paths))
        for (who, _), there in zip(paths, went, strict=True):
            who.opened.append(there["tabId"])
        assert went[0]["tabId"] != went[1]["tabId"]
        assert await one.run("return location.pathname") == "/"
        assert await two.run("return location.pathname") == "/other"


async def test_stateless_clients_keep_their_tab_with_a_session_handle(live_hub: LiveHub, site: Site) -> None:
    async with live_hub.mcp("2026-07-28") as client:

        async def call(name: str, **arguments: Any) -> Any:
            result = await client.call_tool(name, arguments)
            assert not result.is_error, result.content
            return result

        went = await call("browser_navigate_tab", url=f"{site.url}/")
        handle = went.meta["tabhub/session"]
        ran = await call("browser_execute_script", code="return location.pathname", session=handle)
        assert ran.structured_content["value"] == "/"
        await call("browser_close_tab", session=handle)


async def test_a_cancelled_call_ends_in_the_browser(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    tab_id = await agent.open(f"{site.url}/")
    await agent.get("browser_release_tab")
    for mode in ("legacy", "2026-07-28"):
        name = f"cancelled-{mode}"
        async with live_hub.mcp(mode) as client:
            code = f"await fetch('/hit/{name}'); await new Promise(() => {{}})"
            call = asyncio.create_task(client.call_tool("browser_execute_script", {"tabId": tab_id, "code": code}))
            await site.asked(f"/hit/{name}")
            assert live_hub.health()["callsInFlight"] == 1
            call.cancel()
            await until_outside(lambda: nothing_runs(live_hub), within=BEFORE_ITS_DEADLINE)
            assert await agent.run("return 1 + 1") == 2
            assert site.count(f"/hit/{name}") == 1


async def test_a_call_of_a_disconnected_agent_ends_in_the_browser(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    await agent.open(f"{site.url}/")
    held = site.count("/held")
    call = asyncio.create_task(agent.call("browser_navigate_tab", tabId=agent.opened[0], url=f"{site.url}/held"))
    await site.asked("/held", held + 1)
    call.cancel()  # which cuts the connection
    with contextlib.suppress(asyncio.CancelledError):
        await call
    assert site.count("/held") == held + 1
    await until_outside(lambda: nothing_runs(live_hub), within=BEFORE_ITS_DEADLINE)
    site.release.set()
    await agent.get("browser_navigate_tab", url=f"{site.url}/other")
    assert await agent.run("return document.title") == "Other page"
    site.release.clear()


def nothing_runs(hub: LiveHub) -> bool:
    """Wait until no call is pending in the hub and no command on the link."""
    health = hub.health()
    return bool(health["callsInFlight"] == 0 and health["legs"]["browsers"][0]["socket"]["pending"] == 0)


async def test_a_handshake_session_cancels_a_call_by_its_request_id(
    live_hub: LiveHub, agent: Caller, site: Site
) -> None:
    await agent.open(f"{site.url}/")
    await agent.get("browser_release_tab")
    async with Agent(live_hub) as raw:
        code = "await fetch('/hit/by-number'); await new Promise(() => {})"
        arguments = {"tabId": agent.opened[0], "code": code}
        request = message("tools/call", {"name": "browser_execute_script", "arguments": arguments})
        call = asyncio.create_task(raw.post(request))
        await site.asked("/hit/by-number")
        await raw.notify("notifications/cancelled", {"requestId": request["id"], "reason": "enough"})
        await until_outside(lambda: nothing_runs(live_hub), within=BEFORE_ITS_DEADLINE)
        await call
