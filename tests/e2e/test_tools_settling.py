"""Actions that follow each other at once, in real Chromium: each waits until the page has reacted to the one before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.live import Caller, LiveHub
from tests.e2e.zoo import Zoo

TOOLS = {"click": "browser_click_element", "type": "browser_type_text", "press": "browser_press_key"}
SUGGESTED = [
    {"action": "type", "selector": "#from", "text": "LEX"},
    {"action": "click", "selector": "#ui-id-1 .ui-menu-item"},
    {"action": "type", "selector": "#to", "text": "LAS"},
    {"action": "click", "selector": "#ui-id-2 .ui-menu-item"},
]
STYLED = [
    {"action": "click", "selector": "#text"},
    {"action": "press", "key": "Control+a"},
    {"action": "click", "selector": "#bold"},
]
FETCHED = [{"action": "click", "selector": "#next"}, {"action": "click", "selector": "#rows button"}]


@pytest.fixture(params=["one call", "calls"])
def run(request: pytest.FixtureRequest, guest: Caller) -> Any:
    """Run the actions with browser_act, or each with its tool and without a pause."""

    async def run(actions: list[dict[str, Any]]) -> None:
        if request.param == "one call":
            await guest.get("browser_act", actions=actions)
            return
        for action in actions:
            await guest.get(
                TOOLS[action["action"]], **{name: given for name, given in action.items() if name != "action"}
            )

    return run


async def test_a_field_with_suggestions_gives_the_focus_to_the_next_one(guest: Caller, zoo: Zoo, run: Any) -> None:
    await guest.visit(zoo.at("settle.html"))
    await run(SUGGESTED)
    values = await guest.run("return [...document.querySelectorAll('#from, #to')].map(({ value }) => value)")
    assert values == ["Lexington, KY (LEX)", "Las Vegas, NV (LAS)"]


async def test_an_editor_has_learned_of_its_selection_before_the_next_click(guest: Caller, zoo: Zoo, run: Any) -> None:
    await guest.visit(zoo.at("settle.html"))
    await run(STYLED)
    assert await guest.run("return styled.value") == "Every word of it"


async def test_the_answer_to_a_request_of_the_page_has_arrived_before_the_next_click(
    guest: Caller, zoo: Zoo, run: Any
) -> None:
    await guest.visit(zoo.at("settle.html"))
    await run(FETCHED)
    assert await guest.run("return document.getElementById('deleted').value") == "Delete 101"


async def test_a_snapshot_right_after_an_action_shows_what_it_caused(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("settle.html"))
    await guest.get("browser_click_element", selector="#next")
    assert "Delete 101" in (await guest.get("browser_snapshot"))["snapshot"]


async def test_a_page_has_reacted_to_a_file_before_the_next_call(guest: Caller, zoo: Zoo, live_hub: LiveHub) -> None:
    await guest.visit(zoo.at("settle.html"))
    folder = live_hub.home / "files"
    folder.mkdir(exist_ok=True)
    (folder / "view.txt").write_text("x")
    await guest.get("browser_upload_file", label="Picture", paths=["view.txt"])
    assert await guest.run("return document.getElementById('named').value") == "view.txt"


async def test_text_that_moved_the_focus_is_answered_with_where_it_is_now(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("settle.html"))
    answer = await guest.get("browser_type_text", selector="#digit", text="7")
    assert "Rest" in answer["focus"]
    assert "focus" not in await guest.get("browser_type_text", selector="#from", text="L")
