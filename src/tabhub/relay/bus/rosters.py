"""The roster of a user this node has joined: the other nodes that have clients of that user, and their browsers.

Owns when a roster is complete. Pure. Each node answers the query of a new node with its own browsers and with the other
nodes it knows; the roster is complete when every node that was named has answered, or when there is no other node.
"""

from __future__ import annotations

from asyncio import Future
from dataclasses import dataclass, field
from hashlib import sha256

from tabhub.relay.bus.interface import Presence
from tabhub.wire.nodes import Browsers, QueryReply


def subject_of(user: str) -> str:
    """The last part of a user's bus subjects, which does not reveal the name."""
    return sha256(b"tabhub-relay-user:" + user.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True)
class Member:
    """A node that has or had clients of the user."""

    version: int
    browsers: Browsers
    here: bool = True


@dataclass(slots=True)
class Roster:
    """The other nodes with clients of one user."""

    user: str
    joined: bool = False
    own: dict[str, str] = field(default_factory=dict)
    """Names of the user's browsers on this node, by id."""
    members: dict[str, Member] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    """Nodes that were named and have not answered."""
    answered: bool = False
    deadline: float | None = 0.0
    """When it counts as complete in any case; None: it is complete."""
    stale: bool = False
    """It was complete once and is being queried again."""
    waiting: list[Future[None]] = field(default_factory=list)
    """Those who wait until it is complete."""

    @property
    def complete(self) -> bool:
        return self.deadline is None

    @property
    def own_browsers(self) -> Browsers:
        return tuple(sorted(self.own.items()))

    def browsers(self) -> tuple[Presence, ...]:
        """The browsers on other nodes, ordered by id."""
        found = [
            Presence(self.user, ident, name, node)
            for node, member in self.members.items()
            for ident, name in member.browsers
        ]
        return tuple(sorted(found, key=lambda browser: (browser.extension_id, browser.node)))

    def begin_query(self, deadline: float) -> None:
        self.answered, self.deadline = False, deadline

    def update(self, node: str, version: int, browsers: Browsers, *, here: bool = True) -> bool:
        """Apply the state of one node; returns whether its browsers changed. Older versions are ignored."""
        self.missing.discard(node)
        member = self.members.get(node)
        if member is None:
            self.members[node] = Member(version, browsers, here)
            return bool(browsers)
        if version <= member.version:
            return False
        changed = member.browsers != browsers
        member.version, member.browsers, member.here = version, browsers, here
        return changed

    def receive_reply(self, message: QueryReply, own: str) -> bool:
        """Apply a node's reply to the query; returns whether its browsers changed."""
        self.answered = True
        self.missing.update(node for node in message.others if node != own and node not in self.members)
        return self.update(message.node, message.version, message.browsers)

    def no_responders(self) -> None:
        self.answered = True

    def remove_node(self, node: str) -> bool:
        """Remove a lost node; returns whether it had browsers."""
        self.missing.discard(node)
        member = self.members.pop(node, None)
        return member is not None and bool(member.browsers)

    def invalidate(self) -> None:
        """Discard what is known after the bus failed; the same nodes are expected to answer again."""
        self.missing.update(node for node, member in self.members.items() if member.here)
        self.members.clear()
        self.stale = self.stale or self.deadline is None
        self.answered, self.deadline = False, 0.0

    def check_complete(self, now: float) -> bool:
        """Whether it became complete by now."""
        if self.deadline is None or not ((self.answered and not self.missing) or now >= self.deadline):
            return False
        self.deadline = None
        self.missing.clear()
        return True
