"""Which nodes have someone of a user, and which browsers: what this node knows of the users it has joined.

Owns when that knowledge is complete. Pure. Each node answers a newcomer's question with its own browsers and with the
other nodes it knows of; the newcomer has heard all when each node that was named has answered, or when there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from tabhub.relay.bus.interface import Presence
from tabhub.wire.bus import Browsers, Here


def subject_of(user: str) -> str:
    """The name of a user where others can read it."""
    return sha256(b"tabhub-relay-user:" + user.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass(slots=True)
class Member:
    """A node that has, or had, someone of the user."""

    version: int
    browsers: Browsers
    here: bool = True


@dataclass(slots=True)
class Roster:
    """All about one user."""

    user: str
    subject: str
    held: bool = False
    own: dict[str, str] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    awaited: set[str] = field(default_factory=set)
    """Nodes that were named and have not spoken."""
    answered: bool = False
    due: float | None = 0.0
    """When it counts as complete in any case; None: it is complete."""
    stale: bool = False
    """It was complete once and is asked for anew."""

    @property
    def complete(self) -> bool:
        """Whether all nodes have spoken."""
        return self.due is None

    def browsers(self) -> tuple[Presence, ...]:
        """The browsers on other nodes, in the order of their ids."""
        found = [
            Presence(self.user, ident, name, node)
            for node, member in self.members.items()
            for ident, name in member.browsers
        ]
        return tuple(sorted(found, key=lambda browser: (browser.extension_id, browser.node)))

    def asked(self, due: float) -> None:
        """The question was put to the others."""
        self.answered, self.due = False, due

    def said(self, node: str, version: int, browsers: Browsers, *, here: bool = True) -> bool:
        """What a node says of itself; whether that changes anything. Old news is no news."""
        self.awaited.discard(node)
        member = self.members.get(node)
        if member is None:
            self.members[node] = Member(version, browsers, here)
            return bool(browsers)
        if version <= member.version:
            return False
        changed = member.browsers != browsers
        member.version, member.browsers, member.here = version, browsers, here
        return changed

    def answer(self, message: Here, own: str) -> bool:
        """A node's answer to the question; whether it changes anything."""
        self.answered = True
        heard = set(self.members)
        self.awaited.update(node for node in message.others if node != own and node not in heard)
        return self.said(message.node, message.version, message.browsers)

    def nobody(self) -> None:
        """Nobody was there to be asked."""
        self.answered = True

    def gone(self, node: str) -> bool:
        """A node is lost; whether that changes anything."""
        self.awaited.discard(node)
        member = self.members.pop(node, None)
        return member is not None and bool(member.browsers)

    def forget(self) -> None:
        """What was known no longer counts; the nodes that were here are expected to be so again."""
        self.awaited.update(node for node, member in self.members.items() if member.here)
        self.members.clear()
        self.stale = self.stale or self.due is None
        self.answered, self.due = False, 0.0

    def settle(self, now: float) -> bool:
        """Whether it has just become complete."""
        if self.due is None or not ((self.answered and not self.awaited) or now >= self.due):
            return False
        self.due = None
        self.awaited.clear()
        return True


class RosterTable:
    """Those of all users this node has joined."""

    def __init__(self) -> None:
        self._by_user: dict[str, Roster] = {}
        self._by_subject: dict[str, Roster] = {}

    def __iter__(self) -> Iterator[Roster]:
        return iter(list(self._by_user.values()))

    def of(self, user: str) -> Roster | None:
        """That of a user."""
        return self._by_user.get(user)

    def at(self, subject: str) -> Roster | None:
        """That of a user by the name others can read."""
        return self._by_subject.get(subject)

    def open(self, user: str) -> Roster:
        """A new one."""
        roster = Roster(user, subject_of(user))
        self._by_user[user] = self._by_subject[roster.subject] = roster
        return roster

    def drop(self, roster: Roster) -> None:
        """It is no longer needed."""
        self._by_user.pop(roster.user, None)
        self._by_subject.pop(roster.subject, None)
