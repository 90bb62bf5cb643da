"""The guard: what every request passes on its way to its route. Order: Host, Origin, size, token, rate.

Owns the order, the table of what each path serves, and what a token opens: the person's key opens everything, a named
token is one agent's and opens what agents use, or a reader's of metrics and opens nothing else. Whose an Authorization
header is, the server says; other verdicts are trust/'s. The size of a body is checked here where it is announced,
otherwise while it is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tabhub.errors import Forbidden, MethodNotAllowed, NotFound, RateLimited, TabhubError, TooLarge, Unauthorized
from tabhub.http.messages import Request, Response, Route, error_response
from tabhub.http.websocket import WebSocketRoute
from tabhub.limits import Limits
from tabhub.trust.guard import allowed_hosts, origin_allowed
from tabhub.trust.sliding_window import SlidingWindow


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a path serves, and to whom."""

    methods: Mapping[str, Route]
    """By method; under `*` a route that looks at the method itself."""
    audience: Literal["person", "agents", "metrics", "anyone"] = "person"


@dataclass(frozen=True, slots=True)
class Identity:
    """Who sends a request."""

    name: str
    person: bool = False
    """Whether it is the person, who may do everything; otherwise an agent."""
    admitted: bool = True
    """Whether an agent with this token may call tools."""
    metrics: bool = False
    """Whether it is no agent, but a program that reads the metrics."""
    opens: frozenset[str] = field(init=False, repr=False)
    """The audiences that it belongs to."""

    def __post_init__(self) -> None:
        agent = ("agents",) if self.admitted else ()
        audiences = ("person", "agents", "metrics") if self.person else ("metrics",) if self.metrics else agent
        object.__setattr__(self, "opens", frozenset(audiences))


_NOTHING = Endpoint({}, "agents")
"""An unknown path: an error for everyone who has a token."""


class Guard:
    """The HTTP application of a hub (http.protocol.Application)."""

    def __init__(
        self,
        port: int,
        limits: Limits,
        identify: Callable[[bytes], Identity | None],
        *,
        clock: Callable[[], float],
        endpoints: Mapping[str, Endpoint],
        websockets: Mapping[str, Callable[[Request], WebSocketRoute]],
        refused: Counter[int],
    ) -> None:
        """`endpoints` are by path, in which `*` stands for any text; `refused` counts refused requests by status."""
        self._port = port
        self._hosts = allowed_hosts(port)
        self._limits = limits
        self._clock = clock
        self._endpoints = endpoints
        patterns = {path: re.escape(path).replace(r"\*", ".*") for path in endpoints if "*" in path}
        self._patterns = [(re.compile(pattern, re.DOTALL), endpoints[path]) for path, pattern in patterns.items()]
        self._websockets = websockets
        self._failures = SlidingWindow(limits.auth_failure_rate)
        self._identify = identify
        self._refused = refused

    def route(self, request: Request) -> Route:
        self._check_place(request)
        endpoint = self._endpoints.get(request.path) or self._match(request.path)
        authorization = request.headers.get(b"authorization")
        identity = self._identify(authorization) if authorization is not None else None
        if identity is not None:
            request.agent, request.person = identity.name, identity.person
        audience = endpoint.audience
        if audience != "anyone" and (identity is None or audience not in identity.opens):
            raise self._no_access(request, identity, audience)
        route = endpoint.methods.get(request.method) or endpoint.methods.get("*")
        if route is not None:
            return route
        if endpoint.methods:
            raise MethodNotAllowed(f"This address takes {', '.join(endpoint.methods)}, not {request.method[:20]}.")
        raise NotFound("There is nothing at this address.", hint="docs/protocol.md lists the endpoints.")

    def refusal(self, request: Request, error: TabhubError) -> Response:
        self._refused[error.status] += 1
        return error_response(error)

    def websocket(self, request: Request) -> WebSocketRoute:
        try:
            self._check_place(request)
            if (open_socket := self._websockets.get(request.path)) is None:
                raise NotFound("There is no WebSocket at this address.")
            return open_socket(request)
        except TabhubError as error:
            self._refused[error.status] += 1
            raise

    def _match(self, path: str) -> Endpoint:
        return next((endpoint for pattern, endpoint in self._patterns if pattern.fullmatch(path)), _NOTHING)

    def _check_place(self, request: Request) -> None:
        """Check where a request comes from and the size it announces."""
        headers = request.headers
        if len(headers) != len(request.raw_headers):
            _check_repeats(request)
        if headers.get(b"host", b"").lower() not in self._hosts:
            raise Forbidden(
                "The Host header does not name this hub.",
                hint=f"Use 127.0.0.1:{self._port} or localhost:{self._port}.",
            )
        if b"origin" in headers and not origin_allowed((headers[b"origin"],)):
            raise Forbidden("Requests from web pages and other extensions are refused.")
        length = headers.get(b"content-length")  # a number, or the parser would have refused the request
        if length is not None and int(length) > self._limits.max_body:
            raise TooLarge(f"The request body is larger than {self._limits.max_body} bytes.")

    def _no_access(self, request: Request, identity: Identity | None, audience: str) -> TabhubError:
        """The error for a request without a token that opens the path; many wrong ones are rate-limited."""
        if identity is not None:
            if identity.metrics:
                return Forbidden("This token opens /metrics and nothing else.")
            if audience != "agents":
                return Forbidden(
                    "This address is for the person; an agent's token does not open it.",
                    hint="An agent's token opens /mcp, /mcp/gateway and /tools.",
                )
            return Unauthorized(
                "The shared secret of version 0.1.0 is no longer accepted: each agent needs its own token.",
                hint="The person replaces it: tabhub setup --migrate, or tabhub token create NAME.",
            )
        retry_after = self._failures.hit("all", self._clock())
        if retry_after is not None:
            return RateLimited("Too many requests with a wrong token.", retry_after=int(retry_after) + 1)
        what = "wrong" if b"authorization" in request.headers else "missing"
        return Unauthorized(
            f"The token is {what}.",
            hint="Send `Authorization: Bearer <token>`. The person creates a token: tabhub token create NAME.",
        )


def _check_repeats(request: Request) -> None:
    """Readers would disagree on which of two counts: a repeated Host or Origin is as bad as a wrong one."""
    names = [name for name, _ in request.raw_headers]
    if names.count(b"host") > 1 or names.count(b"origin") > 1:
        raise Forbidden("The Host or Origin header appears more than once.")
    if names.count(b"authorization") > 1:
        request.headers[b"authorization"] = b""
