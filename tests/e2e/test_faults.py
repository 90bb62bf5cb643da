"""Faults: the browser, its worker or the tab dies during a call, or another browser takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.typing import Origin, Subprotocol

from tabhub.errors import CommandFailed, LinkLost
from tests.e2e import live
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.site import Site
from tests.harness.waiting import eventually, until_outside, wait_for

WAIT = "await fetch('/hit/%s'); await new Promise(() => {})"


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    hub = live.start(tmp_path_factory.mktemp("faults"))
    yield hub
    live.stop(hub)


@pytest.fixture
def own_hub(started: LiveHub) -> LiveHub:
    """A hub with a connected browser that these tests may kill."""
    if not started.connected and started.browser_pid is not None:
        started.kill_browser()  # its extension may stay disconnected for half a minute; that of a new one does not
    wait_for(lambda: started.ready)
    return started


async def fails_under(
    agent: Caller, site: Site, name: str, cause: Callable[[], Awaitable[Any]], code: str = WAIT
) -> dict[str, Any]:
    """Run a script that never ends, make it fail with `cause`, and return its error; it has run once."""
    call = asyncio.create_task(agent.fail("browser_execute_script", code=code % name))
    await site.asked(f"/hit/{name}")
    await cause()
    error = await call
    assert error["code"] in (LinkLost.code, CommandFailed.code), f"not ended by its cause: {error}"
    assert site.count(f"/hit/{name}") == 1
    return error


@pytest.mark.req("F1", "S004-status-03", "S004-verification-04")
async def test_a_killed_browser_fails_the_call_immediately_and_restarts(own_hub: LiveHub, site: Site) -> None:
    async with live.caller(own_hub) as agent:
        before = await agent.get("browser_get_connection_status")
        assert before["connected"] is True
        assert before["hub"]["managedBrowser"]["pid"] == own_hub.browser_pid
        (browser,) = before["browsers"]
        assert (browser["connected"], browser["extension"]["answers"], browser["managed"]) == (True, True, True)
        await agent.open(f"{site.url}/")
        killed = own_hub.browser_pid

        async def kill() -> None:
            own_hub.kill_browser()

        error = await fails_under(agent, site, "killed", kill)
        assert error["outcome"] == "unknown"
        assert own_hub.connected is False

        async def result() -> (
            dict[str, Any] | None
        ):  # the system reports the end of a process after that of its connections
            status: dict[str, Any] = await agent.get("browser_get_connection_status")
            return status if "error" in status["hub"]["managedBrowser"] else None

        gone = await eventually(result)
        assert gone["connected"] is False
        assert [browser["connected"] for browser in gone["browsers"]] == [False]
        assert "own browser is starting" in gone["hint"]
        assert "was killed by signal 9; it is started again in 1 s." in str(gone["hub"]["managedBrowser"])
        refused = await agent.fail("browser_list_tabs")
        assert refused["outcome"] == "not_sent"

        await until_outside(lambda: own_hub.ready)
        assert own_hub.browser_pid not in (None, killed)
        after = await agent.get("browser_get_connection_status")
        assert (after["connected"], [b["connected"] for b in after["browsers"]]) == (True, [True])
        # The session is notified once that its tab is closed, and continues in a new one.
        lost = await agent.fail("browser_execute_script", code="return 1")
        assert "has been closed" in lost["text"]
        await agent.open(f"{site.url}/other")
        assert await agent.run("return document.title") == "Other page"
        assert site.count("/hit/killed") == 1


async def connected_at(agent: Caller) -> float:
    """The time of the browser's connection; it may be back before one can check."""
    (browser,) = (await agent.get("browser_get_connection_status"))["browsers"]
    since: float = browser["socket"]["connectedAt"]
    return since


@pytest.mark.req("F2")
async def test_a_stopped_service_worker_reconnects_without_duplicates(own_hub: LiveHub, site: Site) -> None:
    devtools = DevTools(own_hub)
    (page,) = await devtools.targets("page", "about:blank")
    async with live.caller(own_hub) as agent, devtools.connected() as wire:
        session = await wire.attach(page)
        await agent.open(f"{site.url}/")
        names = [tool["name"] for tool in (await agent.http.get("/tools")).json()]
        for time_ in range(20):
            before = await connected_at(agent)
            error = await fails_under(agent, site, f"stopped{time_}", devtools.stop_worker)
            assert error["outcome"] == "unknown"
            # A person who continues to use the browser wakes the worker; an alarm does within half a minute.
            await wire.send("Runtime.evaluate", session, expression=f"location.hash = {time_}")
            await until_outside(lambda: own_hub.ready)
            assert await connected_at(agent) > before, "it said that it was connected all the time"
            assert await agent.run("return document.title") == "Plain page"
        health = own_hub.health()
        assert health["extensionConnections"] == 1
        assert [tool["name"] for tool in (await agent.http.get("/tools")).json()] == names
        tabs = [tab["url"] for tab in (await agent.get("browser_list_tabs"))["tabs"]]
        assert tabs.count(f"{site.url}/") == 1
        assert health["callsInFlight"] == 0


@pytest.mark.req("F8")
async def test_a_second_connection_of_the_same_browser_replaces_the_first(own_hub: LiveHub, site: Site) -> None:
    (browser,) = [b for b in own_hub.health()["legs"]["browsers"] if b["connected"]]

    def connected() -> connect:
        names = [Subprotocol(name) for name in ("tabhub", own_hub.extension_key, browser["browserId"])]
        return connect(own_hub.ws_url, subprotocols=names, origin=Origin(live.EXTENSION))

    async with live.caller(own_hub) as agent:
        await agent.open(f"{site.url}/")

        async def take_place() -> None:
            async with connected() as second, connected():
                await second.wait_closed()
                assert second.close_code == 4000
                assert own_hub.health()["extensionConnections"] == 1

        error = await fails_under(agent, site, "replaced", take_place)
        assert error["outcome"] == "unknown"
        assert "replaced" in error["text"]
    # The extension stays disconnected for half a minute now, so that two copies of a profile do not alternate.


@pytest.mark.req("F9")
async def test_closing_the_tab_fails_a_running_call(agent: Caller, site: Site) -> None:
    tab_id = await agent.open(f"{site.url}/")
    error = await fails_under(agent, site, "closed", lambda: agent.get("browser_close_tab", tabId=tab_id))
    assert error["outcome"] == "unknown"
    assert f"Tab {tab_id}" in error["text"]


@pytest.mark.req("F9")
async def test_a_tab_crash_fails_the_call_and_the_tab_recovers(agent: Caller, devtools: DevTools, site: Site) -> None:
    await agent.open(f"{site.url}/crashing")
    error = await fails_under(agent, site, "crashed", lambda: devtools.crash(f"{site.url}/crashing"))
    assert error["outcome"] == "unknown"
    assert "crashed" in error["text"]
    after = await agent.fail("browser_get_tab_content")
    assert "has crashed" in after["text"]
    assert "browser_navigate_tab" in after["hint"]
    await agent.get("browser_navigate_tab", url=f"{site.url}/")
    assert await agent.run("return document.title") == "Plain page"


@pytest.mark.req("F9")
@pytest.mark.parametrize("who", ["another", "itself"])
async def test_navigating_away_fails_a_running_call(agent: Caller, site: Site, who: str) -> None:
    tab_id = await agent.open(f"{site.url}/")

    async def leave() -> None:
        if who == "another":
            await agent.get("browser_navigate_tab", tabId=tab_id, url=f"{site.url}/other")

    code = WAIT if who == "another" else "await fetch('/hit/%s'); location = '/other'; await new Promise(() => {})"
    error = await fails_under(agent, site, f"left-by-{who}", leave, code)
    assert error["outcome"] == "unknown"
    assert "went to another page" in error["text"]
    assert await agent.run("return location.pathname") == "/other"
