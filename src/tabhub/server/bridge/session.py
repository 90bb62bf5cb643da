"""One client of the bridge: its MCP requests run by the same two edges as over HTTP, its answers wrapped as lines.

Owns a registered session's requests in flight, what it negotiated with `initialize`, and its notifications.
Connections, and when a session ends, are listener.py's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from tabhub.calls.engine import Engine
from tabhub.core.sessions import Session
from tabhub.errors import CallCancelled, InvalidParams, InvalidRequest, TabhubError
from tabhub.mcp.endpoint import McpEndpoint
from tabhub.mcp.handshake_session import McpSession, agree, read_answer
from tabhub.mcp.notifications import ListNotifier
from tabhub.mcp.resources import FORWARDED
from tabhub.wire import bridge as wire
from tabhub.wire.jsonrpc import (
    Notification,
    Request,
    Response,
    encode_failure,
    encode_notification,
    encode_result,
    parse,
)
from tabhub.wire.mcp import LIST_CHANGED, META_VERSION, client_name, read_envelope

log = logging.getLogger("tabhub.bridge")

_LISTEN = "subscriptions/listen"
Send = Callable[[bytes], None]


@dataclass(slots=True, eq=False)
class LineExchange:
    """One request and its answer, as lines of the connection it came on (mcp.exchange.Exchange)."""

    client: BridgeSession
    ident: str
    disconnected: bool = False
    task: asyncio.Task[None] | None = None
    """Set if the request listens, and so can only be ended by cancelling the task."""
    on_disconnect: list[Callable[[], None]] = field(default_factory=list)
    via: str = "bridge"
    resumable: bool = False

    def notify(self, message: bytes) -> None:
        if not self.disconnected:
            self.client.send(wire.event(self.client.session.id, self.ident, message))

    def cancel(self) -> None:
        """End the work; its answer says so."""
        if self.task is not None:
            self.task.cancel()
        for callback in self.on_disconnect:
            callback()

    def finish(self, answer: bytes) -> None:
        self.on_disconnect.clear()
        if not self.disconnected:
            self.client.send(wire.response(self.ident, answer))


@dataclass(slots=True, eq=False)
class BridgeSession:
    """A registered client."""

    session: Session
    endpoint: McpEndpoint
    tools: str | None
    """The selection of tools the client asked for."""
    engine: Engine
    notices: ListNotifier
    all_in_flight: set[str]
    """The ids of the requests of all sessions."""
    running: dict[str, LineExchange] = field(default_factory=dict)
    expiry: asyncio.TimerHandle | None = None
    """Ends the session of a client that does not reconnect."""
    _out: Send | None = None
    _mcp: McpSession | None = None
    _ready: bool = False
    _notifying: ExitStack = field(default_factory=ExitStack)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def initialized(self) -> bool:
        """Whether the client has completed the handshake, in revisions that have one."""
        return self._mcp is not None

    def send(self, line: bytes) -> None:
        if self._out is not None:
            self._out(line)

    def attach(self, out: Send) -> None:
        """The client is connected; its session lasts at least as long."""
        self._out = out
        self.session.busy += 1
        self.session.disconnected_at = 0.0
        if self._ready:
            self._start_notifying()

    def detach(self) -> None:
        """The client disconnected: its requests are cancelled, since their answers could not be delivered."""
        if self._out is None:
            return
        self._out = None
        self._notifying.close()
        self._fail_questions()
        self.session.busy -= 1
        self.session.seen = self.session.disconnected_at = self.engine.clock()
        for exchange in list(self.running.values()):
            exchange.disconnected = True
            exchange.cancel()

    def close(self) -> None:
        self.detach()
        if self._mcp is not None:
            self._mcp.close()

    def stop_expiry(self) -> None:
        if self.expiry is not None:
            self.expiry.cancel()
            self.expiry = None

    def unanswered(self) -> set[asyncio.Task[None]]:
        """The requests to wait for at shutdown; those that listen end with the connection."""
        return self._tasks - {exchange.task for exchange in self.running.values()}

    def cancel(self, ident: str) -> None:
        """Cancel a request; it is still answered."""
        caller = self._mcp.in_flight.get(ident) if self._mcp is not None else None
        if caller is not None:
            self.engine.cancel_for(caller, "the agent asked for it")
        else:
            self.running[ident].cancel()

    def request(self, message: wire.Request) -> None:
        """Run one request; it gets exactly one answer."""
        self.session.seen = self.engine.clock()
        request = Request(message.id, message.action, message.params)
        exchange = LineExchange(self, message.id)
        meta = request.params.get("_meta")
        begin = self._stateless if isinstance(meta, dict) and META_VERSION in meta else self._handshake
        try:
            work = begin(request, exchange)
        except TabhubError as error:
            work = encode_failure(request.id, error)
        if isinstance(work, bytes):
            exchange.finish(work)
            return
        self.running[message.id] = exchange
        self.all_in_flight.add(message.id)
        task = asyncio.ensure_future(self._run(exchange, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if request.method == _LISTEN:
            exchange.task = task

    def _handshake(self, request: Request, exchange: LineExchange) -> bytes | Awaitable[bytes | None]:
        if request.method == "initialize":
            return encode_result(request.id, self._initialize(request.params))
        if self._mcp is not None:
            return self.endpoint.handshake.answer(self._mcp, request, exchange)
        if request.method == "ping":
            return encode_result(request.id, b"{}")
        raise InvalidRequest("This session is not initialized.", hint="Begin with `initialize`.")

    def _initialize(self, params: dict[str, Any]) -> bytes:
        """A client may initialize again; earlier requests and questions end."""
        version, capabilities = agree(params)
        if self._mcp is not None:
            self._notifying.close()
            self._fail_questions()
            self._mcp.close()
        self._rename(client_name(params.get("clientInfo")))
        self._mcp = McpSession(
            self.session, version, capabilities, self.engine.limits, tools=self.tools, send=self._send_event
        )
        self._ready = False
        return self.endpoint.handshake.greeting(version)

    def _stateless(self, request: Request, exchange: LineExchange) -> bytes | Awaitable[bytes | None]:
        version = request.params["_meta"][META_VERSION]
        if not isinstance(version, str):
            raise InvalidParams(f"params._meta[{META_VERSION!r}] must be a string.")
        envelope = read_envelope(request, version, None)
        if self._mcp is None and self.session.client != envelope.client:
            self._rename(envelope.client)
        edge = self.endpoint.stateless
        if request.method == "tools/call" or request.method in FORWARDED:
            return edge.answer(request, envelope, exchange, own=self.session, tools=self.tools)
        if request.method == _LISTEN:
            return self._listen(request, exchange)
        return encode_result(request.id, edge.simple(request, self.tools, self.session.token, self.session))

    def _rename(self, client: str) -> None:
        self.session.client = client
        self.engine.sessions.changes += 1

    async def _run(self, exchange: LineExchange, work: Awaitable[bytes | None]) -> None:
        """Answer the request, whatever happens to the work."""
        ident = exchange.ident
        try:
            answer = await work
        except TabhubError as error:
            answer = encode_failure(ident, error)
        except asyncio.CancelledError:
            answer = encode_failure(ident, CallCancelled("The request was cancelled."))
        except Exception:
            log.exception("a request over the bridge socket failed inside")
            answer = encode_failure(ident, TabhubError("The request failed inside the hub.", hint="See: tabhub logs"))
        finally:
            del self.running[ident]
            self.all_in_flight.discard(ident)
        if answer is not None:
            exchange.finish(answer)

    async def _listen(self, request: Request, exchange: LineExchange) -> None:
        """Report changes until the request is cancelled or its connection closed."""
        with self.endpoint.stateless.listening(request, exchange.notify, lambda: None, self.session.token):
            await asyncio.get_running_loop().create_future()

    def event(self, message: wire.Event) -> None:
        """A notification or an answer of the client; the stateless revision has neither."""
        if message.event == wire.ANSWER:
            response = parse({"jsonrpc": "2.0", **message.params})
            if not isinstance(response, Response):
                raise InvalidRequest("An answer must have `id`, and `result` or `error`.")
            if self._mcp is not None:
                self._mcp.answered(response)
        elif self._mcp is not None:
            if message.event == "notifications/initialized" and not self._ready:
                self._ready = True
                self._start_notifying()
            self.endpoint.handshake.receive_notification(self._mcp, Notification(message.event, message.params))

    def _send_event(self, message: bytes) -> None:
        self.send(wire.event(self.session.id, None, message))

    def _notify_changed(self, kind: str) -> None:
        if self._mcp is None or self.endpoint.handshake.differs(self._mcp, kind):
            self._send_event(encode_notification(LIST_CHANGED[kind]))

    def _start_notifying(self) -> None:
        """Notify the client when a list changes, and now if one did while it was disconnected."""
        mcp = self._mcp
        if mcp is None:
            return
        self._notifying.enter_context(self.notices.subscribe(self._notify_changed, lambda: None))
        if isinstance(mcp.capabilities.get("elicitation"), dict):
            self.session.asker = self._ask
        for kind in mcp.outdated(self.endpoint.handshake.resources.versions()):
            self._notify_changed(kind)

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the client something that belongs to none of its calls."""
        if self._mcp is None or self._out is None:
            raise TabhubError("The client is disconnected, so it cannot be asked.")
        return read_answer(method, await self._mcp.question(self._send_event, method, params))

    def _fail_questions(self) -> None:
        """Fail the questions that can no longer be answered; another session's call may wait for one."""
        self.session.asker = None
        for waiting in list(self._mcp.asked.values()) if self._mcp is not None else ():
            if not waiting.done():
                waiting.set_exception(TabhubError("The client disconnected before it answered."))
                waiting.exception()  # retrieved: there may be no waiter
