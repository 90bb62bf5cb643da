"""Protocol logic of the stdio bridge: wraps a client's MCP messages for the hub's bridge socket, in both eras.

Owns the session with the hub, the ids of pending requests, and what happens to them when the hub hangs, disconnects or
comes back. Does no I/O: it is given lines, functions that write lines, and the time.
"""

from __future__ import annotations

import json
import re
import sys

from tabhub.cli.stdio.messages import HUB_UNAVAILABLE, INVALID_REQUEST, PARSE_ERROR, error_body, id_of, invalid, read
from tabhub.client_errors import BridgeProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

MAX_LINE = 16 * 1024 * 1024
HUB_WAIT = 5.0
"""Seconds a request waits for a hub that is down."""
MAX_SILENCE = 30.0
"""Seconds without data after which the connection counts as dead; a busy hub answers the ping at half of it."""
_BATCH_VERSION = "2025-03-26"
"""The only revision with batches."""
_LISTEN = "subscriptions/listen"
_INITIALIZED = "notifications/initialized"
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

    def __init__(self, messages: list[Any]) -> None:
        self.answers: list[bytes] = []
        self.missing = sum(bool(invalid(each)) or ("method" in each and "id" in each) for each in messages)


class _Pending:
    """A message for the hub; `ident` is None for a notification, and for a replayed request."""

    def __init__(self, ident: str | int | None, method: str, params: Any, batch: _Batch | None = None) -> None:
        self.ident = ident
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
        self._surface = surface
        self._tools = tools
        self._send: Callable[[bytes], None] | None = None
        self._ready = False
        self._rejection: str | None = None
        self._wait = HUB_WAIT
        self._session: str | None = None
        self._count = 0
        self._in_flight: dict[str, _Pending] = {}
        self._waiting: list[_Pending] = []
        self._ids: dict[str | int, _Pending] = {}
        self._hub_requests: set[str | int] = set()
        self._silent_since: float | None = None
        self._pinged = False
        self._version: str | None = None
        self._listed = {"tools"}
        """The kinds of lists the client has read; every client reads the tools."""
        # What a new hub has to be sent on the client's behalf; nothing in the stateless era.
        self._initialize: Any = None
        self._initialized = False
        self._replayed: dict[str, tuple[str, Any]] = {}
        """The log level and resource subscriptions, as requests."""

    def connected(self, send: Callable[[bytes], None], token: str | None, agent_token: str | None) -> None:
        """Register, or resume the session, on a new connection.

        `token` is the socket's, if it needs one; `agent_token` says who the client is.
        """
        self._send = send
        self._rejection = None
        self._silent_since = None
        options: dict[str, Any] = {"surface": self._surface, "tools": self._tools, "sessionId": self._session}
        options |= {"token": token, "agentToken": agent_token}
        self._send_line({"type": "REGISTER"} | {name: value for name, value in options.items() if value is not None})

    def disconnected(self, now: float) -> None:
        """Pending tool calls fail, because they may have run; other requests are repeated after reconnecting."""
        self._send, self._ready = None, False
        self._hub_requests.clear()
        running, self._in_flight = self._in_flight, {}
        repeated: list[_Pending] = []
        for pending in running.values():
            if pending.method == "tools/call":
                self._finish(pending, error_body(HUB_UNAVAILABLE, _DISCONNECTED, outcome="unknown"))
            elif pending.ident is not None:
                repeated.append(self._with_deadline(pending, now))
        self._waiting = repeated + self._waiting

    def disconnect(self) -> None:
        self._send_line({"type": "DISCONNECT"})

    @property
    def idle(self) -> bool:
        """Whether no request is pending; subscriptions do not count."""
        return all(pending.method == _LISTEN for pending in self._ids.values())

    def deadline(self) -> float | None:
        """When to call `tick`."""
        moments = [pending.deadline for pending in self._waiting if pending.deadline is not None]
        if self._silent_since is not None:
            moments.append(self._silent_since + (MAX_SILENCE if self._pinged else MAX_SILENCE / 2))
        return min(moments, default=None)

    def tick(self, now: float) -> None:
        """Fail requests that waited too long for the hub; raises BridgeProtocolError if the hub hangs."""
        for pending in [p for p in self._waiting if p.deadline is not None and p.deadline <= now]:
            self._waiting.remove(pending)
            why = self._rejection or (_DOWN if self._send is None else _NOT_RESPONDING)
            self._finish(pending, error_body(HUB_UNAVAILABLE, why, outcome="not_sent"))
        if self._send is None or self.idle:
            self._silent_since = None
        elif self._silent_since is None:
            self._silent_since, self._pinged = now, False
        elif now >= self._silent_since + MAX_SILENCE:
            self._silent_since = None
            raise BridgeProtocolError(f"the hub sent nothing for {MAX_SILENCE:g} s and did not answer a ping")
        elif not self._pinged and now >= self._silent_since + MAX_SILENCE / 2:
            self._pinged = True
            self._send_line({"type": "PING", "id": "silence"})

    def data_received(self) -> None:
        """The hub sent data: it is alive, however long its calls take."""
        self._silent_since = None

    def client_line(self, line: bytes, now: float) -> None:
        if not line.strip():
            return
        try:
            found, doubled = read(line)
        except (ValueError, RecursionError):
            self._reply(None, error_body(PARSE_ERROR, "Not valid JSON."), None)
            return
        code, problem = PARSE_ERROR, "An object has the same key twice." if doubled else None
        if type(found) is list and not doubled:
            code, problem = INVALID_REQUEST, self._batch_problem(found)
        if problem is not None:
            messages = found if type(found) is list else [found]
            requests = [each["id"] for each in messages if not invalid(each) and "method" in each and "id" in each]
            for ident in requests or [id_of(found)]:
                self._reply(ident, error_body(code, problem), None)
        elif type(found) is list:
            batch = _Batch(found)
            for message in found:
                self._handle_message(message, batch, now)
        else:
            self._handle_message(found, None, now)

    def line_too_long(self, _beginning: bytes) -> None:
        text = f"The message is longer than {MAX_LINE} bytes and was not read."
        self._reply(None, error_body(INVALID_REQUEST, text), None)

    def _batch_problem(self, batch: list[Any]) -> str | None:
        if self._version != _BATCH_VERSION:
            return f"Batches are not part of MCP {self._version or 'without a handshake'}. Send one message at a time."
        if not batch:
            return "A batch must not be empty."
        if any(not invalid(each) and each.get("method") == "initialize" and "id" in each for each in batch):
            return "`initialize` must not be part of a batch."
        return None

    def _handle_message(self, message: Any, batch: _Batch | None, now: float) -> None:
        if problem := invalid(message):
            self._reply(id_of(message), error_body(INVALID_REQUEST, problem), batch)
            return
        method, params = message.get("method"), message.get("params") or {}
        if method is None:
            if message["id"] in self._hub_requests:
                self._hub_requests.discard(message["id"])
                answer = {name: message[name] for name in ("id", "result", "error") if name in message}
                self._send_event("answer", answer)
        elif "id" in message:
            self._handle_request(_Pending(message["id"], method, params, batch), now)
        elif method == "notifications/cancelled":
            self._cancel(params.get("requestId"))
        else:
            self._initialized = self._initialized or method == _INITIALIZED
            if self._ready:
                self._send_event(method, params)
            elif method == _INITIALIZED:  # other notifications would be outdated
                self._waiting.append(_Pending(None, method, params))

    def _handle_request(self, pending: _Pending, now: float) -> None:
        assert pending.ident is not None  # noqa: S101 - the caller's
        if pending.ident in self._ids:
            text = f"A request with id {json.dumps(pending.ident)} is still in flight."
            self._reply(pending.ident, error_body(INVALID_REQUEST, text), pending.batch)
            return
        self._ids[pending.ident] = pending
        if pending.method.endswith("/list"):
            self._listed.add(pending.method.partition("/")[0])
        if pending.method == "initialize":
            self._initialize, self._initialized, self._version = pending.params, False, None
            self._replayed.clear()
        if self._ready:
            self._send_pending(pending)
        else:
            self._waiting.append(self._with_deadline(pending, now))

    def _cancel(self, ident: Any) -> None:
        """Cancel a request. According to MCP, a cancelled request is not answered."""
        pending = self._ids.pop(ident, None) if isinstance(ident, str | int) else None
        if pending is None:
            return
        if pending in self._waiting:
            self._waiting.remove(pending)
        for rid in [rid for rid, running in self._in_flight.items() if running is pending]:
            del self._in_flight[rid]
            self._send_line({"type": "CANCEL", "id": rid})
        if pending.batch is not None:
            self._complete_one(pending.batch)

    def _with_deadline(self, pending: _Pending, now: float) -> _Pending:
        pending.deadline = None if pending.method in (_INITIALIZED, _LISTEN) else now + self._wait
        return pending

    def _send_line(self, message: dict[str, Any]) -> None:
        if self._send is not None:
            text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            self._send(text.encode("utf-8", "surrogatepass") + b"\n")  # invalid text is for the hub to refuse

    def _send_pending(self, pending: _Pending) -> None:
        if pending.method == _INITIALIZED and pending.ident is None:
            self._send_event(pending.method, pending.params)
            return
        self._count += 1
        rid = f"{self._session}:{self._count}"
        self._in_flight[rid] = pending
        ids = {"type": "REQUEST", "id": rid, "sessionId": self._session}
        self._send_line({**ids, "action": pending.method, "params": pending.params})

    def _send_event(self, name: str, params: Any) -> None:
        if self._ready:
            self._send_line({"type": "EVENT", "sessionId": self._session, "event": name, "params": params})

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
            result = json.loads(b"{%b}" % body).get("result")
            version = result.get("protocolVersion") if isinstance(result, dict) else None
            self._version = version if isinstance(version, str) else None
            if self._version is None:
                self._initialize = None
        elif body.startswith(b'"result"'):
            self._remember(pending.method, pending.params)
        self._finish(pending, body)

    def _remember(self, method: str, params: Any) -> None:
        """Keep an accepted request that a new hub has to be sent again."""
        if method == "logging/setLevel":
            self._replayed[method] = method, params
        elif method == "resources/subscribe":
            self._replayed[f"uri {params['uri']}"] = method, params
        elif method == "resources/unsubscribe":
            self._replayed.pop(f"uri {params.get('uri')}", None)

    def _handle_event(self, value: dict[str, Any]) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": value["event"], "params": value["params"]}
        if "ask" in value:
            self._hub_requests.add(value["ask"])
            message["id"] = value["ask"]
        elif "id" in value:
            pending = self._in_flight.get(value["id"])
            if pending is None or pending.ident is None:
                return
            if pending.method == _LISTEN:
                meta = {"_meta": {_SUBSCRIPTION: pending.ident}}
                message["params"] = {**value["params"], **meta}
                if value["event"] == "notifications/subscriptions/acknowledged":
                    if pending.acknowledged:  # by an earlier hub; this one may have other tools
                        honoured = value["params"]["notifications"]
                        self._notify_lists_changed([k for k in _LISTS if honoured.get(f"{k}ListChanged")], params=meta)
                        return
                    pending.acknowledged = True
        self._write(json.dumps(message).encode())

    def _handle_error(self, rid: str | None, error: dict[str, Any], now: float) -> None:
        pending = self._in_flight.pop(rid, None) if rid is not None else None
        if pending is not None and error["code"] == _SESSION_NOT_FOUND:
            self._waiting.append(self._with_deadline(pending, now))  # a new session follows
        elif pending is not None:
            self._finish(pending, f'"error":{json.dumps(error)}'.encode())
        elif not self._ready:
            self._rejection = str(error["message"])
            if not error.get("data", {}).get("retryable"):
                self._wait = 0.0  # a retry would not help
                self._waiting = [self._with_deadline(pending, now) for pending in self._waiting]
            print(f"tabhub: the hub rejected the session: {self._rejection}", file=sys.stderr)

    def _handle_registered(self, session: str, *, initialized: bool) -> None:
        self._session = session
        self._ready = True
        self._wait = HUB_WAIT
        waiting, self._waiting = self._waiting, []
        if self._initialize is not None and not initialized and all(p.method != "initialize" for p in waiting):
            self._replay_session()
        for pending in waiting:
            self._send_pending(pending)

    def _replay_session(self) -> None:
        """Repeat the handshake with a hub that does not know the client."""
        self._send_pending(_Pending(None, "initialize", self._initialize))
        if self._initialized:
            self._send_event(_INITIALIZED, {})
            self._notify_lists_changed([kind for kind in _LISTS if kind in self._listed])
        for method, params in self._replayed.values():
            self._send_pending(_Pending(None, method, params))

    def _notify_lists_changed(self, kinds: Iterable[str], **params: Any) -> None:
        """Make the client reload lists that may differ at another hub."""
        for kind in kinds:
            self._write(
                json.dumps({"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed", **params}).encode()
            )

    def _finish(self, pending: _Pending, body: bytes) -> None:
        if pending.ident is not None:
            self._ids.pop(pending.ident, None)
            self._reply(pending.ident, body, pending.batch)
        elif body.startswith(b'"error"'):
            print(f"tabhub: {pending.method} was rejected by the new hub: {body!r}", file=sys.stderr)

    def _reply(self, ident: str | int | None, body: bytes, batch: _Batch | None) -> None:
        line = b'{"jsonrpc":"2.0","id":%b,%b}' % (json.dumps(ident).encode(), body)
        if batch is None:
            self._write(line)
        else:
            batch.answers.append(line)
            self._complete_one(batch)

    def _complete_one(self, batch: _Batch) -> None:
        batch.missing -= 1
        if batch.missing == 0 and batch.answers:
            self._write(b"[%b]" % b",".join(batch.answers))
