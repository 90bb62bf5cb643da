"""Which browser a call without a tab goes to, and how invalid answers are handled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tabhub.errors import CommandFailed, InvalidArguments, NotConnected, NotInBrowser, TabNotFound
from tabhub.limits import DEFAULTS
from tests.browser.conftest import Bench
from tests.browser.fake_browser import Failure, FakeBrowser, tab


@dataclass
class Session:
    """The part of a session that these tools read."""

    tab: int | None = None


def group(number: int, title: str = "", tabs: list[int] | None = None) -> dict[str, Any]:
    return {"groupId": number, "title": title, "color": "blue", "collapsed": False, "windowId": 1, "tabIds": tabs or []}


def window(number: int, *tabs: int) -> dict[str, Any]:
    return {"windowId": number, "focused": False, "type": "normal", "state": "normal", "tabIds": list(tabs)}


@pytest.fixture
async def other(bench: Bench) -> FakeBrowser:
    """A second browser, connected last."""
    return FakeBrowser("b2").join(bench.browsers, tab(1))


async def test_a_call_goes_to_the_named_browser_or_the_sessions_or_the_one_used_last(
    bench: Bench, other: FakeBrowser
) -> None:
    for browser in (bench.browser, other):
        browser.answers["searchHistory"] = lambda _: {"entries": []}
    await bench.call("browser_search_history", query="x", browserId="b1")
    assert len(bench.browser.sent) == 1
    await bench.call("browser_search_history", query="x")
    assert len(other.sent) == 1
    bench.context.session = Session(tab=2)
    await bench.call("browser_search_history", query="x")
    assert len(bench.browser.sent) == 2
    with pytest.raises(NotConnected, match="Browser b9"):
        await bench.call("browser_search_history", query="x", browserId="b9")


async def test_tabs_of_different_browsers_are_not_put_into_one_group(bench: Bench, other: FakeBrowser) -> None:
    theirs = next(each.tab_id for each in bench.browsers.book if each.browser_id == "b2")
    with pytest.raises(InvalidArguments, match="different browsers") as caught:
        await bench.call("browser_create_tab_group", tabIds=[1, theirs])
    assert f"1 is in b1; {theirs} is in b2" in (caught.value.hint or "")
    with pytest.raises(TabNotFound, match="no tab 77"):
        await bench.call("browser_create_tab_group", tabIds=[1, 77])
    assert not bench.browser.sent
    assert not other.sent


async def test_an_id_that_exists_in_two_browsers_needs_a_browser_id(bench: Bench, other: FakeBrowser) -> None:
    for browser in (bench.browser, other):
        browser.answers["getGroups"] = lambda _: {"groups": [group(5, "Work", [1])]}
        browser.answers["updateGroup"] = lambda _: group(5, "Play", [1])
    with pytest.raises(InvalidArguments, match="groupId 5 is in several browsers: b1, b2"):
        await bench.call("browser_update_tab_group", groupId=5, title="Play")
    changed = await bench.call("browser_update_tab_group", groupId=5, title="Play", browserId="b2")
    assert changed["browserId"] == "b2"
    assert changed["tabIds"][0] > 2**31
    assert not bench.browser.commands("updateGroup")
    listed = (await bench.call("browser_list_tab_groups"))["groups"]
    assert [each["browserId"] for each in listed] == ["b1", "b2"]


async def test_an_unknown_id_lists_the_existing_ones(bench: Bench, other: FakeBrowser) -> None:
    bench.browser.answers["getWindows"] = lambda _: {"windows": [window(n) for n in range(1, 13)]}
    other.answers["getWindows"] = lambda _: {"windows": []}
    with pytest.raises(NotInBrowser, match="There is no windowId 77") as caught:
        await bench.call("browser_update_window", windowId=77, width=100)
    assert "1 (normal, 0 tabs); 2 (normal" in (caught.value.hint or "")
    assert "and 2 more." in (caught.value.hint or "")
    assert caught.value.outcome == "not_sent"
    assert not bench.context.sent


async def test_a_failing_browser_is_left_out_of_a_list_and_named(bench: Bench, other: FakeBrowser) -> None:
    def fails(_: Any) -> None:
        raise Failure(-32601, "Method not found: getWindows")

    bench.browser.answers["getWindows"] = fails
    other.answers["getWindows"] = lambda _: {"windows": [window(1, 1)]}
    listed = await bench.call("browser_list_windows")
    assert [each["browserId"] for each in listed["windows"]] == ["b2"]
    assert "Browser b1 is left out: The extension does not know the command getWindows" in listed["note"]
    bench.browsers.detach(other.link)
    with pytest.raises(CommandFailed, match="does not know the command"):
        await bench.call("browser_list_windows")


async def test_a_tab_closed_during_the_command_is_reported_by_its_hub_id(bench: Bench) -> None:
    def gone(_: Any) -> None:
        raise Failure(-32001, "No tab with id 4711.")

    bench.browser.answers["createGroup"] = gone
    with pytest.raises(TabNotFound, match="One of the tabs 1, 2 is closed"):
        await bench.call("browser_create_tab_group", tabIds=[1, 2])
    assert bench.context.sent


@pytest.mark.parametrize(
    "answer",
    [
        [],
        "text",
        {},
        {"entries": "none"},
        {"entries": None},
        {"entries": [7]},
        {"entries": [{"title": "no URL"}]},
        {"entries": [{"url": "https://a.example/", "visitCount": True}]},
        {"entries": [], "cut": "yes"},
    ],
)
async def test_a_reply_of_the_wrong_form_is_refused(bench: Bench, answer: Any) -> None:
    bench.browser.answers["searchHistory"] = lambda _: answer
    with pytest.raises(CommandFailed, match="invalid response"):
        await bench.call("browser_search_history", query="x")


async def test_unknown_fields_of_a_reply_are_dropped_and_long_texts_truncated(bench: Bench) -> None:
    entry = {"url": "https://a.example/", "secret": "x", "lastVisitTime": "t" * 9000}
    bench.browser.answers["searchHistory"] = lambda _: {"entries": [entry]}
    found = await bench.call("browser_search_history", query="x")
    assert found == {"entries": [{"url": "https://a.example/", "lastVisitTime": "t" * 4096}]}


async def test_a_hanging_browser_does_not_delay_a_list(bench: Bench) -> None:
    slow = FakeBrowser("b3", replace(DEFAULTS, browser_answer=0.05)).join(bench.browsers)
    bench.browser.answers["getWindows"] = lambda _: {"windows": [window(1, 1)]}
    listed = await bench.call("browser_list_windows")
    assert [each["windowId"] for each in listed["windows"]] == [1]
    assert listed["note"] == "Browser b3 is left out: Browser b3 did not answer within 0.05 s."
    assert slow.commands("getWindows")
