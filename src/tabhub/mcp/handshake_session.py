"""One client of the handshake era: its version, capabilities, log level, streams, and what it has in flight.

Owns the state of a session and how a running call reaches its client. Knows no methods and no HTTP routes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from tabhub.calls.engine import Answers, Questions
from tabhub.core.resources import KINDS
from tabhub.core.sessions import Session
from tabhub.errors import InvalidParams, TabhubError
from tabhub.http.event_streams import EventStream
from tabhub.http.messages import JSON, Header
from tabhub.limits import Limits
from tabhub.mcp.exchange import McpCaller
from tabhub.mcp.subscriptions import ResourceSubscriber, ResourceSubscribers
from tabhub.store.sessions import SavedMcp
from tabhub.wire.jsonrpc import Id, Response, encode_notification, encode_request
from tabhub.wire.mcp import HANDSHAKE_VERSIONS, LOG_LEVELS, RESOURCE_UPDATED, negotiate

_STREAMS_KEPT = 16
_BEFORE = -1
"""A version of the catalogue that is never the present one."""
CAPABILITIES = ("elicitation", "sampling", "roots")


class McpSession:
    """One client of the handshake era."""

    def __init__(
        self,
        session: Session,
        version: str,
        capabilities: dict[str, Any],
        limits: Limits,
        *,
        tools: str | None = None,
        send: Callable[[bytes], None] | None = None,
    ) -> None:
        """`tools` is the selection of tools the client asked for; `send` the bridge's way to it, which needs no
        stream."""
        self.session = session
        self._limits = limits
        self.version = version
        self.capabilities = capabilities
        self.log_level = LOG_LEVELS.index("info")
        self.in_flight: dict[Id, HandshakeCaller] = {}
        self.asked: dict[Id, asyncio.Future[Response]] = {}
        self.streams: OrderedDict[str, EventStream] = OrderedDict()
        self.tools = tools
        self.listed: dict[str, int] = {}
        """The version of each list the client last read."""
        self.shown: object = None
        """The tools it was listed, where that is known."""
        self.listener: EventStream | None = None
        self.listening = 0
        """How many connections read the listener."""
        self.subscriber: ResourceSubscriber | None = None
        """Its resource subscriptions, if it has any."""
        self.missed: dict[str, None] = {}
        """Resources that changed while it was not listening."""
        self._send = send
        self.headers: tuple[Header, ...] = ((b"mcp-session-id", session.id.encode()),)
        """Headers of every response."""
        self.json_headers = (JSON, *self.headers)
        self.primes_streams = version >= "2025-11-25"
        """Whether streams begin with an event id, so that they can be resumed before the first message."""

    def outdated(self, versions: Mapping[str, int]) -> list[str]:
        """The lists the client has read that have changed since."""
        return [kind for kind, seen in self.listed.items() if seen != versions[kind]]

    def new_stream(self) -> EventStream:
        """A resumable stream; the oldest finished ones are dropped."""
        stream = EventStream(secrets.token_hex(6), self._limits, resumable=True)
        self.streams[stream.id] = stream
        for old in list(self.streams.values()):
            if len(self.streams) <= _STREAMS_KEPT:
                break
            if old.done:
                del self.streams[old.id]
        return stream

    @classmethod
    def restored(cls, session: Session, agreed: SavedMcp, limits: Limits) -> McpSession | None:
        """A client from before a restart; None if what it negotiated is invalid."""
        if agreed.version not in HANDSHAKE_VERSIONS or not 0 <= agreed.log_level < len(LOG_LEVELS):
            return None
        mcp = cls(session, agreed.version, {name: {} for name in agreed.capabilities}, limits)
        mcp.log_level = agreed.log_level
        mcp.listed = {"tools": _BEFORE, **dict.fromkeys(KINDS, 0)}  # what servers have is not known over a restart
        return mcp

    def saved(self, endpoint: str) -> SavedMcp:
        can = [name for name in CAPABILITIES if isinstance(self.capabilities.get(name), dict)]
        subscribed = [each.asked for each in self.subscriber.subscriptions] if self.subscriber is not None else []
        return SavedMcp(endpoint, self.version, can, self.log_level, subscribed)

    def resource_subscriber(self, subscribers: ResourceSubscribers) -> ResourceSubscriber:
        if self.subscriber is None:
            self.subscriber = ResourceSubscriber(subscribers, self.updated)
        return self.subscriber

    def updated(self, uri: str) -> None:
        """A resource it subscribed to has changed; it is notified now, or when it listens."""
        if self._send is not None:
            self._send(encode_notification(RESOURCE_UPDATED, {"uri": uri}))
        elif self.listening and self.listener is not None:
            self.listener.append(encode_notification(RESOURCE_UPDATED, {"uri": uri}))
        else:
            self.missed[uri] = None

    def notify_missed(self) -> None:
        """It listens now: notify it of what changed before."""
        missed, self.missed = self.missed, {}
        for uri in missed:
            self.updated(uri)

    def answered(self, response: Response) -> None:
        """The client answered a request of ours; anything else is dropped."""
        waiting = self.asked.pop(response.id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    def question(self, send: Callable[[bytes], None], method: str, params: dict[str, Any]) -> asyncio.Future[Response]:
        """Send the client a request; the future gets its answer."""
        ident = f"tabhub-{secrets.token_hex(8)}"
        waiting = self.asked[ident] = asyncio.get_running_loop().create_future()

        def over(done: asyncio.Future[Response]) -> None:
            """A question that was answered elsewhere is cancelled, so that the client can close it."""
            if self.asked.pop(ident, None) is not None and done.cancelled():
                reason = {"requestId": ident, "reason": "It was answered elsewhere, or is not needed any more."}
                send(encode_notification("notifications/cancelled", reason))

        waiting.add_done_callback(over)
        send(encode_request(ident, method, params))
        return waiting

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the client something that belongs to no call, on the stream it listens to."""
        stream = self.listener
        if stream is None or stream.done:
            raise TabhubError("The client listens to no stream just now, so it cannot be asked.")
        return read_answer(method, await self.question(stream.append, method, params))

    def close(self) -> None:
        if self.subscriber is not None:
            self.subscriber.close()
        for stream in self.streams.values():
            stream.finish()
        asked, self.asked = self.asked, {}
        for waiting in asked.values():
            waiting.cancel()


class HandshakeCaller(McpCaller):
    """One call of a handshake client."""

    mcp: McpSession
    cancelled: bool = False
    """Whether the client cancelled it, and so wants no answer."""

    def log(self, level: str, logger: str, data: Any) -> None:
        if LOG_LEVELS.index(level) >= self.mcp.log_level:
            self.send_log(level, logger, data)

    async def ask(self, tool: str, questions: Questions) -> Answers:
        """Send requests to the client on this call's stream and wait for the answers."""
        for method, _ in questions.values():
            self.require(tool, method)
        waiting: dict[str, asyncio.Future[Response]] = {}
        for key, (method, params) in questions.items():
            waiting[key] = self.mcp.question(self.exchange.notify, method, params)
        return {key: read_answer(questions[key][0], await future) for key, future in waiting.items()}


def agree(params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Negotiate `initialize`: the version, and the client's capabilities."""
    version = negotiate(params.get("protocolVersion"))
    capabilities = params.get("capabilities", {})
    if not isinstance(capabilities, dict):
        raise InvalidParams("`capabilities` must be an object.")
    return version, capabilities


def read_answer(method: str, response: Response) -> dict[str, Any]:
    """The client's answer to a request of ours; TabhubError if it failed."""
    if response.error is not None:
        raise TabhubError(f"The client could not answer {method}: {response.error['message'][:300]}")
    if not isinstance(response.result, dict):
        raise TabhubError(f"The client's answer to {method} is not an object.")
    return response.result
