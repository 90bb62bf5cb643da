"""Records of the tabs in use: console messages, requests and WebSocket frames, by page.

Owns the records of all tabs, their lifetime and bounds. Handling an event takes microseconds and sends no commands,
except for bodies while capture is on. It knows no tool.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import Future
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tabhub.browser.driver.cdp_values import parse_object, parse_text, parse_url
from tabhub.browser.driver.page import Page, send_cdp
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.browser.record import console_messages as messages
from tabhub.browser.record import traffic
from tabhub.browser.record.ring import Ring
from tabhub.browser.record.traffic import Request, Traffic
from tabhub.errors import CommandFailed
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers, TabKey

_INTEREST = EventSubscription(
    events=(*messages.EVENTS, *traffic.EVENTS, "Page.frameNavigated", "Target.detachedFromTarget"),
    enable=(("Runtime.enable", {}), ("Log.enable", {}), traffic.ENABLE),
    frames=True,
    # So that the next `enable` replays what the page logged in the meantime.
    disable=("Runtime.disable", "Log.disable"),
)
_CAUGHT_UP = 1.0
"""Seconds to wait for pending events before the record is returned as it is."""
_TRIM_INTERVAL = 512
_MAX_PAGES = 50
_HOLD = "capture"
_BODY_KINDS = ("xhr", "fetch", "document", "eventsource", "other", "")


@dataclass(frozen=True, slots=True)
class Capture:
    """Recording requested by an agent: it continues while the tab is idle, and keeps bodies."""

    session: Any
    url_filter: str


class TabRecord:
    """Everything recorded of one tab."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self.since = now
        self.console: Ring[messages.Message] = Ring(limits.record_console, limits.record_bytes)
        self.traffic = Traffic(limits.record_requests, limits.record_frames, limits.record_bytes, limits.record_text)
        self.pages: deque[tuple[int, str]] = deque(maxlen=_MAX_PAGES)
        """Numbers and URLs of the recorded documents."""
        self.capture: Capture | None = None
        self.off_since: float | None = None
        self.missed = 0.0
        """Seconds in which the tab was not watched."""
        self.last_event = now
        self._messages = 0
        self._newest = 0.0
        self._horizon = 0.0
        """When the last message before the debugger reattached was logged."""

    @property
    def rings(self) -> tuple[Ring[Any], ...]:
        return self.console, self.traffic.requests, self.traffic.frames

    def handle_event(self, method: str, params: dict[str, Any], child: str | None, now: float) -> None:
        self.last_event = now
        if method.startswith("Network."):
            self.traffic.handle_event(method, params, child, now)
        elif method == "Page.frameNavigated":
            self._navigated(parse_object(params.get("frame")), child)
        elif method == "Target.detachedFromTarget":
            self.traffic.session_detached(params.get("sessionId"))
        else:
            self._message(method, params, child)

    def _message(self, method: str, params: dict[str, Any], child: str | None) -> None:
        message = messages.parse_message(method, params, self.limits.record_text)
        # A debugger that reattaches receives old messages again.
        if message is None or message.at <= self._horizon:
            return
        self._newest = max(self._newest, message.at)
        self._messages += 1
        last = self.console.last_uncleared()
        if last is not None and last.repeats(message):
            last.times += 1
            last.n = self._messages
        else:
            message.n, message.page, message.child = self._messages, self.traffic.page, child is not None
            self.console.add(message)

    def _navigated(self, frame: dict[str, Any], child: str | None) -> None:
        if child is not None or not frame or frame.get("parentId"):
            return
        frame_id, loader = parse_text(frame.get("id"), 100), parse_text(frame.get("loaderId"), 100)
        self.traffic.document_opened(frame_id, loader, first=not self.pages)
        self.pages.append((self.traffic.page, parse_url(frame.get("url"))))

    def resize(self, *, requests: int | None = None, frames: int | None = None, console: int | None = None) -> None:
        """Set how many entries are kept; None is the usual number."""
        self.traffic.requests.resize(requests or self.limits.record_requests)
        self.traffic.frames.resize(frames or self.limits.record_frames)
        self.console.resize(console or self.limits.record_console)

    def start_capture(self, capture: Capture, finished: Callable[[Request], None], **most: int | None) -> None:
        self.capture = capture
        self.traffic.start_capture(url_matcher(capture.url_filter) if capture.url_filter else None, finished)
        self.resize(**most)

    def stop_capture(self) -> None:
        self.capture = None
        self.traffic.stop_capture()
        self.resize()

    def watching_started(self, url: str, now: float) -> None:
        if self.off_since is not None:
            self.missed += now - self.off_since
            self.off_since = None
        if not self.pages:
            self.pages.append((self.traffic.page, parse_url(url)))

    def watching_ended(self, now: float) -> None:
        self._horizon = self._newest
        if self.off_since is None:
            self.off_since = now


class Recorder:
    """The records of all tabs in use."""

    def __init__(self, browsers: Browsers, watch: TabWatch, *, wall: Callable[[], float] = time.time) -> None:
        self._browsers = browsers
        self._watch = watch
        self._wall = wall
        self._records: dict[TabKey, TabRecord] = {}
        self._events = 0
        watch.subscribe(_INTEREST, self._on_event)
        browsers.drop_with_tab(self._records)

    def tab_record(self, key: TabKey) -> TabRecord:
        if key not in self._records:
            self._records[key] = TabRecord(self._browsers.limits, self._wall())
        return self._records[key]

    async def refreshed_record(self, page: Page) -> TabRecord:
        """The record of a tab with all events up to now; if the page cannot answer, what has arrived so far."""
        record = self.tab_record(page.key)
        if page.dialog is not None and record.last_event > record.since:
            return record
        try:
            # It changes nothing; its reply comes after all pending events.
            async with asyncio.timeout(_CAUGHT_UP):
                await page.cdp("Log.enable")
        except TimeoutError:
            pass
        except CommandFailed:
            if record.last_event <= record.since:
                raise
        else:
            record.watching_started(page.tab.url, self._wall())
        return record

    def start_capture(self, page: Page, session: Any, url_filter: str, **most: int | None) -> TabRecord:
        """Keep recording a tab while it is idle, and keep bodies; `most` overrides the usual limits."""
        record = self.tab_record(page.key)
        fetch_body = partial(self._fetch_body, page.key, record.traffic)
        record.start_capture(Capture(session, url_filter), fetch_body, **most)
        self._watch.hold(page.key, _HOLD)
        return record

    def stop_capture(self, key: TabKey) -> TabRecord:
        record = self.tab_record(key)
        record.stop_capture()
        self._watch.release(key, _HOLD)
        return record

    def end_session(self, session: Any) -> None:
        for key, record in list(self._records.items()):
            if record.capture is not None and record.capture.session is session:
                self.stop_capture(key)

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        record = self._records.get(key)
        if method == "detached":
            if record is not None:
                record.watching_ended(self._wall())
            return
        now = self._wall()
        if record is None or record.off_since is not None:
            record = self.tab_record(key)
            tab = self._browsers.book.find(key[0].browser_id, key[1])
            record.watching_started(tab.url if tab is not None else "", now)
        record.handle_event(method, params, child, now)
        self._events += 1
        if self._events % _TRIM_INTERVAL == 0:
            self._trim()

    def _trim(self) -> None:
        """Keep the total size of all records within its limit."""
        weights = {key: sum(ring.weight for ring in record.rings) for key, record in self._records.items()}
        total = sum(weights.values())
        for key in sorted(weights, key=lambda key: self._records[key].last_event):
            if total <= self._browsers.limits.record_all:
                return
            total -= weights[key]
            for ring in self._records[key].rings:
                ring.drop_all()
            # A captured record continues and reports how much was dropped.
            if self._records[key].capture is None:
                del self._records[key]

    def _fetch_body(self, key: TabKey, record: Traffic, request: Request) -> None:
        """Fetch a body before the page navigates and it is lost."""
        most = self._browsers.limits.captured_body
        if request.kind not in _BODY_KINDS or request.size > most:
            return
        session, request_id = request.key

        def done(future: Future[Any]) -> None:
            # Fails for a request without a body and after the page navigated.
            if future.cancelled() or future.exception() is not None:
                return
            answer = parse_object(future.result())
            body = answer.get("body")
            if type(body) is str and len(body) <= most * 2 and record.find(request.id) is request:
                record.add_body(request, body, base64=answer.get("base64Encoded") is True)

        sent = send_cdp(key, "Network.getResponseBody", {"requestId": request_id}, session)
        if sent is not None:
            sent.add_done_callback(done)


def url_matcher(text: str) -> Callable[[str], bool]:
    """A test for URLs: contains the text or, if the text has a `*`, matches it as a whole."""
    first, *rest = text.split("*")
    if not rest:
        return lambda url: text in url
    last = rest.pop()

    def fits(url: str) -> bool:
        at, end = len(first), len(url) - len(last)
        if not url.startswith(first) or not url.endswith(last) or end < at:
            return False
        for part in rest:
            found = url.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    return fits
