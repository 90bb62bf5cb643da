"""End-to-end tests: a hub and a Chromium started as a person starts them, and a web site to visit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Playwright, async_playwright

from tests.e2e import live
from tests.e2e.agent_hub import create_agent_hub
from tests.e2e.appsite import AppSite
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.pagesite import PageSite
from tests.e2e.restartable_hub import RestartableHub
from tests.e2e.site import Site
from tests.e2e.zoo import Zoo
from tests.harness.waiting import LONG, until_outside


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.stop()


@pytest.fixture(scope="session")
def zoo() -> Iterator[Zoo]:
    """The pages of `pages/`."""
    zoo = Zoo()
    yield zoo
    zoo.stop()


@pytest.fixture(scope="session")
def apps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppSite]:
    """The pages of `apps/`."""
    site = AppSite(tmp_path_factory.mktemp("apps"))
    yield site
    site.stop()


@pytest.fixture(scope="session")
def live_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """One hub for all tests that do not stop it. They change its settings more often than a person does."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "home").mkdir(mode=0o700)
    (folder / "home" / "config.json").write_text('{"limits": {"admin_rate": 1000}}')
    hub = live.start(folder)
    yield hub
    live.stop(hub)


@pytest.fixture(scope="session")
def agent_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestartableHub]:
    """One hub for all tests that use its own agent."""
    hub = create_agent_hub(tmp_path_factory.mktemp("agent"))
    yield hub
    hub.stop()


@pytest.fixture
async def browser_ready(live_hub: LiveHub) -> None:
    """A browser that an earlier test killed restarts by itself, and must not fail the next test."""
    await until_outside(lambda: live_hub.ready, 2 * LONG)


@pytest.fixture
async def agent(live_hub: LiveHub, browser_ready: None) -> AsyncIterator[Caller]:
    """An agent with its own session."""
    async with live.caller(live_hub) as agent:
        yield agent


@pytest.fixture(scope="module")
async def shared_agent(live_hub: LiveHub) -> AsyncIterator[Caller]:
    async with live.caller(live_hub) as agent:
        yield agent


@pytest.fixture
async def guest(shared_agent: Caller, browser_ready: None, request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    """One agent for all tests of a file that do not need their own tab: `visit` costs a third of `open`. Other tabs
    that a test opens are closed after it, and the tab of a failed test is not reused."""
    failed = request.session.testsfailed
    yield shared_agent
    if request.session.testsfailed != failed:
        await shared_agent.leave()
    for tab_id in set(shared_agent.opened) - {shared_agent.kept}:
        await shared_agent.call("browser_close_tab", tabId=tab_id)
    shared_agent.opened[:] = [] if shared_agent.kept is None else [shared_agent.kept]


@pytest.fixture
def devtools(live_hub: LiveHub) -> DevTools:
    return DevTools(live_hub)


@pytest.fixture(scope="session")
def page_site() -> Iterator[PageSite]:
    site = PageSite()
    yield site
    site.stop()


@pytest.fixture
async def shop(live_hub: LiveHub, page_site: PageSite) -> AsyncIterator[PageSite]:
    """A site whose pages offer tools; its tabs are closed after the test."""
    yield page_site
    async with live.caller(live_hub) as agent:
        for session in (await agent.http.get("/sessions")).json()["sessions"]:
            await agent.http.post(f"/sessions/{session['id']}/end")
        for tab in (await agent.get("browser_list_tabs"))["tabs"]:
            if tab["url"].startswith((page_site.url, page_site.elsewhere)):
                await agent.call("browser_close_tab", tabId=tab["tabId"])  # unless its session has just closed them


@pytest.fixture(scope="module")
async def playwright() -> AsyncIterator[Playwright]:
    """One driver process for all tests of a file; each test connects to its browser itself."""
    async with async_playwright() as playwright:
        yield playwright
