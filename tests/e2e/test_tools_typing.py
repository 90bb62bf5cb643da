"""browser_type_text in real Chromium: real key events in every kind of field."""

from __future__ import annotations

import orjson
import pytest

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo

TYPE, FILL, DIALOG = "browser_type_text", "browser_fill_form", "browser_handle_dialog"


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


async def test_date_and_time_fields_have_their_own_roles_and_take_natural_values(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    kinds = {
        "date": ("date", "14 March 2026", "2026-03-14"),
        "time": ("time", "2:30 pm", "14:30"),
        "datetime-local": ("datetime", "March 14, 2026 2:30 pm", "2026-03-14T14:30"),
        "month": ("month", "March 2026", "2026-03"),
        "week": ("week", "week 7 2026", "2026-W07"),
        "color": ("color", "tomato", "#ff6347"),
        "range": ("slider", "60", "60"),
    }
    inputs = "".join(f"<label>{kind}<input id={kind} type={kind}></label>" for kind in kinds)
    await guest.run("document.body.innerHTML = args.inputs", args={"inputs": inputs})
    lines = (await guest.get("browser_snapshot"))["snapshot"].split("\n")
    assert [line.split()[:2] for line in lines] == [[role, f'"{kind}"'] for kind, (role, _, _) in kinds.items()]
    fields = [{"selector": f"#{kind}", "value": value} for kind, (_, value, _) in kinds.items()]
    filled = (await guest.get(FILL, fields=fields))["fields"]
    assert [field["value"] for field in filled] == [value for _, _, value in kinds.values()]
    assert (await guest.get(TYPE, selector="#time", text="9 am"))["value"] == "09:00"
    for kind, expected in (("time", "HH:MM"), ("week", "2026-W07"), ("color", "#rrggbb"), ("range", "from 0 to 100")):
        failed = await guest.fail(FILL, fields=[{"selector": f"#{kind}", "value": "any"}])
        assert expected in failed["text"]


@pytest.mark.req("A16")
async def test_text_without_a_target_goes_to_the_focused_field_at_the_cursor(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    assert "has the focus" in (await guest.fail(TYPE, text="x"))["text"]
    await guest.get(TYPE, selector="#name", text="ad")
    await guest.get("browser_press_key", key="ArrowLeft")
    answer = await guest.get(TYPE, text="bc")
    assert (answer["did"].startswith('Typed into textbox "Name"'), answer["value"]) == (True, "abcd")
    assert (await guest.get(TYPE, text="new", clear=True))["value"] == "new"


async def test_text_without_a_target_goes_to_the_focused_field_of_a_frame(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_frames.html"))
    for frame in ("near", "other"):
        await guest.get(TYPE, selector=f"#word-{frame}", text="a")
        assert (await guest.get(TYPE, text="b"))["value"] == "ab"


@pytest.mark.req("A1")
async def test_a_line_break_is_enter_in_any_field_with_lines(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    await guest.run("notes.onkeydown = ({ key, shiftKey }) => { if (key === 'Enter') log.push(`enter ${shiftKey}`); }")
    await log(guest)
    lines = "\n".join(f"- line {n}" for n in range(30))
    for text in ("a\nb", lines):
        answer = await guest.get(TYPE, selector="#notes", text=text, clear=True)
        assert await guest.run("return notes.value") == answer["value"] == text
        assert [line for line in await log(guest) if line.startswith("enter")] == ["enter false"] * text.count("\n")


async def test_text_too_long_for_single_keys_is_inserted(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    text = "\n".join(f"  {n} " for n in range(2000))
    assert "insert: true" in (await guest.fail(TYPE, selector="#notes", text=text))["text"]
    answer = await guest.get(TYPE, selector="#notes", text=text, insert=True, clear=True)
    assert await guest.run("return notes.value") == text
    assert (answer["value"], answer["length"]) == (text[:500], len(text))
    assert (await guest.get("browser_get_tab_content", selector="#notes"))["content"] == text


@pytest.mark.req("A16")
async def test_a_changed_text_is_reported(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    await guest.run(
        "document.getElementById('name').oninput = ({ target }) => (target.value = target.value.toUpperCase())"
    )
    answer = await guest.get(TYPE, selector="#name", text="abc", clear=True)
    assert (answer["value"], "does not hold the text" in answer["note"]) == ("ABC", True)


@pytest.mark.req("A3")
async def test_the_value_of_a_field_is_shown_exactly(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    text = "\n".join(f"    line {n} " for n in range(40))
    await guest.run("notes.value = args.text", args={"text": text})
    page = (await guest.get("browser_snapshot"))["snapshot"]
    assert f"(+{len(text) - 100} characters)" in page
    field = (await guest.get("browser_snapshot", selector="#notes"))["snapshot"]
    assert orjson.loads(field[field.index(" = ") + 3 :]) == text


@pytest.mark.req("A17")
async def test_a_field_is_not_named_by_its_contents(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    block = "<div id=block role=document contenteditable>Some words</div>"
    await guest.run("document.body.innerHTML = args.html", args={"html": f"<textarea>old text</textarea>{block}"})
    (field,) = (await guest.get(FILL, fields=[{"selector": "textarea", "value": "new"}]))["fields"]
    assert field["field"].startswith("textbox [")
    shown = (await guest.get("browser_snapshot"))["snapshot"]
    assert (shown.count("Some words"), "clickable" in shown) == (1, False)


@pytest.mark.req("A3", "A15")
async def test_preformatted_text_is_read_with_its_indentation(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    code = "<div style='white-space:pre'><div>def f():</div><div>    return 1</div><div>\tx</div></div>"
    await guest.run(
        "document.body.innerHTML = args.code + args.block + args.table",
        args={
            "code": code,
            "block": "<div class='highlight-python'><pre>a\n\n\n  b\n</pre></div>",
            "table": "<table><tr><td>1<td>old<td>new<tr><td colspan=2></td><td>&nbsp;&nbsp;added</td></tr></table>",
        },
    )
    content = (await guest.get("browser_get_tab_content"))["content"]
    assert content.startswith("def f():\n    return 1\n\tx\na\n\n\n  b\n")
    lines = (await guest.get("browser_snapshot"))["snapshot"].split("\n")
    assert [orjson.loads(line) for line in lines[:4]] == ["def f():", "    return 1", "\tx", "a\n\n\n  b"]
    marked = (await guest.get("browser_get_tab_content", format="markdown"))["content"]
    assert "```python\na\n\n\n  b\n```" in marked
    assert marked.endswith("| 1 | old | new |\n| --- | --- | --- |\n|  |  |   added |")
