"""The MCP endpoint: one per surface, both eras. Reads a request, finds its era, hands it to that era's edge.

Owns the HTTP rules common to both (methods, Accept, body, JSON-RPC shape); the eras are handshake.py and stateless.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from tabhub.errors import HeaderMismatch, InvalidRequest, NotAcceptable, TabhubError, UnsupportedMediaType
from tabhub.http.messages import JSON, Request, Response, retry_after
from tabhub.limits import Limits
from tabhub.mcp.handshake import HandshakeEdge
from tabhub.mcp.stateless import StatelessEdge
from tabhub.wire import strict_json as strict
from tabhub.wire.jsonrpc import Message, encode_error, encode_failure, id_of, parse
from tabhub.wire.jsonrpc import Request as RpcRequest
from tabhub.wire.mcp import HANDSHAKE_VERSIONS, ROUTING_HEADERS, error_status, refuse_doubled

_HANDSHAKE = frozenset({None, *(version.encode() for version in HANDSHAKE_VERSIONS)})
"""The MCP-Protocol-Version header in the handshake era, in which it may be missing."""


@dataclass(eq=False)
class McpEndpoint:
    """`/mcp` or `/mcp/gateway`."""

    handshake: HandshakeEdge
    stateless: StatelessEdge
    limits: Limits
    check_selection: Callable[[str], object]
    """Raises InvalidParams for an invalid selection of tools (`/mcp?tools=core`)."""

    async def serve(self, request: Request) -> Response | None:
        value: Any = None
        is_request = False
        headers = request.headers
        try:
            tools = self._check(request) if request.query or len(headers) != len(request.raw_headers) else None
            version = headers.get(b"mcp-protocol-version")
            stateless = version not in _HANDSHAKE
            if request.method != "POST":
                return await self._serve_other(request, tools, stateless=stateless)
            kind = headers.get(b"content-type", b"")
            if kind != b"application/json" and kind.split(b";")[0].strip().lower() != b"application/json":
                raise UnsupportedMediaType("Send JSON: the Content-Type must be application/json.")
            accept = headers.get(b"accept", b"*/*")
            if b"application/json" not in accept and b"*/*" not in accept:
                raise NotAcceptable("The Accept header must allow application/json and text/event-stream.")
            value = strict.decode(request.body, self.limits)
            if version is not None and stateless:
                message = parse(value)
                is_request = type(message) is RpcRequest
                return await self.stateless.post(message, version.decode("latin-1"), request, tools)
            if type(value) is list:
                return await self.handshake.batch([_parse_each(v) for v in value], request, tools)
            return await self.handshake.post(parse(value), request, tools)
        except TabhubError as error:
            status = error_status(error) if is_request or isinstance(error, HeaderMismatch) else error.status
            return Response(status, encode_failure(id_of(value), error), (JSON, *retry_after(error)))

    async def _serve_other(self, request: Request, tools: str | None, *, stateless: bool) -> Response | None:
        if request.method == "GET" and not stateless:
            await self.handshake.listen(request, tools)
            return None
        if request.method == "DELETE" and not stateless:
            return self.handshake.delete(request, tools)
        allow = b"POST" if stateless else b"POST, GET, DELETE"
        body = encode_error(None, -32600, f"{request.method} is not used here.")
        return Response(405, body, (JSON, (b"allow", allow)))

    def _check(self, request: Request) -> str | None:
        """The selection of tools the URL names; refuses headers that must not be repeated."""
        tools = parse_qs(request.query.decode("latin-1")).get("tools")
        selection = None if tools is None else ",".join(tools)
        if selection is not None:
            self.check_selection(selection)
        refuse_doubled(request.raw_headers, ROUTING_HEADERS)
        return selection


def _parse_each(value: Any) -> Message | InvalidRequest:
    try:
        return parse(value)
    except InvalidRequest as error:
        return error
