"""Background tabs are kept awake while calls run in them, and rest afterwards."""

from __future__ import annotations

from tabhub.browser.awake_tabs import AwakeTabs
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import Dialog, TabWatch
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tests.browser.fake_browser import FakeBrowser, tab
from tests.harness.waiting import until

FOCUS, START, STOP = "Emulation.setFocusEmulationEnabled", "Page.startScreencast", "Page.stopScreencast"


def awake_tabs(idle: float) -> tuple[FakeBrowser, AwakeTabs, Page]:
    browsers = Browsers(Limits(awake_idle=idle))
    browser, watch = FakeBrowser().join(browsers, tab(1)), TabWatch(browsers)
    return browser, AwakeTabs(browsers, watch), Page(browsers, watch, browsers.tab(1), None)


def sent(browser: FakeBrowser) -> list[str]:
    methods = [browser.method_of(message) for message in browser.sent if "method" in message]
    return [method for method in methods if method in (FOCUS, START, STOP)]


async def test_a_tab_is_woken_once_for_calls_that_follow_each_other() -> None:
    browser, tabs, page = awake_tabs(idle=60)
    for _ in range(3):
        with tabs.awake(page):
            pass
    assert sent(browser) == [FOCUS, START]


async def test_a_tab_rests_when_no_call_runs_in_it() -> None:
    browser, tabs, page = awake_tabs(idle=0)
    with tabs.awake(page), tabs.awake(page):
        assert sent(browser) == [FOCUS, START]
    await until(lambda: sent(browser) == [FOCUS, START, STOP])
    with tabs.awake(page):
        assert sent(browser) == [FOCUS, START, STOP, START]


async def test_a_tab_is_woken_again_after_the_debugger_was_detached() -> None:
    browser, tabs, page = awake_tabs(idle=60)
    with tabs.awake(page):
        pass
    browser.text(method="cdp.detached", params={"tabId": 1, "reason": "idle"})
    with tabs.awake(page):
        pass
    assert sent(browser) == [FOCUS, START, FOCUS, START]


async def test_a_tab_that_a_dialog_blocks_is_not_woken() -> None:
    browser, tabs, page = awake_tabs(idle=60)
    page.state.dialog = Dialog("alert", "Done")
    with tabs.awake(page):
        assert sent(browser) == []
