"""What a person may see and do about sessions: list them, end one, release a tab, pause and resume all agents.

Owns the facts panel and command line show of sessions. What agents learn of their own is the tools'.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from tabhub.calls.engine import Engine
from tabhub.calls.pause import Mode
from tabhub.calls.tab_binding import TabBinding
from tabhub.core.leases import Lease, Leases
from tabhub.core.sessions import Session, Sessions
from tabhub.errors import SessionNotFound, TabNotFound
from tabhub.links.browsers import Browsers
from tabhub.mcp.handshake import HandshakeEdge
from tabhub.mcp.notifications import ListNotifier
from tabhub.server.session_persistence import SessionPersistence

log = logging.getLogger("tabhub.sessions")

_BY_PERSON = "the person ended the session"


class SessionControl:
    """The sessions of one hub."""

    def __init__(
        self,
        engine: Engine,
        sessions: Sessions,
        leases: Leases,
        binding: TabBinding,
        browsers: Browsers,
        persistence: SessionPersistence,
        edges: Iterable[HandshakeEdge],
        notices: ListNotifier,
        locked_out: Callable[[str | None], bool],
    ) -> None:
        self._engine = engine
        self._sessions = sessions
        self._leases = leases
        self._binding = binding
        self._browsers = browsers
        self._persistence = persistence
        self._edges = tuple(edges)
        self._notices = notices
        self._locked_out = locked_out

    # looking

    def facts(self) -> dict[str, Any]:
        """All sessions with the tabs they hold, and whether agents are paused."""
        held: dict[Session, list[Lease]] = {}
        for lease in self._leases:
            held.setdefault(lease.holder, []).append(lease)
        sessions = [self._session(session, held.get(session, [])) for session in self._sessions.all()]
        return {"sessions": sessions, "paused": self._engine.pause.facts()}

    def _session(self, session: Session, held: list[Lease]) -> dict[str, Any]:
        now = self._engine.clock()
        return {
            "id": session.id,
            "kind": session.kind,
            "client": session.client,
            "openSeconds": round(now - session.opened),
            "idleSeconds": round(max(0.0, now - session.called)),
            "connected": session.busy > 0,
            "gone": session.is_disconnected,
            "callsInFlight": len(self._engine.calls.of_session(session.id)),
            "tabId": session.tab,
            "ownTabs": sorted(session.opened_tabs),
            "leases": [self._lease(lease, now) for lease in held],
        }

    def _lease(self, lease: Lease, now: float) -> dict[str, Any]:
        tab = self._browsers.book.get(lease.tab)
        facts: dict[str, Any] = {"tabId": lease.tab, "heldSeconds": round(now - lease.since)}
        return facts if tab is None else {**facts, "title": tab.title, "url": tab.url, "browserId": tab.browser_id}

    def require(self, session_id: str) -> Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionNotFound(
                f"There is no session {session_id[:100]!r}.", hint="`tabhub sessions` lists those there are."
            )
        return session

    # ending

    def end(self, session_id: str, reason: str = _BY_PERSON) -> bool:
        """End a session of any kind: its calls are cancelled, its leases freed, its tabs closed. False if none was."""
        known = self._sessions.get(session_id) is not None
        for edge in self._edges:
            edge.end(session_id, reason)
        return known

    def tabs_to_close(self, session: Session) -> list[int]:
        """The tabs that are closed when the session ends."""
        return [] if self._binding.keep_tabs else sorted(session.opened_tabs)

    def expire(self) -> None:
        """End sessions that were idle too long, and those whose token is no longer valid."""
        for session in self._sessions.expired(self._engine.clock()):
            self.end(session.id, "the session was idle too long")
        self.end_locked_out()

    def end_locked_out(self) -> None:
        """End what clients still have whose token was revoked, or who need one now."""
        for session in self._sessions.all():
            if session.kind in ("mcp", "bridge") and self._locked_out(session.token):
                self.end(session.id, "its token is no longer valid")
        self._notices.end(self._locked_out)

    def release(self, session: Session, tab_id: int) -> None:
        """Free a tab the session holds."""
        if not self._leases.free(session, tab_id):
            held = ", ".join(str(lease.tab) for lease in self._leases.of(session)) or "none"
            raise TabNotFound(f"{session.client} does not hold tab {tab_id}.", hint=f"Tabs it holds: {held}.")

    def release_tab(self, tab_id: Any) -> bool:
        """Free a tab, whichever session holds it."""
        lease = self._leases.get(tab_id) if type(tab_id) is int else None
        if lease is None:
            raise TabNotFound(f"No agent holds tab {str(tab_id)[:20]}.", hint="It has been released already.")
        return self._leases.free(lease.holder, lease.tab)

    # pausing

    @property
    def paused(self) -> bool:
        return self._engine.pause.paused is not None

    async def pause(self, by: str, reason: str, mode: Mode) -> dict[str, Any] | None:
        """Pause all agents, also over a restart of the hub."""
        self._engine.pause.begin(by, reason, mode)
        log.info("paused by %s: %s", by, reason or "no reason given")
        await self._persistence.save(changed=True)
        return self._engine.pause.facts()

    async def resume(self) -> int:
        """Resume. Returns how many calls had waited."""
        released = self._engine.pause.end()
        await self._persistence.save(changed=True)
        return released
