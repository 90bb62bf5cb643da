"""Records of tabs: order, bounds, gaps, and robustness against any event."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.record.console_messages import EVENTS as CONSOLE_EVENTS
from tabhub.browser.record.recorder import Recorder, TabRecord, url_matcher
from tabhub.browser.record.ring import Ring
from tabhub.browser.record.traffic import EVENTS, Request, Traffic
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tests.browser.conftest import Bench
from tests.browser.fake_browser import FakeBrowser, settle, tab

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = [
    *("requestId", "request", "response", "headers", "url", "method", "type", "args", "value", "preview", "properties"),
    *("stackTrace", "callFrames", "entry", "level", "text", "timestamp", "wallTime", "redirectResponse", "status"),
    *("timing", "exceptionDetails", "exception", "payloadData", "opcode", "frame", "id"),
]
EVENT = st.dictionaries(st.sampled_from(FIELDS), JSON | st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))


class Entry:
    def __init__(self, n: int, weight: int) -> None:
        self.n = n
        self.weight = weight


def sent(number: str, url: str = "https://site.example/a", **more: Any) -> dict[str, Any]:
    request = {"url": url, "method": "GET", "headers": {}, **more.pop("request", {})}
    return {"requestId": number, "request": request, "timestamp": 1.0, "wallTime": 1e9, "type": "Fetch", **more}


def logged(text: str, at: float, kind: str = "log") -> dict[str, Any]:
    return {"type": kind, "args": [{"type": "string", "value": text}], "timestamp": at}


def log_messages(record: TabRecord, *texts: str, at: float = 1.0) -> None:
    for step, text in enumerate(texts):
        record.handle_event("Runtime.consoleAPICalled", logged(text, at + step), None, 0.0)


def traffic(**more: int) -> Traffic:
    sizes = {"requests": 500, "frames": 500, "most_bytes": 10**7, "text": 100} | more
    return Traffic(**sizes)


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 10), st.integers(1, 200))
def test_a_ring_keeps_the_newest_within_both_bounds_and_counts_the_rest(
    weights: list[int], most: int, room: int
) -> None:
    fallen: list[Entry] = []
    ring: Ring[Entry] = Ring(most, room, fallen.append)
    for n, weight in enumerate(weights):
        ring.add(Entry(n, weight))
        assert len(ring) <= most
        assert ring.weight == sum(entry.weight for entry in ring) <= room
    kept = [entry.n for entry in ring]
    assert kept == list(range(len(weights)))[len(weights) - len(kept) :]
    assert ring.dropped == len(fallen) == len(weights) - len(kept)


@given(st.lists(st.tuples(st.sampled_from((*EVENTS, *CONSOLE_EVENTS, "Page.frameNavigated")), EVENT), max_size=30))
def test_a_record_stays_consistent_whatever_the_events(events: list[tuple[str, dict[str, Any]]]) -> None:
    record = TabRecord(Limits(record_requests=5, record_console=5, record_frames=5), 0.0)
    for method, params in events:
        record.handle_event(method, {"requestId": "1", **params}, None, 1.0)
    assert len(record.console) <= 5
    assert len(record.traffic.requests) <= 5
    numbers = [request.n for request in record.traffic.requests]
    assert numbers == sorted(numbers)
    for request in record.traffic.requests:
        assert record.traffic.find(request.id) is request


def test_a_request_has_its_response_and_its_actual_headers() -> None:
    here = traffic()
    here.handle_event("Network.requestWillBeSentExtraInfo", {"requestId": "1", "headers": {"Cookie": "a=1"}}, None, 0)
    here.handle_event("Network.requestWillBeSent", sent("1"), None, 0)
    here.handle_event(
        "Network.responseReceivedExtraInfo", {"requestId": "1", "headers": {"Set-Cookie": "b=2"}}, None, 0
    )
    answer = {
        "status": 200,
        "mimeType": "text/plain",
        "headers": {"X": "y"},
        "remoteIPAddress": "1.2.3.4",
        "remotePort": 80,
    }
    here.handle_event("Network.responseReceived", {"requestId": "1", "response": answer, "timestamp": 1.5}, None, 0)
    here.handle_event(
        "Network.loadingFinished", {"requestId": "1", "timestamp": 2.0, "encodedDataLength": 77.0}, None, 0
    )
    (request,) = here.requests
    assert request.request_headers == {"Cookie": "a=1"}
    assert request.response_headers == {"Set-Cookie": "b=2"}
    assert (request.status, request.size, request.milliseconds, request.address) == (200, 77, 1000.0, "1.2.3.4:80")


def test_a_redirect_ends_one_request_and_starts_the_next_with_the_same_id() -> None:
    here = traffic()
    here.handle_event("Network.requestWillBeSent", sent("1", "https://site.example/old"), None, 0)
    here.handle_event(
        "Network.requestWillBeSent",
        sent(
            "1", "https://site.example/new", redirectResponse={"status": 302}, redirectHasExtraInfo=True, timestamp=2.0
        ),
        None,
        0,
    )
    here.handle_event("Network.responseReceivedExtraInfo", {"requestId": "1", "headers": {"Location": "/new"}}, None, 0)
    here.handle_event("Network.responseReceived", {"requestId": "1", "response": {"status": 200}}, None, 0)
    old, new = here.requests
    assert (old.status, old.redirect, old.milliseconds) == (302, "https://site.example/new", 1000.0)
    assert old.response_headers == {"Location": "/new"}
    assert (new.status, new.response_headers) == (200, {})
    assert here.by_network_id(None, "1") is new


def test_the_same_id_in_another_process_is_another_request() -> None:
    here = traffic()
    for session in (None, "child"):
        here.handle_event("Network.requestWillBeSent", sent("1", f"https://{session}.example/"), session, 0)
    here.handle_event(
        "Network.loadingFailed", {"requestId": "1", "errorText": "net::ERR", "canceled": True}, "child", 0
    )
    first, second = here.requests
    assert (first.error, second.error) == ("", "net::ERR, cancelled")


def test_dropped_requests_are_counted_and_their_later_events_ignored() -> None:
    here = traffic(requests=2)
    for number in "123":
        here.handle_event("Network.requestWillBeSent", sent(number), None, 0)
    here.handle_event("Network.responseReceived", {"requestId": "1", "response": {"status": 200}}, None, 0)
    assert [request.key[1] for request in here.requests] == ["2", "3"]
    assert here.requests.dropped == 1
    assert here.by_network_id(None, "1") is None


def test_large_texts_are_bounded() -> None:
    here = traffic()
    body = {"postData": "x" * 10**6, "headers": {f"h{n}": "v" * 10**5 for n in range(300)}}
    here.handle_event("Network.requestWillBeSent", sent("1", "https://x/" + "u" * 10**6, request=body), None, 0)
    here.handle_event("Network.requestWillBeSent", sent("2", "data:text/plain," + "u" * 10**6), None, 0)
    big, data = here.requests
    assert len(big.url) < 10_000
    assert len(big.body or "") <= 65_536
    assert len(big.request_headers) == 100
    assert max(map(len, big.request_headers.values())) <= 4000
    assert len(data.url) < 300
    here.handle_event(
        "Network.webSocketFrameReceived",
        {"requestId": "9", "response": {"opcode": 1, "payloadData": "y" * 500}},
        None,
        0,
    )
    (frame,) = here.frames
    assert (len(frame.data), frame.length) == (100, 500)


def test_a_debugger_that_reattaches_does_not_duplicate_messages() -> None:
    record = TabRecord(Limits(), 0.0)
    log_messages(record, "one", "two")
    record.watching_ended(10.0)
    record.watching_started("https://site.example/", 15.0)
    log_messages(record, "one", "two", "three")
    assert [message.text for message in record.console] == ["one", "two", "three"]
    assert record.missed == 5.0


def test_repeats_are_counted_and_each_reader_clears_for_itself() -> None:
    record = TabRecord(Limits(), 0.0)
    log_messages(record, "same", "same", "same")
    (message,) = record.console
    assert message.times == 3
    record.console.clear("anna")
    assert record.console.uncleared("anna") == []
    assert len(record.console.uncleared("ben")) == 1
    log_messages(record, "same", at=9.0)
    (again,) = record.console.uncleared("anna")
    assert again.times == 1


def test_the_number_of_readers_is_bounded() -> None:
    record = TabRecord(Limits(), 0.0)
    log_messages(record, "word")
    for number in range(1000):
        record.console.clear(f"reader {number}")
    assert record.console.uncleared("reader 999") == []
    assert len(record.console.uncleared("reader 0")) == 1


def test_only_navigations_of_the_main_frame_start_a_page() -> None:
    record = TabRecord(Limits(), 0.0)
    record.watching_started("https://site.example/one", 0.0)
    log_messages(record, "first")
    record.handle_event("Page.frameNavigated", {"frame": {"id": "M", "url": "https://site.example/two"}}, None, 0.0)
    record.handle_event("Page.frameNavigated", {"frame": {"id": "C", "parentId": "M", "url": "https://x/"}}, None, 0.0)
    record.handle_event("Page.frameNavigated", {"frame": {"id": "C", "url": "https://x/"}}, "child", 0.0)
    log_messages(record, "second", at=5.0)
    assert [message.page for message in record.console] == [1, 2]
    assert list(record.pages) == [(1, "https://site.example/one"), (2, "https://site.example/two")]
    load = sent("L", type="Document", loaderId="L", frameId="M")
    record.handle_event("Network.requestWillBeSent", load, None, 0.0)
    assert [request.page for request in record.traffic.requests] == [3]


@pytest.mark.parametrize(
    ("text", "url", "fits"),
    [
        ("/api/", "https://x/api/1", True),
        ("/api/", "https://x/app/1", False),
        ("https://*/api/*", "https://x/api/1", True),
        ("*/api", "https://x/api/1", False),
        ("*.js", "https://x/a.js", True),
        ("a*b*c", "abc", True),
        ("ab*bc", "abc", False),
        ("*" * 200 + "x", "y" * 5000, False),
        ("https://x/?q=[1]*", "https://x/?q=[1]&b", True),
        ("/api/", "https://a.example/api/items?x=1", True),
        ("?x=1", "https://a.example/api/items?x=1", True),
        ("*/api/*", "https://a.example/api/items", True),
        ("*/api", "https://a.example/api/items", False),
        ("https://*.example/api/**", "https://a.example/api/items", True),
        ("a.b", "https://axb.example/", False),
        ("*a.b*", "https://axb.example/", False),
    ],
)
def test_a_url_matches_by_part_or_by_pattern(text: str, url: str, fits: bool) -> None:
    assert url_matcher(text)(url) is fits


async def test_all_records_together_are_bounded() -> None:
    browsers = Browsers(Limits(record_all=100_000))
    browser = FakeBrowser().join(browsers, tab(1), tab(2))
    now = iter(range(10**6))
    recorder = Recorder(browsers, TabWatch(browsers), wall=lambda: float(next(now)))
    for chrome_id in (1, 2):
        for number in range(600):
            event = {"tabId": chrome_id, "method": "Network.requestWillBeSent", "params": sent(str(number))}
            browser.text(method="cdp.event", params=event)
    assert sum(recorder.tab_record((browser.link, number)).traffic.requests.weight for number in (1, 2)) < 700_000
    assert len(recorder.tab_record((browser.link, 1)).traffic.requests) == 0


async def test_the_record_of_a_closed_tab_is_dropped(bench: Bench) -> None:
    event = {"tabId": 1, "method": "Runtime.consoleAPICalled", "params": logged("word", 1.0)}
    bench.browser.text(method="cdp.event", params=event)
    bench.browser.answers["Log.enable"] = lambda _: {}
    assert len((await bench.call("browser_get_console_logs", tabId=1))["messages"]) == 1
    bench.browser.notify("tab.stateChanged", tabId=1, change="removed")
    bench.browser.notify("tab.stateChanged", tabId=1, change="created", tab=tab(1))
    await settle()
    found = bench.browsers.book.find("b1", 1)
    assert found is not None
    assert (await bench.call("browser_get_console_logs", tabId=found.tab_id))["messages"] == []


def test_requests_are_compared_by_identity() -> None:
    one, other = (Request(1, (None, "1"), 1, "GET", "u", "fetch", 0.0, 0.0, {}) for _ in range(2))
    assert one != other
    assert len({one, other}) == 2
