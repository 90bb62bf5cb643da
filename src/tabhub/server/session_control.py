"""What a person may see and do about sessions: list them, end one, release a tab, pause and resume all agents.

Owns what panel and command line show of a session. What an agent sees of its own session is up to the tools.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tabhub.calls.engine import Engine
from tabhub.calls.pause import Mode
from tabhub.calls.tab_binding import TabBinding
from tabhub.core.leases import Lease, Leases
from tabhub.core.sessions import Session
from tabhub.errors import SessionNotFound, TabNotFound
from tabhub.links.browsers import Browsers
from tabhub.mcp.handshake import HandshakeEdge
from tabhub.mcp.notifications import ListNotifier
from tabhub.server.session_persistence import SessionPersistence

log = logging.getLogger("tabhub.sessions")


@dataclass(frozen=True, slots=True)
class SessionControl:
    """The sessions of one hub."""

    engine: Engine
    leases: Leases
    binding: TabBinding
    browsers: Browsers
    persistence: SessionPersistence
    edges: tuple[HandshakeEdge, ...]
    notices: ListNotifier
    locked_out: Callable[[str | None], bool]

    def overview(self) -> dict[str, Any]:
        """All sessions with the tabs they hold, and whether agents are paused."""
        held = self.leases.by_holder()
        sessions = [self._describe(session, held.get(session, [])) for session in self.engine.sessions.all()]
        return {"sessions": sessions, "paused": self.engine.pause.status()}

    def _describe(self, session: Session, held: list[Lease]) -> dict[str, Any]:
        now = self.engine.clock()
        return {
            "id": session.id,
            "kind": session.kind,
            "client": session.client,
            **({"token": session.token} if session.token is not None else {}),
            "openSeconds": round(now - session.opened),
            "idleSeconds": round(max(0.0, now - session.called)),
            "connected": session.busy > 0,
            "gone": session.is_disconnected,
            "callsInFlight": len(self.engine.calls.of_session(session.id)),
            "tabId": session.tab,
            "ownTabs": sorted(session.opened_tabs),
            "leases": [self._describe_lease(lease, now) for lease in held],
        }

    def _describe_lease(self, lease: Lease, now: float) -> dict[str, Any]:
        tab = self.browsers.book.get(lease.tab)
        facts: dict[str, Any] = {"tabId": lease.tab, "heldSeconds": round(now - lease.since)}
        return facts if tab is None else {**facts, "title": tab.title, "url": tab.url, "browserId": tab.browser_id}

    def require(self, session_id: str) -> Session:
        session = self.engine.sessions.get(session_id)
        if session is None:
            raise SessionNotFound(
                f"There is no session {session_id[:100]!r}.", hint="`tabhub sessions` lists those there are."
            )
        return session

    def end(self, session_id: str, reason: str = "the person ended the session") -> bool:
        """End a session of any kind: cancel its calls, free its leases, close its tabs. False if there is none."""
        known = self.engine.sessions.get(session_id) is not None
        for edge in self.edges:
            edge.end(session_id, reason)
        return known

    def tabs_to_close(self, session: Session) -> list[int]:
        return [] if self.binding.keep_tabs else sorted(session.opened_tabs)

    def expire(self) -> None:
        """End sessions that were idle too long, and those whose token is no longer valid."""
        for session in self.engine.sessions.expired(self.engine.clock()):
            self.end(session.id, "the session was idle too long")
        self.end_locked_out()

    def end_locked_out(self) -> None:
        """End the sessions and streams of clients whose token was revoked, or who need a token now."""
        for session in self.engine.sessions.all():
            if session.kind in ("mcp", "bridge") and self.locked_out(session.token):
                self.end(session.id, "its token is no longer valid")
        self.notices.end(self.locked_out)

    def release(self, session: Session, tab_id: int) -> None:
        if not self.leases.free(session, tab_id):
            held = ", ".join(str(lease.tab) for lease in self.leases.of(session)) or "none"
            raise TabNotFound(f"{session.label} does not hold tab {tab_id}.", hint=f"Tabs it holds: {held}.")

    def give(self, session: Session, tab_id: int) -> None:
        """Bind a session to a tab of the person's choice; its calls without `tabId` go there from now on."""
        self.binding.acquire(session, tab_id)
        session.lost_tab = None

    def release_tab(self, tab_id: int) -> bool:
        """Free a tab, whichever session holds it."""
        lease = self.leases.get(tab_id)
        if lease is None:
            raise TabNotFound(f"No agent holds tab {tab_id}.", hint="It has been released already.")
        return self.leases.free(lease.holder, lease.tab)

    async def resume_tab(self, tab_id: int) -> None:
        """Return a tab that the person took from the agents with the browser's Cancel button."""
        await self.browsers.resume_tab(tab_id)

    @property
    def paused(self) -> bool:
        return self.engine.pause.paused is not None

    async def pause(self, by: str, reason: str, mode: Mode) -> dict[str, Any] | None:
        """Pause all agents until `resume`, also across a restart of the hub."""
        self.engine.pause.begin(by, reason, mode)
        log.info("paused by %s: %s", by, reason or "no reason given")
        await self.persistence.save(changed=True)
        return self.engine.pause.status()

    async def resume(self) -> int:
        """Returns how many calls were waiting."""
        released = self.engine.pause.end()
        await self.persistence.save(changed=True)
        return released
