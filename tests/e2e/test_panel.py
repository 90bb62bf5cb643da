"""The panel end to end: the real extension's page, clicked in a real Chromium, and the effects at the hub."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, Playwright, expect

from tests.e2e import live
from tests.e2e.live import EXTENSION, Caller, LiveHub
from tests.e2e.live_settings import change
from tests.e2e.panels import browser_of, panel_of, settled, visit
from tests.e2e.site import Site
from tests.e2e.zoo import Zoo
from tests.extension.panelpage import THEMES, VIEWS, go, violations
from tests.harness.waiting import eventually, until_outside

NOTES = Path(__file__).parents[2] / "examples" / "plugins" / "opentabs-plugin-notes"
CLICK = "browser_execute_script"
READ = "browser_get_tab_info"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    """A hub whose settings these tests may change; one plugin works, another does not."""
    folder = tmp_path_factory.mktemp("panel")
    (folder / "home").mkdir(mode=0o700)
    (folder / "broken").mkdir()
    (folder / "broken" / "package.json").write_text('{"name": "opentabs-plugin-broken", "version": "1.0.0"}')
    config = {"localPlugins": [str(NOTES), str(folder / "broken")], "limits": {"admin_rate": 1000}}
    (folder / "home" / "config.json").write_text(json.dumps(config))
    hub = live.start(folder)
    yield hub
    live.stop(hub)


@pytest.fixture(scope="module")
async def browser(playwright: Playwright, hub: LiveHub) -> AsyncIterator[BrowserContext]:
    """The hub's own browser."""
    async with browser_of(playwright, hub) as browser:
        yield browser


@pytest.fixture
async def panel(browser: BrowserContext, request: pytest.FixtureRequest) -> AsyncIterator[Page]:
    async with panel_of(browser, request) as page:
        yield page


@pytest.fixture
async def agent(hub: LiveHub) -> AsyncIterator[Caller]:
    async with live.caller(hub) as agent:
        yield agent


@pytest.fixture
def asking(hub: LiveHub) -> Iterator[None]:
    """Scripts and reading about a tab require approval until the test ends."""
    change(hub, {f"permissions.browser.tools.{tool}": "ask" for tool in (CLICK, READ)})
    yield
    change(hub, {f"permissions.browser.tools.{tool}": None for tool in (CLICK, READ)})


def page_of(browser: BrowserContext, name: str) -> Page:
    """The page of a tab, as the person in front of it sees it."""
    return next(page for page in browser.pages if name in page.url)


def settings(hub: LiveHub) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((hub.home / "config.json").read_text())
    return read


def browser_settings(hub: LiveHub) -> dict[str, Any]:
    """The permissions of the browser's tools."""
    own: dict[str, Any] = settings(hub).get("permissions", {}).get("browser", {})
    return own


async def level(page: Page, tool: str, word: str) -> None:
    """Set the switch of a tool."""
    await go(page, "tools")
    await page.get_by_role("searchbox", name="Search tools").fill(tool)
    await page.locator(f"[data-tool={tool}] .level", has_text=word).click()


async def test_every_view_is_one_click_away(panel: Page) -> None:
    for view in VIEWS:
        await panel.locator(f"#nav a[href='#{view}']:visible").click()
        heading = panel.get_by_role("heading", level=1)
        await expect(heading).to_have_text(view.capitalize())
        assert view == "home" or await panel.title() == f"{view.capitalize()} · Tabhub"


async def test_axe_finds_no_violation_in_any_view(panel: Page, agent: Caller, site: Site) -> None:
    """In one theme or the other; tests/extension/test_panel.py looks at each view in both."""
    await visit(panel.context, agent, f"{site.url}/")
    for view, theme in zip(VIEWS, itertools.cycle(THEMES), strict=False):
        await panel.emulate_media(color_scheme=theme)
        await go(panel, view)
        assert await violations(panel) == [], view


async def test_a_switch_changes_the_enforced_permission(panel: Page, hub: LiveHub, agent: Caller, site: Site) -> None:
    await visit(panel.context, agent, f"{site.url}/")
    await level(panel, CLICK, "Off")
    await until_outside(lambda: browser_settings(hub).get("tools") == {CLICK: "off"})
    error = await agent.fail(CLICK, code="return 1")
    assert "off" in error["text"]
    await panel.locator(f"[data-tool={CLICK}]").get_by_role("button", name="Reset").click()
    await until_outside(lambda: CLICK not in browser_settings(hub).get("tools", {}))
    assert await agent.run("return 1") == 1


async def test_a_switch_of_a_source_applies_to_all_its_tools(panel: Page, hub: LiveHub, agent: Caller) -> None:
    await go(panel, "tools")
    whole = panel.get_by_role("radiogroup", name="all tools of Browser")
    await whole.locator(".level", has_text="Off").click()
    await until_outside(lambda: browser_settings(hub).get("permission") == "off")
    error = await agent.fail("browser_list_tabs")
    assert "off" in error["text"]
    await panel.get_by_role("button", name="Reset all tools of Browser").click()
    await until_outside(lambda: "permission" not in browser_settings(hub))
    assert (await agent.get("browser_list_tabs"))["tabs"]


async def test_an_approved_call_runs_and_the_history_says_who_approved_it(
    panel: Page, agent: Caller, site: Site, asking: None
) -> None:
    await visit(panel.context, agent, f"{site.url}/")
    call = asyncio.ensure_future(agent.run("return 6 * 7"))
    card = panel.locator("[data-approval]")
    await expect(card).to_contain_text("return 6 * 7")
    await expect(card).to_contain_text("Plain page")
    await expect(card).to_contain_text(site.url.removeprefix("http://"))
    assert await violations(panel) == []
    await settled(panel)
    await card.get_by_role("button", name="Allow once").click()
    assert await call == 42
    await expect(card).to_have_count(0)
    await go(panel, "activity")
    row = panel.locator(".call", has_text="Run JavaScript in the page").first
    await row.locator("summary").click()
    await expect(row).to_contain_text("Done · allowed once in the panel · waited ")


async def test_an_approval_names_and_shows_the_element_and_is_withdrawn_when_that_changes(
    panel: Page, hub: LiveHub, agent: Caller, zoo: Zoo
) -> None:
    await visit(panel.context, agent, zoo.at("act_buttons.html"))
    ref = (await agent.get("browser_find", text="Plain"))["elements"][0]["ref"]
    change(hub, {"permissions.browser.tools.browser_click_element": "ask"})
    try:
        call = asyncio.ensure_future(agent.call("browser_click_element", ref=ref))
        card = panel.locator("[data-approval]")
        await expect(card.get_by_role("heading")).to_contain_text('wants to click "Plain"')
        await expect(card.get_by_role("img", name="The element in its page")).to_be_visible()
        assert await violations(panel) == []
        page = page_of(panel.context, "act_buttons.html")
        assert await page.evaluate("log.length") == 0  # nobody acted to find out
        await card.get_by_role("button", name="Show me").click()
        outline = "getComputedStyle(document.documentElement, '::before').position"
        await page.wait_for_function(f"{outline} === 'fixed'")
        assert await page.evaluate("document.visibilityState") == "visible"
        await panel.bring_to_front()
        # the button becomes another one: the question is asked again, and says so
        await page.evaluate("plain.textContent = 'Delete all'")
        await expect(card.get_by_role("heading")).to_contain_text('wants to click "Delete all"')
        await expect(card).to_contain_text("The page has changed")
        await settled(panel)
        await card.get_by_role("button", name="Allow once").click()
        assert not (await call).get("isError")
        assert "click plain true" in await page.evaluate("log.join()")
        await go(panel, "activity")
        await expect(panel.locator(".call").first).to_contain_text('Click "Delete all"')
    finally:
        change(hub, {"permissions.browser.tools.browser_click_element": None})


async def test_an_approved_call_never_acts_on_another_element_than_the_person_was_shown(
    panel: Page, hub: LiveHub, agent: Caller, zoo: Zoo
) -> None:
    await visit(panel.context, agent, zoo.at("act_buttons.html"))
    # no look meanwhile: the change is found when the call is about to act
    change(hub, {"permissions.browser.tools.browser_click_element": "ask", "limits.approval_look_again": "600"})
    page = page_of(panel.context, "act_buttons.html")
    changes = {
        "renamed": "plain.textContent = 'Delete all'",
        "replaced": "plain.outerHTML = '<button id=plain>Plain</button>'",
        "gone": "plain.remove()",
    }
    try:
        for name, code in changes.items():
            await page.reload()
            call = asyncio.ensure_future(agent.fail("browser_click_element", text="Plain"))
            card = panel.locator("[data-approval]")
            await expect(card.get_by_role("heading")).to_contain_text('wants to click "Plain"')
            await settled(panel)
            await page.evaluate(code)
            await card.get_by_role("button", name="Allow once").click()
            error = await call
            assert "The person approved button" in error["text"], name
            assert error["outcome"] == "not_sent"
            assert "click" not in await page.evaluate("log.join()")
    finally:
        change(hub, {"permissions.browser.tools.browser_click_element": None, "limits.approval_look_again": None})


@pytest.mark.req("B26")
async def test_one_approval_for_a_site_does_not_reach_the_site_that_it_links_to(
    panel: Page, hub: LiveHub, agent: Caller, site: Site
) -> None:
    """The batch follows a link of the approved site and would pay with the cookies of the next one."""
    await visit(panel.context, agent, f"{site.elsewhere}/login")
    await visit(panel.context, agent, f"{site.url}/news")
    change(hub, {"permissions.default": "ask", "permissions.browser.tools.browser_wait_for": "auto"})
    try:
        actions = [
            {"action": "click", "selector": "#more"},
            {"action": "wait", "selector": "#to"},
            {"action": "type", "selector": "#to", "text": "MALLORY"},
            {"action": "type", "selector": "#sum", "text": "9999", "submit": True},
        ]
        call = asyncio.ensure_future(agent.fail("browser_act", actions=actions))
        card = panel.locator("[data-approval]")
        await expect(card).to_contain_text(site.url.removeprefix("http://"))
        await settled(panel)
        await card.get_by_role("button", name="Allow once").click()
        error = await call
    finally:
        change(hub, {"permissions.default": None, "permissions.browser.tools.browser_wait_for": None})
    assert "Action 3 of 4 (type) was not done" in error["text"]
    assert f"went from {site.url} to {site.elsewhere}" in error["text"]
    assert "Done before: 1. Clicked" in error["text"]
    assert site.count("/paid") == 0
    assert await agent.run("return document.querySelector('#to').value") == ""


@pytest.mark.req("F22")
async def test_cancel_button_takes_the_tab_from_the_agent_until_the_panel_returns_it(
    panel: Page, hub: LiveHub, agent: Caller, site: Site
) -> None:
    tab_id = await visit(panel.context, agent, f"{site.url}/")
    assert await agent.run("return 1") == 1
    (worker,) = panel.context.service_workers
    address = f"chrome.tabs.query({{ url: '{site.url}/*' }})"
    await worker.evaluate(
        f"async () => {{ const [{{ id: tabId }}] = await {address}; await chrome.debugger.detach({{ tabId }}); "
        "chrome.debugger.onDetach.dispatch({ tabId }, 'canceled_by_user'); }"
    )
    button = panel.get_by_role("button", name="Return Plain page to agents")
    await expect(button).to_be_visible()
    for _ in range(2):
        error = await agent.fail(CLICK, code="return 1", tabId=tab_id)
        assert error["text"].startswith("The person stopped you in this tab.")
    assert f"tab {tab_id}, where you pressed Cancel" in hub.tabhub("status").stdout
    await button.click()
    await expect(button).to_have_count(0)
    assert await agent.run("return 2", tabId=tab_id) == 2


async def test_a_denied_call_gets_the_reason(panel: Page, agent: Caller, site: Site, asking: None) -> None:
    await visit(panel.context, agent, f"{site.url}/")
    call = asyncio.ensure_future(agent.fail(CLICK, code="return 1"))
    card = panel.locator("[data-approval]")
    await card.get_by_text("Add a reason").click()
    await card.get_by_role("textbox").fill("not on this page")
    await settled(panel)
    await card.get_by_role("button", name="Deny").click()
    error = await call
    assert "not on this page" in error["text"]
    assert error["outcome"] == "not_sent"


async def test_always_asks_once(panel: Page, hub: LiveHub, agent: Caller, site: Site, asking: None) -> None:
    await visit(panel.context, agent, f"{site.url}/")
    call = asyncio.ensure_future(agent.run("return 1"))
    await expect(panel.locator("[data-approval]")).to_have_count(1)
    await settled(panel)
    await expect(panel.get_by_role("button", name="Always allow")).to_contain_text("run scripts on 127.0.0.1")
    await panel.get_by_text("What “Always allow” means").click()
    await expect(panel.locator("[data-approval]")).to_contain_text(f"may always run scripts on {site.url}")
    await panel.get_by_role("button", name="Always allow").click()
    assert await call == 1
    assert await agent.run("return 2") == 2
    await go(panel, "sites")
    grant = panel.locator("[data-grant]", has_text="may always run scripts")
    await grant.get_by_role("button", name="Revoke").click()
    await grant.get_by_role("button", name="Revoke now?").click()
    await expect(grant).to_have_count(0)
    asked = asyncio.ensure_future(agent.call(CLICK, code="return 3"))
    await go(panel, "approvals")
    await expect(panel.locator("[data-approval]")).to_have_count(1)
    await settled(panel)
    await panel.locator("[data-approval]").get_by_role("button", name="Deny").click()
    assert (await asked)["isError"]


async def test_agents_are_kept_off_the_page_next_to_the_panel(
    panel: Page, hub: LiveHub, agent: Caller, site: Site
) -> None:
    tab_id = await visit(panel.context, agent, f"{site.url}/")
    assert "Plain page" in str(await agent.get("browser_snapshot", tabId=tab_id))
    await agent.get("browser_focus_tab", tabId=tab_id)
    await panel.bring_to_front()
    await go(panel, "sites")
    await expect(panel.locator(".this-page")).to_contain_text(site.url.removeprefix("http://"))
    await expect(panel.locator(".this-page")).to_contain_text("may, without approval, read pages")
    assert await violations(panel) == []
    await panel.get_by_role("button", name="Keep agents off this site").click()
    await expect(panel.locator(".this-page")).to_contain_text("your site rule")
    error = await agent.fail("browser_snapshot", tabId=tab_id)
    assert "the person blocks agents on" in error["text"]
    rule = panel.locator("[data-rule]")
    await rule.get_by_role("combobox").select_option("read")
    await until_outside(lambda: list(settings(hub)["sites"].values()) == ["read"])
    assert "Plain page" in str(await agent.get("browser_snapshot", tabId=tab_id))
    await rule.get_by_role("button", name="Remove the rule").click()
    await expect(rule).to_have_count(0)


async def test_for_this_session_asks_again_in_another_session(
    panel: Page, hub: LiveHub, agent: Caller, site: Site, asking: None
) -> None:
    await visit(panel.context, agent, f"{site.url}/")
    call = asyncio.ensure_future(agent.run("return 1"))
    await expect(panel.locator("[data-approval]")).to_have_count(1)
    await settled(panel)
    await panel.get_by_role("button", name="Allow for this session").click()
    assert await call == 1
    assert await agent.run("return 2") == 2
    async with live.caller(hub) as other:
        await visit(panel.context, other, f"{site.url}/")
        asked = asyncio.ensure_future(other.run("return 3"))
        await expect(panel.locator("[data-approval]")).to_have_count(1)
        await settled(panel)
        await panel.get_by_role("button", name="Allow once").click()
        assert await asked == 3


async def test_two_requests_are_decided_separately(panel: Page, agent: Caller, site: Site, asking: None) -> None:
    await visit(panel.context, agent, f"{site.url}/")
    first = asyncio.ensure_future(agent.call(CLICK, code="return 'first'"))
    await expect(panel.locator("[data-approval]")).to_have_count(1)
    second = asyncio.ensure_future(agent.call(CLICK, code="return 'second'"))
    await expect(panel.locator("[data-approval]")).to_have_count(2)
    await settled(panel)
    await panel.locator("[data-approval]", has_text="second").get_by_role("button", name="Deny").click()
    assert (await second)["isError"]
    await expect(panel.locator("[data-approval]")).to_have_count(1)
    await settled(panel)
    await panel.locator("[data-approval]", has_text="first").get_by_role("button", name="Allow once").click()
    assert (await first)["structuredContent"]["value"] == "first"


async def test_an_unanswered_request_expires_and_is_refused(
    panel: Page, hub: LiveHub, agent: Caller, site: Site, asking: None
) -> None:
    change(hub, {"approvalTimeout": "2"})
    try:
        await visit(panel.context, agent, f"{site.url}/")
        call = asyncio.ensure_future(agent.fail(CLICK, code="return 1"))
        await expect(panel.locator("[data-approval] .countdown")).to_contain_text("0:0")
        error = await call
        assert "no person answered within 2 s" in error["text"]
        await expect(panel.locator("[data-approval]")).to_have_count(0)
    finally:
        change(hub, {"approvalTimeout": None})


async def test_pause_is_one_click_and_blocks_acting_calls(panel: Page, agent: Caller, site: Site) -> None:
    tab_id = await visit(panel.context, agent, f"{site.url}/")
    await panel.get_by_role("button", name="Pause agents").click()
    await expect(panel.locator(".banner.warn")).to_contain_text("Agents can read, but not act.")
    call = asyncio.ensure_future(agent.get("browser_navigate_tab", url=f"{site.url}/other"))
    assert (await agent.get("browser_get_tab_info", tabId=tab_id))["title"] == "Plain page"
    await panel.get_by_role("button", name="Resume agents").click()
    assert (await call)["ok"]
    await expect(panel.locator(".banner.warn")).to_have_count(0)


async def test_an_agent_is_shown_with_its_tabs_and_can_be_ended(panel: Page, hub: LiveHub, site: Site) -> None:
    async with live.caller(hub) as agent:
        tab_id = await visit(panel.context, agent, f"{site.url}/")
        await agent.run("return 1")
        await go(panel, "agents")
        card = panel.locator("article", has_text="Plain page")
        await card.get_by_role("button", name="Release Plain page").click()
        await expect(panel.get_by_text("Plain page")).to_have_count(0)
        await agent.run("return 1", tabId=tab_id)
        card = panel.locator("article", has_text="Plain page")
        await card.get_by_role("button", name="End").click()
        await card.get_by_role("button", name="End now?").click()
        await expect(card).to_have_count(0)


async def test_a_running_call_is_shown(panel: Page, agent: Caller, site: Site) -> None:
    await visit(panel.context, agent, f"{site.url}/")
    await go(panel, "activity")
    wait = "return new Promise((done) => { window.go = done })"
    call = asyncio.ensure_future(agent.run(wait))
    await expect(panel.locator(".call.running")).to_contain_text("Run JavaScript in the page")
    page = next(each for each in panel.context.pages if each.url == f"{site.url}/")
    await eventually(lambda: page.evaluate("Boolean(window.go)"))
    await page.evaluate("window.go(5)")
    assert await call == 5
    await expect(panel.locator(".call.running")).to_have_count(0)


async def test_the_history_can_be_filtered(panel: Page, agent: Caller) -> None:
    await agent.fail("browser_get_tab_info", tabId=999_999)
    await agent.get("browser_list_tabs")
    await go(panel, "activity")
    await panel.get_by_role("combobox", name="Result").select_option("Failed")
    await panel.get_by_role("searchbox", name="Filter by tool").fill("tab_info")
    rows = panel.locator(".section:last-of-type .call")
    await expect(rows.first).to_contain_text("(failed)")
    await expect(panel.locator(".call", has_text="List tabs")).to_have_count(0)
    await rows.first.locator("summary").click()
    await expect(rows.first.locator(".call-error")).to_contain_text("999999")


async def test_plugins_are_listed_and_a_broken_one_says_why(panel: Page) -> None:
    await go(panel, "plugins")
    await expect(panel.locator("[data-plugin=notes]")).to_contain_text("no open tab")
    failed = panel.locator(".card.failed")
    await expect(failed).to_contain_text("broken")
    assert len(await failed.locator(".card-text").inner_text()) > 10


async def test_a_setting_is_written_to_the_settings_file(panel: Page, hub: LiveHub) -> None:
    await go(panel, "settings")
    row = panel.locator("[data-setting=keepTabs]")
    await row.get_by_role("switch").check(force=True)
    await until_outside(lambda: settings(hub).get("keepTabs") is True)
    await row.get_by_role("switch").uncheck(force=True)
    await until_outside(lambda: settings(hub).get("keepTabs") is False)
    await panel.locator("[data-setting=dataflow] select").select_option("warn")
    await until_outside(lambda: settings(hub).get("dataflow") == "warn")


async def test_a_switch_keeps_its_new_position_until_the_hub_confirms(panel: Page, hub: LiveHub) -> None:
    await go(panel, "settings")
    switch = panel.locator("[data-setting=keepTabs]").get_by_role("switch")
    for _ in range(6):
        await switch.check(force=True)
        await switch.uncheck(force=True)
    await switch.check(force=True)
    await until_outside(lambda: settings(hub).get("keepTabs") is True)
    await expect(switch).to_be_checked()


async def test_never_ask_mode_is_shown_on_every_view(panel: Page, hub: LiveHub) -> None:
    await go(panel, "settings")
    await panel.get_by_role("switch", name="Skip approvals").check(force=True)
    for view in VIEWS:
        await go(panel, view)
        await expect(panel.locator(".banner.bad")).to_contain_text("Approvals are skipped.")
    await panel.get_by_role("button", name="Turn on approvals").click()
    await until_outside(lambda: settings(hub)["skipPermissions"] is False)
    await expect(panel.locator(".banner.bad")).to_have_count(0)


async def test_with_no_panel_open_a_notification_asks_and_its_button_answers(
    browser: BrowserContext, hub: LiveHub, agent: Caller, site: Site, asking: None
) -> None:
    """What is harmless can be allowed in the notification; anything else can be denied there, and allowed only where
    the page is shown."""
    tab = await visit(browser, agent, f"{site.url}/")
    (worker,) = [each for each in browser.service_workers if each.url.startswith(EXTENSION)]
    for tool, given, allowed, button in ((READ, {}, True, 0), (CLICK, {"code": "return 1"}, False, 1)):
        call = asyncio.ensure_future(agent.call(tool, tabId=tab, **given))
        shown = "chrome.notifications.getAll().then((all) => Object.keys(all).find((id) => id.startsWith('approval:')))"
        notice = await worker.evaluate(f"(async () => {{ let id; while (!(id = await {shown})); return id; }})()")
        await worker.evaluate(f"chrome.notifications.onButtonClicked.dispatch({json.dumps(notice)}, {button})")
        assert (await call).get("isError", False) is not allowed
        assert await worker.evaluate(f"(async () => (await {shown}) ?? null)()") is None
        entries = (await agent.http.get("/audit", params={"limit": 20})).json()
        decided = [each["approval"]["by"] for each in entries if each["tool"] == tool and "approval" in each]
        assert decided[0] == "notification"


async def test_the_popup_shows_the_state_and_opens_the_panel_page(browser: BrowserContext, hub: LiveHub) -> None:
    popup = await browser.new_page()
    await popup.goto(f"{EXTENSION}/panel/popup.html")
    await expect(popup.locator("#headline")).to_have_text("Connected")
    assert await violations(popup) == []
    async with browser.expect_page() as opening:
        await popup.get_by_role("button", name="Open in a tab").click()
    page = await opening.value
    await expect(page.locator("#bar")).to_contain_text("Connected")
    await page.close()
