"""Which tab a call works on: the one it names, the session's own, or a new one opened for it.

Owns binding sessions to tabs, and carries out what leases decide. A tab is opened in the background and only when a
call needs one; it is closed when its session ends, unless the person wants it kept.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from typing import Any

from tabhub.browser.driver.page import open_tab
from tabhub.calls.orphan_tabs import Leftovers
from tabhub.core.leases import Lease, Leases
from tabhub.core.sessions import Session, Sessions
from tabhub.core.tab_matching import Mark, reunite
from tabhub.errors import TabLeased, TabNotFound
from tabhub.links.browsers import Browsers, Change, TabRef

_TITLE = 60


class Binding:
    """Sessions and their tabs (browser.spec.TabChoice)."""

    def __init__(
        self,
        sessions: Sessions,
        leases: Leases,
        browsers: Browsers,
        *,
        clock: Callable[[], float],
        runs_calls: Callable[[str], bool],
    ) -> None:
        self.leases = leases
        self.reading = True
        """Whether others may read a tab that is held."""
        self.keep_tabs = False
        self._sessions = sessions
        self._browsers = browsers
        self._clock = clock
        self._runs_calls = runs_calls
        self._opening: dict[Session, asyncio.Future[TabRef]] = {}
        self.away: dict[str, tuple[dict[int, Mark], set[int]]] = {}
        """By browser that is not here: the tabs that matter, and the ids of all its tabs."""
        self._leftovers = Leftovers(browsers)
        self._on_end: list[Callable[[Session], None]] = []
        browsers.on_change(self._changed)

    # a call's tab

    def known(self, session: Session, tab_id: int | None, reads: bool = False) -> TabRef | None:
        """The tab a call names, which binds it if nobody else holds it, or the session's own; None if it has none."""
        bound = session.tab
        if tab_id is None:
            if bound is None:
                self._tell_loss(session)
                return None
            tab_id = bound
        elif tab_id != bound:
            return self._named(session, tab_id, reads)
        if not reads:
            session.acted = True
        return self._browsers.tab(tab_id)

    def _named(self, session: Session, tab_id: int, reads: bool) -> TabRef:
        ref = self._browsers.tab(tab_id)
        lease = self.holder(session, tab_id)
        if lease is not None and not (reads and self.reading):
            raise self.refusal(lease)
        if reads and self.leases.other(session, tab_id) is not None:
            return ref  # looking takes nothing from anybody, not even from one who has been away for long
        if self._kept(session):
            self.leases.bind(session, tab_id, self._clock(), acting=not reads)
        return ref

    def _tell_loss(self, session: Session) -> None:
        if session.lost_tab is None:
            return
        lost, session.lost_tab = session.lost_tab, None
        self._sessions.changes += 1
        raise TabNotFound(
            f"Tab {lost}, which this session was working in, {session.lost_how}.",
            hint="Call again to go on in a new tab, or pass the `tabId` of another.",
        )

    async def opened(self, session: Session) -> TabRef:
        """A new background tab; several first calls of one session share it."""
        opening = self._opening.get(session)
        if opening is None:
            opening = self._opening[session] = asyncio.ensure_future(self._open(session))
            opening.add_done_callback(lambda _: self._opening.pop(session, None))
        # One call that is cancelled must not take the tab from the others.
        return await asyncio.shield(opening)

    async def _open(self, session: Session) -> TabRef:
        tab = await open_tab(self._browsers, group=self.group(session))
        self.adopt(session, tab.tab_id)
        return self._browsers.tab(tab.tab_id)

    def adopt(self, session: Session, tab_id: int) -> None:
        """The session opened this tab and goes on in it; a session of one request is kept from here on."""
        if session.ended:  # it went while the tab was on its way
            self._leftovers.close([tab_id])
            return
        self._keep(session)
        self.leases.bind(session, tab_id, self._clock(), acting=True, opened=True)

    def group(self, session: Session) -> dict[str, str]:
        """The tab group of a session, named after its client."""
        self._name(session)
        return {"key": session.id, "title": session.name[:_TITLE]}

    @staticmethod
    def _name(session: Session) -> None:
        """Give a session of one request the id it will have if it is kept."""
        if session.kind == "handle" and not session.id.startswith("s_"):
            session.id = f"s_{secrets.token_urlsafe(12)}"

    def _kept(self, session: Session) -> bool:
        return self._sessions.knows(session)

    def _keep(self, session: Session) -> None:
        if session.kind == "handle" and not self._kept(session):
            self._name(session)
            self._sessions.adopt(session, session.id)

    # what others hold

    def holder(self, session: Session, tab_id: int) -> Lease | None:
        """The lease of another session that keeps this one from the tab; one that is idle does not."""
        lease = self.leases.other(session, tab_id)
        if lease is None:
            return None
        holder, now = lease.holder, self._clock()
        same = (holder.kind, holder.client, holder.token) == (session.kind, session.client, session.token)
        if same and session.kind == "handle" and not self._kept(session):
            # A stateless client that names its own tab instead of its session cannot be told from the holder.
            holder.called = now
            return None
        idle = self.leases.is_idle(lease, now) and not self._runs_calls(holder.id)
        return None if idle else lease

    def holds(self, session: Session, tab_id: int) -> bool:
        """Whether the session holds the tab."""
        lease = self.leases.get(tab_id)
        return lease is not None and lease.holder is session

    def refusal(self, lease: Lease, *, asked: bool = False) -> TabLeased:
        """The error that names the holder."""
        return self.leases.refusal(lease, self._clock(), asked=asked)

    def may_act(self, session: Session, tab_id: int) -> None:
        """TabLeased if another session holds the tab."""
        lease = self.holder(session, tab_id)
        if lease is not None:
            raise self.refusal(lease)

    def take(self, session: Session, tab_id: int) -> None:
        """Give the session the tab, whoever held it."""
        if not session.ended:
            self._keep(session)
            self.leases.bind(session, tab_id, self._clock(), acting=True)

    def release(self, session: Session, tab_id: int) -> bool:
        """Let go of a tab: it stays open and is nobody's."""
        return self.leases.release(session, tab_id)

    def ended(self, session: Session) -> None:
        """A session is over: what it held is free, and what it opened is closed."""
        own = self.leases.end(session)
        for listener in self._on_end:
            listener(session)
        if not self.keep_tabs:
            self._leftovers.close(own)

    def on_end(self, listener: Callable[[Session], None]) -> None:
        """Tell a listener of every session that is over."""
        self._on_end.append(listener)

    async def closed(self, within: float) -> None:
        """Wait until the tabs of ended sessions are closed, but no longer than that."""
        await self._leftovers.closed(within)

    def stop(self) -> None:
        """The hub is going."""
        self._leftovers.stop()

    def handed(self, handle: str, to: Session) -> Session:
        """The session a handle names, for a client of the same token."""
        return self._sessions.require(handle, "handle", to.token)

    def standing(self, session: Session) -> dict[str, Any] | None:
        """What a session is and has, as it is told itself."""
        if not self._kept(session):
            return None
        now = self._clock()
        held = self.leases.of(session)
        return {
            "session": session.id,
            "kind": session.kind,
            "client": session.client,
            "openSeconds": round(now - session.opened),
            "tabId": session.tab,
            "ownTabs": sorted(session.own_tabs),
            "leases": [{**self._tab_facts(lease.tab), "heldSeconds": round(now - lease.since)} for lease in held],
        }

    def _tab_facts(self, tab_id: int) -> dict[str, Any]:
        tab = self._browsers.book.get(tab_id)
        facts: dict[str, Any] = {"tabId": tab_id, "reachable": tab is not None}
        return facts if tab is None else {**facts, "title": tab.title, "url": tab.url}

    # tabs that go away and come back

    def marks(self) -> tuple[list[Mark], dict[str, set[int]]]:
        """What must be remembered to find the tabs that matter again: their marks, and all tab ids by browser."""
        marks = [mark for marks, _ in self.away.values() for mark in marks.values()]
        ids = {browser: set(all_ids) for browser, (_, all_ids) in self.away.items()}
        for lease in self.leases:
            tab = self._browsers.book.get(lease.tab)
            if tab is not None:
                marks.append(Mark.of(tab))
                if tab.browser_id not in ids:
                    ids[tab.browser_id] = {each.chrome_id for each in self._browsers.book.of(tab.browser_id)}
        return marks, ids

    def expect(self, marks: Iterable[Mark], ids: dict[str, set[int]]) -> None:
        """Tabs from before a restart of the hub; they get their ids back when their browser brings them."""
        for mark in marks:
            self.away.setdefault(mark.browser_id, ({}, set(ids.get(mark.browser_id, ()))))[0][mark.tab_id] = mark
            self._browsers.book.expect(mark.tab_id, mark.browser_id, mark.chrome_id)

    def _changed(self, change: Change) -> None:
        if change.kind == "disconnected":
            held = {tab.tab_id: Mark.of(tab) for tab in change.tabs.away if self.leases.get(tab.tab_id) is not None}
            if held:
                self.away[change.browser_id] = held, {tab.chrome_id for tab in change.tabs.away}
        elif change.kind == "tabs":
            if change.synced and change.browser_id in self.away:
                self._reunite(change.browser_id)
            for tab in change.tabs.closed:
                self.leases.tab_closed(tab.tab_id)
            if any(self.leases.get(tab.tab_id) is not None for tab in change.tabs.changed):
                self._sessions.changes += 1

    def _reunite(self, browser_id: str) -> None:
        """A browser told all its tabs after it was away."""
        before, ids_before = self.away.pop(browser_id)
        still = {tab_id: mark for tab_id, mark in before.items() if self.leases.get(tab_id) is not None}
        now = self._browsers.book.of(browser_id)
        free = {tab.tab_id for tab in now if self.leases.get(tab.tab_id) is None}
        reunion = reunite(still, ids_before, now, free)
        for old, new in reunion.moved.items():
            self.leases.found_again(old, new)
        for tab_id in reunion.lost:
            self.leases.tab_closed(tab_id)
