"""Requests whose events come in an unusual order or not at all: revalidated, redirected, abandoned, cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.browser.actions import Activity
from tabhub.browser.awake_tabs import AwakeTabs
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.files.downloads import Downloads
from tabhub.browser.files.folder import Folder
from tabhub.browser.files.hidden_downloads import HiddenDownloads, no_report
from tabhub.browser.record.recorder import Recorder, TabRecord
from tabhub.browser.record.traffic import Request, Traffic
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tests.browser.fake_browser import FakeBrowser, tab

CHILD = {"sessionId": "child"}


def traffic() -> Traffic:
    return Traffic(requests=500, frames=500, most_bytes=10**7, text=100)


def sent(number: str, url: str = "https://site.example/a", **more: Any) -> dict[str, Any]:
    request = {"url": url, "method": "GET", "headers": {}}
    return {"requestId": number, "request": request, "timestamp": 1.0, "wallTime": 1e9, "type": "Fetch", **more}


def navigated(url: str, loader: str = "") -> dict[str, Any]:
    return {"frame": {"id": "M", "url": url, "loaderId": loader}}


def one(here: Traffic) -> Request:
    (request,) = here.requests
    return request


def test_a_revalidated_response_is_recorded_as_not_modified() -> None:
    extra = {"requestId": "1", "headers": {}, "statusCode": 304}
    answer = {"requestId": "1", "response": {"status": 200, "statusText": "OK"}, "timestamp": 1.5}
    for first, second in (
        (("Network.responseReceivedExtraInfo", extra), ("Network.responseReceived", answer)),
        (("Network.responseReceived", answer), ("Network.responseReceivedExtraInfo", extra)),
    ):
        here = traffic()
        here.handle_event("Network.requestWillBeSent", sent("1"), None, 0)
        for method, params in (first, second):
            here.handle_event(method, dict(params), None, 0)
        assert (one(here).status, one(here).status_text) == (304, "Not Modified")


def test_a_socket_that_failed_to_connect_has_no_duration() -> None:
    here = traffic()
    here.handle_event("Network.webSocketCreated", {"requestId": "1", "url": "ws://site.example/"}, None, 0)
    here.handle_event("Network.webSocketFrameError", {"requestId": "1", "errorMessage": "refused"}, None, 0)
    here.handle_event("Network.webSocketClosed", {"requestId": "1", "timestamp": 35015.5}, None, 0)
    assert (one(here).error, one(here).milliseconds) == ("refused", None)


def test_headers_of_unrecorded_requests_are_not_given_to_others() -> None:
    here = traffic()
    here.start_capture(lambda url: "/wanted" in url, lambda request: None)
    for number in range(300):
        here.handle_event("Network.requestWillBeSent", sent(f"x{number}"), None, 0)
        here.handle_event("Network.requestWillBeSentExtraInfo", {"requestId": f"x{number}", "headers": {}}, None, 0)
    here.handle_event("Network.requestWillBeSent", sent("1"), None, 0)
    here.handle_event("Network.requestWillBeSentExtraInfo", {"requestId": "1", "headers": {"Cookie": "old"}}, None, 0)
    here.handle_event(
        "Network.responseReceivedExtraInfo", {"requestId": "1", "headers": {"Location": "/wanted"}}, None, 0
    )
    here.handle_event("Network.requestWillBeSentExtraInfo", {"requestId": "1", "headers": {"Cookie": "new"}}, None, 0)
    moved = sent("1", "https://site.example/wanted", redirectResponse={"status": 302}, redirectHasExtraInfo=True)
    here.handle_event("Network.requestWillBeSent", moved, None, 0)
    here.handle_event("Network.responseReceivedExtraInfo", {"requestId": "1", "headers": {"X": "y"}}, None, 0)
    assert one(here).request_headers == {"Cookie": "new"}
    assert one(here).response_headers == {"X": "y"}


def test_a_request_with_an_empty_id_gets_no_events_of_others() -> None:
    here = traffic()
    here.handle_event("Network.requestWillBeSent", sent(""), None, 0)
    here.handle_event("Network.responseReceived", {"requestId": "1", "response": {"status": 200}}, None, 0)
    assert one(here).status == 0


def test_the_first_page_that_is_recorded_has_its_own_document() -> None:
    record = TabRecord(Limits(), 0.0)
    record.watching_started("about:blank", 0.0)
    record.handle_event("Network.requestWillBeSent", sent("L", type="Document", loaderId="L", frameId="M"), None, 0.0)
    record.handle_event("Page.frameNavigated", navigated("https://site.example/a", "L"), None, 0.0)
    record.handle_event("Network.requestWillBeSent", sent("1", "https://site.example/script.js"), None, 0.0)
    assert [request.page for request in record.traffic.requests] == [2, 2]


def test_pending_requests_of_a_left_page_are_abandoned() -> None:
    record = TabRecord(Limits(), 0.0)
    record.watching_started("https://site.example/", 0.0)
    record.handle_event("Network.requestWillBeSent", sent("1", "https://site.example/slow"), None, 0.0)
    record.handle_event("Network.requestWillBeSent", sent("2", "https://site.example/beacon", type="Ping"), None, 0.0)
    record.handle_event("Network.requestWillBeSent", sent("L", type="Document", loaderId="L", frameId="M"), None, 0.0)
    record.handle_event("Page.frameNavigated", navigated("https://site.example/next", "L"), None, 0.0)
    slow, beacon, document = record.traffic.requests
    assert slow.abandoned
    assert "aborted" in slow.error
    assert document.error == ""
    record.handle_event(
        "Network.loadingFinished", {"requestId": "2", "timestamp": 2.0, "encodedDataLength": 9}, None, 0.0
    )
    assert (beacon.error, beacon.size) == ("", 9)


def test_pending_requests_of_a_removed_frame_or_worker_are_abandoned() -> None:
    record = TabRecord(Limits(), 0.0)
    for session in (None, "child", "other"):
        record.handle_event("Network.requestWillBeSent", sent("1"), session, 0.0)
    record.handle_event("Target.detachedFromTarget", CHILD, None, 0.0)
    own, child, other = record.traffic.requests
    assert (own.error, other.error) == ("", "")
    assert "aborted" in child.error


def test_an_unread_response_of_a_left_page_is_not_an_error() -> None:
    record = TabRecord(Limits(), 0.0)
    record.watching_started("https://site.example/", 0.0)
    record.handle_event("Network.requestWillBeSent", sent("1"), None, 0.0)
    record.handle_event(
        "Network.responseReceived", {"requestId": "1", "response": {"status": 200}, "timestamp": 2}, None, 0.0
    )
    record.handle_event("Page.frameNavigated", navigated("https://site.example/next"), None, 0.0)
    request = one(record.traffic)
    assert (request.status, request.error, request.abandoned) == (200, "", True)


def activity_of(browsers: Browsers, watch: TabWatch) -> Activity:
    downloads, hidden = Downloads(browsers, watch, Folder(None)), HiddenDownloads(browsers, watch, no_report)
    return Activity(browsers, watch, AwakeTabs(browsers, watch), downloads, hidden, lambda *_: None)


async def test_requests_of_a_removed_frame_are_not_pending() -> None:
    browsers = Browsers()
    browser, watch = FakeBrowser().join(browsers, tab(1)), TabWatch(browsers)
    activity, page = activity_of(browsers, watch), Page(browsers, watch, browsers.tab(1), None)
    asked = {"tabId": 1, "sessionId": "child", "method": "Network.requestWillBeSent", "params": sent("1")}
    browser.text(method="cdp.event", params=asked)
    assert activity.requests(page).quiet(0.0)[1] == ["https://site.example/a"]
    browser.text(method="cdp.event", params={"tabId": 1, "method": "Target.detachedFromTarget", "params": CHILD})
    assert activity.requests(page).quiet(0.0)[1] == []


def test_events_of_a_document_continue_from_its_new_process() -> None:
    here = traffic()
    here.handle_event("Network.requestWillBeSent", sent("L", type="Document", loaderId="L"), None, 0)
    here.handle_event("Network.responseReceived", {"requestId": "L", "response": {"status": 200}}, None, 0)
    here.handle_event(
        "Network.loadingFinished", {"requestId": "L", "timestamp": 2.0, "encodedDataLength": 9}, "child", 0
    )
    assert (one(here).milliseconds, one(here).size) == (1000.0, 9)
    assert one(here).key == ("child", "L")
    assert here.by_network_id(None, "L") is one(here)
    here.session_detached("child")
    assert one(here).error == ""


def test_headers_of_a_workers_request_come_from_its_page() -> None:
    here = traffic()
    here.handle_event("Network.requestWillBeSentExtraInfo", {"requestId": "1", "headers": {"Cookie": "a"}}, None, 0)
    here.handle_event("Network.requestWillBeSent", sent("1"), "child", 0)
    here.handle_event("Network.responseReceivedExtraInfo", {"requestId": "1", "headers": {"X": "y"}}, None, 0)
    assert (one(here).request_headers, one(here).response_headers) == ({"Cookie": "a"}, {"X": "y"})
    assert one(here).key == ("child", "1")


@pytest.mark.parametrize(
    ("method", "session"), [("Network.loadingFinished", "child"), ("Network.responseReceivedExtraInfo", None)]
)
async def test_the_script_of_a_worker_is_not_pending(method: str, session: str | None) -> None:
    browsers = Browsers()
    browser, watch = FakeBrowser().join(browsers, tab(1)), TabWatch(browsers)
    activity, page = activity_of(browsers, watch), Page(browsers, watch, browsers.tab(1), None)
    for name, params, child in (("Network.requestWillBeSent", sent("1"), None), (method, {"requestId": "1"}, session)):
        event = {"tabId": 1, "method": name, "params": params, **({"sessionId": child} if child else {})}
        browser.text(method="cdp.event", params=event)

    silent, pending = activity.requests(page).quiet(1e9)
    assert pending == []
    assert silent > 0


async def test_a_capture_continues_after_its_record_was_emptied() -> None:
    browsers = Browsers(Limits(record_all=100_000))
    browser = FakeBrowser().join(browsers, tab(1), tab(2))
    now = iter(range(10**6))
    watch = TabWatch(browsers)
    recorder = Recorder(browsers, watch, wall=lambda: float(next(now)))
    recorder.start_capture(Page(browsers, watch, browsers.tab(1), None), object(), "site.example")
    for chrome_id in (1, 2):
        for number in range(600):
            event = {"tabId": chrome_id, "method": "Network.requestWillBeSent", "params": sent(str(number))}
            browser.text(method="cdp.event", params=event)
    record = recorder.tab_record((browser.link, 1))
    assert len(record.traffic.requests) == 0
    assert record.traffic.requests.dropped > 0
    assert record.capture is not None
