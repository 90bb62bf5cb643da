"""What a person configures in the panel, end to end: pasted external servers, and the settings of plugins."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Locator, Page, Playwright, expect

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.e2e.panels import browser_of, panel_of
from tests.extension.panelpage import go, violations
from tests.harness.ports import free_port
from tests.harness.waiting import until_outside
from tests.upstream.servers import python, python_http

NOTES = Path(__file__).parents[2] / "examples" / "plugins" / "opentabs-plugin-notes"
SECRET = "correct-horse-battery"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    folder = tmp_path_factory.mktemp("manage")
    (folder / "home").mkdir(mode=0o700)
    config = {"localPlugins": [str(NOTES)], "permissions": {"default": "auto"}}
    (folder / "home" / "config.json").write_text(json.dumps(config))
    hub = live.start(folder)
    yield hub
    live.stop(hub)


@pytest.fixture(scope="module")
async def browser(playwright: Playwright, hub: LiveHub) -> AsyncIterator[BrowserContext]:
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


def field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Configuration (JSON)")


async def paste(page: Page, given: Any) -> None:
    """Paste a configuration and add what it names."""
    await go(page, "servers")
    await field(page).fill(given if isinstance(given, str) else json.dumps(given, indent=2))
    await page.get_by_role("button", name="Add", exact=True).click()


@pytest.mark.req("S001-adding-01")
async def test_a_pasted_server_is_added_and_its_tools_are_found_and_callable(
    hub: LiveHub, panel: Page, agent: Caller
) -> None:
    async with python_http("everything", port := free_port()) as url:
        entry = {"url": url, "headers": {"Authorization": f"Bearer {SECRET}"}}
        await paste(panel, {"mcpServers": {"far away": entry}})
        card = panel.locator("[data-server='far away']")
        await expect(card).to_contain_text("tools")
        await expect(card.locator(".tool-title", has_text="Add")).to_be_visible()
        await expect(card).to_contain_text(f"http://127.0.0.1:{port}/mcp · sends Authorization")
        await expect(field(panel)).to_have_value("")
        assert await violations(panel) == []
        listed = (await agent.http.get("/tools")).json()
        (name,) = [tool["name"] for tool in listed if tool["name"].startswith("mcp__far_away__add")]
        assert (await agent.call(name, a=20, b=22))["content"][0]["text"] == "42"
        assert SECRET not in await panel.content()
        offer = card.get_by_role("switch", name="Enable Add")
        await offer.click(force=True)
        await expect(offer).not_to_be_checked()  # a refresh in progress may show the old state for a moment
        await until_outside(lambda: "disabled" in hub.tabhub("mcp", "tools", "far away").stdout)
        assert name not in [tool["name"] for tool in (await agent.http.get("/tools")).json()]
        await card.get_by_role("button", name="Remove").click()
        await card.get_by_role("button", name="Remove now?").click()
        await expect(card).to_have_count(0)


async def test_several_servers_are_added_at_once_and_a_failing_one_says_why(hub: LiveHub, panel: Page) -> None:
    both = {"sums": python("everything"), "lost": {"command": "no-such-program-anywhere"}}
    await go(panel, "servers")
    for given in ({"servers": both}, both, {"mcpServers": both}):
        await field(panel).fill("")
        await field(panel).fill(json.dumps(given))
        await expect(panel.get_by_text("Adds 2 servers: sums, lost.")).to_be_visible()
    await panel.get_by_role("button", name="Add", exact=True).click()
    await expect(panel.locator("[data-server=sums] .tool-title", has_text="Weather")).to_be_visible()
    lost = panel.locator("[data-server=lost]")
    await expect(lost).to_contain_text("not connected")
    await expect(lost.locator(".problem")).to_contain_text("no-such-program-anywhere")
    for name in ("sums", "lost"):
        await panel.locator(f"[data-server={name}]").get_by_role("button", name="Remove").click()
        await panel.locator(f"[data-server={name}]").get_by_role("button", name="Remove now?").click()
        await expect(panel.locator(f"[data-server={name}]")).to_have_count(0)


async def test_an_invalid_paste_is_reported_with_its_position_and_without_secrets(panel: Page) -> None:
    await go(panel, "servers")
    wrong = panel.locator("#server-wrong")
    header = f'"headers": {{"Authorization": "{SECRET}"}}'
    for text, expected in (
        (f'{{\n  "mcpServers": {{\n    "a": {{ {header} "url": 1 }}', "line 3, column 66: Expected a comma or }"),
        (f'{{"a": {{{header},}}}}', "Trailing comma before }."),
        (f"{{'a': '{SECRET}'}}", "line 1, column 2: Expected a name in double quotes."),
        (f'// {SECRET}\n{{"a": 1}}', "line 1, column 1: JSON has no comments."),
        (f'{{"a": "{SECRET}', "line 1, column 7: The string is not closed"),
        (f'{{"a": {{{header}}}', "Unexpected end: } is missing."),
        (f'["{SECRET}"]', "must be a JSON object"),
    ):
        await field(panel).fill(text)
        await expect(wrong).to_contain_text(expected)
        assert SECRET not in await wrong.inner_text()
        await expect(field(panel)).to_have_attribute("aria-invalid", "true")
        await expect(panel.get_by_role("button", name="Add", exact=True)).to_be_disabled()
    for given, expected in (
        ({"good": {"headers": {"X-Key": SECRET}}}, "good.url is missing."),
        (
            {"good": {"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": [SECRET]}}},
            "good.headers.X-Key must be a string",
        ),
        ({"url": "http://127.0.0.1:1/mcp", "headers": {"X-Key": SECRET}}, "The server has no name."),
    ):
        await paste(panel, given)
        await expect(wrong).to_contain_text(expected)
        assert SECRET not in await wrong.inner_text()
        await expect(field(panel)).to_have_attribute("aria-describedby", "server-wrong")
    assert await violations(panel) == []
    await field(panel).fill("")
    await expect(wrong).to_have_count(0)


async def test_a_plugins_setting_that_the_hub_refuses_is_marked_at_its_field(hub: LiveHub, panel: Page) -> None:
    await go(panel, "plugins")
    card = panel.locator("[data-plugin=notes]")
    site = card.get_by_role("textbox", name="Address of the notebook")
    if not await site.count():
        await card.get_by_role("button", name="Settings").click()
    await site.fill("not an address")
    await card.get_by_role("textbox", name="Put under every new note").fill("Ann")
    await card.get_by_role("button", name="Save").click()
    await expect(site).to_have_attribute("aria-invalid", "true")
    await expect(site).to_be_focused()
    message = card.locator("#notes-site-wrong")
    await expect(message).to_contain_text("must be a web URL such as https://example.com")
    assert "notes-site-wrong" in str(await site.get_attribute("aria-describedby"))
    await expect(card.get_by_role("textbox", name="Put under every new note")).not_to_have_attribute(
        "aria-invalid", "true"
    )
    assert await violations(panel) == []
    assert "settings" not in json.loads((hub.home / "config.json").read_text())
    await site.fill("")
    await card.get_by_role("button", name="Save").click()
    await expect(message).to_have_text("It is required.")
    await site.fill("https://notes.example")
    await card.get_by_role("button", name="Add a URL").click()
    await card.get_by_role("textbox", name="Name of URL 1").fill("work")
    await card.get_by_role("textbox", name="Name of URL 2").fill("home")
    await card.get_by_role("textbox", name="URL 2", exact=True).fill("nonsense")
    await card.get_by_role("button", name="Save").click()
    await expect(card.get_by_role("textbox", name="URL 2", exact=True)).to_have_attribute("aria-invalid", "true")
    await expect(card.get_by_role("textbox", name="URL 1", exact=True)).not_to_have_attribute("aria-invalid", "true")
    await card.get_by_role("textbox", name="URL 2", exact=True).fill("https://home.example")
    await card.get_by_role("button", name="Save").click()
    await expect(panel.get_by_text("The settings of Notes are saved.")).to_be_visible()
    kept = json.loads((hub.home / "config.json").read_text())["settings"]["notes"]
    assert kept == {"site": {"work": "https://notes.example", "home": "https://home.example"}, "signature": "Ann"}
    await expect(message).to_have_count(0)
