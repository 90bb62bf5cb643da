"""The window tools: what they send and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.errors import CommandFailed, InvalidArguments, TabLeased
from tests.browser.conftest import Bench, Choice
from tests.browser.fake_browser import Failure, tab
from tests.browser.test_browser_choice import window


async def test_a_new_window_opens_empty_and_then_navigates(bench: Bench) -> None:
    arrived = {"tabId": 9, "url": "https://new.example/", "title": "New", "status": "complete", "ok": True}
    bench.browser.answers["createWindow"] = lambda _: {"window": window(4, 9), "tab": tab(9, windowId=4)}
    bench.browser.answers["browser_navigate"] = lambda _: arrived
    made = await bench.call("browser_create_window", url="https://new.example/", width=300, focused=False)
    assert bench.browser.commands("createWindow")[0]["params"] == {"width": 300, "focused": False}
    assert (made["tabId"], made["window"]["windowId"], made["window"]["tabIds"]) == (9, 4, [9])
    await bench.call("browser_create_window", url="data:text/plain,x")
    assert bench.browser.commands("createWindow")[1]["params"] == {"url": "data:text/plain,x"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"state": "minimized", "left": 1}, "cannot have left"),
        ({"state": "fullscreen", "width": 100, "height": 100}, "cannot have width or height"),
        ({"state": "minimized", "focused": True}, "cannot be minimized with focused: true"),
        ({"state": "maximized", "focused": False}, "cannot be maximized with focused: false"),
    ],
)
async def test_conflicting_arguments_send_nothing(bench: Bench, arguments: dict[str, Any], message: str) -> None:
    for name, more in (("browser_create_window", {}), ("browser_update_window", {"windowId": 1})):
        with pytest.raises(InvalidArguments, match=message):
            await bench.call(name, **more, **arguments)
    assert not bench.browser.sent


async def test_a_window_with_a_tab_of_another_session_is_not_closed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Choice, session: Any, tab_id: int) -> None:
        raise TabLeased(f"Tab {tab_id} is held.")

    monkeypatch.setattr(Choice, "require_free", refuse)
    bench.browser.answers["getWindows"] = lambda _: {"windows": [window(1, 1), window(2, 2)]}
    with pytest.raises(TabLeased, match="Tab 2 is held"):
        await bench.call("browser_close_window", windowId=2)
    assert not bench.browser.commands("closeWindow")


async def test_a_window_kept_open_by_a_page_has_a_hint(bench: Bench) -> None:
    def blocked(_: Any) -> None:
        raise Failure(-32000, "Window 2 is still open: a page in it asks the person first.")

    bench.browser.answers["getWindows"] = lambda _: {"windows": [window(1, 1), window(2, 2)]}
    bench.browser.answers["closeWindow"] = blocked
    with pytest.raises(CommandFailed, match="still open") as caught:
        await bench.call("browser_close_window", windowId=2)
    assert "browser_close_tab" in (caught.value.hint or "")
    bench.browser.answers["closeWindow"] = lambda _: {"closed": True}
    assert (await bench.call("browser_close_window", windowId=2))["tabIds"] == [2]
    assert bench.browsers.book.get(2) is None
