"""Leases: which session holds which tab, and what that means for the others.

Owns the one holder of every tab and the error for everyone else. A session holds the tab it is bound to, the tabs it
opened and the tabs it has acted in; a tab it only read is released when it binds another. A bound tab is always
held, so a call that names no tab, or the bound one, needs no check here. The time is passed in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tabhub.core.sessions import Session, Sessions
from tabhub.errors import TabLeased
from tabhub.limits import Limits


@dataclass(slots=True, eq=False)
class Lease:
    """One session's hold on one tab."""

    tab: int
    holder: Session
    since: float


class Leases:
    """All leases of the hub."""

    def __init__(self, sessions: Sessions, limits: Limits) -> None:
        self._sessions = sessions
        self._limits = limits
        self._by_tab: dict[int, Lease] = {}

    def __len__(self) -> int:
        return len(self._by_tab)

    def __iter__(self) -> Iterator[Lease]:
        return iter(list(self._by_tab.values()))

    def get(self, tab: int) -> Lease | None:
        return self._by_tab.get(tab)

    def held_by_other(self, session: Session, tab: int) -> Lease | None:
        lease = self._by_tab.get(tab)
        return None if lease is None or lease.holder is session else lease

    def by_holder(self) -> dict[Session, list[Lease]]:
        held: dict[Session, list[Lease]] = {}
        for lease in self._by_tab.values():
            held.setdefault(lease.holder, []).append(lease)
        return held

    def of(self, session: Session) -> list[Lease]:
        return [lease for lease in self._by_tab.values() if lease.holder is session]

    def is_idle(self, lease: Lease, now: float) -> bool:
        """Whether another session may take the tab: its holder made no call, or was disconnected, for too long."""
        return self._free_in(lease.holder, now) <= 0

    def _free_in(self, holder: Session, now: float) -> float:
        limits, left = self._limits, holder.called + self._limits.lease_idle - now
        if holder.is_disconnected:
            # A bridge client's session ends with its grace and closes its tabs: others may take them before that.
            most = limits.bridge_grace / 2 if holder.kind == "bridge" else limits.lease_orphan
            left = min(left, holder.disconnected_at + min(most, limits.lease_orphan) - now)
        return max(left, 0.0)

    def bind(self, session: Session, tab: int, now: float, *, acting: bool, opened: bool = False) -> None:
        """Bind a session to a tab; a previous holder loses it, so the caller checks `held_by_other` first."""
        before = session.tab
        if before is not None and before != tab and not session.acted and before not in session.opened_tabs:
            self._by_tab.pop(before, None)
        lease = self._by_tab.get(tab)
        again = lease is not None and lease.holder is session
        if not again:
            if lease is not None:
                self._sessions.lose(lease.holder, tab, f"was taken over by {session.client} ({session.short})")
            self._by_tab[tab] = Lease(tab, session, now)
        self._sessions.bind(session, tab, opened=opened)
        session.acted = acting or opened or again

    def restore(self, session: Session, tab: int, since: float) -> None:
        """Restore a lease from before a restart, unless another session holds the tab."""
        self._by_tab.setdefault(tab, Lease(tab, session, since))

    def release(self, session: Session, tab: int) -> bool:
        """Release a tab; False if the session does not hold it."""
        lease = self._by_tab.get(tab)
        if lease is None or lease.holder is not session:
            return False
        del self._by_tab[tab]
        session.opened_tabs.discard(tab)
        if session.tab == tab:
            session.tab = None
        self._sessions.changes += 1
        return True

    def free(self, session: Session, tab: int) -> bool:
        """Release a tab for the person; its agent is notified with its next call. False if it does not hold the tab."""
        bound = session.tab == tab
        if not self.release(session, tab):
            return False
        if bound:
            session.lost_tab, session.lost_reason = tab, "was freed by the person, for others to use"
        return True

    def end(self, session: Session) -> list[int]:
        """Release everything a session holds. Returns the tabs it opened that no other session holds."""
        for lease in self.of(session):
            del self._by_tab[lease.tab]
        return [tab for tab in session.opened_tabs if tab not in self._by_tab]

    def tab_closed(self, tab: int, now: float, opener: int | None = None) -> None:
        """The tab is gone. A session that worked in it returns to the tab that opened it, unless another holds that."""
        lease = self._by_tab.pop(tab, None)
        if lease is None:
            return
        holder, held = lease.holder, self._by_tab.get(opener) if opener is not None else None
        was_bound = holder.tab == tab
        self._sessions.lose(holder, tab)
        if was_bound and opener is not None and (held is None or held.holder is holder):
            self._by_tab.setdefault(opener, Lease(opener, holder, now))
            holder.tab, holder.acted = opener, held is not None

    def tab_stopped(self, tab: int) -> None:
        """The person took the tab from the agents."""
        lease = self._by_tab.pop(tab, None)
        if lease is not None:
            self._sessions.lose(lease.holder, tab, "was taken from the agents by the person")

    def tab_rematched(self, old: int, new: int) -> None:
        """Move a lease to the tab's new id. The tab may be the person's own, so it no longer counts as opened."""
        lease = self._by_tab.pop(old, None)
        if lease is None:
            return
        if new in self._by_tab:
            self._sessions.lose(lease.holder, old)
            return
        self._by_tab[new] = Lease(new, lease.holder, lease.since)
        lease.holder.opened_tabs.discard(old)
        if lease.holder.tab == old:
            self._sessions.bind(lease.holder, new)

    def conflict(self, lease: Lease, now: float, *, asked: bool = False) -> TabLeased:
        """The error for a call on a tab held by another session: who, since when, and how to get it.

        If the caller already `asked` for the tab, the hint does not suggest that.
        """
        holder = lease.holder
        idle = max(0.0, now - holder.called)
        left = self._free_in(holder, now)
        disconnected = " and its client has disconnected" if holder.is_disconnected else ""
        ask = "" if asked else " ask for this one with browser_request_tab,"
        return TabLeased(
            f"Tab {lease.tab} is held by another session: {holder.client} ({holder.short}), "
            f"for {duration(now - lease.since)}; its last call was {duration(idle)} ago{disconnected}.",
            hint=f"Nothing was sent. Use another tab (omit tabId, or browser_open_tab),{ask} "
            f"or wait: it is free in {duration(left)} if its holder makes no call until then. "
            f"The person can free it with: tabhub sessions release {lease.tab}",
            data={
                "tabId": lease.tab,
                "holder": {"client": holder.client, "session": holder.short},
                "heldSeconds": round(now - lease.since),
                "idleSeconds": round(idle),
                "freeInSeconds": round(left),
            },
        )


def duration(seconds: float) -> str:
    whole = round(max(seconds, 0))
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
