"""Requests with their responses and WebSocket frames, built from a tab's network events.

Owns this bounded model of CDP's Network domain. It sends nothing, reads no clock and knows no tool: the wall time is
passed in, and while capture is on, requests that have ended are reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tabhub.browser.driver.cdp_values import (
    headers_size,
    parse_headers,
    parse_initiator,
    parse_int,
    parse_number,
    parse_object,
    parse_text,
    parse_url,
)
from tabhub.browser.record.ring import Ring

Params = dict[str, Any]
_Key = tuple[str | None, str]
_MAX_TEXT = 300
_BODY = 65_536
"""Bytes of a request body that are kept; the browser sends no more."""
ENABLE = ("Network.enable", {"maxPostDataSize": _BODY})
_MAX_HOPS, _MAX_EARLY = 25, 200
_NOT_MODIFIED = 304
ABANDONED = "aborted: its page, frame or worker is gone"


@dataclass(slots=True, eq=False)
class Request:
    """One request and its outcome; each redirect is a request of its own."""

    n: int
    key: _Key
    """The child session that has the response, and the browser's request id."""
    page: int
    method: str
    url: str
    kind: str
    at: float
    """Wall time, in seconds."""
    begun: float
    """In the browser's monotonic clock, like `answered` and `ended`."""
    request_headers: dict[str, str]
    body: str | None = None
    has_body: bool = False
    initiator: str = ""
    document: str = ""
    """The URL of the document that it belongs to."""
    status: int = 0
    status_text: str = ""
    mime: str = ""
    protocol: str = ""
    address: str = ""
    response_headers: dict[str, str] = field(default_factory=dict)
    timing: dict[str, float] = field(default_factory=dict)
    cached: str = ""
    answered: float | None = None
    ended: float | None = None
    size: int = 0
    """Bytes received, headers included."""
    head: int = 0
    """Bytes of the headers alone."""
    error: str = ""
    redirect: str = ""
    abandoned: bool = False
    """Whether its page, frame or worker went away before it ended; no more events follow."""
    has_sent_headers: bool = False
    """Whether the headers are those actually sent."""
    has_response_headers: bool = False
    captured_body: str | None = None
    captured_base64: bool = False
    weight: int = 0

    @property
    def id(self) -> str:
        return f"r{self.n}"

    @property
    def milliseconds(self) -> float | None:
        """Duration, once it has ended; unknown for a WebSocket without a handshake."""
        return None if self.ended is None or not self.begun else max(0.0, self.ended - self.begun) * 1000


@dataclass(slots=True, eq=False)
class WebSocketFrame:
    """One frame of a WebSocket."""

    n: int
    socket: str
    """The id of its request."""
    sent: bool
    at: float
    opcode: int
    data: str
    """Text, or base64 where the opcode is not 1."""
    length: int
    weight: int


class Traffic:
    """The requests and WebSocket frames of one tab."""

    def __init__(self, requests: int, frames: int, most_bytes: int, text: int) -> None:
        self.requests: Ring[Request] = Ring(requests, most_bytes, self._forget)
        self.frames: Ring[WebSocketFrame] = Ring(frames, most_bytes // 2)
        self._wanted: Callable[[str], bool] | None = None
        """Which URLs are recorded; None for all."""
        self._finished: Callable[[Request], None] | None = None
        self.page = 1
        self.main_frame = ""
        self._count = count(1)
        self._text = text
        self._hops: dict[_Key, list[Request]] = {}
        self._keys: dict[str, _Key] = {}
        """By request id: a request may continue in another session, which then has the document or worker."""
        self._early: dict[str, list[tuple[bool, Params]]] = {}

    def handle_event(self, method: str, params: Params, session: str | None, now: float) -> None:
        request_id = params.get("requestId")
        if type(request_id) is not str:
            return
        key = (session, request_id)
        if (change := _CHANGES.get(method)) is not None:
            if (request := self._current(key)) is not None:
                change(self, request, params)
        elif (handler := _HANDLERS.get(method)) is not None:
            handler(self, key, params, now)

    def find(self, request_id: str) -> Request | None:
        return next((request for request in self.requests if request.id == request_id), None)

    def by_network_id(self, session: str | None, network_id: str) -> Request | None:
        """The last request with this id of the browser."""
        hops = self._hops.get((session, network_id)) or self._elsewhere(network_id)
        return hops[-1] if hops else None

    def start_capture(self, wanted: Callable[[str], bool] | None, finished: Callable[[Request], None]) -> None:
        """Record only URLs that are `wanted`, and call `finished` with each request that has ended."""
        self._wanted, self._finished = wanted, finished

    def stop_capture(self) -> None:
        self._wanted = self._finished = None

    def add_body(self, request: Request, body: str, *, base64: bool) -> None:
        request.captured_body, request.captured_base64 = body, base64
        self.requests.grow(request, len(body))

    def document_opened(self, frame: str, loader: str, *, first: bool) -> None:
        """A new document: requests of its loader belong to its page, earlier ones are abandoned."""
        self.main_frame = frame
        if not first:
            self.page += 1
        for hop in self._hops.get((None, loader), ()):
            hop.page = self.page
        self._leave(lambda request: request.page < self.page)

    def session_detached(self, session: Any) -> None:
        """A frame in another process or a worker is gone: its requests are abandoned."""
        self._leave(lambda request: request.key[0] == session)

    def _leave(self, which: Callable[[Request], bool]) -> None:
        for request in self.requests:
            if request.ended is None and not request.error and which(request):
                request.abandoned = True
                request.error = ABANDONED if request.answered is None else ""

    def _elsewhere(self, request_id: str) -> list[Request]:
        key = self._keys.get(request_id)
        return [] if key is None else self._hops.get(key, [])

    def _current(self, key: _Key) -> Request | None:
        hops = self._hops.get(key)
        if hops is None and (hops := self._elsewhere(key[1])):
            self._hops[key] = self._hops.pop(self._keys[key[1]])
            self._keys[key[1]] = key
            for hop in hops:
                hop.key = key
        return hops[-1] if hops else None

    def _sent(self, key: _Key, params: Params, now: float) -> None:
        sent = parse_object(params.get("request"))
        url = parse_url(sent.get("url"))
        hops = self._hops.get(key)
        if hops and isinstance(answer := params.get("redirectResponse"), dict):
            before = hops[-1]
            self._answer(before, answer)
            before.redirect = url
            before.ended = before.answered = parse_number(params.get("timestamp"))
            before.size = before.head
            before.has_response_headers = before.has_response_headers or params.get("redirectHasExtraInfo") is False
        if not hops and "redirectResponse" in params:
            self._skip(key)
        if self._wanted is not None and not self._wanted(url):
            return
        loads = key[0] is None and params.get("loaderId") == key[1] and params.get("type") == "Document"
        opens = loads and self.main_frame in ("", params.get("frameId"))
        body = sent.get("postData")
        wall = params.get("wallTime")
        request = Request(
            n=next(self._count),
            key=key,
            page=self.page + 1 if opens and self.main_frame else self.page,
            method=parse_text(sent.get("method"), 20),
            url=url,
            kind=parse_text(params.get("type"), 30).lower() or "other",
            at=parse_number(wall) or now,
            begun=parse_number(params.get("timestamp")),
            request_headers=parse_headers(sent.get("headers")),
            body=body[:_BODY] if type(body) is str else None,
            has_body=sent.get("hasPostData") is True or type(body) is str,
            initiator=parse_initiator(params.get("initiator")),
            document=parse_url(params.get("documentURL")),
        )
        self._add(key, request)

    def _skip(self, key: _Key) -> None:
        """Drop early events of a redirect step that is not recorded, up to its response."""
        early = self._early.get(key[1], [])
        del early[: next((n for n, (answer, _) in enumerate(early, 1) if answer), 0)]

    def _add(self, key: _Key, request: Request) -> None:
        request.weight = 800 + len(request.url) + len(request.body or "") + headers_size(request.request_headers)
        hops = self._hops.setdefault(key, [])
        self._keys[key[1]] = key
        if len(hops) < _MAX_HOPS:
            hops.append(request)
        self.requests.add(request)
        for answer, params in self._early.pop(key[1], ()):
            self._extra(key, params, answer=answer)

    def _extra(self, key: _Key, params: Params, *, answer: bool) -> None:
        """The headers actually sent or received, cookies included; may arrive before the request's own event."""
        for request in self._hops.get(key) or self._elsewhere(key[1]):
            if answer and not request.has_response_headers:
                request.has_response_headers = True
                request.response_headers = self._grown(request, request.response_headers, params)
                if not request.status or parse_int(params.get("statusCode")) == _NOT_MODIFIED:
                    self._status(request, params.get("statusCode"), "")
                return
            if not answer and not request.has_sent_headers:
                request.has_sent_headers = True
                request.request_headers = self._grown(request, request.request_headers, params)
                return
        early = self._early.setdefault(key[1], [])
        if len(early) < _MAX_HOPS:
            early.append((answer, params))
        if len(self._early) > _MAX_EARLY:
            del self._early[next(iter(self._early))]

    def _grown(self, request: Request, before: dict[str, str], params: Params) -> dict[str, str]:
        now = parse_headers(params.get("headers"))
        self.requests.grow(request, headers_size(now) - headers_size(before))
        return now

    def _answer(self, request: Request, answer: Params) -> None:
        self._status(request, answer.get("status"), parse_text(answer.get("statusText"), 100))
        request.head = parse_int(answer.get("encodedDataLength"))
        request.mime = parse_text(answer.get("mimeType"), 100)
        request.protocol = parse_text(answer.get("protocol"), 20)
        place, port = parse_text(answer.get("remoteIPAddress"), 60), parse_int(answer.get("remotePort"))
        request.address = f"{place}:{port}" if place and port else place
        timing = list(parse_object(answer.get("timing")).items())[:40]
        request.timing = {str(k)[:40]: parse_number(v) for k, v in timing if type(v) in (int, float)}
        for fact, word in (("fromDiskCache", "disk cache"), ("fromServiceWorker", "service worker")):
            if answer.get(fact) is True:
                request.cached = word
        if not request.has_response_headers:
            request.response_headers = self._grown(request, request.response_headers, answer)

    @staticmethod
    def _status(request: Request, status: Any, text: str) -> None:
        """Prefer 304: for a revalidated response the browser reports the cached status, too."""
        if parse_int(status) == _NOT_MODIFIED:
            request.status, request.status_text = _NOT_MODIFIED, "Not Modified"
        elif request.status != _NOT_MODIFIED:
            request.status, request.status_text = parse_int(status), text

    def _answered(self, request: Request, params: Params) -> None:
        self._answer(request, parse_object(params.get("response")))
        request.kind = parse_text(params.get("type"), 30).lower() or request.kind
        request.answered = parse_number(params.get("timestamp"))

    def _from_cache(self, request: Request, params: Params) -> None:
        request.cached = "memory cache"

    def _ended(self, request: Request, params: Params) -> None:
        request.ended = parse_number(params.get("timestamp"))
        request.size = parse_int(params.get("encodedDataLength"))
        request.error = "" if request.error == ABANDONED else request.error
        if self._finished is not None:
            self._finished(request)

    def _failed(self, request: Request, params: Params) -> None:
        request.ended = parse_number(params.get("timestamp"))
        cors = parse_object(params.get("corsErrorStatus")).get("corsError")
        canceled = "cancelled" if params.get("canceled") is True else ""
        given = (params.get("errorText"), params.get("blockedReason"), cors, canceled)
        request.error = ", ".join(filter(None, (parse_text(reason, _MAX_TEXT) for reason in given))) or "failed"

    def _socket(self, key: _Key, params: Params, now: float) -> None:
        url, cause = parse_url(params.get("url")), parse_initiator(params.get("initiator"))
        if self._wanted is None or self._wanted(url):
            request = Request(next(self._count), key, self.page, "GET", url, "websocket", now, 0.0, {}, initiator=cause)
            self._add(key, request)

    def _handshake(self, request: Request, params: Params) -> None:
        request.begun = parse_number(params.get("timestamp"))
        if not request.has_sent_headers:
            request.request_headers = self._grown(request, {}, parse_object(params.get("request")))

    def _frame(self, key: _Key, params: Params, now: float, *, sent: bool) -> None:
        frame, request = parse_object(params.get("response")), self._current(key)
        if request is None and self._wanted is not None:
            return
        data = frame.get("payloadData")
        text = data if type(data) is str else ""
        cut = text[: self._text]
        socket = request.id if request is not None else ""
        opcode = parse_int(frame.get("opcode"))
        length = len(text) if opcode == 1 else len(text) * 3 // 4 - text[-2:].count("=")
        self.frames.add(WebSocketFrame(next(self._count), socket, sent, now, opcode, cut, length, 200 + len(cut)))

    def _socket_failed(self, request: Request, params: Params) -> None:
        request.error = parse_text(params.get("errorMessage"), _MAX_TEXT)

    def _forget(self, request: Request) -> None:
        hops = self._hops.get(request.key)
        if hops is not None and request in hops:
            hops.remove(request)
            if not hops:
                del self._hops[request.key]
                self._keys.pop(request.key[1], None)


_CHANGES: dict[str, Callable[[Traffic, Request, Params], None]] = {
    "Network.responseReceived": Traffic._answered,
    "Network.requestServedFromCache": Traffic._from_cache,
    "Network.loadingFinished": Traffic._ended,
    "Network.loadingFailed": Traffic._failed,
    "Network.webSocketWillSendHandshakeRequest": Traffic._handshake,
    "Network.webSocketHandshakeResponseReceived": Traffic._answered,
    "Network.webSocketFrameError": Traffic._socket_failed,
    "Network.webSocketClosed": Traffic._ended,
}
"""Events of a request that is recorded."""
_HANDLERS: dict[str, Callable[[Traffic, _Key, Params, float], None]] = {
    "Network.requestWillBeSent": Traffic._sent,
    "Network.requestWillBeSentExtraInfo": lambda traffic, key, params, _: traffic._extra(key, params, answer=False),
    "Network.responseReceivedExtraInfo": lambda traffic, key, params, _: traffic._extra(key, params, answer=True),
    "Network.webSocketCreated": Traffic._socket,
    "Network.webSocketFrameSent": lambda traffic, key, params, now: traffic._frame(key, params, now, sent=True),
    "Network.webSocketFrameReceived": lambda traffic, key, params, now: traffic._frame(key, params, now, sent=False),
}
EVENTS = (*_CHANGES, *_HANDLERS)
