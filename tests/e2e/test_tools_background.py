"""Input in background tabs of real Chromium: as fast as in front, and answered with what it did."""

from __future__ import annotations

import pytest

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo

MOUSE = "browser_mouse"


async def test_a_background_tab_draws_every_frame_while_the_mouse_moves(guest: Caller, zoo: Zoo) -> None:
    """A tab that nobody sees draws once a second, and handles a mouse move only when it draws."""
    await guest.visit(zoo.at("background.html"))
    # longer than the browser draws an unseen tab at full rate
    await guest.run("while (frames < 20) await new Promise(requestAnimationFrame); frames = timers = 0")
    places = list(range(100, 116))
    for x in places:
        await guest.get(MOUSE, action="move", x=x, y=300)
    assert await guest.run("return moves") == places
    frames, timers = await guest.run("return [frames, timers]")
    assert frames > timers, "not even as many frames as timers of 100 ms"


async def test_a_wheel_turn_is_answered_with_the_new_scroll_position(
    guest: Caller, zoo: Zoo, subtests: pytest.Subtests
) -> None:
    await guest.visit(zoo.at("background.html"))
    page = "return [Math.round(scrollX), Math.round(scrollY)]"
    with subtests.test(turned="the page"):
        for _ in range(4):
            answer = await guest.get(MOUSE, action="wheel", x=300, y=400, deltaY=150)
            assert [answer["x"], answer["y"]] == await guest.run(page)
        assert (answer["scrolled"], answer["y"]) == ("the page", 600)
    await guest.run("scrollTo(0, 0)")
    with subtests.test(turned="an element"):
        answer = await guest.get(MOUSE, action="wheel", x=50, y=50, deltaY=200)
        assert answer["y"] == await guest.run("return document.getElementById('box').scrollTop") == 200
        assert ("A list" in answer["scrolled"], answer["maxY"]) == (True, 2900)
        assert await guest.run(page) == [0, 0]
    with subtests.test(turned="a frame of another site"):
        answer = await guest.get(MOUSE, action="wheel", x=50, y=200, deltaY=70)
        assert answer["y"] == await guest.run("return document.getElementById('side').scrollTop", frame=1) == 70
        assert await guest.run(page) == [0, 0]
    with subtests.test(turned="at the end"):
        answer = await guest.get(MOUSE, action="wheel", x=300, y=400, deltaY=-100)
        assert answer["y"] == 0
        assert "Nothing scrolled" in answer["note"]
