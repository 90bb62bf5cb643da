"""One client of the bridge: its MCP requests run by the same two edges as over HTTP, its answers wrapped as lines.

Owns a registered session's requests in flight, what it negotiated with `initialize`, and its notifications.
Connections, and when a session ends, are listener.py's.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

from tabhub.calls.engine import Engine
from tabhub.core.sessions import Session
from tabhub.errors import CallCancelled, InvalidParams, InvalidRequest, MethodNotFound, TabhubError
from tabhub.mcp.endpoint import McpEndpoint
from tabhub.mcp.handshake_session import McpSession, agree, new_stream_id, read_answer
from tabhub.mcp.notifications import ListNotifier
from tabhub.mcp.resources import PASSED
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
from tabhub.wire.mcp import (
    LIST_CHANGED,
    META_VERSION,
    NAMED,
    RESOURCE_UPDATED,
    Envelope,
    acknowledged,
    client_name,
    read_envelope,
    read_followed,
    read_listen,
)

log = logging.getLogger("tabhub.daemon")

_CHANGED = {kind: encode_notification(method) for kind, method in LIST_CHANGED.items()}
Send = Callable[[bytes], None]


class LineExchange:
    """One request and its answer, as lines of the connection it came on (mcp.exchange.Exchange)."""

    via = "daemon"
    resumable = False
    __slots__ = ("_callbacks", "_client", "_ident", "left")

    def __init__(self, client: BridgeSession, ident: str) -> None:
        self._client = client
        self._ident = ident
        self.left = False
        self._callbacks: list[Callable[[], None]] = []

    def notify(self, message: bytes) -> None:
        if not self.left:
            self._client.send(wire.event(self._client.session.id, self._ident, message))

    def on_disconnect(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    def cancel(self) -> None:
        """End the work; its answer says so."""
        for callback in self._callbacks:
            callback()

    def disconnect(self) -> None:
        """No one waits for the answer."""
        self.left = True
        self.cancel()

    def finish(self, answer: bytes) -> None:
        self._callbacks.clear()
        if not self.left:
            self._client.send(wire.response(self._ident, answer))


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    exchange: LineExchange
    task: asyncio.Task[None]
    listening: bool


class BridgeSession:
    """A registered client."""

    def __init__(
        self, session: Session, endpoint: McpEndpoint, engine: Engine, notices: ListNotifier, in_flight: set[str]
    ) -> None:
        self.session = session
        self.endpoint = endpoint
        self._engine = engine
        self._notices = notices
        self.tools: str | None = None
        """The selection of tools the client asked for."""
        self._out: Send | None = None
        self._mcp: McpSession | None = None
        self._ready = False
        self._notifying = ExitStack()
        self._running: dict[str, _Running] = {}
        self._in_flight = in_flight
        """The ids of the requests of all sessions."""

    # the connection

    @property
    def initialized(self) -> bool:
        """Whether the client has completed the handshake, in revisions that have one."""
        return self._mcp is not None

    def send(self, line: bytes) -> None:
        """Send to the client, if it is connected."""
        if self._out is not None:
            self._out(line)

    def attach(self, out: Send) -> None:
        """The client is connected; its session lasts at least as long."""
        self._out = out
        self.session.busy += 1
        self.session.left = 0.0
        if self._ready:
            self._begin_notifying()

    def detach(self) -> None:
        """The client disconnected: its requests are cancelled, since their answers could not be delivered."""
        if self._out is None:
            return
        self._out = None
        self._notifying.close()
        self._fail_questions()
        self.session.busy -= 1
        self.session.seen = self.session.left = self._engine.clock()
        for running in list(self._running.values()):
            self._stop(running)

    def close(self) -> None:
        self.detach()
        if self._mcp is not None:
            self._mcp.close()

    def ending(self) -> list[asyncio.Task[None]]:
        """The requests that still want to answer at shutdown; listeners notice the end of the connection."""
        return [running.task for running in self._running.values() if not running.listening]

    def _stop(self, running: _Running) -> None:
        running.exchange.disconnect()
        if running.listening:
            running.task.cancel()

    # requests

    def __contains__(self, ident: str) -> bool:
        return ident in self._running

    @property
    def running(self) -> int:
        """How many requests are unanswered."""
        return len(self._running)

    def cancel(self, ident: str) -> None:
        """Cancel a request; it is still answered."""
        running = self._running[ident]
        caller = self._mcp.in_flight.get(ident) if self._mcp is not None else None
        if caller is not None:
            self._engine.cancel_for(caller, "the agent asked for it")
        elif running.listening:
            running.task.cancel()
        else:
            running.exchange.cancel()

    def request(self, message: wire.Request) -> None:
        """Run one request; it gets exactly one answer."""
        self.session.seen = self._engine.clock()
        request = Request(message.id, message.action, message.params)
        exchange = LineExchange(self, message.id)
        try:
            meta = request.params.get("_meta")
            if isinstance(meta, dict) and META_VERSION in meta:
                self._stateless(request, meta[META_VERSION], exchange)
            else:
                self._handshake(request, exchange)
        except TabhubError as error:
            exchange.finish(encode_failure(request.id, error))

    def _handshake(self, request: Request, exchange: LineExchange) -> None:
        if request.method == "initialize":
            exchange.finish(encode_result(request.id, self._initialize(request.params)))
        elif self._mcp is not None:
            self._start(exchange, request, self.endpoint.handshake.answer(self._mcp, request, exchange))
        elif request.method == "ping":
            exchange.finish(encode_result(request.id, b"{}"))
        else:
            raise InvalidRequest("This session is not initialized.", hint="Begin with `initialize`.")

    def _initialize(self, params: dict[str, Any]) -> bytes:
        """A client may initialize again; earlier requests and questions end."""
        version, capabilities = agree(params)
        if self._mcp is not None:
            self._notifying.close()
            self._fail_questions()
            self._mcp.close()
        self.session.client = client_name(params.get("clientInfo"))
        self._engine.sessions.changes += 1
        self._mcp = McpSession(self.session, version, capabilities, new_stream_id)
        self._mcp.tools = self.tools
        self._mcp.tell = self._tell
        self._ready = False
        return self.endpoint.handshake.greeting(version)

    def _stateless(self, request: Request, version: Any, exchange: LineExchange) -> None:
        envelope = _envelope(request, version)
        if self._mcp is None and self.session.client != envelope.client:
            self.session.client = envelope.client
            self._engine.sessions.changes += 1
        edge = self.endpoint.stateless
        if request.method == "tools/call":
            self._start(exchange, request, _body(edge.call(request, envelope, exchange, None, self.session)))
        elif request.method in PASSED:
            self._start(exchange, request, _body(edge.pass_on(request, envelope, exchange, self.session)))
        elif request.method == "subscriptions/listen":
            self._start(exchange, request, self._listen(request, exchange), listening=True)
        else:
            exchange.finish(encode_result(request.id, edge.simple(request, self.tools)))

    def _start(
        self,
        exchange: LineExchange,
        request: Request,
        work: Awaitable[bytes | None],
        *,
        listening: bool = False,
    ) -> None:
        ident = str(request.id)
        task = asyncio.ensure_future(self._run(ident, exchange, work))
        self._running[ident] = _Running(exchange, task, listening)
        self._in_flight.add(ident)

    async def _run(self, ident: str, exchange: LineExchange, work: Awaitable[bytes | None]) -> None:
        """Answer the request, whatever happens to the work."""
        try:
            answer = await work
        except TabhubError as error:
            answer = encode_failure(ident, error)
        except asyncio.CancelledError:
            answer = encode_failure(ident, CallCancelled("The request was taken back."))
        except Exception:
            log.exception("a request of the daemon's failed inside")
            answer = encode_failure(ident, TabhubError("The request failed inside the hub.", hint="See: tabhub logs"))
        finally:
            del self._running[ident]
            self._in_flight.discard(ident)
        if answer is not None:
            exchange.finish(answer)

    async def _listen(self, request: Request, exchange: LineExchange) -> None:
        """Report changes until the request is cancelled or its connection closed."""
        kinds, wanted = read_listen(request), read_followed(request)
        offering = self.endpoint.stateless.offering
        follower = offering.following.follower(
            lambda uri: exchange.notify(encode_notification(RESOURCE_UPDATED, {"uri": uri}))
        )
        told = acknowledged(kinds, offering.follow(follower, wanted))
        exchange.notify(encode_notification("notifications/subscriptions/acknowledged", told))
        changes = self._notices.subscribe(lambda kind: exchange.notify(_CHANGED[kind]), lambda: None, kinds=kinds)
        with closing(follower), changes:
            await asyncio.get_running_loop().create_future()

    # notifications

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
                self._begin_notifying()
            self.endpoint.handshake.receive_notification(self._mcp, Notification(message.event, message.params))

    def _tell(self, message: bytes) -> None:
        self.send(wire.event(self.session.id, None, message))

    def _begin_notifying(self) -> None:
        """Notify the client when a list changes, and now if one did while it was disconnected."""
        mcp = self._mcp
        if mcp is None:
            return
        self._notifying.enter_context(self._notices.subscribe(lambda kind: self._tell(_CHANGED[kind]), lambda: None))
        if isinstance(mcp.capabilities.get("elicitation"), dict):
            self.session.asker = self._ask
        for kind in mcp.outdated(self.endpoint.handshake.offering.versions()):
            self._tell(_CHANGED[kind])

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the client something that belongs to none of its calls."""
        if self._mcp is None or self._out is None:
            raise TabhubError("The client is not connected just now, so it cannot be asked.")
        return read_answer(method, await self._mcp.question(self._tell, method, params))

    def _fail_questions(self) -> None:
        """Fail the questions no one can answer now; another session's call may wait for one."""
        self.session.asker = None
        for waiting in list(self._mcp.asked.values()) if self._mcp is not None else ():
            if not waiting.done():
                waiting.set_exception(TabhubError("The client went away before it had answered."))
                waiting.exception()  # retrieved: no one may be waiting for it


async def _body(answer: Awaitable[tuple[bytes, int]]) -> bytes:
    """An answer without its HTTP status."""
    return (await answer)[0]


def _envelope(request: Request, version: Any) -> Envelope:
    """The envelope of a stateless request. Over HTTP headers repeat it; here they are made from the request."""
    if not isinstance(version, str):
        raise InvalidParams(f"params._meta[{META_VERSION!r}] must be a string.")
    try:
        headers = {b"mcp-method": request.method.encode("latin-1")}
    except UnicodeEncodeError:
        raise MethodNotFound(f"Method not found: {request.method[:100]}") from None
    named = NAMED.get(request.method)
    if named is not None and (value := request.params.get(named)) is not None:
        if not isinstance(value, str):
            raise InvalidParams(f"`{named}` must be a string.")
        headers[b"mcp-name"] = b"=?base64?%b?=" % base64.b64encode(value.encode())
    return read_envelope(request, version, headers)
