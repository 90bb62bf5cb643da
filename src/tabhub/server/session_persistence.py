"""Sessions across a restart of the hub: what is saved of the running hub, and how it is restored.

Owns when the snapshot is written and the conversion between the hub's monotonic clock and the time of day. The format
of the file is defined in store.sessions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from tabhub.calls.engine import Engine
from tabhub.calls.tab_binding import TabBinding
from tabhub.core.leases import Lease, Leases
from tabhub.core.sessions import Session
from tabhub.core.tab_matching import TabFingerprint
from tabhub.errors import Busy
from tabhub.mcp.handshake import HandshakeEdge
from tabhub.store.sessions import Saved, SavedLease, SavedSession, SavedTab, SessionStore
from tabhub.trust.tokens import UNNAMED

log = logging.getLogger("tabhub.sessions")


@dataclass(slots=True)
class SessionPersistence:
    """Saves and restores sessions."""

    store: SessionStore
    engine: Engine
    leases: Leases
    binding: TabBinding
    endpoints: Mapping[str, HandshakeEdge]
    _saved_changes: int = -1
    _number: int = 0

    def snapshot(self) -> Saved:
        marks, ids = self.binding.marks()
        held = self.leases.by_holder()
        return Saved(
            sessions=[self._to_save(session, held.get(session, [])) for session in self.engine.sessions.all()],
            tabs=[SavedTab(m.tab_id, m.browser_id, m.chrome_id, m.origin, m.page) for m in marks],
            browsers={browser: sorted(all_ids) for browser, all_ids in ids.items()},
            pause=self.engine.pause.paused,
        )

    def _to_save(self, session: Session, held: list[Lease]) -> SavedSession:
        ahead = self.engine.wall() - self.engine.clock()
        agreed = (endpoint.saved(session.id) for endpoint in self.endpoints.values())
        return SavedSession(
            id=session.id,
            kind=session.kind,
            client=session.client,
            opened=session.opened + ahead,
            tab=session.tab,
            acted=session.acted,
            own=sorted(session.opened_tabs),
            leases=[SavedLease(lease.tab, lease.since + ahead) for lease in held],
            mcp=next((each for each in agreed if each is not None), None),
            token=session.token,
            lost=session.lost_tab,
            lost_how=session.lost_reason if session.lost_tab is not None else "",
        )

    async def save(self, *, changed: bool = False) -> None:
        """Save if a session has changed; `changed` says that something else in the snapshot has."""
        changes = self.engine.sessions.changes
        if (changed or changes != self._saved_changes) and await asyncio.to_thread(
            self.store.save_numbered, *self._numbered()
        ):
            self._saved_changes = changes

    def save_now(self) -> None:
        self.store.save_numbered(*self._numbered())

    def _numbered(self) -> tuple[Saved, int]:
        self._number += 1
        return self.snapshot(), self._number

    def restore(self) -> int:
        """Restore the sessions from before the restart. Returns how many there are."""
        saved = self.store.load() or Saved()
        if saved.pause is not None:
            self.engine.pause.restore(saved.pause)
        held = {lease.tab for session in saved.sessions for lease in session.leases}
        marks = (TabFingerprint(t.id, t.browser, t.chrome, t.origin, t.page) for t in saved.tabs if t.id in held)
        self.binding.expect(marks, {browser: set(ids) for browser, ids in saved.browsers.items()})
        reachable = {tab.id for tab in saved.tabs}
        for each in saved.sessions:
            try:
                self._restore(each, reachable)
            except Busy:
                log.warning("more sessions were saved than limits.sessions allows; the rest is dropped")
                break
        return len(self.engine.sessions)

    def _restore(self, saved: SavedSession, reachable: set[int]) -> None:
        """Restore one session. Idle time counts from now: no calls were possible while there was no hub."""
        now, ahead = self.engine.clock(), self.engine.wall() - self.engine.clock()
        opened = min(now, saved.opened - ahead)
        session = Session(saved.id, saved.kind, saved.client, opened, now, called=now, token=saved.token or UNNAMED)
        if saved.mcp is not None:
            endpoint = self.endpoints.get(saved.mcp.endpoint)
            if endpoint is None or not endpoint.restore(session, saved.mcp):
                return
        elif saved.kind == "mcp":
            return
        self.engine.sessions.restore(session)
        for lease in saved.leases:
            if lease.tab in reachable:
                self.leases.restore(session, lease.tab, min(now, lease.since - ahead))
        held = {lease.tab for lease in self.leases.of(session)}
        session.opened_tabs = held.intersection(saved.own)
        session.tab = saved.tab if saved.tab in held else None
        session.acted = saved.acted
        session.lost_tab, session.lost_reason = saved.lost, saved.lost_how
        if saved.tab is not None and session.tab is None:
            session.lost_tab, session.lost_reason = saved.tab, "could not be found again"
