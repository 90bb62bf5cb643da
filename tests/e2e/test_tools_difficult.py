"""The seeing and acting tools in real Chromium on pages that make it difficult: what they do, and what they say."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.e2e.live import Caller, LiveHub
from tests.e2e.zoo import Zoo

CLICK, TYPE, FILL, SNAPSHOT = "browser_click_element", "browser_type_text", "browser_fill_form", "browser_snapshot"
DRAG, SCROLL, MOUSE, UPLOAD = "browser_drag", "browser_scroll", "browser_mouse", "browser_upload_file"


async def seen(agent: Caller, **more: Any) -> str:
    """What a snapshot says."""
    text: str = (await agent.call(SNAPSHOT, **more))["content"][0]["text"]
    return text


def ref(text: str, words: str) -> str:
    """The ref in the line of a snapshot that begins so."""
    found = re.search(rf"{re.escape(words)} \[ref=(\w+)", text)
    assert found is not None, text
    return found[1]


async def test_an_exact_name_in_a_frame_counts_more_than_words_in_the_page(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("hard_list.html"))
    assert (await agent.get(CLICK, text="Four"))["did"].startswith('Clicked button "Four"')
    assert 'button "Pressed"' in await seen(agent)


async def test_alike_elements_are_told_apart_by_their_rows(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("hard_list.html"))
    found = await agent.get("browser_find", text="Delete")
    assert [one["where"] for one in found["elements"]] == ['table, row "1 | Anna"', 'table, row "2 | Bert"']
    error = await agent.fail(CLICK, text="Delete")
    assert re.search(r'button "Delete" \[e\d+\] in row "2 \| Bert"', error["text"])


async def test_what_is_made_to_be_dragged_has_a_ref(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("hard_list.html"))
    text = await seen(agent)
    await agent.get(DRAG, **{"from": ref(text, 'clickable "Sort A"'), "to": ref(text, 'clickable "Sort C"')})
    assert await agent.run("return tasks.innerText.match(/[ABC]/g)") == ["B", "C", "A"]


async def test_a_role_is_known_however_it_is_written(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("hard_list.html"))
    assert (await agent.get("browser_find", role="Button"))["total"] == 3
    assert (await agent.get("browser_query_elements", role="BUTTON"))["total"] == 3


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"text": "Inside"}, "around it is closed"),
        ({"text": "Untouchable"}, "pointer-events: none"),
        ({"selector": "button:has-text('x')"}, "`text`"),
        ({"selector": "#nothing-of-the-kind-xyzzy"}, "browser_snapshot"),
    ],
    ids=["details", "pointer", "css", "absent"],
)
async def test_what_keeps_a_click_from_an_element_is_named(
    agent: Caller, zoo: Zoo, target: dict[str, str], words: str
) -> None:
    await agent.open(zoo.at("hard_fields.html"))
    assert words in (await agent.fail(CLICK, **target))["text"]


async def test_typing_into_what_is_no_field_is_refused(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("hard_fields.html"))
    assert "no text field" in (await agent.fail(TYPE, selector="#press", text="x"))["text"]
    assert await agent.run("return log") == []
    assert "`label`" in (await agent.fail(TYPE, text="x"))["text"]
    assert "Click it" in (await agent.fail(TYPE, label="Day", text="x"))["text"]


async def test_a_mask_that_knows_only_keys_is_filled_in(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("hard_fields.html"))
    answer = await agent.get(FILL, fields=[{"text": "Phone", "value": "5551234"}])
    assert answer["fields"][0]["value"] == "+1 555-1234"
    again = await agent.get(FILL, fields=[{"text": "Phone", "value": "9876543"}])
    assert again["fields"][0]["value"] == "+1 987-6543"


async def test_files_are_dropped_where_they_are_meant_to_be(agent: Caller, live_hub: LiveHub, zoo: Zoo) -> None:
    folder = live_hub.home / "files"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("alpha")
    (folder / "grüße 你.csv").write_text("1,2")
    await agent.open(zoo.at("hard_fields.html"))
    answer = await agent.get(UPLOAD, text="Drop files here", paths=["a.txt", "grüße 你.csv"])
    assert answer["did"].startswith("Dropped a.txt, grüße 你.csv on")
    await agent.run("while (log.length < 2) await new Promise((done) => setTimeout(done, 10))")
    assert await agent.run("return log") == ["a.txt text/plain alpha", "grüße 你.csv text/csv 1,2"]


async def test_a_frame_in_a_page_drawn_small_is_clicked(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("hard_wide.html"))
    await agent.get("browser_emulate_device", width=400, height=700, mobile=True)
    assert await agent.run("return visualViewport.scale") < 0.5
    await agent.get(CLICK, text="Four")
    assert 'button "Pressed"' in await seen(agent)
    await agent.get("browser_clear_emulation")


async def test_a_page_at_its_end_may_still_load_more(agent: Caller, zoo: Zoo) -> None:
    await agent.open(f"{zoo.url}/other")
    await agent.run("document.body.style.height = '3000px'")
    await agent.get(SCROLL, position="bottom")
    assert "browser_wait_for" in (await agent.get(SCROLL, position="bottom"))["note"]
    await agent.run("document.body.style.height = '6000px'")
    assert "note" not in await agent.get(SCROLL, position="bottom")


async def test_arguments_that_name_nothing_are_refused_before_anything_is_done(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    fields = [{"selector": "#name", "value": "first"}, {"value": "second"}]
    error = await agent.fail(FILL, fields=fields)
    assert (error["outcome"], "Field 2" in error["text"]) == ("not_sent", True)
    assert await agent.run("return document.getElementById('name').value") == ""
    error = await agent.fail(DRAG, **{"from": "#name", "to": {}})
    assert error["outcome"] == "not_sent"
    assert await agent.run("return document.activeElement.id") == ""


async def test_a_place_outside_of_the_view_is_said_to_be(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    assert "outside" in (await agent.get(MOUSE, action="click", x=9000, y=20))["note"]
    assert "note" not in await agent.get(MOUSE, action="move", x=20, y=20)


async def test_a_wait_ends_in_its_time_also_while_the_page_is_busy(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_form.html"))
    await agent.run("setTimeout(() => { const end = Date.now() + 4000; while (Date.now() < end); }, 50)")
    begun = time.monotonic()
    error = await agent.fail("browser_wait_for", text="never", timeout=500)
    assert time.monotonic() - begun < 3
    assert "does not answer" in error["text"]
    await agent.get("browser_wait_for", text="Newsletter", timeout=10_000)


async def test_the_rest_of_a_long_list_is_reached_as_the_snapshot_says(agent: Caller, zoo: Zoo) -> None:
    await agent.open(f"{zoo.url}/other")
    items = "Array.from({length: 300}, (_, n) => `<li><button>Row ${n}</button></li>`).join('')"
    await agent.run(f"document.body.innerHTML = '<ul>' + {items} + '</ul>'")
    text = await seen(agent, maxTokens=1000)
    said = re.search(r"more here: browser_snapshot with ref=(\w+) and maxTokens=(\d+)", text)
    assert said is not None, text[-500:]
    assert 'button "Row 299"' in await seen(agent, ref=said[1], maxTokens=int(said[2]))
