"""What an action set off, as events tell it; and which addresses a wait is for."""

from __future__ import annotations

import asyncio

from tabhub.browser.activity import TrackedAction

NAVIGATED = {"frame": {"id": "main", "loaderId": "L", "url": "https://shop.example/cart", "urlFragment": "#top"}}


def test_a_navigation_is_under_way_until_the_page_is_there() -> None:
    doing = TrackedAction()
    seen = [doing.unsettled]
    for method, params in (
        ("Page.frameRequestedNavigation", {"frameId": "main", "disposition": "currentTab"}),
        ("Page.frameNavigated", NAVIGATED),
        ("Page.domContentEventFired", {}),
    ):
        doing.handle_event(method, dict(params), None)
        seen.append(doing.unsettled)
    assert seen == [False, True, True, False]
    assert doing.url == "https://shop.example/cart#top"


def test_a_navigation_that_gives_no_page_is_over_when_the_frame_stops() -> None:
    doing = TrackedAction()
    started = {"frameId": "main", "navigationType": "differentDocument"}
    doing.handle_event("Page.frameStartedNavigating", started, None)
    doing.handle_event("Page.frameStoppedLoading", {"frameId": "main"}, None)
    assert not doing.unsettled
    assert doing.url is None


def test_a_step_within_the_page_is_no_other_page() -> None:
    doing = TrackedAction()
    doing.handle_event("Page.frameStartedNavigating", {"frameId": "main", "navigationType": "sameDocument"}, None)
    assert not doing.unsettled


def test_a_frame_of_another_site_does_not_move_the_tab() -> None:
    doing = TrackedAction()
    doing.handle_event("Page.frameNavigated", NAVIGATED, "child")
    assert doing.url is None
    assert not doing.unsettled


async def test_a_window_is_waited_for_until_its_tab_is_there() -> None:
    doing = TrackedAction()
    doing.handle_event("Page.windowOpen", {"url": "https://shop.example/help"}, None)
    waiting = asyncio.create_task(doing.settle(5))
    await asyncio.sleep(0)
    assert not waiting.done()
    doing.tab_opened(7)
    await waiting
    assert doing.opened == [7]


async def test_nothing_is_waited_for_longer_than_told() -> None:
    doing = TrackedAction()
    doing.handle_event("Page.frameRequestedNavigation", {"frameId": "main", "disposition": "download"}, None)
    await doing.settle(0.01)
    assert doing.unsettled
    doing.handle_event("Page.downloadWillBegin", {"suggestedFilename": "report.pdf"}, None)
    assert (doing.unsettled, doing.download) == (False, "report.pdf")


async def test_a_page_on_its_way_to_another_is_not_asked_any_longer() -> None:
    doing = TrackedAction()
    held_back: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def ask() -> str:
        return await held_back

    asking = asyncio.ensure_future(doing.unless_navigating(ask()))
    await asyncio.sleep(0)
    doing.handle_event("Page.windowOpen", {}, None)  # something else
    await asyncio.sleep(0)
    assert not asking.done()
    doing.handle_event("Page.frameRequestedNavigation", {"frameId": "main", "disposition": "currentTab"}, None)
    assert await asking is None
    assert held_back.cancelled()


async def test_what_a_page_answers_before_it_is_gone_counts() -> None:
    doing = TrackedAction()

    async def ask() -> str:
        doing.handle_event("Page.frameRequestedNavigation", {"frameId": "main", "disposition": "currentTab"}, None)
        await asyncio.sleep(0)
        return "here"

    assert await doing.unless_navigating(ask()) == "here"
