"""Sessions: one agent's unit of isolation, its identity and its tab.

Owns who is connected, which tab each session is bound to and which tabs it opened. Who may use a tab that another
session holds is decided in leases.py. Ids and times are passed in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from types import EllipsisType
from typing import Any, Literal

import msgspec

from tabhub.errors import Busy, SessionNotFound
from tabhub.limits import Limits
from tabhub.trust.sentences.agents import agent_name

SessionKind = Literal["mcp", "handle", "rest", "bridge"]
_SHORT = 8

Asker = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a request (method, params) to an agent's client outside of any call, and gives the client's result."""


class Session(msgspec.Struct, eq=False):
    """One agent."""

    id: str
    kind: SessionKind
    client: str
    opened: float
    seen: float
    tab: int | None = None
    lost_tab: int | None = None
    """The bound tab that closed or was taken from the session, until the agent has been notified."""
    lost_reason: str = ""
    """What happened to that tab, as a phrase for the agent."""
    opened_tabs: set[int] = set()
    busy: int = 0
    """Requests and streams open right now; such a session never expires."""
    called: float = 0.0
    """When its last call began."""
    disconnected_at: float = 0.0
    """When its client last disconnected; it is back if a call began since."""
    acted: bool = False
    """Whether it did more than read in its tab."""
    ended: bool = False
    asker: Asker | None = None
    """How to send its client a request; set by the surface while that is possible."""
    number: int = 1
    """Tells the sessions of one agent apart: the smallest that was free when this one opened."""
    did: str = ""
    """What its last call did, in words."""
    token: str | None = None
    """The name of its client's token: who it is, while `client` is what it calls itself."""

    @property
    def is_disconnected(self) -> bool:
        """Whether its client has disconnected, as far as that can be detected, and has not called since."""
        return self.disconnected_at > self.called

    @property
    def owner(self) -> str:
        """The owner of its stored results; the stateless calls of one agent share an owner."""
        return f"stateless {self.token or ''}" if self.kind == "handle" else self.id

    @property
    def short(self) -> str:
        """The id as others may see it: enough to tell sessions apart, too little to use one."""
        return self.id if self.kind == "rest" or len(self.id) <= _SHORT else f"{self.id[:_SHORT]}…"

    @property
    def agent(self) -> str:
        """The agent's name for a person, numbered from its second session on."""
        name = agent_name(self.client, self.token)
        return name if self.number == 1 else f"{name} {self.number}"

    @property
    def label(self) -> str:
        """The agent for a person: the name of its token, and what it calls itself."""
        return self.client if self.token in (None, self.client) else f"{self.token} ({self.client})"

    @property
    def name(self) -> str:
        """The client's name, without its version."""
        first, _, version = self.client.rpartition(" ")
        name = first if first and version[:1].isdigit() else self.client
        return name.strip() or "Tabhub"


class Sessions:
    """The sessions of the hub."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._all: dict[str, Session] = {}
        self.changes = 0
        """Counts the changes that have to be saved."""

    def __len__(self) -> int:
        return len(self._all)

    def all(self) -> list[Session]:
        return list(self._all.values())

    def open(self, session_id: str, kind: SessionKind, client: str, now: float, token: str | None = None) -> Session:
        return self.restore(Session(session_id, kind, client, now, now, called=now, token=token))

    def restore(self, session: Session) -> Session:
        """Add a session, new or from before a restart; raises Busy at the limit."""
        if len(self._all) >= self._limits.sessions:
            raise Busy(
                f"{len(self._all)} sessions are open, which is the limit.",
                hint="End sessions that are not needed, or raise limits.sessions.",
            )
        self._number(session)
        self._all[session.id] = session
        self.changes += 1
        return session

    def _number(self, session: Session) -> None:
        agent = (session.token, session.client)
        used = {each.number for each in self._all.values() if (each.token, each.client) == agent}
        session.number = next(number for number in count(1) if number not in used)

    def adopt(self, session: Session, session_id: str) -> None:
        """Add a session that so far existed for one request only."""
        self._all[session_id] = session
        session.id = session_id
        self.changes += 1

    def knows(self, session: Session) -> bool:
        return self._all.get(session.id) is session

    def get(self, session_id: str) -> Session | None:
        return self._all.get(session_id)

    def require(self, session_id: str, kind: SessionKind, token: str | EllipsisType | None = ...) -> Session:
        """A session of that kind, and of that token's client if one is given, or SessionNotFound.

        The id of another kind of session, or of another client's, opens nothing here.
        """
        session = self._all.get(session_id)
        if session is None or session.kind != kind or (token is not ... and session.token != token):
            hint = (
                "Leave out `session`: a new one begins with a tab of its own."
                if kind == "handle"
                else "Start a new one."
            )
            raise SessionNotFound("This session has ended or never existed.", hint=hint)
        return session

    def end(self, session_id: str) -> Session | None:
        """End a session and return it, so that its calls and tabs can be cleaned up."""
        session = self._all.pop(session_id, None)
        if session is not None:
            session.ended = True
            self.changes += 1
        return session

    def expired(self, now: float) -> list[Session]:
        horizon = now - self._limits.session_idle
        return [s for s in self._all.values() if s.seen <= horizon and not s.busy]

    def bind(self, session: Session, tab: int, *, opened: bool = False) -> None:
        session.tab = tab
        session.lost_tab = None
        if opened:
            session.opened_tabs.add(tab)
        self.changes += 1

    def lose(self, session: Session, tab: int, how: str = "has been closed") -> None:
        """Remove a tab that closed or was taken away; the agent learns of it with its next call."""
        session.opened_tabs.discard(tab)
        if session.tab == tab:
            session.tab = None
            session.lost_tab, session.lost_reason = tab, how
        self.changes += 1
