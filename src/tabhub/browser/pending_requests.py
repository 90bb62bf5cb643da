"""The requests of a tab that are under way, and its latest responses: what waiting tools wait for.

Records for agents to read are kept in `record/`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

from tabhub.browser.driver.cdp_values import parse_int, parse_object, parse_text

_OPEN_ENDED = ("EventSource", "WebSocket", "Ping", "Preflight", "Media")
"""Requests that never end, or that no wait should include."""
_MOST = 1000
_CALLS = ("XHR", "Fetch", "Script")
_UNREAD = 0.5
_KEPT = 200
_MAX_URL = 2000
Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Response:
    """A response to a request of the page."""

    at: float
    url: str
    method: str
    status: int
    mime: str


@dataclass(slots=True)
class _PendingRequest:
    """A request under way."""

    url: str
    method: str
    loader: str
    begun: float
    is_call: bool = False
    """Whether a script made it: its answer usually changes the page."""
    answered: float | None = None

    def ends(self, now: float) -> float | None:
        """When it ended, if it has. If a page does not read a response, the browser never reports its end."""
        return self.answered + _UNREAD if self.answered is not None and now - self.answered >= _UNREAD else None


class PendingRequests:
    """The requests of one tab."""

    def __init__(self, now: float) -> None:
        self.pending: dict[tuple[str | None, str], _PendingRequest] = {}
        self.acted = 0.0
        """When the last action or page load began."""
        self._called = -inf
        """When a script last made a request."""
        self._moved = now
        """When a request last began or ended."""
        self._responses: deque[Response] = deque(maxlen=_KEPT)
        self._news = asyncio.Event()

    def quiet(self, now: float) -> tuple[float, list[str]]:
        """Seconds without a pending request, and the URLs of pending ones."""
        ends = [(request.url, request.ends(now)) for request in self.pending.values()]
        pending = [url for url, end in ends if end is None]
        last = max([self._moved, *(end for _, end in ends if end is not None)])
        return (0.0 if pending else now - last), pending

    @property
    def called(self) -> bool:
        """Whether a script has made a request since the last action in the tab began."""
        return self._called >= self.acted

    @property
    def calling(self) -> bool:
        """Whether one of these requests is under way."""
        return any(request.is_call and request.begun >= self.acted for request in self.pending.values())

    def responses(self) -> list[Response]:
        """Those since the last action in the tab began."""
        return [response for response in self._responses if response.at >= self.acted]

    async def wait_for_event(self, limit: float) -> None:
        """Wait until a request starts, is answered or ends, at most `limit` seconds."""
        self._news.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), limit)

    def handle_event(self, now: float, method: str, params: Params, child: str | None, *, acting: bool) -> None:
        """Handle one event of the tab; `acting`: an action runs, whose beginning counts rather than the page load's."""
        if method.startswith("Network."):
            self._handle_request(now, method, params, child)
        elif method == "Target.detachedFromTarget":
            self._session_ended(params.get("sessionId"), now)
        elif method == "Page.frameNavigated" and child is None and isinstance(frame := params.get("frame"), dict):
            self._frame_navigated(frame, now, acting=acting)

    def _handle_request(self, now: float, method: str, params: Params, child: str | None) -> None:
        key = (child, str(params.get("requestId"))[:200])
        if method != "Network.requestWillBeSent" and key not in self.pending:
            # Another process may report the rest, once the document or worker lives there.
            key = next((known for known in self.pending if known[1] == key[1]), key)
        if method == "Network.requestWillBeSent":
            request = parse_object(params.get("request"))
            url, verb = parse_text(request.get("url"), _MAX_URL), parse_text(request.get("method"), 20)
            kind = params.get("type")
            if kind in _OPEN_ENDED or url[:5] == "data:" or len(self.pending) >= _MOST:
                return
            if kind in _CALLS:
                self._called = now
            self.pending[key] = _PendingRequest(url, verb, str(params.get("loaderId")), now, kind in _CALLS)
        elif method == "Network.responseReceivedExtraInfo":
            # No further events follow for a shared worker.
            if (flight := self.pending.get(key)) is not None:
                flight.answered = now
        elif method == "Network.responseReceived":
            response, verb = parse_object(params.get("response")), "GET"
            if (flight := self.pending.get(key)) is not None:
                flight.answered, verb = now, flight.method
            url, mime = parse_text(response.get("url"), _MAX_URL), parse_text(response.get("mimeType"), 100)
            self._responses.append(Response(now, url, verb, parse_int(response.get("status")), mime))
        else:
            self.pending.pop(key, None)
        self._moved = now
        self._news.set()

    def _session_ended(self, session: Any, now: float) -> None:
        """A frame in another process or a worker is gone with its requests; no events report their end."""
        remaining = {key: request for key, request in self.pending.items() if key[0] != session}
        if len(remaining) < len(self.pending):
            self.pending, self._moved = remaining, now
            self._news.set()

    def _frame_navigated(self, frame: Params, now: float, *, acting: bool) -> None:
        if frame.get("parentId"):
            return
        # The tab shows another document: requests of the previous one no longer count.
        loader = str(frame.get("loaderId"))
        opening = self.pending.get((None, loader))
        if not acting:
            self.acted = max(self.acted, opening.begun if opening is not None else now)
        self.pending = {key: request for key, request in self.pending.items() if request.loader == loader}
