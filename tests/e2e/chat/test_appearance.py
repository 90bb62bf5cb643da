"""The chat's appearance and use in real Chromium: keyboard, screen reader, widths, and that text is never HTML."""

from __future__ import annotations

import threading

from playwright.async_api import Page, expect

from tests.agent.scripted import Refusal, Turn, scripted
from tests.e2e.chat.helpers import message, say, use_model
from tests.e2e.live import LiveHub
from tests.extension.panelpage import Theme, open_all, violations

TOO_WIDE = """() => {
  const main = document.querySelector("main"), room = main.getBoundingClientRect().left + main.clientWidth;
  const wide = [...main.querySelectorAll("*")].filter((each) => each.getBoundingClientRect().right > room + 1);
  return main.scrollWidth <= main.clientWidth ? [] : [innerWidth, ...wide.map((each) => each.outerHTML.slice(0, 80))];
}"""


async def test_model_output_is_rendered_as_text_never_as_html(hub: LiveHub, panel: Page) -> None:
    evil = (
        '<img src=x onerror="document.title=1"> <b>bold</b> [click](javascript:alert(1)) '
        "[bank](https://bank.example) pay\u202eyap **`<script>`**"
    )
    with scripted(Turn(evil)) as server:
        await use_model(hub, server, panel)
        await say(panel, "<u>Hi</u>")
        output = panel.locator(".message.model")
        for expected in (
            "<img src=x",
            "<b>bold</b>",
            "[click](javascript:alert(1))",
            "bank (https://bank.example)",
            "<script>",
        ):
            await expect(output).to_contain_text(expected)
        await expect(output).to_contain_text("pay⟨U+202E⟩yap")
        await expect(panel.locator(".conversation :is(img, b, u, a, script)")).to_have_count(0)
    assert await panel.title() == "Chat · Tabhub"


async def test_enter_sends_shift_enter_does_not_and_screen_readers_get_sentences(hub: LiveHub, panel: Page) -> None:
    hold = threading.Event()
    with scripted(Turn("A sentence that comes in pieces.", hold=hold)) as server:
        await use_model(hub, server, panel)
        await message(panel).focus()
        await panel.keyboard.type("one")
        await panel.keyboard.press("Shift+Enter")
        await panel.keyboard.type("two")
        await expect(message(panel)).to_have_value("one\ntwo")
        log = panel.get_by_role("log")
        await panel.keyboard.press("Enter")
        await expect(panel.locator(".message.model")).to_contain_text("comes in pieces.")
        await expect(message(panel)).to_be_focused()
        await expect(message(panel)).to_have_value("")
        await expect(log).to_have_text("")
        hold.set()
        await expect(log).to_contain_text("A sentence that comes in pieces.The assistant has finished.")
        assert await log.get_attribute("aria-live") == "polite"


async def test_the_chat_scrolls_with_new_text_only_while_at_the_end(hub: LiveHub, panel: Page) -> None:
    hold = threading.Event()
    long = "\n\n".join(f"Paragraph {number}." for number in range(60))
    turns = (Turn(long), Turn(long, (("browser_list_tabs", {}),)), Turn("The end.", hold=hold))
    room = "main => main.scrollHeight - main.scrollTop - main.clientHeight"
    with scripted(*turns) as server:
        await use_model(hub, server, panel)
        main = panel.locator("#main")
        await say(panel, "Tell me")
        await expect(panel.locator(".ended")).to_have_count(1)
        assert await main.evaluate(room) < 5
        await main.evaluate("main => main.scrollTo(0, 100)")
        await say(panel, "More")
        await expect(panel.get_by_text("The end.")).to_have_count(1)
        assert await main.evaluate("main => main.scrollTop") == 100
        hold.set()
        await expect(panel.locator(".ended")).to_have_count(2)


async def test_the_chat_is_readable_at_every_width_in_both_themes(hub: LiveHub, panel: Page) -> None:
    wide = Turn("`" + "x" * 200 + "`\n\n" + "y" * 300 + "\n\n```\n" + "z" * 300 + "\n```", (("browser_list_tabs", {}),))
    with scripted(wide, Refusal(400, {"error": "w" * 400})) as server:
        await use_model(hub, server, panel)
        await say(panel, "v" * 300)
        await expect(panel.locator(".ended.failed")).to_be_visible()
    looks: tuple[tuple[int, Theme], ...] = ((320, "light"), (400, "dark"), (1200, "light"))
    for width, theme in looks:
        await panel.emulate_media(color_scheme=theme)
        await panel.set_viewport_size({"width": width, "height": 700})
        await message(panel).fill("u" * 300)
        await open_all(panel)
        assert await violations(panel) == []
        assert await panel.evaluate(TOO_WIDE) == []


async def test_a_message_sent_before_the_first_render_leaves_the_input_field(hub: LiveHub, panel: Page) -> None:
    with scripted(Turn("I hear.")) as server:
        await use_model(hub, server, panel)
        await message(panel).evaluate("""(field) => {
          field.value = "as fast as a machine types";
          field.dispatchEvent(new InputEvent("input", { bubbles: true }));
          field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
        }""")
        await expect(panel.locator(".message.model")).to_contain_text("I hear.")
    await expect(panel.locator(".message.person")).to_contain_text("as fast as a machine types")
    await expect(message(panel)).to_have_value("")
