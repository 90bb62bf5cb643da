"""Reading and acting tools in real Chromium on difficult pages."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from tests.e2e.live import Caller, LiveHub
from tests.e2e.zoo import Zoo

CLICK, TYPE, FILL, SNAPSHOT = "browser_click_element", "browser_type_text", "browser_fill_form", "browser_snapshot"
DRAG, SCROLL, MOUSE, UPLOAD = "browser_drag", "browser_scroll", "browser_mouse", "browser_upload_file"


async def seen(agent: Caller, **more: Any) -> str:
    """A snapshot, with its notes."""
    return "\n".join(map(str, (await agent.get(SNAPSHOT, **more)).values()))


def ref(text: str, expected: str) -> str:
    """The ref in the snapshot line that begins with this text."""
    found = re.search(rf"{re.escape(expected)} \[ref=(\w+)", text)
    assert found is not None, text
    return found[1]


async def test_an_exact_match_in_a_frame_beats_a_word_match_in_the_page(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_list.html"))
    assert (await guest.get(CLICK, text="Four"))["did"].startswith('Clicked button "Four"')
    assert 'button "Pressed"' in await seen(guest)


async def test_similar_elements_are_distinguished_by_their_rows(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_list.html"))
    found = await guest.get("browser_find", text="Delete")
    assert [one["where"] for one in found["elements"]] == ['table, row "1 | Anna"', 'table, row "2 | Bert"']
    error = await guest.fail(CLICK, text="Delete")
    assert re.search(r'button "Delete" \[\w+\] in row "2 \| Bert"', error["text"])


async def test_draggable_elements_have_refs(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_list.html"))
    text = await seen(guest)
    await guest.get(DRAG, **{"from": ref(text, 'clickable "Sort A"'), "to": ref(text, 'clickable "Sort C"')})
    assert await guest.run("return tasks.innerText.match(/[ABC]/g)") == ["B", "C", "A"]


async def test_a_drag_works_inside_a_cross_site_frame(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_list.html"))
    await guest.get(DRAG, **{"from": ref(await seen(guest), 'clickable "Card"'), "to": {"text": "Basket"}})
    assert '"Got a card"' in await seen(guest)


async def test_role_names_are_normalized(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_list.html"))
    assert (await guest.get("browser_find", role="Button"))["total"] == 3
    assert (await guest.get("browser_query_elements", role="BUTTON"))["total"] == 3


async def test_the_reason_an_element_is_not_actionable_is_named(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_fields.html"))
    cases: list[tuple[str, dict[str, str], str]] = [
        (CLICK, {"text": "Inside"}, "around it is closed"),
        (CLICK, {"text": "Untouchable"}, "pointer-events: none"),
        (CLICK, {"selector": "button:has-text('x')"}, "Put the element's text into `text`"),
        (CLICK, {"selector": "#nothing-of-the-kind-xyzzy"}, "browser_snapshot shows what there is"),
        (TYPE, {"selector": "#press", "text": "x"}, "is not a text field (button)"),
        (TYPE, {"label": "Day", "text": "x"}, "Click it if it opens"),
        (TYPE, {"text": "x"}, "its name as `label`"),
    ]
    errors = await asyncio.gather(*(guest.fail(name, **given) for name, given, _ in cases))
    assert [
        expected for (_, _, expected), error in zip(cases, errors, strict=True) if expected not in error["text"]
    ] == []
    assert await guest.run("return log") == []


async def test_an_input_mask_that_needs_key_events_is_filled(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_fields.html"))
    answer = await guest.get(FILL, fields=[{"text": "Phone", "value": "5551234"}])
    assert answer["fields"][0]["value"] == "+1 555-1234"
    again = await guest.get(FILL, fields=[{"text": "Phone", "value": "9876543"}])
    assert again["fields"][0]["value"] == "+1 987-6543"


async def test_an_editable_document_has_a_ref(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_editor.html"))
    answer = await guest.get(TYPE, ref=ref(await seen(guest), 'textbox "Body"'), text="Hello", clear=True)
    assert answer["value"] == "Hello"


async def test_a_rerendered_field_reports_its_value(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_editor.html"))
    answer = await guest.get(FILL, fields=[{"text": "Drawn anew", "value": "words"}])
    assert answer["fields"][0]["value"] == "words"
    assert (await guest.get(TYPE, label="Drawn anew", text="s"))["value"] == "wordss"


async def test_typing_appends_in_every_kind_of_field(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_fields.html"))
    assert (await guest.get(TYPE, label="Count", text="12"))["value"] == "512"
    assert (await guest.get(TYPE, label="Mail", text="om"))["value"] == "a@b.com"


async def test_a_link_to_another_program_is_not_an_error(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_fields.html"))
    answer = await guest.get(CLICK, text="Write to Anna")
    assert "mailto:anna@example.org" in answer["note"]
    await guest.get(CLICK, text="Press")


async def test_an_empty_document_has_an_empty_snapshot(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(f"{zoo.url}/other")
    await guest.run("document.documentElement.remove()")
    assert (await guest.get(SNAPSHOT))["elements"] == 0
    assert (await guest.get("browser_find", text="words"))["total"] == 0
    assert (await guest.get("browser_get_tab_content"))["content"] == ""


async def test_files_are_dropped_on_a_drop_zone(guest: Caller, live_hub: LiveHub, zoo: Zoo) -> None:
    folder = live_hub.home / "files"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("alpha")
    (folder / "grüße 你.csv").write_text("1,2")
    await guest.visit(zoo.at("hard_fields.html"))
    answer = await guest.get(UPLOAD, text="Drop files here", paths=["a.txt", "grüße 你.csv"])
    assert answer["did"].startswith("Dropped a.txt, grüße 你.csv on")
    await guest.run("while (log.length < 2) await new Promise((done) => setTimeout(done, 10))")
    assert await guest.run("return log") == ["a.txt text/plain alpha", "grüße 你.csv text/csv 1,2"]


async def test_a_frame_in_a_scaled_page_is_clicked(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_wide.html"))
    await guest.get("browser_emulate_device", width=400, height=700, mobile=True)
    assert await guest.run("return visualViewport.scale") < 0.5
    await guest.get(CLICK, text="Four")
    assert 'button "Pressed"' in await seen(guest)
    await guest.get("browser_clear_emulation")


async def test_scrolling_at_the_end_mentions_that_more_may_load(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(f"{zoo.url}/other")
    await guest.run("document.body.style.height = '3000px'")
    await guest.get(SCROLL, position="bottom")
    assert "browser_wait_for" in (await guest.get(SCROLL, position="bottom"))["note"]
    await guest.run("document.body.style.height = '6000px'")
    assert "note" not in await guest.get(SCROLL, position="bottom")


async def test_a_reversed_list_scrolls_to_both_ends(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(f"{zoo.url}/other")
    style = "height: 200px; overflow: auto; display: flex; flex-direction: column-reverse"
    expected = "Array.from({length: 50}, (_, n) => `<p>Message ${n}</p>`).join('')"
    await guest.run(f"document.body.innerHTML = `<div id=chat style='{style}'>${{{expected}}}</div>`")
    assert (await guest.get(SCROLL, container="#chat", position="top"))["y"] < -1000
    assert (await guest.get(SCROLL, container="#chat", position="bottom"))["y"] == 0


async def test_a_button_and_its_text_are_one_target(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(f"{zoo.url}/other")
    await guest.run("document.body.innerHTML = '<button><span>Add to <b>cart</b></span></button>'")
    found = await guest.get("browser_find", text="Add to cart")
    assert [one["role"] for one in found["elements"]] == ["button"]


async def test_incomplete_arguments_are_refused_before_anything_is_done(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    fields = [{"selector": "#name", "value": "first"}, {"value": "second"}]
    error = await guest.fail(FILL, fields=fields)
    assert (error["outcome"], "Field 2" in error["text"]) == ("not_sent", True)
    assert await guest.run("return document.getElementById('name').value") == ""
    error = await guest.fail(DRAG, **{"from": "#name", "to": {}})
    assert error["outcome"] == "not_sent"
    assert await guest.run("return document.activeElement.id") == ""


async def test_a_point_outside_the_viewport_is_reported(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    assert "outside" in (await guest.get(MOUSE, action="click", x=9000, y=20))["note"]
    assert "note" not in await guest.get(MOUSE, action="move", x=20, y=20)


async def test_a_wait_times_out_while_the_page_is_busy(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_buttons.html"))  # it has no secret fields, which would be read after the script
    # A synchronous request blocks the page until the site answers it.
    busy = "const asks = new XMLHttpRequest(); asks.open('GET', '/held', false); asks.send()"
    held = zoo.count("/held")
    await guest.run(f"setTimeout(() => {{ {busy} }})")
    await zoo.asked("/held", held + 1)
    error = await guest.fail("browser_wait_for", text="never", timeout=500)
    zoo.release.set()
    assert "not respond" in error["text"]
    await guest.get("browser_wait_for", text="Plain")
    zoo.release.clear()


async def test_an_unresponsive_frame_does_not_block_the_page(agent: Caller, zoo: Zoo) -> None:
    held = zoo.count("/held")
    await agent.open(zoo.at("hard_stuck.html"))
    await agent.run("while (!window.stuck) await new Promise((done) => setTimeout(done, 10))")
    await zoo.asked("/held", held + 1)
    text = await seen(agent)
    assert 'button "Order now"' in text
    assert re.search(r'iframe "Advert" \[ref=\w+\]\n +\(content not accessible or not responding\)', text)
    assert (await agent.get("browser_find", text="order"))["total"] == 1
    assert "Order now" in (await agent.get("browser_get_tab_content"))["content"]
    assert (await agent.get("browser_query_elements", selector="button"))["total"] == 1
    assert (await agent.get(CLICK, text="order"))["did"].startswith('Clicked button "Order now"')
    zoo.release.set()
    await agent.get("browser_wait_for", text="Buy")
    zoo.release.clear()


async def test_the_snapshot_note_leads_to_the_rest_of_a_long_list(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(f"{zoo.url}/other")
    items = "Array.from({length: 300}, (_, n) => `<li><button>Row ${n}</button></li>`).join('')"
    await guest.run(f"document.body.innerHTML = '<ul>' + {items} + '</ul>'")
    answer = await guest.call(SNAPSHOT, maxTokens=1000)
    assert "left out at the marks" in str(answer["structuredContent"])
    handle = answer["_meta"]["tabhub/result"]["handle"]
    assert 'button "Row 299"' in (await guest.get("tabhub_read_result", handle=handle))["text"]


async def test_a_pdf_is_reported_as_such(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("hard_paper.pdf"))
    for name in (SNAPSHOT, "browser_get_tab_content"):
        assert "a PDF in the browser's own viewer" in (await guest.get(name))["note"]
    await guest.visit(zoo.at("hard_papers.html"))
    await guest.get("browser_wait_for", networkIdle=True)
    text = await seen(guest)
    assert re.search(r'iframe "Framed" \[ref=\w+\]\n +\(a PDF; browser_screenshot_tab shows it\)\n', text)
    assert 'embed "Embedded" [ref=' in text
    assert (await guest.get("browser_get_tab_content"))["content"] == "Read both."


async def test_a_script_can_await_an_animation_frame(agent: Caller, zoo: Zoo) -> None:
    twice = "await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))); return 'drawn'"
    for _ in range(3):
        await agent.open(zoo.at("act_form.html"))
        assert await agent.run(twice) == "drawn"
        assert await agent.run(twice) == "drawn"
