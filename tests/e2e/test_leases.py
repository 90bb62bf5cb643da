"""Several agents in one real browser: a tab each, leases between them, and what survives which restart."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.live import CHROMIUM, EXTENSION, Caller, DevTools, LiveHub
from tests.e2e.site import Site
from tests.extension.conftest import SWITCHES
from tests.harness.agent import Agent, client
from tests.harness.hub import Address
from tests.harness.ports import free_port
from tests.harness.process import HubProcess, hub_process
from tests.harness.waiting import eventually, until, until_outside


class Client(Agent):
    """An MCP client with its own session, which it ends."""

    async def __aexit__(self, *_: object) -> None:
        await self.http.delete(self.path, headers=self.headers)
        await super().__aexit__()

    async def get(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed."""
        result = (await self.call(name, arguments))["result"]
        assert not result.get("isError"), result
        found: dict[str, Any] = result["structuredContent"]
        return found

    async def fail(self, name: str, **arguments: Any) -> str:
        """Call a tool that must fail."""
        result = (await self.call(name, arguments))["result"]
        assert result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text

    async def run(self, code: str, **more: Any) -> Any:
        return (await self.get("browser_execute_script", code=code, **more))["value"]


async def tabs(agent: Caller | Client) -> dict[int, dict[str, Any]]:
    return {tab["tabId"]: tab for tab in (await agent.get("browser_list_tabs"))["tabs"]}


@asynccontextmanager
async def in_front(agent: Caller) -> AsyncIterator[None]:
    """Checks that the active tab of every window and the focused window are the same afterwards."""

    async def front() -> set[tuple[int, int, bool]]:
        there = (await tabs(agent)).values()
        return {(tab["windowId"], tab["tabId"], tab.get("windowFocused", False)) for tab in there if tab["active"]}

    before = await front()
    yield
    assert await front() == before


@pytest.mark.req("S004-goals-01")
@pytest.mark.req("S004-goals-02")
@pytest.mark.req("S004-goals-04")
@pytest.mark.req("S004-binding-01")
@pytest.mark.req("S004-verification-02")
async def test_clients_without_a_tab_each_get_a_background_tab(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    async with in_front(agent), Client(live_hub) as one, Client(live_hub) as two:
        went = await asyncio.gather(
            one.get("browser_navigate_tab", url=f"{site.url}/"),
            two.get("browser_navigate_tab", url=f"{site.url}/other"),
        )
        first, second = (each["tabId"] for each in went)
        assert first != second
        assert (await one.run("return location.pathname"), await two.run("return location.pathname")) == ("/", "/other")
        listed = await tabs(agent)
        assert not listed[first]["active"]
        assert not listed[second]["active"]


@pytest.mark.req("S004-goals-03")
@pytest.mark.req("S004-binding-02")
@pytest.mark.req("S004-binding-03")
@pytest.mark.req("S004-flow-04")
@pytest.mark.req("S004-verification-03")
async def test_naming_a_tab_binds_the_session_without_focusing_it(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    tab_ids = [await agent.open(f"{site.url}/"), await agent.open(f"{site.url}/other")]
    for tab_id in tab_ids:
        await agent.get("browser_release_tab", tabId=tab_id)
    async with in_front(agent), Client(live_hub) as one, Client(live_hub) as two:
        for who, tab_id, mark in ((one, tab_ids[0], "a"), (two, tab_ids[1], "b")):
            await who.run(f"document.title = '{mark}'", tabId=tab_id)
        titles = [await who.run("return document.title + location.pathname") for who in (one, two)]
        assert titles == ["a/", "b/other"]


async def test_a_leased_tab_is_refused_with_the_holders_name_but_can_be_read(
    live_hub: LiveHub, agent: Caller, site: Site
) -> None:
    mine = await agent.open(f"{site.url}/")
    async with Client(live_hub) as other:
        text = await other.fail("browser_execute_script", tabId=mine, code="document.title = 'taken'")
        assert f"Tab {mine} is held by another session: rest (rest:test:agent-" in text
        assert "browser_request_tab" in text
        assert "held by another" in await other.fail("browser_close_tab", tabId=mine)
        assert "held by another" in await other.fail("browser_navigate_tab", tabId=mine, url=f"{site.url}/other")
        assert (await other.get("browser_get_tab_info", tabId=mine))["title"] == "Plain page"
        assert "Plain page" in str(await other.get("browser_get_tab_content", tabId=mine))
        assert "No one could be asked" in await other.fail("browser_request_tab", tabId=mine, reason="a test")
        assert await agent.run("return document.title") == "Plain page"


async def test_a_released_tab_can_be_leased_and_the_person_can_free_tabs_and_end_sessions(
    live_hub: LiveHub, agent: Caller, site: Site
) -> None:
    mine = await agent.open(f"{site.url}/")
    await agent.get("browser_release_tab")
    async with Client(live_hub) as one, Client(live_hub) as two:
        granted = await one.get("browser_request_tab", tabId=mine, reason="to go on with it")
        assert (granted["by"], granted["url"]) == ("free", f"{site.url}/")
        assert await one.run("return document.title") == "Plain page"
        await two.fail("browser_execute_script", tabId=mine, code="1")
        listed = live_hub.tabhub("sessions")
        assert f"tab {mine}, held" in listed.stdout, listed
        assert one.headers["Mcp-Session-Id"][:8] in listed.stdout
        freed = live_hub.tabhub("sessions", "release", str(mine))
        assert (freed.returncode, freed.stdout) == (0, f"Released tab {mine}, which raw 1 held.\n")
        assert "was freed by the person" in await one.fail("browser_execute_script", code="return 1")
        assert await two.run("return document.title", tabId=mine) == "Plain page"
        ended = live_hub.tabhub("sessions", "end", two.headers["Mcp-Session-Id"][:8])
        assert ended.returncode == 0, ended.stderr
        assert await one.run("return document.title", tabId=mine) == "Plain page"
        assert "There is no session" in live_hub.tabhub("sessions", "end", "nobody").stderr


async def test_an_ended_session_closes_only_the_tabs_it_opened(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    theirs = await agent.open(f"{site.url}/")
    await agent.get("browser_release_tab")
    async with in_front(agent):
        async with Client(live_hub) as one:
            first = (await one.get("browser_open_tab", url=f"{site.url}/other"))["tabId"]
            second = (await one.get("browser_open_tab", url=f"{site.url}/"))["tabId"]
            await one.run("return 1", tabId=theirs)
        await until_outside(lambda: not {first, second} & open_tabs(live_hub).keys())
        assert theirs in open_tabs(live_hub)


@pytest.mark.req("S004-errors-02")
async def test_a_closed_bound_tab_is_reported_once_and_the_next_call_opens_another(
    live_hub: LiveHub, site: Site
) -> None:
    async with Client(live_hub) as one:
        old = (await one.get("browser_open_tab", url=f"{site.url}/"))["tabId"]
        await one.get("browser_close_tab")
        assert f"Tab {old}, which this session was working in, has been closed" in await one.fail(
            "browser_get_tab_info"
        )
        assert (await one.get("browser_get_tab_info"))["tabId"] != old


async def test_the_person_pauses_and_resumes_agents(live_hub: LiveHub, agent: Caller, site: Site) -> None:
    await agent.open(f"{site.url}/")
    try:
        paused = live_hub.tabhub("pause", "paying", "a", "bill")
        assert paused.returncode == 0, paused.stderr
        waiting = asyncio.create_task(agent.run("document.title = 'late'; return document.title"))
        assert (await agent.get("browser_get_tab_info"))["title"] == "Plain page"
        await until_outside(lambda: live_hub.health()["paused"]["callsWaiting"] == 1)
        assert "by the command line (paying a bill); 1 call waiting" in live_hub.tabhub("status").stdout
        assert not waiting.done()
    finally:
        assert live_hub.tabhub("resume").stdout == "Resumed: 1 waiting call released.\n"
    assert await waiting == "late"
    assert "paused" not in live_hub.tabhub("status").stdout


@pytest.mark.req("S004-architecture-07")
async def test_binding_and_lease_survive_a_restart_of_the_extension(
    live_hub: LiveHub, agent: Caller, site: Site, devtools: DevTools
) -> None:
    mine = await agent.open(f"{site.url}/")
    await agent.run("window.mark = 5")

    def connected_at() -> float:
        since: float = live_hub.health()["legs"]["browsers"][0]["socket"]["connectedAt"]
        return since

    before = connected_at()
    await devtools.stop_worker()
    await devtools.send("Target.closeTarget", targetId=(await devtools.open("about:blank?woken")))  # wakes the worker
    await until_outside(lambda: live_hub.ready and connected_at() > before)
    assert await agent.run("return window.mark") == 5
    assert (await agent.get("browser_get_tab_info"))["tabId"] == mine
    async with Client(live_hub) as other:
        assert "held by another" in await other.fail("browser_execute_script", tabId=mine, code="1")


async def test_a_tab_discarded_to_save_memory_stays_bound(
    live_hub: LiveHub, agent: Caller, site: Site, devtools: DevTools
) -> None:
    async with Client(live_hub) as one:
        mine = (await one.get("browser_open_tab", url=f"{site.url}/"))["tabId"]
        (worker,) = await devtools.targets("service_worker", EXTENSION)
        async with devtools.connected() as wire:
            session = await wire.attach(worker)
            unload = f"chrome.tabs.discard({mine}).then((tab) => tab.id)"
            await wire.send("Runtime.evaluate", session, expression=unload, awaitPromise=True)
        await eventually(lambda: unloaded(one))
        assert (await one.get("browser_get_tab_info"))["tabId"] == mine
        refused = await agent.fail("browser_execute_script", tabId=mine, code="1")
        assert "held by another" in refused["text"]
        text = await one.fail("browser_execute_script", code="return 1")
        assert f"The browser has unloaded the page of tab {mine} to save memory" in text
        assert "browser_reload_tab" in text
        assert (await one.get("browser_reload_tab"))["tabId"] == mine
        assert await one.run("return document.title") == "Plain page"
    await until_outside(lambda: f"{site.url}/" not in open_tabs(live_hub).values())


async def unloaded(agent: Client) -> bool:
    return (await agent.get("browser_get_tab_info")).get("discarded") is True


# restarts of hub and browser


@contextmanager
def chromium(home: Path, *more: str) -> Iterator[None]:
    """The person's own browser, with the extension of a home and a persistent profile."""
    profile = home.parent / "profile"
    (profile / "Default").mkdir(parents=True, exist_ok=True)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    process = subprocess.Popen(
        [CHROMIUM, *SWITCHES, *sandbox, f"--load-extension={home}/extension", f"--user-data-dir={profile}", *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def health(hub: Address) -> dict[str, Any]:
    facts: dict[str, Any] = httpx2.get(f"{hub.url}/health", headers=hub.person.bearer, timeout=30, verify=False).json()
    return facts


def open_tabs(hub: Address) -> dict[int, str]:
    """The open tabs and their URLs."""
    url = f"{hub.url}/tools/browser_list_tabs/call"
    answer = httpx2.post(url, headers=hub.person.bearer, json={}, timeout=30, verify=False).json()
    return {tab["tabId"]: tab["url"] for tab in answer["structuredContent"]["tabs"]}


async def ready(hub: Address) -> None:
    """Wait until a browser has reported its tabs."""

    def reply() -> bool:
        return any(b["connected"] and b["extension"]["sentTabs"] for b in health(hub)["legs"]["browsers"])

    await until_outside(reply, within=60)


async def written(hub: HubProcess, *needles: str) -> None:
    """Wait until the file of sessions contains all of these."""
    file = hub.home.root / "sessions.json"
    await until(lambda: file.exists() and all(needle in file.read_text() for needle in needles))


async def test_session_and_binding_survive_a_killed_hub_while_the_browser_runs(tmp_path: Path, site: Site) -> None:
    home = tmp_path / "home"
    async with hub_process(home, free_port()) as hub:
        with chromium(home, "about:blank"):
            await ready(hub)
            one = Client(hub)
            await one.__aenter__()
            mine = (await one.get("browser_open_tab", url=f"{site.url}/"))["tabId"]
            await one.run("window.mark = 9")
            await written(hub, f'"origin":"{site.url}"', one.headers["Mcp-Session-Id"])
            hub.process.kill()
            await hub.process.wait()
            await one.http.aclose()
            async with hub_process(home, hub.port) as again, client(again) as http:
                await ready(again)
                async with Client(again) as other:
                    assert "held by another" in await other.fail("browser_execute_script", tabId=mine, code="1")
                one.http = http
                assert await one.run("return window.mark") == 9
                assert (await one.get("browser_get_tab_info"))["tabId"] == mine


async def test_a_restarted_browsers_tab_is_matched_by_its_url(tmp_path: Path, site: Site) -> None:
    home, url = tmp_path / "home", f"{site.url}/"
    async with hub_process(home) as hub, Client(hub) as one:
        with chromium(home, url):
            await ready(hub)
            await until_outside(lambda: url in open_tabs(hub).values())
            (mine,) = open_tabs(hub)
            await one.run("return 1", tabId=mine)
        await until_outside(lambda: not health(hub)["extensionConnected"])
        with chromium(home, url):
            await ready(hub)
            await until_outside(lambda: url in open_tabs(hub).values())
            assert await one.run("return location.pathname") == "/"
            (back,) = open_tabs(hub)
            assert back != mine
            assert (await one.get("browser_get_tab_info"))["tabId"] == back
