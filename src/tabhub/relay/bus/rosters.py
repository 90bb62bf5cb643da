"""The roster of a user this node has joined: the other nodes that have clients of that user, and their browsers.

Owns when a roster is complete. Pure. Each node answers the query of a new node with its own browsers and with the other
nodes it knows; the roster is complete when every node that was named has answered, or when there is no other node.
Afterwards nodes announce changes only; one who has missed a change asks for the list.
"""

from __future__ import annotations

from asyncio import Future
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

from tabhub.relay.bus.interface import Presence
from tabhub.wire.nodes import Browsers, BrowsersChanged, QueryReply


def subject_of(user: str) -> str:
    """The last part of a user's bus subjects, which does not reveal the name."""
    return sha256(b"tabhub-relay-user:" + user.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class OwnBrowser(NamedTuple):
    """What a node says of one of its browsers."""

    name: str
    admitted: int


@dataclass(slots=True)
class Member:
    """A node that has or had clients of the user."""

    version: int
    browsers: dict[str, OwnBrowser]
    here: bool = True
    asked: bool = False
    """Whether its list was requested, because a change was missed."""


@dataclass(slots=True)
class Roster:
    """The other nodes with clients of one user."""

    user: str
    joined: bool = False
    created: int = 0
    """The version of this node's announcements when it joined the user."""
    version: int = 0
    """The version of this node's last announcement for the user."""
    own: dict[str, OwnBrowser] = field(default_factory=dict)
    """The user's browsers on this node, by id."""
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
        return tuple(sorted((ident, *browser) for ident, browser in self.own.items()))

    def browsers(self) -> tuple[Presence, ...]:
        """The browsers on other nodes, ordered by id."""
        found = [
            Presence(self.user, ident, name, node, admitted)
            for node, member in self.members.items()
            for ident, (name, admitted) in member.browsers.items()
        ]
        return tuple(sorted(found, key=lambda browser: (browser.extension_id, browser.node)))

    def begin_query(self, deadline: float) -> None:
        self.answered, self.deadline = False, deadline

    def update(self, node: str, version: int, browsers: Browsers, *, here: bool = True) -> bool:
        """Apply the whole state of one node; returns whether its browsers changed. Older versions are ignored."""
        self.missing.discard(node)
        found = {ident: OwnBrowser(name, admitted) for ident, name, admitted in browsers}
        member = self.members.get(node)
        if member is None:
            self.members[node] = Member(version, found, here)
            return bool(found)
        member.asked = False
        if version <= member.version:
            return False
        changed = member.browsers != found
        member.version, member.browsers, member.here = version, found, here
        return changed

    def change(self, message: BrowsersChanged) -> bool | None:
        """Apply a change of one node; returns whether its browsers changed. None: an earlier one is missing."""
        member = self.members.get(message.node)
        if member is not None and message.version <= member.version:
            return False
        if member is None or not member.here or member.version != message.since:
            return None
        gone = [ident for ident in message.left if member.browsers.pop(ident, None) is not None]
        for ident, name, admitted in message.joined:
            member.browsers[ident] = OwnBrowser(name, admitted)
        member.version = message.version
        return bool(gone or message.joined)

    def must_ask(self, node: str) -> bool:
        """Whether its list has to be requested, and has not been yet."""
        member = self.members.get(node)
        if member is None:
            self.members[node] = Member(-1, {}, asked=True)
            if self.deadline is not None:
                self.missing.add(node)
            return True
        asked, member.asked = member.asked, True
        return not asked

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
