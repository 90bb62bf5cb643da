"""What a relay keeps in mind, and what it wants done: records and effects, without behaviour.

Owns their shape only. A client is a number the server gave to one WebSocket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from tabhub.limits import Limits
from tabhub.relay.bus.interface import Presence
from tabhub.trust.leaky_bucket import LeakyBucket
from tabhub.wire.jsonrpc import Id
from tabhub.wire.nodes import NodeMessage


class Send(NamedTuple):
    """A text message for a client."""

    client: int
    data: bytes


class Close(NamedTuple):
    """End a client's WebSocket; the relay has already forgotten the client."""

    client: int
    code: int
    reason: str


class VerifyToken(NamedTuple):
    """Judge a token, and tell by `verified`."""

    client: int
    token: str


class FindBrowsers(NamedTuple):
    """Ask the bus for a user's browsers, and tell by `found`."""

    ticket: int
    user: str


class ToNode(NamedTuple):
    """A message for another node."""

    node: str
    message: NodeMessage


class Announce(NamedTuple):
    """A browser is here, or no longer."""

    browser: Presence
    here: bool


class Membership(NamedTuple):
    """The first client of a user came, or the last one left."""

    user: str
    here: bool


class ReportUsage(NamedTuple):
    """How many messages of a user were taken since the last time."""

    user: str
    messages: int


class Log(NamedTuple):
    """Something for the log."""

    event: str
    facts: Mapping[str, Any]


Effect = Send | Close | VerifyToken | FindBrowsers | ToNode | Announce | Membership | ReportUsage | Log


@dataclass(slots=True)
class Counts:
    """What has been counted since the start."""

    forwarded: int = 0
    answered: int = 0
    failed: int = 0
    notices: int = 0
    late: int = 0
    foreign: int = 0
    malformed: int = 0
    rate_limited: int = 0
    timed_out: int = 0
    auth_failed: int = 0
    authenticated: int = 0
    replaced: int = 0
    expired: int = 0
    node_messages: int = 0


@dataclass(slots=True, eq=False)
class User:
    """Everyone of one user on this node."""

    name: str
    pace: LeakyBucket
    agents: dict[int, Agent] = field(default_factory=dict)
    browsers: dict[str, Browser] = field(default_factory=dict)
    elsewhere: int = 0
    """Browsers on other nodes, as last heard."""
    taken: int = 0
    """Messages the other nodes have not been told of."""


@dataclass(slots=True, eq=False)
class Client:
    """What agents and browsers have in common."""

    client: int
    pace: LeakyBucket
    due: float
    """When it must have authenticated; from then on, when its token ends."""
    user: User | None = None
    token_id: str = ""
    verifying: bool = False


@dataclass(slots=True, eq=False)
class Agent(Client):
    """An agent's WebSocket."""

    ident: str = ""
    asked: Id | None = None
    """The id of the handshake or refresh whose token is being judged."""
    connection: Connection | None = None
    opening: Opening | None = None


@dataclass(slots=True, eq=False)
class Browser(Client):
    """A browser's WebSocket."""

    number: int = 1
    """Of the last `authenticate` sent to it."""
    asked: bool = True
    ask_at: float = float("inf")
    name: str = ""
    instance: str | None = None
    ident: str = ""
    connections: dict[str, Connection] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Opening:
    """A `connect` that waits for another node."""

    asked: Id
    extension_id: str
    due: float
    connection: str = ""
    node: str | None = None
    name: str = ""


class Pending(msgspec.Struct, gc=False, frozen=True):
    """A forwarded request without an answer yet."""

    ident: Id
    due: float


@dataclass(slots=True, eq=False)
class Connection:
    """One agent at one browser. Of agent and browser at least one is on this node; the other may be on `node`."""

    ident: str
    user: User
    extension_id: str
    agent: Agent | None
    browser: Browser | None
    node: str | None
    pending: dict[str, Pending] = field(default_factory=dict)
    """By mapped id; kept where the agent is."""


@dataclass(slots=True)
class Tables:
    """Everything, by what it is found by."""

    node: str
    limits: Limits
    counts: Counts = field(default_factory=Counts)
    users: dict[str, User] = field(default_factory=dict)
    agents: dict[int, Agent] = field(default_factory=dict)
    browsers: dict[int, Browser] = field(default_factory=dict)
    connections: dict[str, Connection] = field(default_factory=dict)
    by_node: dict[str, dict[str, Connection]] = field(default_factory=dict)
    out: list[Effect] = field(default_factory=list)
    """What is to be done; whoever called takes it."""
