"""The chat in the panel end to end: a scripted model, a real hub, and the real extension in Chromium."""

from __future__ import annotations

import json
import threading

from playwright.async_api import Page, Playwright, expect

from tests.agent.scripted import KEY, Refusal, Turn, scripted
from tests.e2e.agent_hub import ASKED
from tests.e2e.chat.helpers import message, say, step, use_model
from tests.e2e.live import EXTENSION, DevTools, LiveHub
from tests.e2e.live_settings import change
from tests.e2e.panels import browser_of, opened, settled
from tests.e2e.restartable_hub import RestartableHub
from tests.extension.panelpage import violations
from tests.harness.agent import client as http_client


async def test_without_a_model_the_chat_explains_setup_and_works_once_one_is_set(hub: LiveHub, panel: Page) -> None:
    change(hub, {"agent.baseUrl": None, "agent.model": None})  # unless no test has configured one yet
    await expect(panel.get_by_text("tabhub config set agent.baseUrl http://127.0.0.1:11434/v1")).to_be_visible()
    await expect(panel.get_by_text("tabhub config set agent.model NAME")).to_be_visible()
    await expect(message(panel)).to_have_count(0)
    assert await violations(panel) == []
    with scripted(Turn("Hello.")) as server:
        for key, value in (("baseUrl", server.url), ("model", "m0")):
            assert hub.tabhub("config", "set", f"agent.{key}", value).returncode == 0
        await expect(panel.locator(".composer-about")).to_contain_text("m0 · ")
        await say(panel, "Hi")
        await expect(panel.locator(".message.model")).to_have_text("AssistantHello.")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in await panel.content()


async def test_each_step_is_shown_with_its_arguments_and_result(hub: LiveHub, panel: Page) -> None:
    turns = (
        Turn("I open the page.", (("browser_open_tab", {"url": "about:blank", "active": False}),)),
        Turn("Now I **add**:", (("mcp__sums__add", {"a": 20, "b": 22}), ("browser_list_tabs", {}))),
        Turn("", (("mcp__sums__add", '{"a": 1,'),)),
        Turn("All done:\n\n- one\n- two\n\n```js\nconst x = 42;\n```"),
    )
    with scripted(*turns) as server:
        await use_model(hub, server, panel)
        await say(panel, "Open it,\nand add 20 and 22")
        await expect(panel.locator(".ended")).to_contain_text("4 steps · 444 tokens")
    await expect(panel.locator(".message.person")).to_contain_text("Open it,\nand add 20 and 22")
    await expect(panel.get_by_role("heading", level=2)).to_have_text("Open it, and add 20 and 22")
    await expect(panel.locator(".message.model strong")).to_have_text("add")
    await expect(panel.locator(".message.model li")).to_have_text(["one", "two"])
    await expect(panel.get_by_role("group", name="Code, js")).to_have_text("const x = 42;")
    opening = step(panel, "browser_open_tab")
    await expect(opening.locator(".step-title")).to_have_text("Open a tab")
    await expect(opening.locator(".step-time")).to_contain_text("s")
    await expect(opening.get_by_text("about:blank", exact=True)).to_be_hidden()
    await opening.locator("summary").click()
    await expect(opening.get_by_text("about:blank", exact=True)).to_be_visible()
    sums = panel.locator("[data-step=mcp__sums__add]")
    await sums.first.locator("summary").click()
    await expect(sums.first.get_by_role("group", name="Result of Add")).to_have_text("The sum is 42.")
    await expect(sums.last).to_contain_text("failed")
    await sums.last.locator("summary").click()
    await expect(sums.last.locator(".problem")).to_contain_text("not valid JSON")
    assert await violations(panel) == []


async def test_calls_that_need_approval_ask_in_the_chat(hub: LiveHub, panel: Page) -> None:
    turns = (
        Turn("", (("browser_open_tab", {"url": "about:blank"}),)),
        Turn("I count.", ((ASKED, {"code": "return 6 * 7"}),)),
        Turn("", ((ASKED, {"code": "return document.cookie"}),)),
        Turn("It is 42, and the cookies are yours."),
    )
    with scripted(*turns) as server:
        await use_model(hub, server, panel)
        await say(panel, "Count")
        card = panel.locator("[data-approval]")
        await expect(card).to_contain_text("return 6 * 7")
        await expect(card).to_contain_text("wants to run JavaScript in the page")
        await expect(step(panel, ASKED)).to_have_class("step running")
        await expect(panel.get_by_text("pending.")).to_have_count(0)
        await expect(message(panel)).to_be_focused()
        assert await violations(panel) == []
        await settled(panel)
        await card.get_by_role("button", name="Allow once").click()
        await expect(panel.locator(f"[data-step={ASKED}]").first).to_have_class("step done")
        await expect(card).to_contain_text("document.cookie")
        await card.get_by_text("Add a reason").click()
        await card.get_by_role("textbox").fill("Not my cookies")
        await settled(panel)
        await card.get_by_role("button", name="Deny").click()
        await expect(step(panel, ASKED)).to_contain_text("not allowed")
        await expect(panel.locator(".message.model").last).to_contain_text("the cookies are yours")
    await expect(card).to_have_count(0)
    assert "42" in server.results(2)[1]
    assert "Not my cookies" in server.results(3)[2]


async def test_stopping_withdraws_pending_approvals(hub: LiveHub, panel: Page) -> None:
    turns = (Turn("", (("browser_open_tab", {"url": "about:blank"}),)), Turn("", ((ASKED, {"code": "return 1"}),)))
    with scripted(*turns) as server:
        await use_model(hub, server, panel)
        await say(panel, "Run it")
        await expect(panel.locator("[data-approval]")).to_have_count(1)
        await panel.get_by_role("button", name="Stop the assistant").click()
        await expect(panel.locator(".ended.stopped")).to_be_visible()
        await expect(panel.locator("[data-approval]")).to_have_count(0)
        await expect(panel.locator("#nav .count")).to_have_count(0)
        await expect(step(panel, ASKED)).to_contain_text("stopped")


async def test_a_run_can_be_stopped_at_any_time_and_continued(hub: LiveHub, panel: Page) -> None:
    hold = threading.Event()
    wait = ("browser_wait_for_element", {"selector": "#never", "timeout": 60_000})
    with scripted(Turn("I wait.", (wait,)), Turn("I say", hold=hold), Turn("I go on.")) as server:
        await use_model(hub, server, panel)
        await say(panel, "Wait for it")
        await expect(step(panel, wait[0])).to_have_class("step running")
        await message(panel).fill("A thought meanwhile")
        await message(panel).press("Enter")
        await expect(message(panel)).to_have_value("A thought meanwhile")
        await message(panel).press("Escape")
        await expect(panel.locator(".ended.stopped")).to_contain_text("Stopped.")
        await expect(step(panel, wait[0])).to_contain_text("stopped")
        await message(panel).press("Enter")
        await expect(panel.locator(".message.model").last).to_contain_text("I say")
        await panel.get_by_role("button", name="Stop the assistant").click()
        await expect(panel.locator(".ended.stopped")).to_have_count(2)
        hold.set()
        await panel.get_by_role("button", name="Continue").click()
        await expect(panel.locator(".message.model").last).to_contain_text("I go on.")
    asked = [each["content"] for each in server.requests[2]["messages"] if each["role"] == "user"]
    assert asked == ["Wait for it", "A thought meanwhile", "Continue"]


async def test_a_panel_reload_keeps_the_running_conversation(hub: LiveHub, panel: Page) -> None:
    hold = threading.Event()
    turns = (Turn("I look.", (("browser_list_tabs", {}),)), Turn("I see tabs, and", hold=hold), Turn("Bye."))
    with scripted(*turns) as server:
        await use_model(hub, server, panel)
        await say(panel, "Which tabs?")
        await expect(panel.locator(".message.model").last).to_contain_text("I see tabs, and")
        await panel.reload()
        await expect(panel.locator(".message.model").last).to_contain_text("I see tabs, and")
        await expect(panel.locator(".message")).to_have_count(3)
        await expect(step(panel, "browser_list_tabs")).to_have_class("step done")
        await expect(panel.get_by_role("button", name="Stop the assistant")).to_be_visible()
        hold.set()
        await expect(panel.locator(".ended")).to_contain_text("2 steps")
        await panel.reload()
        await expect(panel.locator(".message.model").last).to_contain_text("I see tabs, and")
        await say(panel, "Thanks")
        await expect(panel.locator(".message.model").last).to_contain_text("Bye.")


async def test_stopping_the_service_worker_loses_nothing(hub: LiveHub, panel: Page) -> None:
    hold = threading.Event()
    turns = (Turn("Before.", hold=hold), Turn("After."))
    with scripted(*turns) as server:
        await use_model(hub, server, panel)
        await say(panel, "Tell me")
        await expect(panel.locator(".message.model")).to_contain_text("Before.")
        await DevTools(hub).stop_worker()
        await expect(panel.locator("#bar")).to_contain_text("Connected")
        hold.set()
        await expect(panel.locator(".ended")).to_have_count(1)
        await expect(panel.get_by_role("button", name="Stop the assistant")).to_have_count(0)
        await expect(panel.locator(".message")).to_have_count(2)
        await say(panel, "More")
        await expect(panel.locator(".message.model").last).to_contain_text("After.")


async def test_conversations_are_listed_reopened_and_deleted(hub: LiveHub, panel: Page) -> None:
    with scripted(Turn("One."), Turn("Two."), Turn("Three.")) as server:
        await use_model(hub, server, panel)
        await say(panel, "The first talk")
        await expect(panel.locator(".message.model")).to_contain_text("One.")
        await panel.get_by_role("button", name="New conversation").click()
        await expect(message(panel)).to_be_focused()
        await say(panel, "The second talk")
        await expect(panel.locator(".message.model")).to_contain_text("Two.")
        await panel.get_by_role("button", name="All conversations").click()
        rows = panel.locator(".conversations li")
        await expect(rows.nth(0)).to_contain_text("The second talk")
        assert await violations(panel) == []
        await rows.nth(1).get_by_role("button", name="The first talk").click()
        await expect(panel.locator(".message.model")).to_contain_text("One.")
        await say(panel, "More")
        await expect(panel.locator(".message.model").last).to_contain_text("Three.")
        await panel.get_by_role("button", name="All conversations").click()
        await expect(rows.nth(0)).to_contain_text("The first talk")
        await rows.nth(0).get_by_role("button", name="Delete").click()
        await rows.nth(0).get_by_role("button", name="Delete now?").click()
        await expect(panel.get_by_text("The first talk")).to_have_count(0)
    assert "The first talk" not in hub.tabhub("agent", "--list").stdout


async def test_a_provider_error_is_explained_and_can_be_retried(hub: LiveHub, panel: Page) -> None:
    refusal = Refusal(401, {"error": {"message": f"wrong key {KEY}"}})
    with scripted(refusal, Turn("Now it works.")) as server:
        await use_model(hub, server, panel)
        await say(panel, "Hello")
        failed = panel.locator(".ended.failed")
        await expect(failed).to_contain_text("The model's provider answered 401: wrong key …")
        await expect(failed).to_contain_text("Check the key")
        await panel.reload()
        await expect(failed).to_contain_text("Check the key")
        await panel.get_by_role("button", name="Try again").click()
        await expect(panel.locator(".message.model")).to_contain_text("Now it works.")


async def test_a_reached_limit_is_shown_and_one_click_continues(hub: LiveHub, panel: Page) -> None:
    look = Turn("", (("browser_list_tabs", {}),))
    with scripted(look, look, Turn("Enough.")) as server:
        await use_model(hub, server, panel)
        change(hub, {"agent.steps": "2"})
        try:
            await expect(panel.locator(".composer-about")).to_contain_text("up to 2 steps")
            await say(panel, "Look around")
            await expect(panel.locator(".ended.steps")).to_contain_text("It reached the limit of 2 steps")
            await panel.get_by_role("button", name="Continue").click()
            await expect(panel.locator(".message.model")).to_contain_text("Enough.")
        finally:
            change(hub, {"agent.steps": None})


async def test_the_chat_needs_no_token_where_other_agents_do(hub: LiveHub, panel: Page) -> None:
    with scripted(Turn("", (("browser_list_tabs", {}),)), Turn("I may.")) as server:
        await use_model(hub, server, panel)
        await say(panel, "Look")
        await expect(panel.locator(".message.model")).to_contain_text("I may.")
        await expect(step(panel, "browser_list_tabs")).to_have_class("step done")
    extension_key = json.loads((hub.home / "extension" / "auth.json").read_text())["secret"]
    async with http_client(hub, Authorization=f"Bearer {extension_key}") as http:
        assert (await http.post("/tools/browser_list_tabs/call", json={})).status_code == 401


async def test_a_second_panel_shows_the_same_conversation_live(hub: LiveHub, panel: Page) -> None:
    hold = threading.Event()
    with scripted(Turn("One."), Turn("Two, and", hold=hold)) as server:
        await use_model(hub, server, panel)
        await say(panel, "Count")
        await expect(panel.locator(".message.model")).to_contain_text("One.")
        other = await panel.context.new_page()
        await other.goto(f"{EXTENSION}/panel/panel.html#chat")
        await expect(other.locator(".message.model")).to_contain_text("One.")
        await say(panel, "More")
        await expect(other.locator(".message.person").last).to_contain_text("More")
        await expect(other.locator(".message.model").last).to_contain_text("Two, and")
        await other.get_by_role("button", name="Stop the assistant").click()
        await expect(panel.locator(".ended.stopped")).to_contain_text("Stopped.")
        hold.set()
        await other.close()


async def test_a_conversation_continues_after_a_hub_restart(playwright: Playwright, agent_hub: RestartableHub) -> None:
    """Runs last, because it stops the hub and the browser of this file."""
    turns = (Turn("Keep this.", (("browser_list_tabs", {}),)), Turn("Kept."), Turn("I remember."))
    with scripted(*turns) as server:
        hub = agent_hub.running
        async with browser_of(playwright, hub) as browser, opened(browser, "chat") as page:
            await use_model(hub, server, page)
            await say(page, "Remember")
            await expect(page.locator(".message.model").last).to_contain_text("Kept.")
        agent_hub.stop()
        hub = agent_hub.running
        async with browser_of(playwright, hub) as browser, opened(browser, "chat", remembering=True) as page:
            await expect(page.locator(".message.model").last).to_contain_text("Kept.")
            await expect(step(page, "browser_list_tabs")).to_have_class("step done")
            await say(page, "Do you?")
            await expect(page.locator(".message.model").last).to_contain_text("I remember.")
    assert [each["role"] for each in server.requests[2]["messages"] if each["role"] != "system"] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
