"""MCP over HTTP at a relay: `/mcp` for any client with a token, and metadata for OAuth clients.

Owns the checks before an engine receives a request: origin, size, token. Engines belong to pool.py, MCP itself to mcp/.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import IPv6Address, IPv6Network, ip_address
from pathlib import Path

from tabhub.errors import (
    BadInput,
    Busy,
    Forbidden,
    InvalidToken,
    MethodNotAllowed,
    RateLimited,
    TabhubError,
    TooLarge,
    Unauthorized,
    UnknownSigningKey,
)
from tabhub.http.messages import JSON, Header, Request, Response, Route, error_response, json_response, retry_after
from tabhub.http.write_batch import WriteBatch
from tabhub.relay.engines.forwarding import Forwarding
from tabhub.relay.engines.metadata import MCP, WELL_KNOWN, RelayUrl, challenge, document
from tabhub.relay.engines.pool import RelayEngines
from tabhub.relay.engines.session_ids import SessionIds
from tabhub.relay.node import Node
from tabhub.trust.guard import origin_allowed
from tabhub.trust.jwt import Claims
from tabhub.trust.sliding_window import SlidingWindow
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
        place: RelayUrl,
        batch: WriteBatch,
        *,
        auth_servers: Sequence[str] = (),
        audit_file: Path | None = None,
        behind_proxy: bool = False,
        session_secret: bytes = b"",
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Behind a proxy, the last address in X-Forwarded-For is the client's; all nodes share `session_secret`."""
        self._node = node
        self._behind_proxy = behind_proxy
        self._failures = SlidingWindow(node.limits.auth_failure_rate)
        self._place = place
        self._auth_servers = tuple(auth_servers)
        self._wall = wall
        self._ids = SessionIds(node.bus.node, session_secret)
        self.engines = RelayEngines(node, batch, new_id=self._ids.new, audit_file=audit_file, wall=wall)
        self._forwarding = Forwarding(node, self._serve_forwarded, self.refusal)

    def route(self, request: Request) -> Route | None:
        """The route of a request; refuses what can be refused without its body."""
        if request.path not in (MCP, WELL_KNOWN, WELL_KNOWN + MCP):
            return None
        _check_headers(request)
        self._place.base(request.headers)
        if request.path != MCP:
            return self._metadata
        token = bearer(request.headers.get(b"authorization"), self._node.limits.relay_token)
        if b"authorization" not in request.headers:
            raise Unauthorized(
                "This relay requires a token.",
                hint="Send `Authorization: Bearer TOKEN`; the relay's operator issues tokens.",
            )
        length = int(request.headers.get(b"content-length", b"0")[:20])
        if length > self._node.limits.max_body:
            raise TooLarge(f"The request body is larger than {self._node.limits.max_body} bytes.")
        verdict = InvalidToken("not a bearer token") if token is None else self._node.check_token(token.decode())
        if token is not None and isinstance(verdict, UnknownSigningKey):
            if length > self._node.limits.relay_stranger or b"transfer-encoding" in request.headers:
                raise Busy("The key of this token is not loaded yet.", hint="Send the request again in a few seconds.")
            return partial(self._fetch_key_and_serve, token.decode())
        return partial(self._serve, self._valid(verdict, request))

    def refusal(self, request: Request, error: TabhubError) -> Response:
        """The response to a refused request; without a valid token, it says how to get one."""
        if request.path != MCP:
            return error_response(error)
        headers: tuple[Header, ...] = (JSON, *retry_after(error))
        if isinstance(error, Unauthorized):
            problem = "The token is not valid." if b"authorization" in request.headers else None
            headers += ((b"www-authenticate", challenge(self._place.base(request.headers), problem)),)
        return Response(error.status, encode_failure(None, error), headers)

    async def _metadata(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("Use GET.")
        base = self._place.base(request.headers)
        return json_response(document(base, self._auth_servers), 200, _NO_STORE)

    async def _fetch_key_and_serve(self, token: str, request: Request) -> Response | None:
        await self._node.keyring.fetch()
        return await self._serve(self._valid(self._node.check_token(token), request), request)

    async def _serve(self, claims: Claims, request: Request) -> Response | None:
        if self._node.draining:
            raise Busy("This relay node is shutting down.", hint="Send the request again; another node may answer.")
        session = _session(request.headers)
        owner = self._ids.node_of(session) if session is not None else None
        if owner is not None and owner != self._node.bus.node:
            return await self._forwarding.forward(owner, request)
        engine = self.engines.find(claims, session)
        request.agent = claims.user  # sessions belong to a user: the token of another does not find them
        return await self._node.fair_share.run(claims.user, engine.serve(request))

    async def _serve_forwarded(self, request: Request) -> Response | None:
        """A request that arrived at another node: it is checked here again."""
        route = self.route(request)
        return await route(request) if route is not None else None

    def _valid(self, verdict: Claims | InvalidToken, request: Request) -> Claims:
        if isinstance(verdict, Claims):
            try:
                verdict.for_role("agent")
            except InvalidToken as refused:
                verdict = refused
        if isinstance(verdict, InvalidToken) or verdict.expires <= self._wall():
            retry_after = self._failures.hit(client_address(request, self._behind_proxy), self._node.clock())
            if retry_after is not None:
                request.keep_alive = False
                raise RateLimited("Too many requests with a wrong token.", retry_after=int(retry_after) + 1)
            if isinstance(verdict, InvalidToken):
                self._node.token_refused(verdict)
            raise Unauthorized(
                "The token is not valid: it may have expired, been revoked, or be for something else.",
                hint="Get a new one from the relay's operator; `tabhub relay token inspect` shows its claims.",
            )
        return verdict


def client_address(request: Request, behind_proxy: bool) -> str:
    """The address by which wrong tokens are counted: one client has all of an IPv6 network of 64 bits."""
    text = request.peer or ""
    if behind_proxy:
        forwarded = [value for name, value in request.raw_headers if name == b"x-forwarded-for"]
        text = forwarded[-1].rpartition(b",")[2].strip().decode("latin-1") if forwarded else text
    try:
        address = ip_address(text)
    except ValueError:
        return ""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is None:
        return str(IPv6Network((address, 64), strict=False))
    return str(getattr(address, "ipv4_mapped", None) or address)


def _check_headers(request: Request) -> None:
    """Refuse web pages, and headers that two parsers could interpret differently."""
    headers = request.headers
    if len(headers) != len(request.raw_headers):
        names = [name for name, _ in request.raw_headers if name in _ONCE]
        if len(names) != len(set(names)):
            raise BadInput("A header that must be unique is sent more than once.")
    if b"origin" in headers and not origin_allowed((headers[b"origin"],)):
        raise Forbidden("Requests from web pages and other extensions are refused.")
    if not headers.get(b"content-length", b"0").isdigit():
        raise BadInput("Content-Length is not a number.")


def _session(headers: dict[bytes, bytes]) -> str | None:
    """The session that a request of the handshake era names; stateless requests have none."""
    version = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
    if version and version not in HANDSHAKE_VERSIONS:
        return None
    session = headers.get(b"mcp-session-id")
    return None if session is None else session.decode("latin-1")
