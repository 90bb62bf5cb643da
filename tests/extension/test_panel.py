"""The panel's usability: every view is readable in both themes and at every width, by mouse, keyboard and screen
reader."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Browser, Page, expect

from tests.extension.panelpage import THEMES, VIEWS, Theme, asked, go, open_all, panel, violations


async def overflow(page: Page) -> list[int]:
    """By how much the page and its main part exceed their width, and the page its height."""
    given: list[int] = await page.evaluate(
        """() => {
          const [whole, main] = [document.documentElement, document.querySelector("main")];
          const below = whole.scrollHeight - whole.clientHeight;
          return [whole.scrollWidth - whole.clientWidth, main.scrollWidth - main.clientWidth, below];
        }"""
    )
    return given


@pytest.mark.parametrize(("theme", "width"), [("light", 320), ("dark", 1200)])
async def test_every_view_is_accessible_and_not_cut_off(
    browser: Browser, address: str, theme: Theme, width: int
) -> None:
    async with panel(browser, address, theme=theme, width=width) as page:
        for view in VIEWS:
            await go(page, view)
            await open_all(page)
            assert await overflow(page) == [0, 0, 0], view
            assert await violations(page) == [], view


@pytest.mark.parametrize(("theme", "kind"), [("light", "new"), ("dark", "down")])
async def test_empty_views_are_accessible(browser: Browser, address: str, kind: str, theme: Theme) -> None:
    async with panel(browser, address, kind=kind, theme=theme) as page:
        for view in VIEWS:
            await go(page, view)
            assert await violations(page) == [], view


@pytest.mark.parametrize("width", [200, 400, 760])
async def test_nothing_is_cut_off_at_intermediate_widths(browser: Browser, address: str, width: int) -> None:
    async with panel(browser, address, width=width) as page:
        for view in VIEWS:
            await go(page, view)
            await open_all(page)
            assert await overflow(page) == [0, 0, 0], view


@pytest.mark.parametrize("width", [320, 400, 1200])
async def test_the_fields_of_the_relay_are_below_their_description(browser: Browser, address: str, width: int) -> None:
    async with panel(browser, address, "settings", width=width) as page:
        row = page.locator("[data-setting=relay]")
        parts = [row.locator("p"), row.get_by_label("Relay URL"), row.get_by_label("Token")]
        boxes = [await part.bounding_box() for part in parts]
        tops = [(box["y"], box["y"] + box["height"]) for box in boxes if box]
        assert tops[0][1] <= tops[1][0] < tops[1][1] <= tops[2][0]
        assert all(box and box["width"] > 200 for box in boxes)
        await parts[1].fill("wss://relay.example")
        await parts[1].press("Enter")
        await expect(page.locator("#notice")).to_contain_text("Relay: saved.")
        assert await asked(page, "relay.set") == [{"url": "wss://relay.example"}]


async def test_the_level_of_a_site_over_the_relay_is_added_changed_and_removed(browser: Browser, address: str) -> None:
    async with panel(browser, address, "settings", width=320) as page:
        section = page.locator("[data-setting=relay-sites]")
        field = section.get_by_label("Keep agents over the relay off")
        await field.fill(" bank.example ")
        await field.press("Enter")
        level = section.get_by_label("Level of bank.example")
        await expect(level).to_have_value("block")
        await expect(field).to_have_value("")
        assert await overflow(page) == [0, 0, 0]
        assert await violations(page) == []
        await level.select_option("read")
        await expect(level).to_have_value("read")
        await section.get_by_role("button", name="Remove bank.example").click()
        await expect(level).to_have_count(0)
        levels = [given["sites"] for given in await asked(page, "relay.set")]
        assert levels == [*([{"site": "bank.example", "level": level}] for level in ("block", "read")), []]
        choices = page.get_by_label("Agents over the relay", exact=True).locator("option")
        await expect(choices).to_have_text(["Keep off", "Only read", "Ask me", "Act freely"])


async def test_settings_of_the_relay_that_were_rewritten_are_shown_until_the_person_has_seen_it(
    browser: Browser, address: str
) -> None:
    async with panel(browser, address, "settings") as page:
        told = page.locator("[data-setting=relay-sites] [role=status]")
        await expect(page.locator("[data-setting=relay-sites]")).to_contain_text("Sites with a level of their own")
        await expect(told).to_have_count(0)
        facts = {
            "url": "",
            "hasToken": False,
            "level": "ask",
            "sites": [],
            "instead": False,
            "migrated": True,
            "user": "",
        }
        facts |= {"agents": 0, "phase": "off", "reason": None, "retryAt": None, "questions": []}
        await page.evaluate(f"panelFake.event('relay.changed', {json.dumps(facts)})")
        await expect(told).to_contain_text("*.bank.example is the site with its subdomains")
        assert await violations(page) == []
        await told.get_by_role("button", name="OK").click()
        await expect(told).to_have_count(0)
        assert await asked(page, "relay.set") == [{}]


async def test_the_themes_are_dark_and_light(browser: Browser, address: str) -> None:
    for theme in THEMES:
        low, high = (200, 255) if theme == "light" else (0, 60)
        async with panel(browser, address, theme=theme) as page:
            colour = await page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert all(low <= int(part) <= high for part in colour.strip("rgb()").split(","))


async def test_the_list_of_conversations_begins_at_its_top(browser: Browser, address: str) -> None:
    async with panel(browser, address, "chat") as page:
        many = "Array.from({length: 60}, (_, n) => ({...panelConversations[1], id: String(n).padStart(12, '0')}))"
        async with await page.add_init_script(f"panelConversations.push(...{many})"):
            await page.reload()
        await expect(page.locator(".message.model")).to_have_count(3)
        await page.get_by_role("button", name="All conversations").click()
        await expect(page.locator(".conversations > *")).to_have_count(62)
        assert await page.evaluate("[main.scrollTop, main.scrollHeight > main.clientHeight]") == [0, True]


async def test_buttons_that_end_or_remove_name_their_target(browser: Browser, address: str) -> None:
    async with panel(browser, address) as page:
        for view, names in (
            ("agents", ["End laptop (Claude Code)", "End Cursor", "End nightly-report"]),
            ("plugins", ["Remove Example Mail"]),
            ("servers", ["Remove files", "Remove weather"]),
        ):
            await go(page, view)
            for name in names:
                await expect(page.get_by_role("button", name=name, exact=True)).to_have_count(1)
        await expect(page.get_by_role("link", name="Plugins 1 failed to load")).to_have_count(1)


async def test_the_next_connection_attempt_is_counted_down(browser: Browser, address: str) -> None:
    async with panel(browser, address, kind="down", apart=True) as page:
        await page.clock.install()
        link = "{...panelDown, link: {...panelDown.link, retryAt: Date.now() + 60_000}}"
        await page.evaluate(f"panelFake.event('link.state', {link})")
        await expect(page.locator(".connections-note")).to_contain_text("Next attempt in")
        await page.clock.fast_forward(60_000)
        await expect(page.locator(".connections-note")).to_contain_text("Next attempt now.")


async def test_without_a_hub_the_panel_shows_the_reason_and_the_next_step(browser: Browser, address: str) -> None:
    async with panel(browser, address, "tools", kind="down") as page:
        await expect(page.get_by_text("No hub answers at 127.0.0.1:9515")).to_be_visible()
        await expect(page.get_by_text("tabhub start", exact=True)).to_be_visible()
        await expect(page.locator("#bar")).to_contain_text("Not connected")
        await expect(page.get_by_role("button", name="Pause agents")).to_have_count(0)


async def test_with_a_hub_and_no_agent_the_next_step_is_to_connect_one(browser: Browser, address: str) -> None:
    async with panel(browser, address, kind="new") as page:
        await expect(page.locator(".steps li.done")).to_have_text(
            "Start the hubIt is running, and this browser is connected to it."
        )
        await expect(page.get_by_text("tabhub setup claude-code --write")).to_be_visible()


async def test_every_empty_view_has_a_heading(browser: Browser, address: str) -> None:
    headings = {
        "approvals": "No pending approvals",
        "agents": "No agents connected",
        "activity": "No calls yet",
        "plugins": "No plugins yet",
        "servers": "No servers yet",
    }
    for view, words in headings.items():
        async with panel(browser, address, view, kind="new") as page:
            await expect(page.get_by_role("heading", name=words)).to_be_visible()


async def test_arrow_keys_go_through_the_views_and_enter_opens_one(browser: Browser, address: str) -> None:
    async with panel(browser, address, width=1200) as page:
        await page.get_by_role("link", name="Home").focus()
        for _ in range(3):
            await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Agents")
        await page.keyboard.press("End")
        await expect(page.locator("#nav").get_by_role("link", name="Settings")).to_be_focused()


async def test_a_long_conversation_shows_its_newest_part_first(browser: Browser, address: str) -> None:
    async with panel(browser, address, "chat", kind="quiet") as page:
        await page.evaluate(
            """() => {
              const message = (number) => ({ role: number % 2 ? "assistant" : "user", text: `Message ${number}.` });
              panelConversation.messages = Array.from({ length: 400 }, (_, number) => message(number));
              panelConversation.earlier = 12;
            }"""
        )
        await page.get_by_role("button", name="All conversations").click()
        await page.get_by_role("button", name="Which of my tabs").click()
        await expect(page.get_by_text("Message 399.")).to_be_visible()
        await expect(page.get_by_text("12 earlier messages not shown.")).to_have_count(1)
        await expect(page.get_by_text("Message 0.")).to_have_count(0)
        await page.get_by_role("button", name="Show 251 earlier").click()
        await expect(page.get_by_text("Message 0.")).to_have_count(1)


async def test_a_refused_message_stays_in_the_field_with_the_reason(browser: Browser, address: str) -> None:
    async with panel(browser, address, "chat", kind="quiet") as page:
        await page.evaluate("panelFake.refuse = {'agent.send': 'The agent is still at work.'}")
        field = page.get_by_role("textbox", name="Message to the assistant")
        await field.fill("Hello")
        await field.press("Enter")
        await expect(page.locator("#unsent")).to_have_text("The agent is still at work.")
        await expect(field).to_have_value("Hello")
        await expect(field).to_be_focused()


async def test_enter_during_composition_does_not_send(browser: Browser, address: str) -> None:
    async with panel(browser, address, "chat", kind="quiet") as page:
        field = page.get_by_role("textbox", name="Message to the assistant")
        await field.fill("にほん")
        press = "new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true})"
        await field.evaluate(f"(field) => field.dispatchEvent({press})")
        assert await asked(page, "agent.send") == []
        await field.press("Enter")
        assert await asked(page, "agent.send") == [{"text": "にほん", "conversation": "0123456789ab"}]


async def test_hostile_markdown_is_parsed_in_linear_time(browser: Browser, address: str) -> None:
    """With backtracking over the whole text the test would time out."""
    hostile = [
        "`a",
        "[",
        "**a ",
        "``` ` ",
        "- a\n",
        "```\n",
        "> ",
        ">    ",
        "[a](",
        "[a](b",
        "*a",
        "| a\n",
        "1. ",
        "# #",
    ]
    async with panel(browser, address, "chat", kind="quiet") as page:
        read = await page.evaluate(
            """async (hostile) => {
              const { markdown } = await import("/panel/markdown.js");
              return hostile.map((piece) => markdown(piece.repeat(100_000 / piece.length)).length);
            }""",
            hostile,
        )
        assert all(read)


async def test_text_and_focus_survive_updates(browser: Browser, address: str) -> None:
    async with panel(browser, address, "tools") as page:
        search = page.get_by_role("searchbox", name="Search tools")
        await search.click()
        await page.keyboard.type("coo")
        for number in range(5):
            call = f"{{callId: 'c{number}', tool: 'browser_snapshot', client: 'x'}}"
            await page.evaluate(f"panelFake.event('tool.invocationStart', {call})")
        await page.evaluate("panelFake.event('panel.changed', {what: ['sessions']})")
        await page.keyboard.type("kies")
        await expect(search).to_have_value("cookies")
        await expect(search).to_be_focused()
        await expect(page.locator(".tool")).to_have_count(1)


async def test_a_running_call_is_highlighted_and_moves_to_the_history(browser: Browser, address: str) -> None:
    async with panel(browser, address, "activity") as page:
        call = "{callId: 'c1', tool: 'browser_snapshot', client: 'Claude Code', session: 'mcp:1', source: 'browser'}"
        await page.evaluate(f"panelFake.event('tool.invocationStart', {call})")
        await expect(page.locator(".call.running")).to_contain_text("Snapshot")
        await page.evaluate("panelFake.event('tool.invocationEnd', {callId: 'c1', ok: true, durationMs: 1234})")
        await expect(page.locator(".call.running")).to_have_count(0)
        await expect(page.locator(".call.fresh")).to_contain_text("1.2 s")


async def test_plugin_settings_support_several_urls(browser: Browser, address: str) -> None:
    async with panel(browser, address, "plugins") as page:
        card = page.locator("[data-plugin=tracker]")
        await card.get_by_role("button", name="Settings").click()
        await card.get_by_role("button", name="Add a URL").click()
        await card.get_by_role("textbox", name="Name of URL 3").fill("lab")
        await card.get_by_role("textbox", name="URL 3", exact=True).fill("https://lab.example")
        await card.get_by_role("combobox", name="Board").select_option("scrum")
        await card.get_by_text("Include archived issues").click()
        await card.get_by_role("button", name="Save").click()
        (sent,) = await asked(page, "config.setPluginSettings")
        assert sent == {
            "plugin": "tracker",
            "settings": {
                "instanceUrl": {
                    "work": "https://acme.tracker.example",
                    "home": "https://me.tracker.example",
                    "lab": "https://lab.example",
                },
                "apiKey": "••••••••",
                "pageSize": 25,
                "board": "scrum",
                "archived": True,
            },
        }


async def test_plugins_are_found_installed_updated_and_removed(browser: Browser, address: str) -> None:
    async with panel(browser, address, "plugins") as page:
        await expect(page.locator(".card.failed")).to_contain_text("dist/tools.json is missing")
        await page.get_by_role("searchbox", name="Search plugins").fill("slack")
        await page.get_by_role("button", name="Search", exact=True).click()
        await page.get_by_role("button", name="Install slack").click()
        await expect(page.get_by_text("slack is installed.")).to_be_visible()
        await page.get_by_role("button", name="Check for updates").click()
        await page.get_by_role("button", name="Update to 1.5.0").click()
        mail = page.locator("[data-plugin=mail]")
        await mail.get_by_role("button", name="Remove").click()
        assert await asked(page, "plugin.remove") == []
        await mail.get_by_role("button", name="Remove now?").click()
        assert await asked(page, "plugin.install") == [{"name": "@opentabs-dev/opentabs-plugin-slack"}]
        assert await asked(page, "plugin.updateFromRegistry") == [{"name": "mail"}]
        assert await asked(page, "plugin.remove") == [{"name": "mail"}]


async def test_a_server_is_added_by_pasting_and_invalid_json_is_reported(browser: Browser, address: str) -> None:
    async with panel(browser, address, "servers") as page:
        field = page.get_by_role("textbox", name="Configuration (JSON)")
        await field.fill('{"mcpServers": ')
        await expect(page.locator("#server-wrong")).to_contain_text("Invalid JSON")
        await expect(page.get_by_role("button", name="Add", exact=True)).to_be_disabled()
        await field.fill('{"mcpServers": {"files": {"url": "http://127.0.0.1:3001/mcp"}}}')
        await page.get_by_role("button", name="Add", exact=True).click()
        (sent,) = await asked(page, "upstream.add")
        assert sent == {"json": '{"mcpServers": {"files": {"url": "http://127.0.0.1:3001/mcp"}}}'}
        await expect(page.locator("[data-server=weather]")).to_contain_text("uvx was not found")
        await page.get_by_role("switch", name="Use files").click(force=True)
        assert await asked(page, "upstream.set") == [{"name": "files", "enabled": False}]
