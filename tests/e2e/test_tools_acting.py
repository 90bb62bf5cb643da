"""The acting tools in real Chromium, in background tabs: their effects, and the reasons when they cannot act."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.e2e.live import Caller, LiveHub
from tests.e2e.zoo import Zoo

CLICK, TYPE, FILL, SELECT = "browser_click_element", "browser_type_text", "browser_fill_form", "browser_select_option"
PRESS, HOVER, SCROLL, DRAG = "browser_press_key", "browser_hover_element", "browser_scroll", "browser_drag"
UPLOAD, MOUSE = "browser_upload_file", "browser_mouse"


async def log(agent: Caller) -> list[str]:
    """The events the page has recorded since the last call."""
    output: list[str] = await agent.run("return log.splice(0)")
    return output


async def test_clicks_are_trusted_events_in_a_background_tab(agent: Caller, zoo: Zoo) -> None:
    tab_id = await agent.open(zoo.at("act_buttons.html"))
    answer = await agent.get(CLICK, selector="#plain")
    assert answer["did"].startswith('Clicked button "Plain"')
    assert await log(agent) == ["mouseover plain true", "mousedown plain true", "click plain true"]
    assert (await agent.get("browser_get_tab_info", tabId=tab_id))["active"] is False


async def test_a_click_waits_until_the_element_is_actionable(guest: Caller, zoo: Zoo) -> None:
    for name in ("later", "slides"):
        await guest.visit(zoo.at("act_buttons.html"))
        await guest.get(CLICK, selector=f"#{name}")
        assert f"click {name} true" in await log(guest)


async def test_clicks_scroll_and_find_an_uncovered_point(guest: Caller, zoo: Zoo, subtests: pytest.Subtests) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"text": "Plain"}, "click plain true"),
        ({"role": "button", "text": "Plain"}, "click plain true"),
        ({"selector": "#twice", "count": 2}, "double"),
        ({"selector": "#menu", "button": "right"}, "menu"),
        ({"selector": "#plain", "modifiers": ["Control", "Shift"]}, "click plain true ctrl shift"),
        ({"selector": "#half"}, "click half true"),
        ({"selector": "#inbox"}, "click inbox true"),
        ({"selector": "#far"}, "click far true"),
        ({"selector": "#deep"}, "deep"),
        ({"selector": "#tick"}, "click tick true"),
    ]
    for target, noted in cases:
        with subtests.test(target=target):
            await log(guest)
            await guest.get(CLICK, **target)
            assert noted in await log(guest)


async def test_an_element_that_blocks_an_action_is_named(agent: Caller, zoo: Zoo) -> None:
    """All at once, because each waits as long as the element may still become actionable."""
    buttons = await agent.open(zoo.at("act_buttons.html"))
    frames = await agent.open(zoo.at("act_frames.html"))
    form = await agent.open(zoo.at("act_form.html"))
    await agent.run("document.getElementById('veil').style.display = 'block'", tabId=frames)

    async def refused(selector: str, expected: str) -> None:
        error = await agent.fail(CLICK, tabId=buttons, selector=selector)
        assert expected in error["text"], selector
        assert error["outcome"] == "failed", selector

    async def framed() -> None:
        error = await agent.fail(CLICK, tabId=frames, selector="#press-other")
        assert "Veil" in error["text"]
        assert "around its frame" in error["text"]

    async def not_filled() -> None:
        await not_filled_in(agent, {"selector": "#fixed", "value": "x"}, "read-only", tabId=form)

    async def not_typed() -> None:
        assert "read-only" in (await agent.fail(TYPE, tabId=form, selector="#fixed", text="x"))["text"]

    await asyncio.gather(
        framed(),
        not_filled(),
        not_typed(),
        refused("#under", 'covered by <div#curtain.cover> "A curtain"'),
        refused("#never", "is disabled by the page"),
        refused("#soft", "disabled by aria-disabled"),
        refused("#hidden", "<div#gone>"),
        refused("#plains", "#plain"),
    )
    output: list[str] = await agent.run("return log", tabId=buttons)
    assert not [line for line in output if line.startswith("click")]


async def test_an_intercepted_click_is_blocked_and_retried(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    # When the mouse arrives, an element slides over the button, once.
    await guest.run(
        "const dodge = document.getElementById('dodge'); const lid = document.createElement('div'); lid.id = 'lid';"
        "lid.style = 'position: absolute; inset: 0'; lid.onclick = () => note('lid');"
        "dodge.addEventListener('mousemove', () => { dodge.parentElement.append(lid);"
        " setTimeout(() => lid.remove(), 300); }, {once: true})"
    )
    await guest.get(CLICK, selector="#dodge")
    output = await log(guest)
    assert "click dodge true" in output
    assert not [line for line in output if "lid" in line and "mouseover" not in line]


async def test_hover_moves_the_mouse(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    await guest.get(HOVER, selector="#twice")
    assert await log(guest) == ["mouseover twice true"]
    assert await guest.run("return document.querySelector('#twice').matches(':hover')") is True


async def test_same_and_cross_origin_frames_are_clicked_and_typed_in(
    guest: Caller, zoo: Zoo, subtests: pytest.Subtests
) -> None:
    await guest.visit(zoo.at("act_frames.html"))
    await guest.run("window.received = []; addEventListener('message', (event) => received.push(event.data))")
    for frame in ("near", "other"):
        with subtests.test(frame=frame):
            await guest.run("received.length = 0")
            await guest.get(CLICK, selector=f"#press-{frame}")
            answer = await guest.get(TYPE, selector=f"#word-{frame}", text="hö")
            assert answer["value"] == "hö"
            result = "while (received.at(-1)?.value !== 'hö') await new Promise((done) => setTimeout(done, 10))"
            last = await guest.run(f"{result}; return received.at(-1)")
            assert last["other"] is (frame == "other")
            assert last["value"] == "hö"
            assert "click true" in last["log"]
            assert "keydown true" in last["log"]


async def test_a_whole_form_is_filled_in(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    answer = await guest.get(
        FILL,
        fields=[
            {"selector": "#name", "value": "Carl"},
            {"text": "E-mail", "value": "c@d.example"},
            {"selector": "#age", "value": 42},
            {"selector": "#notes", "value": "hello\nyou"},
            {"selector": "#news", "value": True},
            {"text": "Terms", "value": False},
            {"selector": "#small", "value": "Large"},
            {"text": "Colour", "value": "Green"},
            {"selector": "#fruits", "value": ["Apple", "Plum"]},
            {"selector": "#day", "value": "2024-05-06"},
            {"selector": "#hue", "value": "#ff0000"},
            {"selector": "#level", "value": 7},
            {"selector": "#rich", "value": "rich"},
        ],
    )
    assert answer["did"] == "Filled in 13 fields"
    assert len(answer["fields"]) == 13
    form = await guest.run("return Object.entries(Object.groupBy([...new FormData(form)], (pair) => pair[0]))")
    assert {name: [value for _, value in pairs] for name, pairs in form if name != "file"} == {
        "name": ["Carl"],
        "mail": ["c@d.example"],
        "secret": [""],
        "age": ["42"],
        "notes": ["hello\nyou"],
        "news": ["on"],
        "size": ["l"],
        "colour": ["g"],
        "fruits": ["Apple", "Plum"],
        "day": ["2024-05-06"],
        "hue": ["#ff0000"],
        "level": ["7"],
    }
    assert await guest.run("return document.getElementById('rich').innerText.trim()") == "rich"
    output = await log(guest)
    assert {"change name", "change colour", "input fruits", "change day", "change news"} <= set(output)


@pytest.mark.req("A5")
async def test_a_value_that_the_page_changes_when_the_focus_leaves_is_reported(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    await guest.run(
        "document.body.innerHTML = '<label>Date <input id=date></label><label>Title <input></label>';"
        "date.onblur = () => { if (!/^[0-9-]+$/.test(date.value)) date.value = '2000-01-01'; }"
    )
    fields = [{"label": "Date", "value": "March 14, 2027"}, {"label": "Title", "value": "Harbour"}]
    date, title = (await guest.get("browser_fill_form", fields=fields))["fields"]
    assert (date["value"], title["value"]) == ("2000-01-01", "Harbour")
    assert "changed it when the focus left it" in date["note"]
    fields[0]["value"] = "2027-03-14"
    date, _ = (await guest.get("browser_fill_form", fields=fields))["fields"]
    assert (date["value"], "note" in date) == ("2027-03-14", False)


async def test_a_field_that_cannot_be_filled_is_named(guest: Caller, zoo: Zoo, subtests: pytest.Subtests) -> None:
    await guest.visit(zoo.at("act_form.html"))
    cases = (
        ("#file", "x", "browser_upload_file"),
        ("#day", "tomorrow", "YYYY-MM-DD"),
        ("#colour", "Mauve", "Red (r), Green (g), Blue (b)"),
        ("#news", "perhaps", "true or false"),
        ("#city", "Atlantis", "Its options: "),
    )
    for selector, value, expected in cases:
        with subtests.test(selector=selector):
            await guest.run("document.getElementById('name').value = ''")
            await not_filled_in(guest, {"selector": selector, "value": value}, expected)


async def not_filled_in(agent: Caller, field: dict[str, Any], expected: str, **more: Any) -> None:
    error = await agent.fail(FILL, fields=[{"selector": "#name", "value": "first"}, field], **more)
    assert expected in error["text"]
    assert "Field 2 of 2" in error["text"]
    assert await agent.run("return document.getElementById('name').value", **more) == "first"


async def test_options_are_chosen_by_value_and_label(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    assert (await guest.get(SELECT, selector="#colour", value="g"))["chosen"] == ["Green"]
    assert await log(guest) == ["focusin colour", "input colour", "change colour"]
    assert (await guest.get(SELECT, text="Fruits", label=["Pear", "Plum"]))["chosen"] == ["Pear", "Plum"]
    assert "disabled" in (await guest.fail(SELECT, selector="#colour", value="b"))["text"]
    assert "Red (r)" in (await guest.fail(SELECT, selector="#colour", label="Mauve"))["text"]
    assert "one option only" in (await guest.fail(SELECT, selector="#colour", label=["Red", "Green"]))["text"]


async def test_a_custom_select_is_opened_and_clicked(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    assert (await guest.get(SELECT, selector="#city", label="Oslo"))["value"] == "Oslo"
    assert await guest.run("return document.getElementById('city').textContent") == "Oslo"


async def test_keys_go_to_the_focused_or_named_element(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    await guest.get(TYPE, selector="#name", text="abc")
    await guest.get(PRESS, key="Control+A", selector="#name")
    await guest.get(PRESS, key="Backspace")
    assert await guest.run("return document.getElementById('name').value") == ""
    await guest.get(PRESS, key="Tab")
    assert await guest.run("return document.activeElement.id") == "mail"
    await guest.get(PRESS, key="a", modifiers=["Shift"])
    assert await guest.run("return document.getElementById('mail').value") == "A"
    assert "Enter" in (await guest.fail(PRESS, key="Entr"))["text"]


async def test_scrolling_loads_more_of_an_endless_list(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_scroll.html"))
    first = await guest.get(SCROLL, position="bottom")
    await guest.get("browser_wait_for", selector="li:nth-child(60)")
    again = await guest.get(SCROLL, position="bottom")
    assert again["y"] > first["y"]
    assert (await guest.get(SCROLL, direction="right", container="#side", distance=100))["x"] == 100
    await guest.get(SCROLL, text="Item 25")
    box = await guest.run("return document.querySelectorAll('li')[24].getBoundingClientRect().toJSON()")
    assert 0 < box["top"] < box["bottom"] < await guest.run("return innerHeight")
    top = await guest.get(SCROLL, position="top")
    assert top["y"] == 0
    assert "beginning" in (await guest.get(SCROLL, direction="up"))["note"]


async def test_dragging_works_with_mouse_events_and_native_drag_and_drop(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_drag.html"))
    await guest.get(DRAG, **{"from": "#card", "to": "#basket"})
    assert await log(guest) == ["basket got a card", "end"]
    await guest.get(DRAG, **{"from": {"selector": "#knob"}, "to": {"x": 200, "y": 140}})
    assert await log(guest) == ["knob at 160px"]
    await guest.get(DRAG, **{"from": "#card", "to": {"text": "Below"}})
    assert await log(guest) == ["below got a card", "end"]


async def test_files_are_uploaded_through_fields_and_buttons(guest: Caller, live_hub: LiveHub, zoo: Zoo) -> None:
    folder = live_hub.home / "files"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("alpha")
    (folder / "b.txt").write_text("beta")
    read = "while (log.length < %d) await new Promise((done) => setTimeout(done, 10))"
    await guest.visit(zoo.at("act_files.html"))
    await guest.get(UPLOAD, selector="#one", paths=["a.txt"])
    await guest.run(read % 1)
    await guest.get(UPLOAD, text="Many", paths=["a.txt", str(folder / "b.txt")])
    await guest.run(read % 3)
    await guest.get(UPLOAD, selector="#choose", paths=["b.txt"])
    await guest.run(read % 4)
    assert await log(guest) == ["one a.txt alpha", "many a.txt alpha", "many b.txt beta", "made b.txt beta"]
    assert "accepts one file" in (await guest.fail(UPLOAD, selector="#one", paths=["a.txt", "b.txt"]))["text"]
    assert "no file chooser" in (await guest.fail(UPLOAD, selector="#dull", paths=["a.txt"]))["text"]


async def test_files_outside_the_folder_cannot_be_uploaded(
    guest: Caller, live_hub: LiveHub, zoo: Zoo, subtests: pytest.Subtests
) -> None:
    folder = live_hub.home / "files"
    folder.mkdir(exist_ok=True)
    (folder / "way.txt").symlink_to("/etc/hostname")
    await guest.visit(zoo.at("act_files.html"))
    for path in ("/etc/hostname", "../home.txt", "~/x", "nothing.txt", "way.txt"):
        with subtests.test(path=path):
            error = await guest.fail(UPLOAD, selector="#one", paths=[path])
            assert error["outcome"] == "not_sent"
            assert await guest.run("return document.getElementById('one').files.length") == 0


async def test_the_mouse_moves_presses_and_scrolls(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_canvas.html"))
    for action, x in (("move", 10), ("down", 10), ("move", 30), ("up", 30)):
        await guest.get(MOUSE, action=action, x=x, y=20)
    assert await log(guest) == [
        "mousemove 10,20 0",
        "mousedown 10,20 1",
        "mousemove 30,20 1",
        "mouseup 30,20 0",
        "click 30,20 0",
    ]
    await guest.get(MOUSE, action="wheel", x=30, y=20, deltaY=120)
    await guest.get(MOUSE, action="click", x=30, y=20, count=2)
    output = await log(guest)
    assert output[0] == "wheel 30,20 0 120"
    assert output[-1] == "dblclick 30,20 0"


async def test_a_page_with_the_strictest_csp_can_be_used(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(f"{zoo.url}/strict")
    await guest.run("document.body.innerHTML = '<input id=i><button id=b>B</button>'")
    assert (await guest.get(TYPE, selector="#i", text="words"))["value"] == "words"
    await guest.get(CLICK, text="B")
    assert await guest.run("return document.activeElement.id") == "b"
