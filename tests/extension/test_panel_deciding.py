"""Approvals in the panel: what a card shows, and which key or click decides."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Browser, expect

from tests.extension.panelpage import asked, panel, request, settled


@pytest.mark.parametrize("width", [320, 1200])
async def test_a_long_title_does_not_break_the_card(browser: Browser, address: str, width: int) -> None:
    async with panel(browser, address, "approvals", kind="quiet", width=width) as page:
        facts = {"id": "long", "tool": "t", "client": "an\u202eagent", "tabId": 3, "origin": "https://shop.example"}
        await request(page, json.dumps({**facts, "title": "W" * 4000 + "\u200b"}))
        await settled(page)
        card = page.locator("[data-approval=long]")
        await expect(card.get_by_role("heading")).to_have_text("an⟨U+202E⟩agent wants to t")
        await expect(card.locator(".tab-title")).to_contain_text("W⟨U+200B⟩")
        assert await page.evaluate("(({scrollWidth, clientWidth}) => scrollWidth - clientWidth)(main)") == 0
        picture = await card.locator(".approval-where > svg").bounding_box()
        title = await card.locator(".tab-title").bounding_box()
        assert picture
        assert title
        assert picture["x"] + picture["width"] <= title["x"]  # beside it


async def test_an_approval_shows_agent_tool_site_and_parameters(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        card = page.locator("[data-approval=a1]")
        for words in (
            "Checkout · Nordlicht Outdoor",
            "shop.nordlicht.example",
            "browser_click_element",
            "button[name=place-order]",
        ):
            await expect(card).to_contain_text(words)
        await expect(card.get_by_role("heading")).to_have_text('laptop (Claude Code) wants to click "Place order"')
        await request(page, json.dumps({"id": "p", "tool": "browser_click_element", "client": "c", "pictured": True}))
        picture = page.locator("[data-approval=p]").get_by_role("img", name="The element in its page")
        await expect(picture).to_be_visible()
        scoped = "Allow for this session click and type on shop.nordlicht.example"
        await expect(card.get_by_role("button", name=scoped)).to_be_visible()
        # the call itself only on request, but for tools of others, which are judged by what they are given
        await expect(card.get_by_text("button[name=place-order]")).to_be_hidden()
        await expect(page.locator("[data-approval=a2]").get_by_text("Hello all")).to_be_visible()
        await expect(card.locator(".countdown")).to_contain_text("1:4")
        changed = page.locator("[data-approval=a3] .diff")
        await expect(changed.locator(".removed")).to_have_text("removed: - Writes below the project's folder.")
        await expect(changed.locator(".added")).to_contain_text("sends a copy to the maintainer")
        await expect(page.locator("[data-approval=a2]")).to_contain_text("has read content of git.example")


async def test_a_card_is_answered_by_one_key_and_only_that_card(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        await settled(page)
        await page.locator("[data-approval=a2]").focus()
        await page.keyboard.press("d")
        await expect(page.locator("[data-approval=a2]")).to_have_count(0)
        assert await asked(page, "confirmation.response") == [{"id": "a2", "decision": "deny"}]
        await expect(page.locator("[data-approval]")).to_have_count(2)


async def test_a_letter_typed_into_the_reason_decides_nothing(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        await settled(page)
        card = page.locator("[data-approval=a1]")
        await card.get_by_text("Add a reason").click()
        await card.get_by_role("textbox").fill("")
        await page.keyboard.type("was a bad idea")
        assert await asked(page, "confirmation.response") == []
        await page.keyboard.press("Enter")
        assert await asked(page, "confirmation.response") == [
            {"id": "a1", "decision": "deny", "reason": "was a bad idea"}
        ]


async def test_a_double_click_never_answers_the_card_that_moves_up(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        await settled(page)
        await page.evaluate(
            """() => {
              document.querySelector("[data-approval=a1] .primary").click();
              requestAnimationFrame(() => requestAnimationFrame(() =>
                document.querySelector("[data-approval=a2] .primary").click()));
            }"""
        )
        await expect(page.locator("[data-approval=a1]")).to_have_count(0)
        await settled(page)
        assert await asked(page, "confirmation.response") == [{"id": "a1", "decision": "allow_once"}]


async def test_a_new_approval_is_announced_and_does_not_move_the_first(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        before = await page.locator("[data-approval=a1]").bounding_box()
        await request(page, "{id: 'a9', tool: 'browser_open_tab', client: 'Cursor', params: {}}")
        await expect(page.locator("[data-approval]").last).to_have_attribute("data-approval", "a9")
        await expect(page.locator("#announcement")).to_have_text("Cursor asks for your approval.")
        assert await page.locator("[data-approval=a1]").bounding_box() == before


async def test_all_are_denied_with_two_clicks_and_each_gets_its_own_answer(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        await settled(page)
        await page.get_by_role("button", name="Deny all").click()
        assert await asked(page, "confirmation.response") == []
        await page.get_by_role("button", name="Deny all 3?").click()
        await expect(page.get_by_role("heading", name="No pending approvals")).to_be_visible()
        sent = await asked(page, "confirmation.response")
        assert sent == [{"id": ident, "decision": "deny"} for ident in ("a1", "a2", "a3")]


async def test_little_time_left_is_shown_in_another_colour(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        await request(page, "{id: 'a9', tool: 't', client: 'c', params: {}, expiresAt: Date.now() + 15000}")
        await expect(page.locator("[data-approval=a9] .countdown")).to_have_class("countdown soon")
        await expect(page.locator("[data-approval=a1] .countdown")).to_have_class("countdown")


async def test_invisible_characters_in_parameters_are_shown(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        params = "{note: 'pay\\u202eyap\\u200b', html: '<img src=x onerror=alert(1)>'}"
        await request(page, f"{{id: 'a9', tool: 't', client: '<b>x</b>', params: {params}}}")
        card = page.locator("[data-approval=a9]")
        await expect(card).to_contain_text("pay⟨U+202E⟩yap⟨U+200B⟩")
        await expect(card).to_contain_text("<img src=x onerror=alert(1)>")
        await expect(card).to_contain_text("<b>x</b>")
        await expect(card.locator("img, b")).to_have_count(0)


async def test_only_decisions_offered_by_the_hub_are_shown(browser: Browser, address: str) -> None:
    async with panel(browser, address, "approvals") as page:
        await request(page, "{id: 'a9', tool: 't', client: 'c', params: {}, choices: ['allow_once', 'deny']}")
        await expect(page.locator("[data-approval=a9] .approval-actions button")).to_have_count(2)


async def test_a_tab_in_which_the_agents_were_stopped_is_returned_by_a_button(browser: Browser, address: str) -> None:
    stopped = [{"tabId": 7, "title": "My bank", "url": "https://bank.example/pay"}]
    async with panel(browser, address, "home") as page:
        await page.evaluate("(stopped) => panelFake.event('link.state', { ...panelLink, stopped })", stopped)
        await expect(page.get_by_label("Tabs in which agents are stopped")).to_contain_text("bank.example")
        await page.get_by_role("button", name="Return My bank to agents").click()
        assert await asked(page, "tabs.resume") == [{"tabId": 7}]
