"""The MCP endpoint: one per surface, both eras. Reads a request, finds its era, hands it to that era's edge.

Owns the HTTP rules common to both (methods, Accept, body, JSON-RPC shape); the eras are mcp_handshake.py and
mcp_stateless.py.
"""

from __future__ import annotations

from typing import Any

from tabhub.errors import InvalidRequest, TabhubError
from tabhub.limits import Limits
from tabhub.server.http import JSON, Disconnected, Receive, Scope, Send, read_body, respond
from tabhub.server.mcp_handshake import HandshakeEdge
from tabhub.server.mcp_stateless import StatelessEdge
from tabhub.wire import strict
from tabhub.wire.jsonrpc import Message, encode_error, encode_failure, id_of, parse
from tabhub.wire.mcp import HANDSHAKE_VERSIONS, ROUTING_HEADERS, HeaderMismatch, refuse_doubled

Headers = dict[bytes, bytes]


class NotAcceptable(TabhubError):
    """The client does not accept what this endpoint answers."""

    code = -32600
    status = 406
    category = "validation"


class McpEndpoint:
    """`/mcp` or `/mcp/gateway`."""

    def __init__(self, handshake: HandshakeEdge, stateless: StatelessEdge, limits: Limits) -> None:
        self.handshake = handshake
        self.stateless = stateless
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        value: Any = None
        try:
            headers: Headers = scope["tabhub.headers"]
            if len(headers) != len(scope["headers"]):
                refuse_doubled(scope["headers"], ROUTING_HEADERS)
            version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
            stateless = bool(version) and version not in HANDSHAKE_VERSIONS
            method = scope["method"]
            if method == "POST":
                self._expect_json(headers)
                value = strict.decode(await read_body(receive, self._limits), self._limits)
                if stateless:
                    await self.stateless.post(parse(value), version, headers, scope, receive, send)
                elif type(value) is list:
                    await self.handshake.batch([_parse_each(v) for v in value], headers, receive, send)
                else:
                    await self.handshake.post(parse(value), headers, receive, send)
            elif stateless or method not in ("GET", "DELETE"):
                allow = b"POST" if stateless else b"POST, GET, DELETE"
                body = encode_error(None, -32600, f"{method} is not used here.")
                await respond(send, 405, body, [JSON, (b"allow", allow)])
            elif method == "GET":
                await self.handshake.listen(headers, receive, send)
            else:
                await self.handshake.delete(headers, send)
        except Disconnected:
            return
        except TabhubError as error:
            extra = [JSON]
            retry_after = getattr(error, "retry_after", None)
            if retry_after is not None:
                extra.append((b"retry-after", b"%d" % retry_after))
            status = 400 if isinstance(error, HeaderMismatch) else error.status
            await respond(send, status, encode_failure(id_of(value), error), extra)

    @staticmethod
    def _expect_json(headers: Headers) -> None:
        kind = headers.get(b"content-type", b"")
        if kind != b"application/json" and kind.split(b";")[0].strip().lower() != b"application/json":
            raise UnsupportedMedia("Send JSON: the Content-Type must be application/json.")
        accept = headers.get(b"accept")
        if accept is not None and b"application/json" not in accept and b"*/*" not in accept:
            raise NotAcceptable("The Accept header must allow application/json and text/event-stream.")


class UnsupportedMedia(TabhubError):
    """The body is not JSON."""

    code = -32600
    status = 415
    category = "validation"


def _parse_each(value: Any) -> Message | InvalidRequest:
    try:
        return parse(value)
    except InvalidRequest as error:
        return error
