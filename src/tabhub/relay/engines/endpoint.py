"""MCP over HTTP at a relay: `/mcp` for any client with a token, and the metadata OAuth clients look for.

Owns what a request passes before an engine sees it: where it comes from, its size, its token. Engines are
http_engines.py's; everything that is MCP is the server's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tabhub.errors import (
    BadInput,
    Busy,
    ClientDisconnected,
    Forbidden,
    InvalidToken,
    MethodNotAllowed,
    TabhubError,
    TooLarge,
    Unauthorized,
)
from tabhub.http.known_heads import HEAD, TOKEN, Head, with_query
from tabhub.http.responses import JSON, Header, Receive, Scope, Send, respond, respond_json
from tabhub.relay.engines.metadata import MCP, WELL_KNOWN, Place, challenge, document
from tabhub.relay.engines.pool import RelayedEngines
from tabhub.relay.node import Node
from tabhub.relay.routes import Route
from tabhub.trust.guard import origin_allowed
from tabhub.trust.jwt import Claims
from tabhub.trust.tokens import bearer
from tabhub.wire.jsonrpc import encode_failure
from tabhub.wire.mcp import HANDSHAKE_VERSIONS

_ONCE = frozenset({b"host", b"origin", b"authorization", b"mcp-session-id", b"mcp-protocol-version"})
_NO_STORE = (b"cache-control", b"no-store")


class RelayHttp:
    """The HTTP side of one node."""

    def __init__(
        self,
        node: Node,
        place: Place,
        *,
        auth_servers: Sequence[str] = (),
        audit_file: Path | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._node = node
        self._place = place
        self._auth_servers = tuple(auth_servers)
        self._wall = wall
        self.engines = RelayedEngines(node, audit_file=audit_file, wall=wall)

    def routes(self) -> dict[str, Route]:
        """By path, for the relay's app."""
        return {MCP: self._mcp, WELL_KNOWN: self._metadata, WELL_KNOWN + MCP: self._metadata}

    async def _metadata(self, scope: Scope, _: Receive, send: Send) -> None:
        if scope["method"] not in ("GET", "HEAD"):
            raise MethodNotAllowed("This address takes GET.")
        base = self._place.base(_headers(scope))
        await respond_json(send, document(base, self._auth_servers), headers=[_NO_STORE])

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        more: list[Header] = []
        try:
            headers = _headers(scope)
            base = self._place.base(headers)
            try:
                claims = await self._claims(headers)
            except Unauthorized as error:
                known = b"authorization" in headers
                more.append((b"www-authenticate", challenge(base, "The token is not valid." if known else None)))
                raise error
            if int(headers.get(b"content-length", b"0")[:20]) > self._node.limits.max_body:
                raise TooLarge(f"The request body is larger than {self._node.limits.max_body} bytes.")
            if self._node.closing:
                raise Busy("This relay node is ending; another one may answer.", hint="Send the request once more.")
            engine = self.engines.find(claims, _session(headers))
            told = with_query(headers, scope["query_string"]) if scope["query_string"] else headers
            # A session is its user's: whoever shows another user's token does not find it.
            scope[HEAD] = Head(MCP, scope["headers"], {**told, TOKEN: claims.user.encode()})
            await self._node.fair_share.run(claims.user, engine.serve(scope, receive, send))
        except ClientDisconnected:
            return
        except TabhubError as error:
            await _refuse(send, error, more)

    async def _claims(self, headers: dict[bytes, bytes]) -> Claims:
        """Who sent a request, or Unauthorized."""
        given = headers.get(b"authorization")
        if given is None:
            raise Unauthorized(
                "This relay needs a token.",
                hint="Send `Authorization: Bearer TOKEN`; whoever runs the relay issues it.",
            )
        token = bearer(given, self._node.limits.relay_token)
        verdict = (
            await self._node.verify_token(token.decode()) if token is not None else InvalidToken("not a bearer token")
        )
        if isinstance(verdict, InvalidToken) or verdict.expires <= self._wall():
            raise Unauthorized(
                "The token is not valid: it may have ended, been revoked, or be for something else.",
                hint="Get a new one from whoever runs the relay; `tabhub relay token inspect` shows what it says.",
            )
        return verdict


def _headers(scope: Scope) -> dict[bytes, bytes]:
    """The headers by name; web pages are refused, and what two readers could read differently."""
    raw: list[Header] = scope["headers"]
    headers = dict(raw)
    if len(headers) != len(raw):
        names = [name for name, _ in raw if name in _ONCE]
        if len(names) != len(set(names)):
            raise BadInput("A header that must be there once is there more than once.")
    if b"origin" in headers and not origin_allowed((headers[b"origin"],)):
        raise Forbidden("Requests from web pages and other extensions are refused.")
    if not headers.get(b"content-length", b"0").isdigit():
        raise BadInput("The Content-Length is not a number.")
    return headers


def _session(headers: dict[bytes, bytes]) -> str | None:
    """The session a request of the handshake era names; later revisions have none."""
    version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
    if version and version not in HANDSHAKE_VERSIONS:
        return None
    session = headers.get(b"mcp-session-id")
    return None if session is None else session.decode("latin-1")


async def _refuse(send: Send, error: TabhubError, more: list[Header]) -> None:
    retry_after = error.retry_after
    if retry_after is not None:
        more = [*more, (b"retry-after", b"%d" % retry_after)]
    await respond(send, error.status, encode_failure(None, error), [JSON, *more])
