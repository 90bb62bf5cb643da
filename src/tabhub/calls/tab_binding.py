"""The tab a call works on: the one it names, the session's own, or a new one opened for it.

Owns which session is bound to which tab, and enforces leases. A tab is opened in the background, only when a call needs
one, and closed when its session ends unless the settings keep it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tabhub.browser.driver.page import open_tab
from tabhub.calls.orphan_tabs import OrphanTabs
from tabhub.config.settings import Config
from tabhub.core.agent_colours import AgentColours
from tabhub.core.leases import Lease, Leases
from tabhub.core.sessions import Session, Sessions
from tabhub.core.tab_matching import TabFingerprint, match_tabs
from tabhub.core.tabs import Tab
from tabhub.errors import TabLeased, TabNotFound, TabStopped
from tabhub.links.browsers import Browsers, Change, TabRef
from tabhub.trust.sentences.agents import agent_name

_TITLE = 60


@dataclass(eq=False)
class TabBinding:
    """Sessions and their tabs (browser.tool_spec.TabChoice)."""

    sessions: Sessions
    leases: Leases
    browsers: Browsers
    clock: Callable[[], float]
    runs_calls: Callable[[str], bool]
    colours: AgentColours = field(default_factory=AgentColours)

    def __post_init__(self) -> None:
        self.reading = True
        """Whether other sessions may read a leased tab."""
        self.keep_tabs = False
        self._opening: dict[Session, asyncio.Future[TabRef]] = {}
        self.away: dict[str, tuple[dict[int, TabFingerprint], set[int]]] = {}
        """By disconnected browser: its leased tabs, and the ids of all its tabs."""
        self.orphans = OrphanTabs(self.browsers)
        self._on_end: list[Callable[[Session], None]] = []
        self.browsers.on_change(self._changed)

    def apply_settings(self, config: Config) -> None:
        self.reading = config.read_leased_tabs
        self.keep_tabs = config.keep_tabs

    def find_tab(self, session: Session, tab_id: int | None, reads: bool = False) -> TabRef | None:
        """The named tab, to which the session is bound if it is free, or the session's own; None if it has none."""
        bound = session.tab
        if tab_id is None:
            self._report_lost_tab(session)
            if bound is None:
                return None
            tab_id = bound
        elif tab_id != bound:
            return self._find_named(session, tab_id, reads)
        else:
            session.lost_tab = None
        if not reads:
            session.acted = True
        return self.browsers.tab(tab_id)

    def _find_named(self, session: Session, tab_id: int, reads: bool) -> TabRef:
        ref = self.browsers.tab(tab_id)
        lease = self.blocking_lease(session, tab_id)
        if lease is not None and not (reads and self.reading):
            raise self.leased_error(lease)
        if reads and self.leases.held_by_other(session, tab_id) is not None:
            return ref  # reading does not take over a lease, not even an idle one
        if self.sessions.knows(session):
            self.leases.bind(session, tab_id, self.clock(), acting=not reads)
        return ref

    def _report_lost_tab(self, session: Session) -> None:
        if session.lost_tab is None:
            return
        lost, session.lost_tab = session.lost_tab, None
        self.sessions.changes += 1
        tab = self.browsers.book.get(lost)
        if tab is not None and tab.stopped:
            raise TabStopped(lost)
        where = f"in tab {session.tab}, which opened it" if session.tab is not None else "in a new tab"
        raise TabNotFound(
            f"Tab {lost}, which this session was working in, {session.lost_reason}.",
            hint=f"Call again to continue {where}, or pass the `tabId` of another.",
        )

    def report_closed(self, session: Session, tab_id: int) -> int | None:
        """The answer of the running call reports that its tab has closed: the tab that the session continues in."""
        if session.lost_tab == tab_id:
            session.lost_tab = None
            self.sessions.changes += 1
        return session.tab

    async def open_for(self, session: Session) -> TabRef:
        """A new background tab; several first calls of one session share it."""
        opening = self._opening.get(session)
        if opening is None:
            opening = self._opening[session] = asyncio.ensure_future(self._open(session))
            opening.add_done_callback(lambda _: self._opening.pop(session, None))
        # Cancelling one of these calls must not cancel the tab the others wait for.
        return await asyncio.shield(opening)

    async def _open(self, session: Session) -> TabRef:
        tab = await open_tab(self.browsers, group=self.tab_group(session))
        self.adopt(session, tab.tab_id)
        return self.browsers.tab(tab.tab_id)

    def adopt(self, session: Session, tab_id: int) -> None:
        """Bind the session to a tab it opened. A session of a single request is registered from here on."""
        if session.ended:  # while the tab was being opened
            self.orphans.close([tab_id])
            return
        self._register(session)
        self.leases.bind(session, tab_id, self.clock(), acting=True, opened=True)

    def tab_group(self, session: Session) -> dict[str, str]:
        """One for all sessions of an agent, in its colour."""
        self._assign_id(session)
        agent = agent_name(session.client, session.token)
        return {"key": f"agent {agent}", "title": agent[:_TITLE], "color": self.colours.of(session)}

    @staticmethod
    def _assign_id(session: Session) -> None:
        """Give a session of a single request the id it will have once registered."""
        if session.kind == "handle" and not session.id.startswith("s_"):
            session.id = f"s_{secrets.token_urlsafe(12)}"

    def _register(self, session: Session) -> None:
        if session.kind == "handle" and not self.sessions.knows(session):
            self._assign_id(session)
            self.sessions.adopt(session, session.id)

    def blocking_lease(self, session: Session, tab_id: int) -> Lease | None:
        """Another session's lease that blocks this one from the tab; idle leases do not."""
        lease = self.leases.held_by_other(session, tab_id)
        if lease is None:
            return None
        holder, now = lease.holder, self.clock()
        same = (holder.kind, holder.client, holder.token) == (session.kind, session.client, session.token)
        if same and session.kind == "handle" and not self.sessions.knows(session):
            # A stateless client that names its tab instead of its session cannot be distinguished from the holder.
            holder.called = now
            return None
        idle = self.leases.is_idle(lease, now) and not self.runs_calls(holder.id)
        return None if idle else lease

    def held_by_others(self, session: Session) -> list[Lease]:
        """The leases that block a session."""
        return [lease for lease in self.leases if self.blocking_lease(session, lease.tab) is not None]

    def held_tabs(self, session: Session) -> dict[int, bool]:
        """The tabs that the session holds, and those that others hold and it may not use."""
        held = {lease.tab: lease.holder is session for lease in self.leases}
        return {tab: own for tab, own in held.items() if own or self.blocking_lease(session, tab) is not None}

    def holds(self, session: Session, tab_id: int) -> bool:
        lease = self.leases.get(tab_id)
        return lease is not None and lease.holder is session

    def leased_error(self, lease: Lease, *, asked: bool = False) -> TabLeased:
        return self.leases.conflict(lease, self.clock(), asked=asked)

    def require_free(self, session: Session, tab_id: int) -> None:
        lease = self.blocking_lease(session, tab_id)
        if lease is not None:
            raise self.leased_error(lease)

    def acquire(self, session: Session, tab_id: int) -> None:
        """Give the session the tab, whichever session held it."""
        if not session.ended:
            self._register(session)
            self.leases.bind(session, tab_id, self.clock(), acting=True)

    def release(self, session: Session, tab_id: int) -> bool:
        return self.leases.release(session, tab_id)

    def session_ended(self, session: Session) -> None:
        """Free the tabs a session held and close those it opened."""
        own = self.leases.end(session)
        for listener in self._on_end:
            listener(session)
        if not self.keep_tabs:
            self.orphans.close(own)

    def on_session_end(self, listener: Callable[[Session], None]) -> None:
        self._on_end.append(listener)

    def session_by_handle(self, handle: str, to: Session) -> Session:
        """The session a handle names; only a client with the same token may use it."""
        return self.sessions.require(handle, "handle", to.token)

    def describe_session(self, session: Session) -> dict[str, Any] | None:
        if not self.sessions.knows(session):
            return None
        now = self.clock()
        held = self.leases.of(session)
        return {
            "session": session.id,
            "kind": session.kind,
            "client": session.client,
            "openSeconds": round(now - session.opened),
            "tabId": session.tab,
            "ownTabs": sorted(session.opened_tabs),
            "leases": [{**self._describe_tab(lease.tab), "heldSeconds": round(now - lease.since)} for lease in held],
        }

    def _describe_tab(self, tab_id: int) -> dict[str, Any]:
        tab = self.browsers.book.get(tab_id)
        facts: dict[str, Any] = {"tabId": tab_id, "reachable": tab is not None}
        return facts if tab is None else {**facts, "title": tab.title, "url": tab.url}

    def marks(self) -> tuple[list[TabFingerprint], dict[str, set[int]]]:
        """What it takes to recognise leased tabs after a restart: their fingerprints, and all tab ids by browser."""
        marks = [mark for marks, _ in self.away.values() for mark in marks.values()]
        ids = {browser: set(all_ids) for browser, (_, all_ids) in self.away.items()}
        for lease in self.leases:
            tab = self.browsers.book.get(lease.tab)
            if tab is not None:
                marks.append(TabFingerprint.of(tab))
                if tab.browser_id not in ids:
                    ids[tab.browser_id] = {each.chrome_id for each in self.browsers.book.of(tab.browser_id)}
        return marks, ids

    def expect(self, marks: Iterable[TabFingerprint], ids: dict[str, set[int]]) -> None:
        """Tabs from before a restart of the hub: they get their ids back when their browser reports them."""
        for mark in marks:
            self.away.setdefault(mark.browser_id, ({}, set(ids.get(mark.browser_id, ()))))[0][mark.tab_id] = mark
            self.browsers.book.expect(mark.tab_id, mark.browser_id, mark.chrome_id)

    def _changed(self, change: Change) -> None:
        if change.kind == "disconnected":
            held = {
                tab.tab_id: TabFingerprint.of(tab)
                for tab in change.tabs.disconnected
                if self.leases.get(tab.tab_id) is not None
            }
            if held:
                self.away[change.browser_id] = held, {tab.chrome_id for tab in change.tabs.disconnected}
        elif change.kind == "tabs":
            if self.orphans.waiting:
                self.orphans.tabs_changed(change.tabs)
            if change.synced and change.browser_id in self.away:
                self._match_tabs(change.browser_id)
            for tab in change.tabs.closed:
                self.leases.tab_closed(tab.tab_id, self.clock(), self._opener_of(tab))
            for tab in (*change.tabs.opened, *change.tabs.changed):
                if tab.stopped:
                    self.leases.tab_stopped(tab.tab_id)
            if any(self.leases.get(tab.tab_id) is not None for tab in change.tabs.changed):
                self.sessions.changes += 1

    def _opener_of(self, tab: Tab) -> int | None:
        opener = tab.opener_chrome_id
        found = self.browsers.book.find(tab.browser_id, opener) if opener is not None else None
        return found.tab_id if found is not None and not found.stopped else None

    def _match_tabs(self, browser_id: str) -> None:
        before, ids_before = self.away.pop(browser_id)
        still = {tab_id: mark for tab_id, mark in before.items() if self.leases.get(tab_id) is not None}
        now = self.browsers.book.of(browser_id)
        free = {tab.tab_id for tab in now if self.leases.get(tab.tab_id) is None}
        matches = match_tabs(still, ids_before, now, free)
        for old, new in matches.moved.items():
            self.leases.tab_rematched(old, new)
        for tab_id in matches.lost:
            self.leases.tab_closed(tab_id, self.clock())
