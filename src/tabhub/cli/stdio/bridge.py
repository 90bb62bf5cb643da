"""Protocol logic of the stdio server: wraps a client's MCP messages for the hub's bridge socket, in both eras.

Owns the session with the hub, the ids of pending requests, and what happens to them when the hub disconnects and comes
back. Does no I/O: it is given lines, functions that write lines, and the time.
"""

from __future__ import annotations

import json
import os
import re
import sys

from tabhub.cli.stdio.messages import (
    HUB_UNAVAILABLE,
    INVALID_REQUEST,
    PARSE_ERROR,
    Answer,
    Invalid,
    Message,
    Notification,
    Request,
    answer,
    error_body,
    read,
)
from tabhub.cli.stdio.session_replay import SessionReplay
from tabhub.client_errors import BridgeProtocolError, NotJson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

HUB_WAIT = 5.0
"""Seconds a request waits for a hub that is down."""
_BATCH_VERSION = "2025-03-26"
"""The only revision with batches."""
_LISTEN = "subscriptions/listen"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_SESSION_NOT_FOUND = -32012
_DOWN = "The hub is not running. Start it with: tabhub start --background"
_NOT_RESPONDING = "The hub is running but does not respond. Run `tabhub doctor`, or end it with `tabhub stop --force`."
_DISCONNECTED = "The hub disconnected before it answered. The call may have taken effect."
_LISTS = ("tools", "resources", "prompts")
# A successful response as the hub writes it: the result is forwarded without parsing.
_RESPONSE = re.compile(rb'\{"type":"RESPONSE","id":"([0-9a-f]+:[0-9]+)","success":true,"data":')


class _Batch:
    """Responses that are sent together, and the number still missing."""

    __slots__ = ("answers", "missing")

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.missing = 0


class _Pending:
    """An unanswered request; `request` is None for a replayed one, whose response is not forwarded."""

    __slots__ = ("acknowledged", "batch", "deadline", "method", "params", "request")

    def __init__(self, request: Request | None, method: str, params: bytes, batch: _Batch | None = None) -> None:
        self.request = request
        self.method = method
        self.params = params
        self.batch = batch
        self.deadline: float | None = None
        self.acknowledged = False
        """Only for subscriptions."""


class Bridge:
    """The connection of one client to the hub."""

    def __init__(self, write: Callable[[bytes], None], *, surface: str = "all", tools: str | None = None) -> None:
        self._write = write
        self._options = {"surface": surface} if tools is None else {"surface": surface, "tools": tools}
        self._send: Callable[[bytes], None] | None = None
        self._ready = False
        self._rejection: str | None = None
        self._wait = HUB_WAIT
        self._session: str | None = None
        self._count = 0
        self._in_flight: dict[str, _Pending] = {}
        self._waiting: list[_Pending | Notification] = []
        self._ids: dict[str | int, _Pending] = {}
        self._hub_requests: set[str | int] = set()
        self._replay = SessionReplay()
        self._version: str | None = None
        self._listed = {"tools"}
        """The kinds of lists the client has read; every client reads the tools."""

    # the connection

    def connected(self, send: Callable[[bytes], None], token: str | None) -> None:
        """Register, or resume the session, on a new connection."""
        self._send = send
        self._rejection = None
        register: dict[str, Any] = {"type": "REGISTER", **self._options}
        if self._session is not None:
            register["sessionId"] = self._session
        if token is not None:
            register["token"] = token
        if agent := os.environ.get("TABHUB_TOKEN", "").strip():
            register["agentToken"] = agent
        send(json.dumps(register).encode() + b"\n")

    def disconnected(self, now: float) -> None:
        """Pending tool calls fail, because they may have run; other requests are repeated after reconnecting."""
        self._send, self._ready = None, False
        self._hub_requests.clear()
        running, self._in_flight = self._in_flight, {}
        repeated: list[_Pending | Notification] = []
        for pending in running.values():
            if pending.method == "tools/call":
                self._finish(pending, error_body(HUB_UNAVAILABLE, _DISCONNECTED, outcome="unknown"))
            elif pending.request is not None:
                repeated.append(self._with_deadline(pending, now))
        self._waiting = repeated + self._waiting

    def disconnect(self) -> None:
        if self._send is not None:
            self._send(b'{"type":"DISCONNECT"}\n')

    @property
    def idle(self) -> bool:
        """Whether no request is pending; subscriptions do not count."""
        return all(pending.method == _LISTEN for pending in self._ids.values())

    def deadline(self) -> float | None:
        """When to call `tick`."""
        return min(
            (p.deadline for p in self._waiting if isinstance(p, _Pending) and p.deadline is not None), default=None
        )

    def tick(self, now: float) -> None:
        """Fail requests that waited too long for the hub."""
        late = [p for p in self._waiting if isinstance(p, _Pending) and p.deadline is not None and p.deadline <= now]
        for pending in late:
            self._waiting.remove(pending)
            why = self._rejection or (_DOWN if self._send is None else _NOT_RESPONDING)
            self._finish(pending, error_body(HUB_UNAVAILABLE, why, outcome="not_sent"))

    # from the client

    def client_line(self, line: bytes, now: float) -> None:
        if not line.strip():
            return
        try:
            found = read(line)
        except NotJson:
            self._write(answer(b"null", error_body(PARSE_ERROR, "Not valid JSON.")))
            return
        if not isinstance(found, list):
            self._handle_message(found, None, now)
        elif problem := self._batch_problem(found):
            owed = [message.ident for message in found if isinstance(message, Request)] or [b"null"]
            for ident in owed:
                self._write(answer(ident, error_body(INVALID_REQUEST, problem)))
        else:
            batch = _Batch()
            batch.missing = 1  # until all messages are handled
            for message in found:
                self._handle_message(message, batch, now)
            self._complete_one(batch)

    def line_too_long(self, size: int) -> None:
        text = f"The message is longer than {size} bytes and was not read."
        self._write(answer(b"null", error_body(INVALID_REQUEST, text)))

    def _batch_problem(self, batch: list[Message]) -> str | None:
        if self._version != _BATCH_VERSION:
            return f"Batches are not part of MCP {self._version or 'without a handshake'}. Send one message at a time."
        if not batch:
            return "A batch must not be empty."
        if any(isinstance(message, Request) and message.method == "initialize" for message in batch):
            return "`initialize` must not be part of a batch."
        return None

    def _handle_message(self, message: Message, batch: _Batch | None, now: float) -> None:
        if isinstance(message, Request):
            self._handle_request(message, batch, now)
        elif isinstance(message, Invalid):
            if batch is not None:
                batch.missing += 1
            self._reply(message.ident, error_body(INVALID_REQUEST, message.why), batch)
        elif isinstance(message, Answer):
            if message.key in self._hub_requests:
                self._hub_requests.discard(message.key)
                self._send_event(b'"answer"', message.body)
        elif message.method == "notifications/cancelled":
            self._cancel(message.value.get("requestId"))
        else:
            self._replay.initialized = self._replay.initialized or message.method == "notifications/initialized"
            self._forward_notification(message)

    def _handle_request(self, request: Request, batch: _Batch | None, now: float) -> None:
        if batch is not None:
            batch.missing += 1
        if request.key in self._ids:
            text = f"A request with id {request.ident.decode()} is still in flight."
            self._reply(request.ident, error_body(INVALID_REQUEST, text), batch)
            return
        pending = self._ids[request.key] = _Pending(request, request.method, request.params, batch)
        if request.method.endswith("/list"):
            self._listed.add(request.method.partition("/")[0])
        if request.method == "initialize":
            self._replay, self._version = SessionReplay(request.params), None
        if self._ready:
            self._send_request(pending)
        else:
            self._waiting.append(self._with_deadline(pending, now))

    def _forward_notification(self, message: Notification) -> None:
        if self._ready:
            self._send_event(json.dumps(message.method).encode(), message.params)
        elif message.method == "notifications/initialized":
            self._waiting.append(message)  # other notifications would be outdated

    def _cancel(self, key: Any) -> None:
        """Cancel a request. According to MCP, a cancelled request is not answered."""
        pending = self._ids.pop(key, None) if isinstance(key, str | int) else None
        if pending is None:
            return
        if pending in self._waiting:
            self._waiting.remove(pending)
        for rid in [rid for rid, running in self._in_flight.items() if running is pending]:
            del self._in_flight[rid]
            if self._send is not None:
                self._send(b'{"type":"CANCEL","id":"%b"}\n' % rid.encode())
        if pending.batch is not None:
            self._complete_one(pending.batch)

    # to the hub

    def _with_deadline(self, pending: _Pending, now: float) -> _Pending:
        pending.deadline = None if pending.method == _LISTEN else now + self._wait
        return pending

    def _send_request(self, pending: _Pending) -> None:
        assert self._send is not None  # noqa: S101 - checked by the callers
        self._count += 1
        rid = f"{self._session}:{self._count}"
        self._in_flight[rid] = pending
        action = json.dumps(pending.method).encode()
        ids = b'"id":"%b","sessionId":"%b"' % (rid.encode(), str(self._session).encode())
        self._send(b'{"type":"REQUEST",%b,"action":%b,"params":%b}\n' % (ids, action, pending.params))

    def _send_event(self, name: bytes, params: bytes) -> None:
        if self._send is not None and self._ready:
            session = str(self._session).encode()
            self._send(b'{"type":"EVENT","sessionId":"%b","event":%b,"params":%b}\n' % (session, name, params))

    # from the hub

    def hub_line(self, line: bytes, now: float) -> None:
        """Raises BridgeProtocolError for a line that no hub sends."""
        good = _RESPONSE.match(line)
        if good is not None:
            self._handle_response(good[1].decode(), b'"result":' + line[good.end() : -1])
            return
        try:
            value = json.loads(line)
            kind = value["type"]
            if kind == "EVENT":
                self._handle_event(value)
            elif kind == "RESPONSE":
                name = "result" if value["success"] else "error"
                content = value["data"] if value["success"] else value["error"]
                self._handle_response(value["id"], f'"{name}":{json.dumps(content)}'.encode())
            elif kind == "ERROR":
                self._handle_error(value.get("id"), value["error"], now)
            elif kind == "REGISTER_OK":
                self._handle_registered(value["sessionId"], initialized=value["initialized"] is True)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BridgeProtocolError(f"{error!r} in {line[:200]!r}") from None

    def _handle_response(self, rid: str, body: bytes) -> None:
        pending = self._in_flight.pop(rid, None)
        if pending is None:
            return  # it was cancelled
        if pending.method == "initialize":
            self._handle_initialize_result(body)
        elif body.startswith(b'"result"'):
            self._replay.record(pending.method, pending.params)
        self._finish(pending, body)

    def _handle_initialize_result(self, body: bytes) -> None:
        result = json.loads(b"{%b}" % body).get("result")
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        self._version = version if isinstance(version, str) else None
        if self._version is None:
            self._replay.initialize_params = None

    def _handle_event(self, value: dict[str, Any]) -> None:
        """A notification or a request from the hub."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": value["event"], "params": value["params"]}
        if "ask" in value:
            self._hub_requests.add(value["ask"])
            message["id"] = value["ask"]
        elif "id" in value:
            pending = self._in_flight.get(value["id"])
            if pending is None or pending.request is None:
                return
            if pending.method == _LISTEN:
                message["params"] = {**value["params"], "_meta": {_SUBSCRIPTION: pending.request.key}}
                if value["event"] == "notifications/subscriptions/acknowledged":
                    if pending.acknowledged:  # by an earlier hub; this one may have other tools
                        honoured = value["params"]["notifications"]
                        meta = {"_meta": {_SUBSCRIPTION: pending.request.key}}
                        self._notify_lists_changed(
                            [kind for kind in _LISTS if honoured.get(f"{kind}ListChanged")], meta
                        )
                        return
                    pending.acknowledged = True
        self._write(json.dumps(message).encode())

    def _handle_error(self, rid: str | None, error: dict[str, Any], now: float) -> None:
        """The hub rejected a line."""
        pending = self._in_flight.pop(rid, None) if rid is not None else None
        if pending is not None and error["code"] == _SESSION_NOT_FOUND:
            self._waiting.append(self._with_deadline(pending, now))  # a new session follows
        elif pending is not None:
            self._finish(pending, f'"error":{json.dumps(error)}'.encode())
        elif not self._ready:
            self._rejection = str(error["message"])
            if not error.get("data", {}).get("retryable"):
                self._wait = 0.0  # a retry would not help
                self._waiting = [self._with_deadline(p, now) if isinstance(p, _Pending) else p for p in self._waiting]
            print(f"tabhub: the hub rejected the session: {self._rejection}", file=sys.stderr)

    def _handle_registered(self, session: str, *, initialized: bool) -> None:
        self._session = session
        self._ready = True
        self._wait = HUB_WAIT
        waiting_initialize = any(isinstance(p, _Pending) and p.method == "initialize" for p in self._waiting)
        if self._replay.initialize_params is not None and not initialized and not waiting_initialize:
            self._replay_session()
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            if isinstance(item, _Pending):
                self._send_request(item)
            else:
                self._forward_notification(item)

    def _replay_session(self) -> None:
        """Repeat the handshake with a hub that does not know the client."""
        assert self._replay.initialize_params is not None  # noqa: S101 - checked by the caller
        self._send_request(_Pending(None, "initialize", self._replay.initialize_params))
        if self._replay.initialized:
            self._send_event(b'"notifications/initialized"', b"{}")
            self._notify_lists_changed([kind for kind in _LISTS if kind in self._listed])
        for method, params in self._replay.requests():
            self._send_request(_Pending(None, method, params))

    def _notify_lists_changed(self, kinds: Iterable[str], params: dict[str, Any] | None = None) -> None:
        """Make the client reload lists that may differ at another hub."""
        for kind in kinds:
            message: dict[str, Any] = {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}
            self._write(json.dumps(message if params is None else {**message, "params": params}).encode())

    # to the client

    def _finish(self, pending: _Pending, body: bytes) -> None:
        if pending.request is not None:
            self._ids.pop(pending.request.key, None)
            self._reply(pending.request.ident, body, pending.batch)
        elif body.startswith(b'"error"'):
            print(f"tabhub: {pending.method} was rejected by the new hub: {body!r}", file=sys.stderr)

    def _reply(self, ident: bytes, body: bytes, batch: _Batch | None) -> None:
        if batch is None:
            self._write(answer(ident, body))
        else:
            batch.answers.append(answer(ident, body))
            self._complete_one(batch)

    def _complete_one(self, batch: _Batch) -> None:
        batch.missing -= 1
        if batch.missing == 0 and batch.answers:
            self._write(b"[%b]" % b",".join(batch.answers))
