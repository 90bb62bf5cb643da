"""The effects of an action, derived from the events of its tab."""

from __future__ import annotations

import asyncio

from tabhub.browser.actions import TrackedAction
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import Dialog, TabWatch
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tests.browser.fake_browser import FakeBrowser, tab

NAVIGATED = {"frame": {"id": "main", "loaderId": "L", "url": "https://shop.example/cart", "urlFragment": "#top"}}


def tracked_action(settle: float = 5) -> TrackedAction:
    browsers = Browsers(Limits(action_settle=settle))
    FakeBrowser().join(browsers, tab(1))
    return TrackedAction(Page(browsers, TabWatch(browsers), browsers.tab(1), None), [])


async def test_a_navigation_is_unsettled_until_the_page_is_loaded() -> None:
    action = tracked_action()
    seen = [action.unsettled]
    for method, params in (
        ("Page.frameRequestedNavigation", {"frameId": "main", "disposition": "currentTab"}),
        ("Page.frameNavigated", NAVIGATED),
        ("Page.domContentEventFired", {}),
    ):
        action.handle_event(method, dict(params), None)
        seen.append(action.unsettled)
    assert seen == [False, True, True, False]
    assert action.url == "https://shop.example/cart#top"


async def test_a_navigation_without_a_page_ends_when_the_frame_stops_loading() -> None:
    action = tracked_action()
    started = {"frameId": "main", "navigationType": "differentDocument"}
    action.handle_event("Page.frameStartedNavigating", started, None)
    action.handle_event("Page.frameStoppedLoading", {"frameId": "main"}, None)
    assert not action.unsettled
    assert action.url is None


async def test_a_same_document_navigation_is_not_a_navigation() -> None:
    action = tracked_action()
    action.handle_event("Page.frameStartedNavigating", {"frameId": "main", "navigationType": "sameDocument"}, None)
    assert not action.unsettled


async def test_the_navigation_of_a_child_frame_does_not_count() -> None:
    action = tracked_action()
    action.handle_event("Page.frameNavigated", NAVIGATED, "child")
    assert action.url is None
    assert not action.unsettled


async def test_the_result_waits_for_the_tab_of_a_new_window() -> None:
    action = tracked_action()
    action.handle_event("Page.windowOpen", {"url": "https://shop.example/help"}, None)
    waiting = asyncio.create_task(action.result("Clicked"))
    await asyncio.sleep(0)
    assert not waiting.done()
    action.tab_opened(7)
    await waiting
    assert action.opened == [7]


async def test_the_result_waits_only_a_limited_time() -> None:
    action = tracked_action()
    action.handle_event("Page.frameRequestedNavigation", {"frameId": "main", "disposition": "download"}, None)
    await action.result("Clicked")
    assert action.unsettled
    action.handle_event("Page.downloadWillBegin", {"guid": "d", "suggestedFilename": "report.pdf"}, None)
    assert action.unsettled
    for state, unsettled in (("inProgress", True), ("completed", False)):
        action.handle_event("Page.downloadProgress", {"guid": "d", "state": state}, None)
        assert action.unsettled is unsettled


async def test_a_query_ends_when_the_page_navigates() -> None:
    action = tracked_action()
    held_back: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def ask() -> str:
        return await held_back

    asking = asyncio.ensure_future(action.unless_navigating(ask()))
    await asyncio.sleep(0)
    action.handle_event("Page.windowOpen", {}, None)  # another expression
    await asyncio.sleep(0)
    assert not asking.done()
    action.handle_event("Page.frameRequestedNavigation", {"frameId": "main", "disposition": "currentTab"}, None)
    assert await asking is None
    assert held_back.cancelled()


async def test_a_reply_sent_before_the_navigation_counts() -> None:
    action = tracked_action()

    async def ask() -> str:
        action.handle_event("Page.frameRequestedNavigation", {"frameId": "main", "disposition": "currentTab"}, None)
        await asyncio.sleep(0)
        return "here"

    assert await action.unless_navigating(ask()) == "here"


async def test_a_dialog_that_opens_before_the_next_command_ends_the_action_without_an_error() -> None:
    action = tracked_action()
    asking = asyncio.ensure_future(action.round_trip())
    await asyncio.sleep(0)  # the action has already checked for dialogs and is about to send its command
    action.page.state.dialog = Dialog("alert", "Really done", "")  # the action caused it: the action itself succeeded
    assert await asking is None
    facts = await action.result("Accepted the dialog")
    assert facts["dialog"] == {"type": "alert", "message": "Really done"}
