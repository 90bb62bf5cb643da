"""Approvals of agents over a relay in the panel: the real panel in a real Chromium."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, async_playwright, expect

from tests.extension.conftest import EXTENSION_ID, Chromium, Site
from tests.extension.fakehub import FakeHub, Wire
from tests.extension.panelpage import go, violations
from tests.relay.independent import IndependentAgent
from tests.relay.world import RunningRelay, running_relay, token

STATE: dict[str, Any] = {
    "version": "0.1.0",
    "paused": None,
    "skipPermissions": False,
    "permissionDefault": None,
    "settings": {},
    "browsers": [],
    "sessions": [],
    "approvals": [],
    "activity": [],
    "plugins": [],
    "failedPlugins": [],
    "browserTools": {"families": []},
    "pages": [],
    "upstream": [],
}
ANSWER = """async ([method, params]) => {
  const port = chrome.runtime.connect({ name: "panel" });
  const answer = new Promise((done) => port.onMessage.addListener((m) => m.type === "answer" && done(m)));
  port.postMessage({ type: "ask", id: 1, method, params });
  const given = await answer;
  port.disconnect();
  return given;
}"""


@pytest.fixture(scope="module")
async def relay() -> AsyncIterator[RunningRelay]:
    async with running_relay() as relay:
        yield relay


@pytest.fixture(scope="module")
async def context(chromium: Chromium) -> AsyncIterator[BrowserContext]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(chromium._address)
        yield browser.contexts[0]


@pytest.fixture
async def panel(wire: Wire, context: BrowserContext) -> AsyncIterator[Page]:
    wire.answers["config.getState"] = STATE
    page = await context.new_page()
    await page.goto(f"chrome-extension://{EXTENSION_ID}/panel/panel.html?full#home")
    await expect(page.locator("#bar")).to_contain_text("Connected")
    yield page
    off = {"url": "", "token": "", "level": "ask", "sites": [], "instead": False}
    await page.evaluate(ANSWER, ["relay.set", off])
    await page.close()


async def at_relay(page: Page, relay: RunningRelay, **more: Any) -> None:
    given = {"url": relay.url, "token": token("ann"), "level": "ask", **more}
    assert "error" not in await page.evaluate(ANSWER, ["relay.set", given])
    await go(page, "settings")
    await expect(page.locator("[data-setting=relay]")).to_contain_text("Connected as ann")


async def test_an_approval_over_the_relay_is_listed_with_the_others(
    relay: RunningRelay, panel: Page, wire: Wire, site: Site
) -> None:
    made = (await wire.ask("createTab", url=f"{site.url}/", waitUntil="load"))["tabId"]
    await at_relay(panel, relay)
    async with IndependentAgent(relay.url, token("ann")) as agent:
        await agent.ready()
        script = {"tabId": made, "method": "Runtime.evaluate", "params": {"expression": "document.title"}}
        running = await agent.begin("forwardCDPCommand", script)
        await expect(panel.locator("#nav .count")).to_have_text("1")
        await expect(panel.locator(".banner")).to_contain_text("1 approval pending.")
        await expect(panel.locator("#announcement")).to_contain_text("asks for your approval")
        await expect(panel.locator("main [data-approval]")).to_have_count(0)
        await panel.get_by_role("button", name="Review").click()
        card = panel.locator("[data-approval]")
        said = f"An agent over 127.0.0.1:{relay.port} wants to act in the page"
        await expect(card.get_by_role("heading")).to_have_text(said)
        await expect(card).to_contain_text(site.url.removeprefix("http://"))
        await expect(card).to_contain_text("until the agent disconnects")
        await expect(card.locator(".countdown")).to_contain_text(":")
        await expect(card.locator(".choice")).to_have_text(["Allow", "Deny"])
        assert await violations(panel) == []
        assert await panel.evaluate("chrome.notifications.getAll()") == {}
        await go(panel, "home")
        await expect(card).to_have_count(1)
        await expect(panel.locator(".approvals:not([data-settling])")).to_be_visible()
        await card.get_by_role("button", name="Allow").click()
        assert (await running)["result"]["result"]["value"] == "Home"
        await expect(card).to_have_count(0)
        await expect(panel.locator("#nav .count")).to_have_count(0)
        opening = await agent.begin("createTab", {"url": "http://localhost:1/"})
        said = f"An agent over 127.0.0.1:{relay.port} wants to open pages"
        await expect(card.get_by_role("heading")).to_have_text(said)
        await expect(panel.locator(".approvals:not([data-settling])")).to_be_visible()
        await card.focus()
        await panel.keyboard.press("d")
        assert "did not allow" in (await opening)["error"]["message"]
    await wire.ask("closeTab", tabId=made)


async def test_an_approval_over_the_relay_is_shown_without_a_hub(
    relay: RunningRelay, panel: Page, hub: FakeHub, chromium: Chromium
) -> None:
    await at_relay(panel, relay, instead=True)
    await expect(panel.locator("#bar")).to_contain_text("Not connected")
    async with IndependentAgent(relay.url, token("ann")) as agent:
        await agent.ready()
        opening = await agent.begin("createTab", {"url": "http://localhost:1/"})
        await expect(panel.locator("#nav .count")).to_have_text("1")
        await go(panel, "approvals")
        card = panel.locator("[data-approval]")
        await expect(panel.locator(".approvals:not([data-settling])")).to_be_visible()
        await card.get_by_role("button", name="Deny").click()
        assert "did not allow" in (await opening)["error"]["message"]


async def test_a_notification_asks_while_no_panel_is_open(
    relay: RunningRelay, panel: Page, wire: Wire, hub: FakeHub
) -> None:
    await at_relay(panel, relay)
    context = panel.context
    async with IndependentAgent(relay.url, token("ann")) as agent:
        await agent.ready()
        await panel.goto("about:blank")
        await wire.notified("panel.watch", open=False)
        opening = await agent.begin("createTab", {"url": "http://localhost:2/"})
        (worker,) = [each for each in context.service_workers if EXTENSION_ID in each.url]
        shown = "chrome.notifications.getAll().then((all) => Object.keys(all).find((id) => id.startsWith('relay:')))"
        notice = await worker.evaluate(f"(async () => {{ let id; while (!(id = await {shown})); return id; }})()")
        await worker.evaluate(f"chrome.notifications.onButtonClicked.dispatch('{notice}', 1)")
        assert "did not allow" in (await opening)["error"]["message"]
    await panel.goto(f"chrome-extension://{EXTENSION_ID}/panel/panel.html?full#home")
