"""Drags on pages with real drag libraries, in a background tab of real Chromium."""

from __future__ import annotations

import pytest

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo

DRAG = "browser_drag"


@pytest.mark.parametrize("library", ["native", "pointer", "mouse"])
async def test_items_are_sorted_by_native_pointer_and_mouse_drags(guest: Caller, zoo: Zoo, library: str) -> None:
    await guest.visit(zoo.at("drag_libraries.html"))
    items = f"[...document.querySelectorAll('#{library} li')]"
    names = f"return {items}.map((item) => item.textContent.slice(1)).join('')"
    item = f"#{library} li:nth-child"
    await guest.get(DRAG, **{"from": f"{item}(1)", "to": f"{item}(3)"})
    assert await guest.run(names) == "2314"
    await guest.get(DRAG, **{"from": f"{item}(4)", "to": f"{item}(1)"})
    assert await guest.run(names) == "4231"


async def test_an_item_of_a_grid_lands_where_it_is_dropped_whichever_way_it_goes(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("drag_libraries.html"))
    for number, place in ((3, 5), (7, 1), (2, 9)):
        order = await guest.run("return $('#grid').text()")
        await guest.get(DRAG, **{"from": f"#grid li:nth-child({number})", "to": f"#grid li:nth-child({place})"})
        moved = [one for one in order if one != order[number - 1]]
        moved.insert(place - 1, order[number - 1])
        assert await guest.run("return $('#grid').text()") == "".join(moved)


@pytest.mark.req("A8")
async def test_a_drop_target_that_needs_a_moment_takes_what_is_dropped(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("drag_libraries.html"))
    await guest.get(DRAG, **{"from": "#node", "to": "#wire"})
    assert await guest.run("return [node.textContent, moves > 8]") == ["Spliced", True]
