"""browser_type_text in real Chromium: real keys, whatever the field, and whatever the page makes of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo
from tests.harness.waiting import eventually

TYPE, DIALOG = "browser_type_text", "browser_handle_dialog"


async def log(agent: Caller) -> list[str]:
    """What the page has noted since it was asked last."""
    said: list[str] = await agent.run("return log.splice(0)")
    return said


async def test_typing_is_by_keys_with_focus_and_events(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    answer = await agent.get(TYPE, selector="#name", text="Jö")
    assert answer["value"] == "Jö"
    assert await log(agent) == ["focusin name", "keydown name J", "input name", "input name"]
    assert (await agent.get(TYPE, selector="#name", text="e"))["value"] == "Jöe"
    assert (await agent.get(TYPE, selector="#name", text="Max", clear=True))["value"] == "Max"
    await agent.get(TYPE, label="Secret", text="hidden")
    said = await log(agent)
    assert "change name" in said
    assert said.index("focusout name") < said.index("focusin secret")
    assert await agent.run("return document.hasFocus()") is True


@pytest.mark.parametrize(
    ("selector", "text", "value"),
    [
        ("#notes", "one\ntwo", "one\ntwo"),
        ("#rich", "new\nlines", "new\nlines"),
        ("#notes", "x" * 3000, "x" * 500),
        ("#day", "2024-02-03", "2024-02-03"),
        ("#name", "", ""),
        ("#name", "你好 👍", "你好 👍"),
    ],
    ids=["area", "rich", "long", "date", "empty", "unicode"],
)
async def test_fields_of_all_kinds_take_text(agent: Caller, zoo: Zoo, selector: str, text: str, value: str) -> None:
    await agent.open(zoo.at("act_form.html"))
    assert (await agent.get(TYPE, selector=selector, text=text, clear=True))["value"] == value


async def test_a_password_is_not_repeated(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    assert "value" not in await agent.get(TYPE, selector="#secret", text="abc")
    assert await agent.run("return document.getElementById('secret').value") == "abc"


@pytest.mark.parametrize(("selector", "words"), [("#news", "no text field"), ("#colour", "browser_select_option")])
async def test_what_takes_no_text_says_so(agent: Caller, zoo: Zoo, selector: str, words: str) -> None:
    await agent.open(zoo.at("act_form.html"))
    assert words in (await agent.fail(TYPE, selector=selector, text="x"))["text"]


async def test_submitting_sends_the_form_and_tells_where_it_led(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    answer = await agent.get(TYPE, selector="#name", text="Eve", submit=True)
    assert answer["navigated"].startswith(f"{zoo.url}/form-sent?name=Eve")


async def test_a_dialog_while_typing_holds_the_rest_back(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_dialogs.html"))
    answer = await agent.get(TYPE, selector="#asks", text="ab")
    assert answer["dialog"]["message"] == "typed a"
    await agent.get(DIALOG, action="accept")

    async def asked() -> Any:
        return (await agent.get("browser_get_tab_info")).get("dialog")

    assert (await eventually(asked))["message"] == "typed ab"
    await agent.get(DIALOG, action="accept")


async def test_a_field_that_asks_something_when_it_gets_the_focus_takes_nothing_late(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_dialogs.html"))
    await agent.run("asks.oninput = null; asks.onfocus = () => { asks.onfocus = null; alert('Really?'); }")
    answer = await agent.get(TYPE, selector="#asks", text="ab")
    assert answer["dialog"]["message"] == "Really?"
    assert answer["did"].startswith("Began to type into #asks")
    assert "not known" in answer["note"]
    await agent.get(DIALOG, action="accept")
    assert await agent.run("return asks.value") == ""
    assert (await agent.get(TYPE, selector="#asks", text="ab"))["value"] == "ab"


@pytest.mark.parametrize("phase", ["true", "false"], ids=["before_all_others", "at_the_field"])
async def test_a_page_that_keeps_the_keys_to_itself_is_read_after_the_last(agent: Caller, zoo: Zoo, phase: str) -> None:
    await agent.open(zoo.at("act_form.html"))
    where = "window" if phase == "true" else "document.getElementById('name')"
    await agent.run(
        f"for (const type of ['keydown', 'keyup']) {where}.addEventListener(type, (event) => {{"
        f" event.stopImmediatePropagation(); const until = Date.now() + 30; while (Date.now() < until); }}, {phase})"
    )
    assert (await agent.get(TYPE, selector="#name", text="slow"))["value"] == "slow"


async def test_a_field_that_goes_under_the_keys_is_no_failure(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    await agent.run("document.getElementById('mail').oninput = (event) => event.target.remove()")
    answer = await agent.get(TYPE, selector="#mail", text="ab")
    assert "value" not in answer
    assert answer["did"].startswith('Typed into textbox "E-mail"')


async def test_a_key_that_leads_elsewhere_is_told(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    await agent.run("document.getElementById('mail').onkeydown = () => { location = '/other'; }")
    answer = await agent.get(TYPE, selector="#mail", text="a")
    assert answer["navigated"] == f"{zoo.url}/other"


async def test_a_field_that_gives_the_focus_away_is_said_not_to_take_keys(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    await agent.run("document.getElementById('mail').onfocus = (event) => event.target.blur()")
    assert "cannot be focused" in (await agent.fail(TYPE, selector="#mail", text="ab"))["text"]
    assert await agent.run("return document.getElementById('name').value + document.getElementById('mail').value") == ""
