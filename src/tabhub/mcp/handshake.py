"""The handshake era, 2025-03-26 to 2025-11-25: initialize, sessions, streams that can be resumed.

Owns the methods of that era and which session a request belongs to; a session's state is handshake_session.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tabhub.calls.engine import Engine
from tabhub.core.resources import SUBSCRIBE, UNSUBSCRIBE
from tabhub.core.sessions import Session
from tabhub.errors import (
    InvalidParams,
    InvalidRequest,
    MethodNotAllowed,
    MethodNotFound,
    MissingCapability,
    RateLimited,
    SessionNotFound,
    TabhubError,
    UnknownResource,
    UnknownTool,
)
from tabhub.http.event_streams import HEADERS, serve
from tabhub.http.messages import Request as HttpRequest
from tabhub.http.messages import Response
from tabhub.mcp.exchange import Exchange, HttpExchange
from tabhub.mcp.handshake_session import HandshakeCaller, McpSession, agree
from tabhub.mcp.notifications import ListNotifier
from tabhub.mcp.resources import FORWARDED, LISTS, UpstreamResources
from tabhub.mcp.surface import Surface, failure_result
from tabhub.store.sessions import SavedMcp
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.wire.jsonrpc import (
    Message,
    Notification,
    Request,
    encode_error,
    encode_failure,
    encode_notification,
    encode_result,
    name_and_arguments,
)
from tabhub.wire.jsonrpc import Response as RpcResponse
from tabhub.wire.mcp import (
    LIST_CHANGED,
    LOG_LEVELS,
    client_name,
    initialize_payload,
    progress_token,
)

_BATCHES = "2025-03-26"
_CALLS = frozenset({"tools/call", *FORWARDED, SUBSCRIBE})
"""Methods that a tool or an external server answers."""
_PROTOCOL_ERRORS = (UnknownTool, MissingCapability)
"""Failed calls that are protocol errors; all others are results with an error."""
_NO_RESOURCE = -32002
"""The error code for an unknown resource in these revisions."""


@dataclass(eq=False)
class HandshakeEdge:
    """The 2025 side of one endpoint."""

    engine: Engine
    surface: Surface
    notices: ListNotifier
    resources: UpstreamResources
    server: dict[str, Any]
    capabilities: Callable[[], dict[str, Any]]
    instructions: str
    session_rate: SlidingWindow
    new_id: Callable[[], str]
    """Makes the ids of sessions."""
    sessions: dict[str, McpSession] = field(default_factory=dict)

    # POST

    async def post(self, message: Message, request: HttpRequest, tools: str | None) -> Response | None:
        if not isinstance(message, Request):
            self.receive_notification(self._require(request, tools), message)
            return Response(202)
        if message.method == "initialize":
            return self._initialize(message, request)
        mcp = self._require(request, tools)
        exchange = HttpExchange(request, request.on_disconnect, mcp.new_stream, mcp.headers, mcp.primes_streams)
        session = mcp.session
        session.busy += 1
        try:
            answer = await self.answer(mcp, message, exchange)
            if exchange.stream is not None:
                exchange.stream.cancelled = not answer
                await exchange.finish((answer,) if answer else ())
                return None
            return Response(200, answer, mcp.json_headers if answer else (*HEADERS, *mcp.headers))
        finally:
            session.busy -= 1
            session.seen = self.engine.clock()

    async def batch(
        self, messages: list[Message | InvalidRequest], request: HttpRequest, tools: str | None
    ) -> Response | None:
        """Serve a batch, which only the first revision has."""
        mcp = self._require(request, tools)
        if mcp.version != _BATCHES:
            raise InvalidRequest(f"Batches are not part of MCP {mcp.version}. Send one message at a time.")
        if not messages:
            raise InvalidRequest("A batch must not be empty.")
        if any(isinstance(m, Request) and m.method == "initialize" for m in messages):
            raise InvalidRequest("`initialize` must not be part of a batch.")
        mcp.session.busy += 1
        exchange = HttpExchange(request, request.on_disconnect, mcp.new_stream, mcp.headers, mcp.primes_streams)
        try:
            answers = await self._answer_batch(mcp, messages, exchange)
            if exchange.stream is not None:
                await exchange.finish(answers)
                return None
            if not answers:
                return Response(202)
            body = answers[0] if len(answers) == 1 else b"[%b]" % b",".join(answers)
            return Response(200, body, mcp.json_headers)
        finally:
            mcp.session.busy -= 1
            mcp.session.seen = self.engine.clock()

    async def _answer_batch(
        self, mcp: McpSession, messages: list[Message | InvalidRequest], exchange: Exchange
    ) -> list[bytes]:
        pending: list[Awaitable[bytes]] = []
        invalid: list[bytes] = []
        for message in messages:
            if isinstance(message, InvalidRequest):
                invalid.append(encode_failure(None, message))
            elif isinstance(message, Request):
                pending.append(self.answer(mcp, message, exchange))
            else:
                self.receive_notification(mcp, message)
        return [*filter(None, await asyncio.gather(*pending)), *invalid]

    def _initialize(self, request: Request, http: HttpRequest) -> Response:
        if b"mcp-session-id" in http.headers:
            raise InvalidRequest("This session is initialized already. Initialize without Mcp-Session-Id.")
        params = request.params
        version, capabilities = agree(params)
        now = self.engine.clock()
        retry_after = self.session_rate.hit("sessions", now)
        if retry_after is not None:
            raise RateLimited(
                "Too many new MCP sessions.",
                retry_after=int(retry_after) + 1,
                hint="Wait, or raise limits.session_rate.",
            )
        ident = self.new_id()
        session = self.engine.sessions.open(ident, "mcp", client_name(params.get("clientInfo")), now, http.agent)
        mcp = McpSession(session, version, capabilities, self.engine.limits)
        self.sessions[ident] = mcp
        return Response(200, encode_result(request.id, self.greeting(version)), mcp.json_headers)

    def greeting(self, version: str) -> bytes:
        """The result of `initialize`."""
        return initialize_payload(version, self.server, self.capabilities(), self.instructions)

    def _require(self, request: HttpRequest, tools: str | None) -> McpSession:
        """The session a request names."""
        raw = request.headers.get(b"mcp-session-id")
        if raw is None:
            raise InvalidRequest("The Mcp-Session-Id header is missing.", hint="Begin with `initialize`.")
        mcp = self.sessions.get(raw.decode("latin-1"))
        if mcp is None or mcp.session.token != request.agent:
            raise SessionNotFound("This session has ended or never was.", hint="Begin again with `initialize`.")
        if tools is not None:
            mcp.tools = tools
        return mcp

    def receive_notification(self, mcp: McpSession, message: Notification | RpcResponse) -> None:
        """A message that wants no answer."""
        if isinstance(message, RpcResponse):
            mcp.answered(message)
        elif isinstance(message, Notification) and message.method == "notifications/cancelled":
            ident = message.params.get("requestId")
            caller = mcp.in_flight.get(ident) if isinstance(ident, str | int) else None
            if caller is not None:
                caller.cancelled = True
                self.engine.cancel_for(caller, "the agent asked for it")

    async def answer(self, mcp: McpSession, request: Request, exchange: Exchange) -> bytes:
        """The whole answer to a request of a session, encoded; it never fails.

        Over HTTP a cancelled request has none, and the answer is empty; the bridge waits for one.
        """
        ident, method, params = request.id, request.method, request.params
        caller: HandshakeCaller | None = None
        try:
            if method not in _CALLS:
                return encode_result(ident, self._simple(mcp, request))
            if ident in mcp.in_flight:
                raise InvalidRequest(f"A request with id {orjson.dumps(ident).decode()} is still in flight.")
            is_tool = method == "tools/call"
            name, arguments = name_and_arguments(params) if is_tool else ("", {})
            token = progress_token(params) if "_meta" in params else None
            caller = mcp.in_flight[ident] = HandshakeCaller(
                exchange,
                mcp.session,
                params,
                exchange.via,
                token,
                mcp.capabilities,
                None,
                is_tool and self.surface.structured(mcp.tools),
                mcp,
            )
            exchange.on_disconnect.append(lambda: self._disconnected(mcp, caller, exchange))
            try:
                if is_tool:
                    answer = encode_result(ident, (await self.surface.call(caller, name, arguments)).payload)
                else:
                    answer = encode_result(ident, await self._pass_on(caller, method))
            except TabhubError as error:
                if not is_tool or isinstance(error, _PROTOCOL_ERRORS):
                    raise
                answer = encode_result(ident, failure_result(error).payload)
            finally:
                del mcp.in_flight[ident]
        except UnknownResource as error:
            answer = encode_error(ident, _NO_RESOURCE, error.text(), {**error.details(), "code": _NO_RESOURCE})
        except TabhubError as error:
            answer = encode_failure(ident, error)
        return b"" if caller is not None and caller.cancelled and exchange.via != "bridge" else answer

    def _simple(self, mcp: McpSession, request: Request) -> bytes:
        if request.method == "tools/list":
            cursor = request.params.get("cursor")
            if cursor is not None and not isinstance(cursor, str):
                raise InvalidParams("`cursor` must be a string.")
            mcp.listed["tools"] = self.engine.registry.version
            mcp.shown = self.surface.listed(mcp.session, mcp.tools)
            return self.surface.page(
                cursor, stateless=False, tools=mcp.tools, agent=mcp.session.token, session=mcp.session
            )
        if request.method in LISTS:
            kind = request.method.partition("/")[0]
            mcp.listed[kind] = self.resources.versions()[kind]
            return self.resources.page(request.method, request.params, stateless=False, agent=mcp.session.token)
        if request.method == "ping":
            return b"{}"
        if request.method == UNSUBSCRIBE:
            mcp.resource_subscriber(self.resources.subscribers).remove(str(request.params.get("uri")))
            self.engine.sessions.changes += 1
            return b"{}"
        if request.method == "logging/setLevel":
            level = request.params.get("level")
            if level not in LOG_LEVELS:
                raise InvalidParams(f"`level` must be one of {', '.join(LOG_LEVELS)}.")
            mcp.log_level = LOG_LEVELS.index(level)
            self.engine.sessions.changes += 1
            return b"{}"
        raise MethodNotFound(f"Method not found: {request.method[:100]}")

    def differs(self, mcp: McpSession, kind: str) -> bool:
        """Whether a list is not what the client was shown, as far as is known; listing it again costs the client."""
        if kind != "tools" or mcp.shown is None:
            return True
        return self.surface.listed(mcp.session, mcp.tools) != mcp.shown

    async def _pass_on(self, caller: HandshakeCaller, method: str) -> bytes:
        """What an external server answers: a resource, a prompt, a completion."""
        wanted = self.resources.find(method, caller.params, caller.session.token)
        result = await self.resources.answer(caller, wanted, stateless=False)
        if wanted.method == SUBSCRIBE:
            caller.mcp.resource_subscriber(self.resources.subscribers).add(wanted.subscription)
            self.engine.sessions.changes += 1
        return result

    def _disconnected(self, mcp: McpSession, caller: HandshakeCaller, exchange: Exchange) -> None:
        """A dropped stream can be resumed; without one the answer could never be read, so the call ends."""
        if not exchange.resumable:
            listens = mcp.listening or exchange.via == "bridge"
            end = self.engine.cancel_for if listens else self.engine.left
            end(caller, "the agent disconnected")

    def broadcast_log(self, level: str, logger: str, data: Any, hidden: Callable[[str | None], bool]) -> None:
        """Send a log message to all clients that listen, if they want that level and it is not hidden from them."""
        message = encode_notification("notifications/message", {"level": level, "logger": logger, "data": data})
        for mcp in list(self.sessions.values()):
            if mcp.listener is None or LOG_LEVELS.index(level) < mcp.log_level or hidden(mcp.session.token):
                continue
            mcp.listener.append(message)

    # GET and DELETE

    async def listen(self, request: HttpRequest, tools: str | None) -> None:
        """Serve the session's own stream, or resume a broken one."""
        mcp = self._require(request, tools)
        accept = request.headers.get(b"accept", b"")
        if b"text/event-stream" not in accept and b"*/*" not in accept:
            raise InvalidRequest("The Accept header must allow text/event-stream.")
        mcp.session.busy += 1
        try:
            last = request.headers.get(b"last-event-id")
            if last is not None:
                await self._resume(mcp, last.decode("latin-1"), request)
            else:
                await self._serve_listener(mcp, request)
        finally:
            mcp.session.busy -= 1
            mcp.session.seen = self.engine.clock()

    async def _resume(self, mcp: McpSession, last: str, request: HttpRequest) -> None:
        stream_id, _, seq = last.partition(".")
        stream = mcp.streams.get(stream_id)
        if stream is None or not seq.isdecimal() or len(seq) > 12 or not stream.knows(int(seq)):
            raise InvalidRequest("That event is no longer kept, so this stream cannot be resumed.")
        if stream is mcp.listener:
            await self._serve_listener(mcp, request, int(seq))
        else:
            if stream.cancelled:  # clients would ask for its answer again and again
                raise MethodNotAllowed("The request of this stream was cancelled: it has no answer.")
            await serve(stream, request, mcp.headers, int(seq))

    async def _serve_listener(self, mcp: McpSession, request: HttpRequest, after: int | None = None) -> None:
        stream = mcp.listener
        if stream is None or stream.done:  # one that ended, or was cut for a slow reader, cannot be resumed
            stream, after = mcp.new_stream(), None
            mcp.listener = stream

        def notify_changed(kind: str) -> None:
            if self.differs(mcp, kind):
                stream.append(encode_notification(LIST_CHANGED[kind]))

        for kind in mcp.outdated(self.resources.versions()):
            notify_changed(kind)
        mcp.listening += 1
        mcp.notify_missed()
        mcp.session.disconnected_at = 0.0
        mcp.session.asker = mcp.ask if isinstance(mcp.capabilities.get("elicitation"), dict) else None
        try:
            with self.notices.subscribe(notify_changed, stream.finish, token=mcp.session.token):
                await serve(stream, request, mcp.headers, after, prime=mcp.primes_streams)
        finally:
            mcp.listening -= 1
            if not mcp.listening:
                mcp.session.asker = None
                mcp.session.disconnected_at = self.engine.clock()

    def delete(self, request: HttpRequest, tools: str | None) -> Response:
        mcp = self._require(request, tools)
        self.end(mcp.session.id, "the session was ended")
        return Response(204)

    # over a restart of the hub

    def saved(self, session_id: str) -> SavedMcp | None:
        """What a client has negotiated, to be saved."""
        mcp = self.sessions.get(session_id)
        return None if mcp is None else mcp.saved(self.surface.path)

    def restore(self, session: Session, saved: SavedMcp) -> bool:
        """Restore a client from before a restart; one that listens is notified to list the tools again."""
        mcp = McpSession.restored(session, saved, self.engine.limits)
        if mcp is None:
            return False
        subscriber = mcp.resource_subscriber(self.resources.subscribers)
        self.resources.subscribe(subscriber, saved.followed, session.token)
        self.sessions[session.id] = mcp
        return True

    def end(self, session_id: str, reason: str) -> None:
        mcp = self.sessions.pop(session_id, None)
        if mcp is not None:
            mcp.close()
        self.engine.end_session(session_id, reason)
