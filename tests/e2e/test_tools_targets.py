"""How elements are found by text, label, selector and place, and what the tools say when one cannot be used."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo

CLICK, TYPE, SCROLL, ACT = "browser_click_element", "browser_type_text", "browser_scroll", "browser_act"


async def clicked(agent: Caller) -> list[str]:
    ids: list[str] = await agent.run("return clicked.splice(0)")
    return ids


@pytest.mark.req("B29")
async def test_a_text_inside_a_word_is_never_clicked(guest: Caller, zoo: Zoo, subtests: pytest.Subtests) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    for target, near in (
        ({"text": "Subscribe"}, "Unsubscribe"),
        ({"text": "Activate", "role": "button"}, "Deactivate"),
        ({"selector": "button", "text": "Activate"}, ""),
    ):
        with subtests.test(target=target):
            error = await guest.fail(CLICK, **target)
            assert error["text"].startswith("No element matches")
            assert near in error["text"]
    assert await clicked(guest) == []


@pytest.mark.req("B29")
async def test_a_hidden_exact_match_keeps_partial_matches_from_being_clicked(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    error = await guest.fail(CLICK, text="New")
    assert 'link "New"' in error["text"]
    assert "is not visible" in error["text"]
    assert 'Visible elements that contain the text: link "Open article in new tab"' in error["text"]
    assert await clicked(guest) == []


@pytest.mark.req("B29")
async def test_exact_matches_come_before_whole_words(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    await guest.get(CLICK, text="Save")
    await guest.get(CLICK, text="save AS")
    await guest.get(CLICK, text="Publish")
    assert await clicked(guest) == ["save", "save-as", "publish-now"]


@pytest.mark.req("B29")
async def test_several_matches_are_listed_at_once_and_nothing_is_done(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    error = await guest.fail(CLICK, text="Mail reader")
    assert error["text"].startswith("2 elements match the text 'Mail reader'")
    assert re.search(r'button "Mail reader" \[\w+\] in row "Anna"', error["text"])
    assert await clicked(guest) == []


@pytest.mark.req("A17")
async def test_elements_are_found_and_told_apart_by_title_and_placeholder(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    await guest.get(CLICK, text="Delete draft 2")
    assert await clicked(guest) == ["delete-2"]
    await guest.get(TYPE, label="Search here", text="words")
    assert await guest.run("return document.querySelector('#search').value") == "words"
    snapshot = (await guest.get("browser_snapshot"))["snapshot"]
    assert re.search(r'button "\u00d7" \[ref=\w+\] title "Delete draft 1"', snapshot)
    assert re.search(r'textbox "\[F\]" \[ref=\w+[^]]*\] placeholder "Search here"', snapshot)
    assert re.search(r'^ *time "Send at" \[ref=', snapshot, re.M)


@pytest.mark.req("A6")
async def test_a_label_names_fields_only_in_every_tool(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    assert (await guest.get(TYPE, label="Title*", text="One"))["value"] == "One"
    filled = await guest.get("browser_fill_form", fields=[{"label": "Title", "value": "Two"}])
    assert filled["fields"][0]["value"] == "Two"
    assert (await guest.get("browser_select_option", label="Country", value="Sweden"))["chosen"] == ["Sweden"]
    assert (await guest.get("browser_select_option", selector="#country", label="Norway"))["chosen"] == ["Norway"]
    await guest.get(CLICK, label="Title")
    (listed,) = (await guest.get("browser_query_elements", label="Title", attributes=["id"]))["elements"]
    assert listed["attributes"] == {"id": "title"}
    error = await guest.fail(TYPE, label="Titles", text="x")
    assert error["text"].startswith("No field matches the label 'Titles'")
    assert 'textbox "Title*"' in error["text"]


@pytest.mark.req("A6")
async def test_a_hidden_first_match_of_a_selector_does_not_block_a_visible_one(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    await guest.get(TYPE, selector=".twin", text="seen")
    assert await guest.run("return document.querySelector('#twin').value") == "seen"


@pytest.mark.req("A14")
async def test_the_pointer_is_moved_onto_a_row_that_shows_its_buttons_on_hover(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    await guest.get(CLICK, text="Edit issue")
    assert await clicked(guest) == ["edit"]


@pytest.mark.req("A14")
async def test_elements_for_screen_readers_only_are_marked_and_the_keyboard_suggested(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    snapshot = (await guest.get("browser_snapshot"))["snapshot"]
    assert re.search(r'link "Skip to content" \[ref=\w+ clipped\]', snapshot)
    error = await guest.fail(CLICK, text="Skip to content")
    assert "is for screen readers only" in error["text"]
    assert "browser_press_key" in error["text"]


@pytest.mark.req("A6")
async def test_an_element_without_a_box_of_its_own_is_visible(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("forms.html"))
    link = "<a href='#card' style='display: contents'><b>Card</b></a>"
    await guest.run(f"document.body.innerHTML = `{link}<p hidden>{link.replace('Card', 'Draft')}</p>`")
    found = (await guest.get("browser_find", role="link"))["elements"]
    assert [(each["name"], each["visible"]) for each in found] == [("Card", True), ("Draft", False)]
    await guest.get("browser_wait_for", text="Card", role="link", timeout=0)
    await guest.get(CLICK, text="Card")
    assert await guest.run("return location.hash") == "#card"


@pytest.mark.req("A17")
async def test_fields_without_a_label_are_not_named_by_their_content(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    (field,) = (await guest.get("browser_fill_form", fields=[{"selector": "#notes", "value": "New"}]))["fields"]
    assert re.fullmatch(r"textbox \[\w+ id=notes\]", field["field"])


@pytest.mark.req("A6")
async def test_the_nearest_elements_are_named_whatever_their_role(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("table.html?rows=5000"))
    nearest = (await guest.get("browser_find", text="Open 4321", role="button"))["nearest"]
    assert nearest[0].startswith('link "Open 4321" [')


async def test_a_row_is_found_by_what_is_in_it(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_rows.html?rows=200"))
    (row,) = (await guest.get("browser_find", text="Order 123", role="row"))["elements"]
    inside = (await guest.get("browser_snapshot", ref=row["ref"]))["snapshot"]
    assert 'button "Ship 123"' in inside
    assert (await guest.get("browser_find", text="Order 123"))["elements"][0]["role"] == "checkbox"


@pytest.mark.req("A13")
async def test_waiting_counts_visible_matches_only(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    gone = await guest.get("browser_wait_for", text="Update", role="button", gone=True)
    assert gone["did"].startswith("Waited")
    for target in ({"text": "Update", "role": "button"}, {"text": "Saved yesterday"}):
        error = await guest.fail("browser_wait_for", timeout=0, **target)
        assert "Timed out" in error["text"]


async def refs(agent: Caller, **how: Any) -> dict[str, str]:
    """The refs of a snapshot, by the rest of their line."""
    snapshot = (await agent.get("browser_snapshot", **how))["snapshot"]
    return {
        re.sub(r"\[ref=\w+ ?", "[", line.strip()): found[1]
        for line in snapshot.split("\n")
        if (found := re.search(r"\[ref=(\w+)", line))
    }


@pytest.mark.req("A9")
async def test_each_element_with_a_listener_has_a_ref_that_tells_it_apart(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_mail.html"))
    seen = await refs(guest)
    assert list(seen) == [
        "group [id=mail]",
        "clickable [icon=star]",
        "clickable [icon=trash]",
        'clickable "Reply" []',
        'clickable "Forward" []',
        "clickable [circle id=dot colour=red]",
        'clickable "Filter node" []',
        "clickable [id=red colour=red]",
        "clickable [id=blue colour=blue]",
        "button [icon=bold]",
        "button [class=ql-italic nth=2/2]",
        "canvas [id=board]",
        'button "Inside" []',
        'textbox "Paragraph block" [] = "Block words"',
    ]
    for name, clicks in {
        "clickable [icon=star]": ["star", "mail"],
        'clickable "Forward" []': ["forward"],
        "clickable [circle id=dot colour=red]": ["dot"],
        'clickable "Filter node" []': ["node"],
        "clickable [id=blue colour=blue]": ["blue"],
    }.items():
        await guest.get(CLICK, ref=seen[name])
        assert await clicked(guest) == clicks


@pytest.mark.req("A9")
async def test_snapshot_find_query_and_annotated_screenshots_offer_the_same_elements(guest: Caller, zoo: Zoo) -> None:
    for page in ("target_mail.html", "forms.html", "editable.html", "widgets.html"):
        await guest.visit(zoo.at(page))
        # So that all are large enough to be seen, and in the picture.
        await guest.run(
            "for (const one of document.querySelectorAll('div[role]')) one.style.minHeight = '8px';"
            "document.documentElement.style.zoom = 0.5"
        )
        snapshot = (await guest.get("browser_snapshot", interactiveOnly=True))["snapshot"]
        offered = set(re.findall(r"\[ref=(\w+)(?![^\]]*hidden)", snapshot))
        answer = await guest.call("browser_screenshot_tab", annotate=True, scale=0.1)
        marked = set(re.findall(r"\[(\w+)[^\]]*\]$", answer["content"][-1]["text"], re.M))
        assert marked == offered
        for line in snapshot.split("\n"):
            role, found = line.split()[0], re.search(r"\[ref=(\w+)", line)
            if found and found[1] in marked:
                listed = (await guest.get("browser_query_elements", role=role, limit=100))["elements"]
                assert found[1] in [one["ref"] for one in listed]
                searched = (await guest.get("browser_find", role=role, limit=100))["elements"]
                assert found[1] in [one["ref"] for one in searched]


async def test_a_text_without_a_role_is_listed_as_well(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_mail.html"))
    listed = await guest.get("browser_query_elements", text="Noether")
    assert [(one["tag"], one["text"]) for one in listed["elements"]] == [("p", "Noether")]


async def test_scrolling_to_an_element_looks_at_the_boxes_that_clip_it(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_mail.html"))
    assert (await guest.get(SCROLL, text="Simpson"))["did"].startswith('Scrolled p "Simpson"')
    assert await guest.run("return document.querySelector('#feed').scrollTop") > 0
    assert "is in view already" in (await guest.get(SCROLL, text="Simpson"))["did"]


async def test_boxes_are_given_on_request_in_coordinates_of_the_tab(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("see_boxes.html"))
    snapshot = (await guest.get("browser_snapshot", boxes=True))["snapshot"]
    assert re.search(r'button "First" \[ref=\w+ box=100,50,120,40\]', snapshot)
    (found,) = (await guest.get("browser_find", text="First", boxes=True))["elements"]
    assert found["box"] == {"x": 100, "y": 50, "width": 120, "height": 40}
    listed = (await guest.get("browser_query_elements", selector="button, a"))["elements"]
    inner = {one["ref"]: one["box"] for one in listed}
    for ref, box in re.findall(r"\[ref=(f\w+)[^]]* box=([-\d,]+)\]", snapshot):
        x, y = map(int, box.split(",")[:2])
        assert (x, y) == (round(inner[ref]["x"]), round(inner[ref]["y"]))
    assert "box" not in (await guest.get("browser_snapshot"))["snapshot"]


async def test_a_long_text_is_shown_around_the_match(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    words = f"{'Many words. ' * 50}The refund takes two days. {'More words. ' * 50}"
    await guest.run(
        "document.body.append(Object.assign(document.createElement('p'), {textContent: args.words}))",
        args={"words": words},
    )
    (found,) = (await guest.get("browser_find", text="refund takes"))["elements"]
    assert "The refund takes two days." in found["name"]
    assert len(found["name"]) <= 200


@pytest.mark.req("A15")
async def test_images_without_a_text_are_read_and_found(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    source = f"{zoo.url}/pages/sunset-beach.svg"
    await guest.run(
        "const img = `<img alt='' src='${args.source}'`;"
        "document.body.innerHTML = `${img}><a href='/album'>${img}></a><a href='/small'>${img} width=16></a>`;"
        "await Promise.all([...document.images].map((one) => one.decode()))",
        args={"source": source},
    )
    snapshot = (await guest.get("browser_snapshot"))["snapshot"].split("\n")
    assert snapshot[0] == "img [icon=sunset-beach]"
    assert re.fullmatch(r"link \[ref=\w+ icon=sunset-beach\] /album", snapshot[1])
    content = (await guest.get("browser_get_tab_content", format="markdown"))["content"]
    assert f"![]({source})" in content
    assert f"[![]({source})]({zoo.url}/album)" in content
    assert f"[sunset-beach]({zoo.url}/small)" in content
    assert len((await guest.get("browser_find", role="img"))["elements"]) == 3


async def test_a_batch_takes_the_names_of_the_tools_and_shorter_ones(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_newsletter.html"))
    done = await guest.get(
        ACT,
        actions=[
            {"action": "type_text", "label": "Title", "text": "One"},
            {"action": "press_key", "key": "End"},
            {"action": "browser_click_element", "text": "Save"},
            {"action": "click", "text": "Publish now"},
            {"action": "mouse", "do": "move", "x": 5, "y": 5},
        ],
    )
    assert done["did"] == "Did 5 of 5 actions"
    assert await clicked(guest) == ["save", "publish-now"]
    error = await guest.fail(ACT, actions=[{"action": "clik", "text": "Save"}, {"action": "unknown"}])
    assert error["text"].startswith("There is no action 'clik'. Nothing was done.")
    assert "Did you mean click?" in error["text"]
    assert len(error["text"]) < 300
