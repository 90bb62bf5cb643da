"""The stdio server's mind: an MCP client's messages wrapped for the daemon, what comes back unwrapped, in both eras.

Owns the session with the hub, which request runs under which id, and what becomes of all that when the hub goes away
and comes back. It is handed lines and ways to write lines, and told the time; it opens nothing and waits for nothing.
"""

from __future__ import annotations

import json
import os
import re
import sys

from tabhub.cli.stdio.messages import (
    HUB_GONE,
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
from tabhub.cli.stdio.session_replay import Introduction
from tabhub.client_errors import BridgeProtocolError, NotJson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

PATIENCE = 5.0
"""Seconds a call waits for a hub that is down."""
_BATCHES = "2025-03-26"
"""The one revision that has batches."""
_LISTEN = "subscriptions/listen"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_SESSION_NOT_FOUND = -32012
_DOWN = "The hub is not running. Start it with: tabhub start --background"
_SILENT = "The hub runs, but does not answer. `tabhub doctor` looks why; `tabhub stop --force` ends it."
_LOST = "The connection to the hub ended before it had answered. What was asked may have happened."
_LISTS = ("tools", "resources", "prompts")
# As the hub writes a good answer: its result is passed on without being read.
_RESPONSE = re.compile(rb'\{"type":"RESPONSE","id":"([0-9a-f]+:[0-9]+)","success":true,"data":')


class _Batch:
    """Answers that leave together."""

    __slots__ = ("answers", "owed")

    def __init__(self) -> None:
        self.answers: list[bytes] = []
        self.owed = 0


class _Pending:
    """A request that has no answer yet; `request` is None for one of our own, whose answer nobody gets."""

    __slots__ = ("batch", "heard", "method", "params", "request", "until")

    def __init__(self, request: Request | None, method: str, params: bytes, batch: _Batch | None = None) -> None:
        self.request = request
        self.method = method
        self.params = params
        self.batch = batch
        self.until: float | None = None
        self.heard = False
        """Whether a subscription has been acknowledged."""


class Bridge:
    """One client's way to the hub."""

    def __init__(self, say: Callable[[bytes], None], *, surface: str = "all", tools: str | None = None) -> None:
        self._say = say
        self._wanted = {"surface": surface} if tools is None else {"surface": surface, "tools": tools}
        self._send: Callable[[bytes], None] | None = None
        self._up = False
        self._refusal: str | None = None
        self._patience = PATIENCE
        self._session: str | None = None
        self._count = 0
        self._running: dict[str, _Pending] = {}
        self._waiting: list[_Pending | Notification] = []
        self._ids: dict[str | int, _Pending] = {}
        self._asked: set[str | int] = set()
        self._told = Introduction()
        self._version: str | None = None
        self._read = {"tools"}
        """The lists the client may know; that of tools is one that all do."""

    # the connection

    def connected(self, send: Callable[[bytes], None], token: str | None) -> None:
        """There is a connection: register, or resume the session."""
        self._send = send
        self._refusal = None
        hello: dict[str, Any] = {"type": "REGISTER", **self._wanted}
        if self._session is not None:
            hello["sessionId"] = self._session
        if token is not None:
            hello["token"] = token
        if agent := os.environ.get("TABHUB_TOKEN", "").strip():
            hello["agentToken"] = agent
        send(json.dumps(hello).encode() + b"\n")

    def lost(self, now: float) -> None:
        """The connection closed. Pending calls may have run; read-only ones are repeated after reconnecting."""
        self._send, self._up = None, False
        self._asked.clear()
        running, self._running = self._running, {}
        again: list[_Pending | Notification] = []
        for pending in running.values():
            if pending.method == "tools/call":
                self._finish(pending, error_body(HUB_GONE, _LOST, outcome="unknown"))
            elif pending.request is not None:
                again.append(self._patient(pending, now))
        self._waiting = again + self._waiting

    def goodbye(self) -> None:
        if self._send is not None:
            self._send(b'{"type":"DISCONNECT"}\n')

    @property
    def idle(self) -> bool:
        """Whether no request is pending; subscriptions do not count."""
        return all(pending.method == _LISTEN for pending in self._ids.values())

    def deadline(self) -> float | None:
        """When `tick` has something to do."""
        return min((p.until for p in self._waiting if isinstance(p, _Pending) and p.until is not None), default=None)

    def tick(self, now: float) -> None:
        """Fail requests whose time is over."""
        late = [p for p in self._waiting if isinstance(p, _Pending) and p.until is not None and p.until <= now]
        for pending in late:
            self._waiting.remove(pending)
            why = self._refusal or (_DOWN if self._send is None else _SILENT)
            self._finish(pending, error_body(HUB_GONE, why, outcome="not_sent"))

    # what the client says

    def client_line(self, line: bytes, now: float) -> None:
        """Handle one line from the client."""
        if not line.strip():
            return
        try:
            found = read(line)
        except NotJson:
            self._say(answer(b"null", error_body(PARSE_ERROR, "Not valid JSON.")))
            return
        if not isinstance(found, list):
            self._take(found, None, now)
        elif problem := self._batch_problem(found):
            owed = [message.ident for message in found if isinstance(message, Request)] or [b"null"]
            for ident in owed:
                self._say(answer(ident, error_body(INVALID_REQUEST, problem)))
        else:
            batch = _Batch()
            batch.owed = 1  # until all of it has been taken
            for message in found:
                self._take(message, batch, now)
            self._settle(batch)

    def too_long(self, size: int) -> None:
        """A line was longer than any message may be, and was dropped."""
        text = f"The message is longer than {size} bytes and was not read."
        self._say(answer(b"null", error_body(INVALID_REQUEST, text)))

    def _batch_problem(self, batch: list[Message]) -> str | None:
        if self._version != _BATCHES:
            return f"Batches are not part of MCP {self._version or 'without a handshake'}. Send one message at a time."
        if not batch:
            return "A batch must not be empty."
        if any(isinstance(message, Request) and message.method == "initialize" for message in batch):
            return "`initialize` must not be part of a batch."
        return None

    def _take(self, message: Message, batch: _Batch | None, now: float) -> None:
        if isinstance(message, Request):
            self._request(message, batch, now)
        elif isinstance(message, Invalid):
            if batch is not None:
                batch.owed += 1
            self._reply(message.ident, error_body(INVALID_REQUEST, message.why), batch)
        elif isinstance(message, Answer):
            if message.key in self._asked:
                self._asked.discard(message.key)
                self._event(b'"answer"', message.body)
        elif message.method == "notifications/cancelled":
            self._cancelled(message.value.get("requestId"))
        else:
            self._told.ready = self._told.ready or message.method == "notifications/initialized"
            self._pass_on(message)

    def _request(self, request: Request, batch: _Batch | None, now: float) -> None:
        if batch is not None:
            batch.owed += 1
        if request.key in self._ids:
            text = f"A request with id {request.ident.decode()} is still in flight."
            self._reply(request.ident, error_body(INVALID_REQUEST, text), batch)
            return
        pending = self._ids[request.key] = _Pending(request, request.method, request.params, batch)
        if request.method.endswith("/list"):
            self._read.add(request.method.partition("/")[0])
        if request.method == "initialize":
            self._told, self._version = Introduction(request.params), None
        if self._up:
            self._forward(pending)
        else:
            self._waiting.append(self._patient(pending, now))

    def _pass_on(self, message: Notification) -> None:
        if self._up:
            self._event(json.dumps(message.method).encode(), message.params)
        elif message.method == "notifications/initialized":
            self._waiting.append(message)  # all else is news that will be old

    def _cancelled(self, key: Any) -> None:
        """Cancel a request. According to MCP, a cancelled request is not answered."""
        pending = self._ids.pop(key, None) if isinstance(key, str | int) else None
        if pending is None:
            return
        if pending in self._waiting:
            self._waiting.remove(pending)
        for rid in [rid for rid, running in self._running.items() if running is pending]:
            del self._running[rid]
            if self._send is not None:
                self._send(b'{"type":"CANCEL","id":"%b"}\n' % rid.encode())
        if pending.batch is not None:
            self._settle(pending.batch)

    # to the hub

    def _patient(self, pending: _Pending, now: float) -> _Pending:
        pending.until = None if pending.method == _LISTEN else now + self._patience
        return pending

    def _forward(self, pending: _Pending) -> None:
        assert self._send is not None  # noqa: S101 - the callers look
        self._count += 1
        rid = f"{self._session}:{self._count}"
        self._running[rid] = pending
        action = json.dumps(pending.method).encode()
        ids = b'"id":"%b","sessionId":"%b"' % (rid.encode(), str(self._session).encode())
        self._send(b'{"type":"REQUEST",%b,"action":%b,"params":%b}\n' % (ids, action, pending.params))

    def _event(self, name: bytes, params: bytes) -> None:
        if self._send is not None and self._up:
            session = str(self._session).encode()
            self._send(b'{"type":"EVENT","sessionId":"%b","event":%b,"params":%b}\n' % (session, name, params))

    # what the hub says

    def hub_line(self, line: bytes, now: float) -> None:
        """Take one line from the hub; BridgeProtocolError if it is none of a hub's."""
        good = _RESPONSE.match(line)
        if good is not None:
            self._response(good[1].decode(), b'"result":' + line[good.end() : -1])
            return
        try:
            value = json.loads(line)
            kind = value["type"]
            if kind == "EVENT":
                self._heard(value)
            elif kind == "RESPONSE":
                name = "result" if value["success"] else "error"
                content = value["data"] if value["success"] else value["error"]
                self._response(value["id"], f'"{name}":{json.dumps(content)}'.encode())
            elif kind == "ERROR":
                self._refused(value.get("id"), value["error"], now)
            elif kind == "REGISTER_OK":
                self._registered(value["sessionId"], initialized=value["initialized"] is True)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BridgeProtocolError(f"{error!r} in {line[:200]!r}") from None

    def _response(self, rid: str, body: bytes) -> None:
        pending = self._running.pop(rid, None)
        if pending is None:
            return  # it was taken back
        if pending.method == "initialize":
            self._greeted(body)
        elif body.startswith(b'"result"'):
            self._told.agreed(pending.method, pending.params)
        self._finish(pending, body)

    def _greeted(self, body: bytes) -> None:
        result = json.loads(b"{%b}" % body).get("result")
        version = result.get("protocolVersion") if isinstance(result, dict) else None
        self._version = version if isinstance(version, str) else None
        if self._version is None:
            self._told.hello = None

    def _heard(self, value: dict[str, Any]) -> None:
        """Something the hub says unasked: a notification, or a question to the client."""
        said: dict[str, Any] = {"jsonrpc": "2.0", "method": value["event"], "params": value["params"]}
        if "ask" in value:
            self._asked.add(value["ask"])
            said["id"] = value["ask"]
        elif "id" in value:
            pending = self._running.get(value["id"])
            if pending is None or pending.request is None:
                return
            if pending.method == _LISTEN:
                said["params"] = {**value["params"], "_meta": {_SUBSCRIPTION: pending.request.key}}
                if value["event"] == "notifications/subscriptions/acknowledged":
                    if pending.heard:  # it was to an earlier hub; this one may have others
                        honoured = value["params"]["notifications"]
                        meta = {"_meta": {_SUBSCRIPTION: pending.request.key}}
                        self._tell_anew([kind for kind in _LISTS if honoured.get(f"{kind}ListChanged")], meta)
                        return
                    pending.heard = True
        self._say(json.dumps(said).encode())

    def _refused(self, rid: str | None, error: dict[str, Any], now: float) -> None:
        """A line of ours was not taken."""
        pending = self._running.pop(rid, None) if rid is not None else None
        if pending is not None and error["code"] == _SESSION_NOT_FOUND:
            self._waiting.append(self._patient(pending, now))  # the hub closes now; there will be another session
        elif pending is not None:
            self._finish(pending, f'"error":{json.dumps(error)}'.encode())
        elif not self._up:
            self._refusal = str(error["message"])
            if not error.get("data", {}).get("retryable"):
                self._patience = 0.0  # waiting would not help
                self._waiting = [self._patient(p, now) if isinstance(p, _Pending) else p for p in self._waiting]
            print(f"tabhub: the hub refused the session: {self._refusal}", file=sys.stderr)

    def _registered(self, session: str, *, initialized: bool) -> None:
        self._session = session
        self._up = True
        self._patience = PATIENCE
        if self._told.hello is not None and not initialized and not any(self._greetings()):
            self._introduce()
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            if isinstance(item, _Pending):
                self._forward(item)
            else:
                self._pass_on(item)

    def _greetings(self) -> Iterator[_Pending]:
        return (p for p in self._waiting if isinstance(p, _Pending) and p.method == "initialize")

    def _introduce(self) -> None:
        """Introduce the client to a hub that does not know it, on its behalf."""
        assert self._told.hello is not None  # noqa: S101 - the caller looks
        self._forward(_Pending(None, "initialize", self._told.hello))
        if self._told.ready:
            self._event(b'"notifications/initialized"', b"{}")
            self._tell_anew([kind for kind in _LISTS if kind in self._read])
        for method, params in self._told.requests():
            self._forward(_Pending(None, method, params))

    def _tell_anew(self, kinds: Iterable[str], params: dict[str, Any] | None = None) -> None:
        """Have the client list what another hub may have other ones of."""
        for kind in kinds:
            said: dict[str, Any] = {"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}
            self._say(json.dumps(said if params is None else {**said, "params": params}).encode())

    # to the client

    def _finish(self, pending: _Pending, body: bytes) -> None:
        if pending.request is not None:
            self._ids.pop(pending.request.key, None)
            self._reply(pending.request.ident, body, pending.batch)
        elif body.startswith(b'"error"'):
            print(f"tabhub: {pending.method} was refused by the hub that came back: {body!r}", file=sys.stderr)

    def _reply(self, ident: bytes, body: bytes, batch: _Batch | None) -> None:
        if batch is None:
            self._say(answer(ident, body))
        else:
            batch.answers.append(answer(ident, body))
            self._settle(batch)

    def _settle(self, batch: _Batch) -> None:
        batch.owed -= 1
        if batch.owed == 0 and batch.answers:
            self._say(b"[%b]" % b",".join(batch.answers))
