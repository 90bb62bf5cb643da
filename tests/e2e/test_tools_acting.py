"""The acting tools in real Chromium, always in a tab in the background: what they do, and why they do not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.e2e.zoo import Zoo

CLICK, TYPE, FILL, SELECT = "browser_click_element", "browser_type_text", "browser_fill_form", "browser_select_option"
PRESS, HOVER, SCROLL, DRAG = "browser_press_key", "browser_hover_element", "browser_scroll", "browser_drag"
UPLOAD, MOUSE = "browser_upload_file", "browser_mouse"


async def log(agent: Caller) -> list[str]:
    """What the page has noted since it was asked last."""
    said: list[str] = await agent.run("return log.splice(0)")
    return said


async def test_a_click_is_real_and_the_tab_stays_in_the_background(agent: Caller, zoo: Zoo) -> None:
    tab_id = await agent.open(zoo.at("act_buttons.html"))
    answer = await agent.get(CLICK, selector="#plain")
    assert answer["did"].startswith('Clicked button "Plain"')
    assert await log(agent) == ["mouseover plain true", "mousedown plain true", "click plain true"]
    assert (await agent.get("browser_get_tab_info", tabId=tab_id))["active"] is False


@pytest.mark.parametrize(
    ("target", "noted"),
    [
        ({"text": "Plain"}, "click plain true"),
        ({"role": "button", "text": "Plain"}, "click plain true"),
        ({"selector": "#twice", "count": 2}, "double"),
        ({"selector": "#menu", "button": "right"}, "menu"),
        ({"selector": "#plain", "modifiers": ["Control", "Shift"]}, "click plain true ctrl shift"),
        ({"selector": "#later"}, "click later true"),
        ({"selector": "#slides"}, "click slides true"),
        ({"selector": "#half"}, "click half true"),
        ({"selector": "#inbox"}, "click inbox true"),
        ({"selector": "#far"}, "click far true"),
        ({"selector": "#deep"}, "deep"),
        ({"selector": "#tick"}, "click tick true"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_click_waits_scrolls_and_finds_a_free_place(
    agent: Caller, zoo: Zoo, target: dict[str, Any], noted: str
) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    await agent.get(CLICK, **target)
    assert noted in await log(agent)


async def test_what_stays_in_the_way_of_an_action_is_named(live_hub: LiveHub, zoo: Zoo) -> None:
    """All at once: each is waited for as long as it may still become ready."""

    async def refused(selector: str, words: str) -> None:
        async with live.caller(live_hub) as agent:
            await agent.open(zoo.at("act_buttons.html"))
            error = await agent.fail(CLICK, selector=selector)
            assert words in error["text"]
            assert error["outcome"] == "failed"
            assert not [line for line in await log(agent) if line.startswith("click")]

    async def framed() -> None:
        async with live.caller(live_hub) as agent:
            await agent.open(zoo.at("act_frames.html"))
            await agent.run("document.getElementById('veil').style.display = 'block'")
            error = await agent.fail(CLICK, selector="#press-other")
            assert "Veil" in error["text"]
            assert "around its frame" in error["text"]

    async def not_filled() -> None:
        async with live.caller(live_hub) as agent:
            await not_filled_in(agent, zoo, {"selector": "#fixed", "value": "x"}, "read-only")

    async def not_typed() -> None:
        async with live.caller(live_hub) as agent:
            await agent.open(zoo.at("act_form.html"))
            assert "read-only" in (await agent.fail(TYPE, selector="#fixed", text="x"))["text"]

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


async def test_a_click_that_something_catches_reaches_nobody_and_is_tried_again(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    # The moment the mouse comes, something slides over the button, once.
    await agent.run(
        "const dodge = document.getElementById('dodge'); const lid = document.createElement('div'); lid.id = 'lid';"
        "lid.style = 'position: absolute; inset: 0'; lid.onclick = () => note('lid');"
        "dodge.addEventListener('mousemove', () => { dodge.parentElement.append(lid);"
        " setTimeout(() => lid.remove(), 300); }, {once: true})"
    )
    await agent.get(CLICK, selector="#dodge")
    said = await log(agent)
    assert "click dodge true" in said
    assert not [line for line in said if "lid" in line and "mouseover" not in line]


async def test_hovering_moves_the_mouse_there(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    await agent.get(HOVER, selector="#twice")
    assert await log(agent) == ["mouseover twice true"]
    assert await agent.run("return document.querySelector('#twice').matches(':hover')") is True


@pytest.mark.parametrize("frame", ["near", "other"])
async def test_frames_of_both_origins_are_clicked_and_typed_in(agent: Caller, zoo: Zoo, frame: str) -> None:
    await agent.open(zoo.at("act_frames.html"))
    await agent.run("window.heard = []; addEventListener('message', (event) => heard.push(event.data))")
    await agent.get(CLICK, selector=f"#press-{frame}")
    answer = await agent.get(TYPE, selector=f"#word-{frame}", text="hö")
    assert answer["value"] == "hö"
    told = "while (heard.at(-1)?.value !== 'hö') await new Promise((done) => setTimeout(done, 10))"
    last = await agent.run(f"{told}; return heard.at(-1)")
    assert last["other"] is (frame == "other")
    assert last["value"] == "hö"
    assert "click true" in last["log"]
    assert "keydown true" in last["log"]


async def test_a_whole_form_is_filled_in(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    answer = await agent.get(
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
    form = await agent.run("return Object.entries(Object.groupBy([...new FormData(form)], (pair) => pair[0]))")
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
    assert await agent.run("return document.getElementById('rich').innerText.trim()") == "rich"
    said = await log(agent)
    assert {"change name", "change colour", "input fruits", "change day", "change news"} <= set(said)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"selector": "#file", "value": "x"}, "browser_upload_file"),
        ({"selector": "#day", "value": "tomorrow"}, "YYYY-MM-DD"),
        ({"selector": "#colour", "value": "Mauve"}, "Red (r), Green (g), Blue (b)"),
        ({"selector": "#news", "value": "perhaps"}, "true or false"),
        ({"selector": "#city", "value": "Oslo"}, "clicked open"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["selector"],
)
async def test_a_field_that_cannot_be_filled_in_is_named(
    agent: Caller, zoo: Zoo, field: dict[str, Any], words: str
) -> None:
    await not_filled_in(agent, zoo, field, words)


async def not_filled_in(agent: Caller, zoo: Zoo, field: dict[str, Any], words: str) -> None:
    await agent.open(zoo.at("act_form.html"))
    error = await agent.fail(FILL, fields=[{"selector": "#name", "value": "first"}, field])
    assert words in error["text"]
    assert "Field 2 of 2" in error["text"]
    assert await agent.run("return document.getElementById('name').value") == "first"


async def test_options_are_chosen_by_value_and_label(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    assert (await agent.get(SELECT, selector="#colour", value="g"))["chosen"] == ["Green"]
    assert await log(agent) == ["focusin colour", "input colour", "change colour"]
    assert (await agent.get(SELECT, text="Fruits", label=["Pear", "Plum"]))["chosen"] == ["Pear", "Plum"]
    assert "disabled" in (await agent.fail(SELECT, selector="#colour", value="b"))["text"]
    assert "Red (r)" in (await agent.fail(SELECT, selector="#colour", label="Mauve"))["text"]
    assert "one option only" in (await agent.fail(SELECT, selector="#colour", label=["Red", "Green"]))["text"]


async def test_a_custom_list_is_opened_and_clicked(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    assert "Click it" in (await agent.fail(SELECT, selector="#city", label="Oslo"))["text"]
    await agent.get(CLICK, selector="#city")
    await agent.get(CLICK, role="option", text="Oslo")
    assert await agent.run("return document.getElementById('city').textContent") == "Oslo"


async def test_keys_go_to_the_focus_or_to_the_element_that_is_named(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    await agent.get(TYPE, selector="#name", text="abc")
    await agent.get(PRESS, key="Control+A", selector="#name")
    await agent.get(PRESS, key="Backspace")
    assert await agent.run("return document.getElementById('name').value") == ""
    await agent.get(PRESS, key="Tab")
    assert await agent.run("return document.activeElement.id") == "mail"
    await agent.get(PRESS, key="a", modifiers=["Shift"])
    assert await agent.run("return document.getElementById('mail').value") == "A"
    assert "Enter" in (await agent.fail(PRESS, key="Entr"))["text"]


async def test_scrolling_loads_more_of_an_endless_list(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_scroll.html"))
    first = await agent.get(SCROLL, position="bottom")
    await agent.get("browser_wait_for", selector="li:nth-child(60)")
    again = await agent.get(SCROLL, position="bottom")
    assert again["y"] > first["y"]
    assert (await agent.get(SCROLL, direction="right", container="#side", distance=100))["x"] == 100
    await agent.get(SCROLL, text="Item 25")
    box = await agent.run("return document.querySelectorAll('li')[24].getBoundingClientRect().toJSON()")
    assert 0 < box["top"] < box["bottom"] < await agent.run("return innerHeight")
    top = await agent.get(SCROLL, position="top")
    assert top["y"] == 0
    assert "beginning" in (await agent.get(SCROLL, direction="up"))["note"]


async def test_dragging_is_by_mouse_and_by_drag_and_drop(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_drag.html"))
    await agent.get(DRAG, **{"from": "#card", "to": "#basket"})
    assert await log(agent) == ["basket got a card", "end"]
    await agent.get(DRAG, **{"from": {"selector": "#knob"}, "to": {"x": 200, "y": 140}})
    assert await log(agent) == ["knob at 160px"]
    await agent.get(DRAG, **{"from": "#card", "to": {"text": "Below"}})
    assert await log(agent) == ["below got a card", "end"]


async def test_files_are_given_to_fields_and_to_buttons(agent: Caller, live_hub: LiveHub, zoo: Zoo) -> None:
    folder = live_hub.home / "files"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("alpha")
    (folder / "b.txt").write_text("beta")
    read = "while (log.length < %d) await new Promise((done) => setTimeout(done, 10))"
    await agent.open(zoo.at("act_files.html"))
    await agent.get(UPLOAD, selector="#one", paths=["a.txt"])
    await agent.run(read % 1)
    await agent.get(UPLOAD, text="Many", paths=["a.txt", str(folder / "b.txt")])
    await agent.run(read % 3)
    await agent.get(UPLOAD, selector="#choose", paths=["b.txt"])
    await agent.run(read % 4)
    assert await log(agent) == ["one a.txt alpha", "many a.txt alpha", "many b.txt beta", "made b.txt beta"]
    assert "takes one file" in (await agent.fail(UPLOAD, selector="#one", paths=["a.txt", "b.txt"]))["text"]
    assert "no file chooser" in (await agent.fail(UPLOAD, selector="#dull", paths=["a.txt"]))["text"]


@pytest.mark.parametrize("path", ["/etc/hostname", "../home.txt", "~/x", "nothing.txt", "way.txt"])
async def test_files_elsewhere_on_the_machine_stay_there(agent: Caller, live_hub: LiveHub, zoo: Zoo, path: str) -> None:
    folder = live_hub.home / "files"
    folder.mkdir(exist_ok=True)
    if not (folder / "way.txt").is_symlink():
        (folder / "way.txt").symlink_to("/etc/hostname")
    await agent.open(zoo.at("act_files.html"))
    error = await agent.fail(UPLOAD, selector="#one", paths=[path])
    assert error["outcome"] == "not_sent"
    assert await agent.run("return document.getElementById('one').files.length") == 0


async def test_the_mouse_moves_presses_and_turns_its_wheel(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_canvas.html"))
    for action, x in (("move", 10), ("down", 10), ("move", 30), ("up", 30)):
        await agent.get(MOUSE, action=action, x=x, y=20)
    assert await log(agent) == [
        "mousemove 10,20 0",
        "mousedown 10,20 1",
        "mousemove 30,20 1",
        "mouseup 30,20 0",
        "click 30,20 0",
    ]
    await agent.get(MOUSE, action="wheel", x=30, y=20, deltaY=120)
    await agent.get(MOUSE, action="click", x=30, y=20, count=2)
    said = await log(agent)
    assert said[0] == "wheel 30,20 0 120"
    assert said[-1] == "dblclick 30,20 0"


async def test_a_page_that_forbids_everything_is_used_all_the_same(agent: Caller, zoo: Zoo) -> None:
    await agent.open(f"{zoo.url}/strict")
    await agent.run("document.body.innerHTML = '<input id=i><button id=b>B</button>'")
    assert (await agent.get(TYPE, selector="#i", text="words"))["value"] == "words"
    await agent.get(CLICK, text="B")
    assert await agent.run("return document.activeElement.id") == "b"
