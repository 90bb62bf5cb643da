"""The toolbar button and the context menu: what needs the person, which agents there are, and what a choice does."""

from __future__ import annotations

from tests.extension.conftest import Chromium, Site, in_worker
from tests.extension.fakehub import Wire
from tests.harness.waiting import becomes

BADGE = "Promise.all([chrome.action.getBadgeText({}), chrome.action.getTitle({})])"
IDLE = {"paused": False, "working": 0, "agents": []}


async def test_the_badge_shows_what_needs_the_person_first(wire: Wire, chromium: Chromium) -> None:
    async def badge() -> str:
        text, title = await in_worker(chromium, BADGE)
        return f"{text}|{title.partition(' to ')[0]}"

    await wire.notify("agents.work", **IDLE)
    await becomes(badge, "|Tabhub: connected")
    await wire.notify("agents.work", **{**IDLE, "working": 2})
    await becomes(badge, "●|Tabhub: 2 agents working")
    await wire.notify("agents.work", **{**IDLE, "working": 2, "paused": True})
    await becomes(badge, "II|Tabhub: agents are paused")
    await wire.notify("confirmation.request", id="one", client="c", tool="t", notify=False)
    await wire.notify("confirmation.request", id="two", client="c", tool="t", notify=False)
    await becomes(badge, "2|Tabhub: 2 approvals pending")
    await wire.notify("confirmation.done", id="one")
    await wire.notify("confirmation.done", id="two")
    await wire.notify("agents.work", **IDLE)
    await becomes(badge, "|Tabhub: connected")


async def test_a_click_on_the_toolbar_button_opens_the_panel_at_the_side(wire: Wire, chromium: Chromium) -> None:
    behavior = await in_worker(chromium, "chrome.sidePanel.getPanelBehavior()")
    assert behavior == {"openPanelOnActionClick": True}
    assert await in_worker(chromium, "chrome.action.getPopup({})") == ""


async def test_a_page_is_given_to_an_agent_or_its_site_kept_from_agents(
    wire: Wire, tab: int, chromium: Chromium, site: Site
) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/other")
    await wire.notify("agents.work", **{**IDLE, "agents": [{"session": "s-1", "name": "Claude Code"}]})

    wire.answers["sites.page"] = {"pattern": "127.0.0.1", "level": None}

    async def choose(entry: str) -> None:
        info = f"{{menuItemId: {entry!r}, pageUrl: {site.url!r} + '/other'}}"
        await in_worker(chromium, f"chrome.contextMenus.onClicked.dispatch({info}, {{id: {tab}}}), 1")

    async def menu(entry: str) -> bool:
        code = (
            f"new Promise((done) => chrome.contextMenus.update({entry!r}, {{}}, () => done(!chrome.runtime.lastError)))"
        )
        return bool(await in_worker(chromium, code))

    await becomes(lambda: menu("give:s-1"), True)
    await becomes(lambda: menu("keep-off"), True)
    await choose("give:s-1")
    given = await wire.next(lambda message: message.get("method") == "sessions.give")
    assert given["params"] == {"session": "s-1", "tabId": tab}
    await choose("keep-off")
    asked = await wire.next(lambda message: message.get("method") == "sites.page")
    assert asked["params"] == {"url": f"{site.url}/other"}
    ruled = await wire.next(lambda message: message.get("method") == "sites.set")
    assert ruled["params"] == {"pattern": "127.0.0.1", "level": "block"}
    await wire.notify("agents.work", **IDLE)
    await becomes(lambda: menu("give:s-1"), False)
    await in_worker(chromium, "chrome.notifications.clear('menu')")
