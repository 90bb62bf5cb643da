"""What browser_mouse waits for before it acts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tabhub.browser.tools.acting.mouse import browser_mouse


class Reached(Exception):
    """The tool has asked for its page."""


@pytest.mark.parametrize(("action", "waits"), [("move", False), ("down", True), ("up", True), ("wheel", True)])
async def test_the_mouse_moves_while_the_page_reacts_but_acts_only_once_it_has(action: str, waits: bool) -> None:
    asked: list[bool] = []

    async def page(*, settle: bool = True) -> Any:
        asked.append(settle)
        raise Reached

    call: Any = SimpleNamespace(box=None, args={"action": action, "x": 1, "y": 1}, page=page)
    with pytest.raises(Reached):
        await browser_mouse.run(call)
    assert asked == [waits]
