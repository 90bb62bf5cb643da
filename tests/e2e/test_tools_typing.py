"""browser_type_text in real Chromium: real key events in every kind of field."""

from __future__ import annotations

import pytest

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo

TYPE, DIALOG = "browser_type_text", "browser_handle_dialog"


async def log(agent: Caller) -> list[str]:
    """The events the page has recorded since the last call."""
    output: list[str] = await agent.run("return log.splice(0)")
    return output


async def test_typing_sends_key_events_with_focus(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    answer = await guest.get(TYPE, selector="#name", text="Jö")
    assert answer["value"] == "Jö"
    assert await log(guest) == ["focusin name", "keydown name J", "input name", "input name"]
    assert (await guest.get(TYPE, selector="#name", text="e"))["value"] == "Jöe"
    assert (await guest.get(TYPE, selector="#name", text="Max", clear=True))["value"] == "Max"
    await guest.get(TYPE, label="Secret", text="hidden")
    output = await log(guest)
    assert "change name" in output
    assert output.index("focusout name") < output.index("focusin secret")
    assert await guest.run("return document.hasFocus()") is True


async def test_all_kinds_of_fields_accept_text(guest: Caller, zoo: Zoo, subtests: pytest.Subtests) -> None:
    await guest.visit(zoo.at("act_form.html"))
    cases = {
        "area": ("#notes", "one\ntwo", "one\ntwo"),
        "rich": ("#rich", "new\nlines", "new\nlines"),
        "long": ("#notes", "x" * 3000, "x" * 500),
        "date": ("#day", "2024-02-03", "2024-02-03"),
        "empty": ("#name", "", ""),
        "unicode": ("#name", "你好 👍", "你好 👍"),
    }
    for case, (selector, text, value) in cases.items():
        with subtests.test(case):
            assert (await guest.get(TYPE, selector=selector, text=text, clear=True))["value"] == value


async def test_a_password_is_not_repeated(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    assert "value" not in await guest.get(TYPE, selector="#secret", text="abc")
    assert await guest.run("return document.getElementById('secret').value === 'abc'") is True


async def test_typing_into_an_uneditable_element_fails(guest: Caller, zoo: Zoo, subtests: pytest.Subtests) -> None:
    await guest.visit(zoo.at("act_form.html"))
    for selector, expected in (("#news", "not a text field"), ("#colour", "browser_select_option")):
        with subtests.test(selector=selector):
            assert expected in (await guest.fail(TYPE, selector=selector, text="x"))["text"]


async def test_submitting_reports_the_navigation(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    answer = await guest.get(TYPE, selector="#name", text="Eve", submit=True)
    assert answer["navigated"].startswith(f"{zoo.url}/form-sent?name=Eve")


async def test_a_dialog_while_typing_is_reported_with_an_unknown_number_of_typed_characters(
    guest: Caller, zoo: Zoo
) -> None:
    await guest.visit(zoo.at("act_dialogs.html"))
    await guest.run("asks.oninput = () => { asks.oninput = null; alert('typed ' + asks.value); }")
    answer = await guest.get(TYPE, selector="#asks", text="ab")
    assert answer["dialog"]["message"] == "typed a"
    assert answer["note"].startswith("How much was typed is unknown.")
    await guest.get(DIALOG, action="accept")
    # The browser drops keys that reach it while the dialog is open; one that had already reached the page is typed.
    assert await guest.run("return asks.value") in ("a", "ab")


async def test_a_dialog_on_focus_receives_no_late_keys(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_dialogs.html"))
    await guest.run("asks.oninput = null; asks.onfocus = () => { asks.onfocus = null; alert('Really?'); }")
    answer = await guest.get(TYPE, selector="#asks", text="ab")
    assert answer["dialog"]["message"] == "Really?"
    assert answer["did"].startswith("Began to type into #asks")
    assert "unknown" in answer["note"]
    await guest.get(DIALOG, action="accept")
    assert await guest.run("return asks.value") == ""
    assert (await guest.get(TYPE, selector="#asks", text="ab"))["value"] == "ab"


async def test_a_page_that_stops_key_events_is_read_after_the_last_key(
    guest: Caller, zoo: Zoo, subtests: pytest.Subtests
) -> None:
    for where, before_all_others in (("window", "true"), ("document.getElementById('name')", "false")):
        with subtests.test(where=where):
            await guest.visit(zoo.at("act_form.html"))
            await guest.run(
                f"for (const type of ['keydown', 'keyup']) {where}.addEventListener(type, (event) => {{"
                " event.stopImmediatePropagation(); const until = Date.now() + 30; while (Date.now() < until);"
                f" }}, {before_all_others})"
            )
            assert (await guest.get(TYPE, selector="#name", text="slow"))["value"] == "slow"


async def test_a_field_removed_while_typing_is_not_an_error(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    await guest.run("document.getElementById('mail').oninput = (event) => event.target.remove()")
    answer = await guest.get(TYPE, selector="#mail", text="ab")
    assert "value" not in answer
    assert answer["did"].startswith('Typed into textbox "E-mail"')


async def test_a_key_that_navigates_reports_it(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    await guest.run("document.getElementById('mail').onkeydown = () => { location = '/other'; }")
    answer = await guest.get(TYPE, selector="#mail", text="a")
    assert answer["navigated"] == f"{zoo.url}/other"


async def test_a_field_that_loses_focus_is_reported(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    await guest.run("document.getElementById('mail').onfocus = (event) => event.target.blur()")
    assert "cannot be focused" in (await guest.fail(TYPE, selector="#mail", text="ab"))["text"]
    assert await guest.run("return document.getElementById('name').value + document.getElementById('mail').value") == ""
