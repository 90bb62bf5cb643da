"""The MCP endpoint: one per surface, both eras. Reads a request, finds its era, hands it to that era's edge.

Owns the HTTP rules common to both (methods, Accept, body, JSON-RPC shape); the eras are mcp_handshake.py and
mcp_stateless.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tabhub.errors import (
    ClientDisconnected,
    HeaderMismatch,
    InvalidRequest,
    NotAcceptable,
    TabhubError,
    UnsupportedMediaType,
)
from tabhub.http.known_heads import HEAD, TOOLS, Head
from tabhub.http.responses import JSON, Receive, Scope, Send, read_body, respond
from tabhub.limits import Limits
from tabhub.mcp.handshake import HandshakeEdge
from tabhub.mcp.stateless import StatelessEdge
from tabhub.wire import strict_json as strict
from tabhub.wire.jsonrpc import Message, Request, encode_error, encode_failure, id_of, parse
from tabhub.wire.mcp import HANDSHAKE_VERSIONS, ROUTING_HEADERS, error_status, refuse_doubled

Headers = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Edge:
    """What the headers of a request say of its era."""

    version: str
    stateless: bool


class McpEndpoint:
    """`/mcp` or `/mcp/gateway`."""

    def __init__(
        self,
        handshake: HandshakeEdge,
        stateless: StatelessEdge,
        limits: Limits,
        *,
        select: Callable[[str], Any],
    ) -> None:
        self.handshake = handshake
        self.stateless = stateless
        self._limits = limits
        self._select = select
        """Reads a selection of tools; one that is wrong is refused with the first request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        head: Head = scope[HEAD]
        try:
            edge = self._edge(head)
            method = scope["method"]
            if method == "POST":
                self._expect_json(head.headers)
                head.facts = edge
                await self.post(head, await read_body(receive, self._limits), receive, send)
            elif edge.stateless or method not in ("GET", "DELETE"):
                allow = b"POST" if edge.stateless else b"POST, GET, DELETE"
                body = encode_error(None, -32600, f"{method} is not used here.")
                await respond(send, 405, body, [JSON, (b"allow", allow)])
            elif method == "GET":
                await self.handshake.listen(head.headers, receive, send)
            else:
                await self.handshake.delete(head.headers, send)
        except ClientDisconnected:
            return
        except TabhubError as error:
            await _refuse(send, None, error, _status(error))

    async def post(self, head: Head, body: bytes, receive: Receive, send: Send) -> None:
        """Serve one POST whose body is there."""
        value: Any = None
        request = False
        try:
            if (edge := head.facts) is None:
                edge = self._edge(head)
                self._expect_json(head.headers)
                head.facts = edge
            value = strict.decode(body, self._limits)
            if edge.stateless:
                message = parse(value)
                request = type(message) is Request
                await self.stateless.post(message, edge.version, head, receive, send)
            elif type(value) is list:
                await self.handshake.batch([_parse_each(v) for v in value], head.headers, receive, send)
            else:
                await self.handshake.post(parse(value), head.headers, receive, send)
        except ClientDisconnected:
            return
        except TabhubError as error:
            await _refuse(send, value, error, error_status(error) if request else _status(error))

    def _edge(self, head: Head) -> Edge:
        """Which era a request is of."""
        if TOOLS in head.headers:
            self._select(head.headers[TOOLS].decode())
        if len(head.headers) != len(head.raw):
            refuse_doubled(head.raw, ROUTING_HEADERS)
        version = head.headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        return Edge(version, bool(version) and version not in HANDSHAKE_VERSIONS)

    @staticmethod
    def _expect_json(headers: Headers) -> None:
        kind = headers.get(b"content-type", b"")
        if kind != b"application/json" and kind.split(b";")[0].strip().lower() != b"application/json":
            raise UnsupportedMediaType("Send JSON: the Content-Type must be application/json.")
        accept = headers.get(b"accept")
        if accept is not None and b"application/json" not in accept and b"*/*" not in accept:
            raise NotAcceptable("The Accept header must allow application/json and text/event-stream.")


def _status(error: TabhubError) -> int:
    return 400 if isinstance(error, HeaderMismatch) else error.status


async def _refuse(send: Send, value: Any, error: TabhubError, status: int) -> None:
    extra = [JSON]
    retry_after = error.retry_after
    if retry_after is not None:
        extra.append((b"retry-after", b"%d" % retry_after))
    await respond(send, status, encode_failure(id_of(value), error), extra)


def _parse_each(value: Any) -> Message | InvalidRequest:
    try:
        return parse(value)
    except InvalidRequest as error:
        return error
