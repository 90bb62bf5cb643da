"""Browsers that connect, disconnect, replace each other, become silent and report their tabs."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tabhub.errors import CommandFailed, LinkLost, NotConnected, TabFailed, TabNotFound, TabStopped
from tabhub.limits import DEFAULTS, Limits
from tabhub.links.browsers import Browsers, Change
from tests.browser.fake_browser import FakeBrowser, settle, tab


def recorded_changes(browsers: Browsers) -> list[Change]:
    changes: list[Change] = []
    browsers.on_change(changes.append)
    return changes


@pytest.mark.req("F8")
async def test_a_second_connection_of_a_browser_replaces_the_first() -> None:
    browsers = Browsers()
    old = FakeBrowser().join(browsers, tab(1))
    pending = old.link.request("getTabs", {})
    new = FakeBrowser().join(browsers, tab(1))
    assert old.closed == [(4000, "replaced by a newer connection of the same browser")]
    with pytest.raises(LinkLost, match="replaced"):
        await pending
    # The end and late messages of the old socket do not affect the new one.
    old.notify("tab.syncAll", tabs=[])
    browsers.detach(old.link)
    assert browsers.links() == [new.link]
    assert browsers.tab(1).link is new.link


@pytest.mark.req("F1")
async def test_a_disconnected_browser_fails_its_calls_and_is_listed_in_the_status() -> None:
    browsers = Browsers(wall=lambda: 1000.0)
    changes = recorded_changes(browsers)
    one, other = FakeBrowser("one").join(browsers, tab(1)), FakeBrowser("other").join(browsers, tab(2))
    pending, unharmed = one.link.request("getTabs", {}), other.link.request("getTabs", {})
    browsers.detach(one.link, "the browser was killed")
    with pytest.raises(LinkLost):
        await pending
    assert not unharmed.done()
    assert (changes[-1].kind, changes[-1].reason) == ("disconnected", "the browser was killed")
    assert [found.tab_id for found in changes[-1].tabs.disconnected] == [1]
    there, disconnected = browsers.status()
    assert (there["browserId"], there["connected"], there["tabs"]) == ("other", True, 1)
    assert (disconnected["browserId"], disconnected["connected"], disconnected["reason"]) == (
        "one",
        False,
        "the browser was killed",
    )
    with pytest.raises(NotConnected, match="its browser is not connected"):
        browsers.tab(1)
    unharmed.cancel()


@pytest.mark.req("F9")
async def test_closing_a_tab_fails_its_calls_at_once() -> None:
    browsers = Browsers()
    browser = FakeBrowser().join(browsers, tab(1), tab(2))
    pending = browser.link.request("forwardCDPCommand", {"tabId": 1, "method": "Runtime.evaluate"})
    closing = browser.link.request("closeTab", {"tabId": 1})
    unharmed = browser.link.request("forwardCDPCommand", {"tabId": 2, "method": "Runtime.evaluate"})
    browser.text(id="ext:1", method="tab.stateChanged", params={"tabId": 1, "change": "removed"})
    with pytest.raises(TabFailed, match="it was closed") as caught:
        await pending
    assert caught.value.outcome == "unknown"
    assert not unharmed.done()
    browser.reply(2, {"closed": True})
    assert await closing == {"closed": True}
    unharmed.cancel()


@pytest.mark.req("F9")
@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("cdp.event", {"method": "Inspector.targetCrashed", "params": {}}, "crashed"),
        ("cdp.detached", {"reason": "replaced_with_devtools"}, "developer tools took the tab over"),
        ("cdp.detached", {"reason": "target_closed"}, "closed or its page crashed"),
    ],
)
async def test_a_crashed_or_detached_tab_fails_its_calls(method: str, params: dict[str, object], words: str) -> None:
    browsers = Browsers()
    browser = FakeBrowser().join(browsers, tab(1))
    pending = browser.link.request("forwardCDPCommand", {"tabId": 1, "method": "Runtime.evaluate"})
    browser.notify(method, tabId=1, **params)
    with pytest.raises(TabFailed, match=words):
        await pending


@pytest.mark.req("F22")
async def test_cancel_button_of_the_browser_fails_all_calls_in_the_tab_until_the_person_returns_it() -> None:
    browsers = Browsers()
    changes = recorded_changes(browsers)
    browser = FakeBrowser().join(browsers, tab(1), tab(2))
    other = browser.link.request("forwardCDPCommand", {"tabId": 2, "method": "Runtime.evaluate"})
    pending = [browser.link.request(name, {"tabId": 1, "method": "X"}) for name in ("forwardCDPCommand", "reloadTab")]
    browser.notify("cdp.detached", tabId=1, reason="canceled_by_user")
    for command in pending:
        with pytest.raises(TabStopped, match=r"^The person stopped you in this tab\.$") as caught:
            await command
        assert caught.value.outcome == "unknown"
    assert not other.done()
    other.cancel()
    assert [each.tab_id for each in changes[-1].tabs.changed] == [1]
    with pytest.raises(TabStopped) as caught:
        browsers.tab(1)
    assert caught.value.outcome == "not_sent"
    assert "tabhub resume 1" in str(caught.value.hint)
    assert browsers.status()[0]["stoppedTabs"] == [1]
    # the extension goes on to report it, also after a reconnect
    browser.notify("tab.stateChanged", tabId=1, change="updated", tab=tab(1, stopped=True))
    browsers.detach(browser.link)
    again = FakeBrowser().join(browsers, tab(1, stopped=True), tab(2))
    with pytest.raises(TabStopped):
        browsers.tab(1)
    again.answers["resumeTab"] = lambda _: tab(1)
    assert not (await browsers.resume_tab(1)).stopped
    assert browsers.tab(1).tab.tab_id == 1
    with pytest.raises(TabNotFound, match="not stopped"):
        await browsers.resume_tab(1)


async def test_command_that_the_extension_refuses_in_a_stopped_tab_fails_the_same_way() -> None:
    browsers = Browsers()
    browser = FakeBrowser().join(browsers, tab(1))
    pending = browser.link.request("reloadTab", {"tabId": 1})
    browser.text(id=1, error={"code": -32017, "message": "The person stopped you in this tab.", "data": {"tabId": 1}})
    with pytest.raises(TabStopped):
        await pending


async def test_tabs_follow_the_navigations_that_the_debugger_reports() -> None:
    browsers = Browsers()
    browser = FakeBrowser().join(browsers, tab(1))

    def navigates(**frame: object) -> str:
        browser.notify("cdp.event", tabId=1, method="Page.frameNavigated", params={"frame": frame})
        return browsers.tab(1).tab.url

    assert navigates(id="F", url="https://next.example/", urlFragment="#a") == "https://next.example/#a"
    assert navigates(id="G", parentId="F", url="https://frame.example/") == "https://next.example/#a"
    lost = {"url": "chrome-error://chromewebdata/", "unreachableUrl": "https://down.example/"}
    assert navigates(id="F", **lost) == "https://down.example/"


async def test_detaching_from_an_idle_tab_fails_nothing() -> None:
    browsers = Browsers()
    browser = FakeBrowser().join(browsers, tab(1))
    browser.notify("debugger.changed", attached=[1])
    assert browsers.is_debugged(browser.link, 1)
    pending = browser.link.request("forwardCDPCommand", {"tabId": 1, "method": "Runtime.evaluate"})
    browser.notify("cdp.detached", tabId=1, reason="idle")
    assert not browsers.is_debugged(browser.link, 1)
    assert not pending.done()
    pending.cancel()


@pytest.mark.req("F3")
async def test_a_silent_link_is_closed_and_its_calls_fail() -> None:
    browsers = Browsers(Limits(ping_interval=0.02, ping_timeout=0.03))
    changes = recorded_changes(browsers)
    browser = FakeBrowser().join(browsers, tab(1))
    pending = browser.link.request("getTabs", {})
    async with asyncio.timeout(30):
        await browsers.watch(browser.link)
    assert browser.closed[0][0] == 1011
    with pytest.raises(LinkLost, match="no message received"):
        await pending
    assert browsers.links() == []
    assert changes[-1].kind == "disconnected"
    assert browser.commands("ping")
    # With these settings the longest silence is one interval and one timeout.
    assert DEFAULTS.ping_interval + DEFAULTS.ping_timeout <= 40


async def test_a_link_that_answers_pings_is_kept() -> None:
    browsers = Browsers(Limits(ping_interval=0.005, ping_timeout=4))
    browser = FakeBrowser().join(browsers)
    pings = 0

    def answer(data: bytes) -> None:
        nonlocal pings
        pings += 1
        browser.notify("pong")
        if pings == 20:
            browsers.detach(browser.link, "enough")

    browser.link._send = answer
    async with asyncio.timeout(30):
        await browsers.watch(browser.link)
    assert browser.link.closed == "enough"
    assert browser.closed == []


async def test_the_browser_focused_last_is_the_default() -> None:
    browsers = Browsers()
    with pytest.raises(NotConnected, match="Browser extension not connected") as caught:
        browsers.default_link()
    assert "tabhub start --launch" in (caught.value.hint or "")
    one, other = FakeBrowser("one").join(browsers, tab(1)), FakeBrowser("other").join(browsers, tab(2))
    assert browsers.default_link() is other.link
    one.notify("tab.stateChanged", tabId=1, change="activated", tab=tab(1, active=True, windowFocused=True))
    assert browsers.default_link() is one.link
    browsers.detach(one.link)
    assert browsers.default_link() is other.link


async def test_the_error_for_an_unknown_browser_lists_the_connected_ones() -> None:
    browsers = Browsers()
    FakeBrowser("one").join(browsers)
    with pytest.raises(NotConnected) as caught:
        browsers.link("two")
    assert caught.value.hint == "Connected: one."


async def test_the_error_for_a_missing_tab_lists_the_open_ones() -> None:
    browsers = Browsers()
    FakeBrowser().join(browsers, *(tab(n) for n in range(1, 12)))
    with pytest.raises(TabNotFound) as caught:
        browsers.tab(99)
    assert caught.value.hint is not None
    assert "1 (Site 1)" in caught.value.hint
    assert "and 3 more" in caught.value.hint


async def test_the_status_reports_each_part_of_a_browser() -> None:
    browsers = Browsers(wall=lambda: 1000.0)
    browser = FakeBrowser().join(browsers, tab(1), tab(2, windowId=7))
    browser.notify("debugger.changed", attached=[2])
    browser.notify("debugger.changed", attached=[2, "x", True])
    browser.reply(5, "unexpected")
    browser.link.feed("{")
    (facts,) = browsers.status()
    assert facts["browserName"] == "Chromium"
    assert facts["socket"]["connectedAt"] == 1000.0
    assert (facts["socket"]["droppedReplies"], facts["socket"]["malformed"]) == (1, 1)
    assert facts["extension"] == {"saidHello": True, "sentTabs": True}
    assert (facts["tabs"], facts["windows"], facts["debugger"]) == (2, 2, {"attachedTabs": [2]})


async def test_invalid_tabs_are_logged_and_the_others_kept(caplog: pytest.LogCaptureFixture) -> None:
    browsers = Browsers()
    with caplog.at_level(logging.WARNING):
        browser = FakeBrowser().join(browsers, tab(1), {"tabId": "x"})
        browser.notify("tab.syncAll", tabs="none")
        browser.notify("cdp.event", tabId="x")
        browser.notify("extension.hello", browserId="someone else", browserName=5)
        browser.notify("extension.hello", browserId="someone else")
        browser.notify("log", level="error", source="a\nb", message="line\nbreak")
    assert [found.tab_id for found in browsers.book] == [1]
    assert "calls itself" in caplog.text
    assert browser.link.counts.refused == 3
    assert "line\\nbreak" in caplog.text


async def test_a_tab_described_in_a_reply_is_added() -> None:
    browsers = Browsers()
    changes = recorded_changes(browsers)
    browser = FakeBrowser().join(browsers)
    made = browsers.update_tab(browser.link, tab(4))
    assert browsers.tab(4).tab == made
    assert changes[-1].tabs.opened == (made,)
    with pytest.raises(CommandFailed, match="is invalid"):
        browsers.update_tab(browser.link, {"tabId": "x"})
    await settle()


async def test_a_browser_with_the_maximum_number_of_tabs_can_report_them() -> None:
    """One message contains them all; the limit on keys must allow that."""
    browsers = Browsers()
    flags = dict.fromkeys(("active", "windowFocused", "pinned", "incognito", "discarded", "audible"), False)
    more = {**flags, "index": 3, "status": "complete", "groupId": -1, "openerTabId": 1, "lastAccessed": 1.5}
    many = [tab(number, **more) for number in range(1, DEFAULTS.tabs_per_browser + 1)]
    FakeBrowser("many").join(browsers, *many)
    assert len(browsers.book) == DEFAULTS.tabs_per_browser


async def test_a_call_while_the_managed_browser_starts_is_told_to_retry() -> None:
    browsers = Browsers(starting=lambda: True)
    with pytest.raises(NotConnected) as caught:
        browsers.default_link()
    assert "is starting" in (caught.value.hint or "")
