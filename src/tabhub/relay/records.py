"""The records of a relay's state and the effects it returns.

Owns their shape only, no behaviour. A client is the number the node assigned to one WebSocket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from tabhub.limits import Limits
from tabhub.relay.bus.interface import Presence
from tabhub.trust.jwt import Claims
from tabhub.trust.leaky_bucket import LeakyBucket
from tabhub.wire.jsonrpc import Id
from tabhub.wire.nodes import HttpMessage, NodeMessage


class Send(NamedTuple):
    """Send a text message to a client."""

    client: int
    data: bytes


class Close(NamedTuple):
    """Close a client's WebSocket; the state has already removed the client."""

    client: int
    code: int
    reason: str


class VerifyToken(NamedTuple):
    """Verify a token and report by `token_verified`."""

    client: int
    token: str


class FindBrowsers(NamedTuple):
    """Ask the bus for a user's browsers and report by `browsers_found`."""

    ticket: int
    user: str


class ToNode(NamedTuple):
    """Send a message to another node."""

    node: str
    message: NodeMessage


class Http(NamedTuple):
    """Pass a forwarded request, or a part of its answer, to the HTTP side of this node."""

    node: str
    message: HttpMessage


class Announce(NamedTuple):
    """Announce on the bus that a browser connected or disconnected."""

    browser: Presence
    here: bool


class Membership(NamedTuple):
    """The first client of a user connected, or the last one disconnected."""

    user: str
    here: bool


class ReportUsage(NamedTuple):
    """Report the messages of a user accepted since the last report."""

    user: str
    messages: int


class Log(NamedTuple):
    """Write a log entry."""

    event: str
    facts: Mapping[str, Any]


Effect = Send | Close | VerifyToken | FindBrowsers | ToNode | Http | Announce | Membership | ReportUsage | Log


def _counter(doc: str) -> Any:
    return field(default=0, metadata={"doc": doc})


@dataclass(slots=True)
class Counts:
    """Counters since the start, with their descriptions for metrics."""

    forwarded: int = _counter("Requests forwarded to browsers")
    answered: int = _counter("Replies forwarded to agents")
    failed: int = _counter("Requests that ended without a reply of the browser")
    notices: int = _counter("Notifications forwarded")
    late: int = _counter("Late or duplicate replies, dropped")
    foreign: int = _counter("Replies that match no request, dropped")
    malformed: int = _counter("Malformed messages")
    rate_limited: int = _counter("Messages rejected by a rate limit")
    timed_out: int = _counter("Requests not answered in time")
    auth_failed: int = _counter("Tokens rejected")
    authenticated: int = _counter("Clients authenticated")
    replaced: int = _counter("Browser connections replaced by a newer one")
    expired: int = _counter("Connections closed without a valid token")
    node_messages: int = _counter("Messages from other nodes")


@dataclass(slots=True, eq=False)
class User:
    """The clients of one user on this node."""

    name: str
    bucket: LeakyBucket
    agents: dict[int, Agent] = field(default_factory=dict)
    browsers: dict[str, Browser] = field(default_factory=dict)
    remote_browsers: int = 0
    """Browsers on other nodes, as last reported."""
    unreported: int = 0
    """Messages not reported to other nodes yet."""


@dataclass(slots=True, eq=False)
class Client:
    """What agents and browsers have in common."""

    client: int
    bucket: LeakyBucket
    deadline: float
    """When it must be authenticated; after that, when its token expires."""
    user: User | None = None
    claims: Claims | None = None
    """Those of its token."""
    verifying: bool = False


@dataclass(slots=True, eq=False)
class Agent(Client):
    """An agent's WebSocket."""

    ident: str = ""
    internal: bool = False
    """Whether it is an engine of this node."""
    auth_request: Id | None = None
    """The id of the handshake or refresh whose token is being verified."""
    connection: Connection | None = None
    opening: Opening | None = None


@dataclass(slots=True, eq=False)
class Browser(Client):
    """A browser's WebSocket."""

    auth_number: int = 1
    """The number of the last `authenticate` sent to it."""
    awaiting_token: bool = True
    request_token_at: float = float("inf")
    name: str = ""
    instance: str | None = None
    ident: str = ""
    admitted: int = 0
    """When it was authenticated, by the wall clock, in milliseconds; compared with connections to other nodes."""
    connections: dict[str, Connection] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Opening:
    """A `connect` that waits for another node."""

    request: Id
    extension_id: str
    deadline: float
    connection: str = ""
    node: str | None = None


class Pending(msgspec.Struct, gc=False, frozen=True):
    """A forwarded request without a reply yet."""

    ident: Id
    deadline: float


@dataclass(slots=True, eq=False)
class Connection:
    """One agent connected to one browser. At least one of them is on this node; the other may be on `node`."""

    ident: str
    user: User
    extension_id: str
    agent: Agent | None
    browser: Browser | None
    node: str | None
    pending: dict[str, Pending] = field(default_factory=dict)
    """By mapped id; kept on the agent's node."""
    refuses: bool = False
    """Whether new requests are refused, because a node of it drains."""


@dataclass(slots=True)
class Tables:
    """All records of one node."""

    node: str
    limits: Limits
    counts: Counts = field(default_factory=Counts)
    users: dict[str, User] = field(default_factory=dict)
    agents: dict[int, Agent] = field(default_factory=dict)
    browsers: dict[int, Browser] = field(default_factory=dict)
    connections: dict[str, Connection] = field(default_factory=dict)
    draining: bool = False
    """Whether the node is about to end and admits no one."""
    by_node: dict[str, dict[str, Connection]] = field(default_factory=dict)
    out: list[Effect] = field(default_factory=list)
    """Effects of the current fact."""

    def clients(self) -> list[Agent | Browser]:
        return [*self.agents.values(), *self.browsers.values()]

    def client(self, number: int) -> Agent | Browser | None:
        return self.agents.get(number) or self.browsers.get(number)
