"""Which tab a call works on: the one it names, the session's own, or a new one opened for it.

Owns binding sessions to tabs. A tab is opened in the background and only when a call needs one.
"""

from __future__ import annotations

import asyncio
import secrets

from tabhub.browser.tab import open_tab
from tabhub.errors import TabNotFound
from tabhub.hub.sessions import Session, Sessions
from tabhub.links.browsers import Browsers, Change, TabRef


class Binding:
    """Sessions and their tabs (browser.spec.TabChoice)."""

    def __init__(self, sessions: Sessions, browsers: Browsers) -> None:
        self._sessions = sessions
        self._browsers = browsers
        self._opening: dict[Session, asyncio.Future[TabRef]] = {}
        browsers.on_change(self._changed)

    def known(self, session: Session, tab_id: int | None) -> TabRef | None:
        """The tab a call names, which binds it, or the session's own; None if there is none yet."""
        if tab_id is not None:
            ref = self._browsers.tab(tab_id)
            if session.tab != tab_id and self._sessions.knows(session):
                self._sessions.bind(session, tab_id)
            return ref
        if session.tab is not None:
            return self._browsers.tab(session.tab)
        if session.lost_tab is not None:
            lost, session.lost_tab = session.lost_tab, None
            raise TabNotFound(
                f"Tab {lost}, which this session was working in, has been closed.",
                hint="Call again to go on in a new tab, or pass the `tabId` of another.",
            )
        return None

    async def opened(self, session: Session) -> TabRef:
        """A new background tab; several first calls of one session share it."""
        opening = self._opening.get(session)
        if opening is None:
            opening = self._opening[session] = asyncio.ensure_future(self._open(session))
            opening.add_done_callback(lambda _: self._opening.pop(session, None))
        # One call that is cancelled must not take the tab from the others.
        return await asyncio.shield(opening)

    async def _open(self, session: Session) -> TabRef:
        tab = await open_tab(self._browsers)
        self.adopt(session, tab.tab_id)
        return self._browsers.tab(tab.tab_id)

    def adopt(self, session: Session, tab_id: int) -> None:
        """The session opened this tab and goes on in it; a session of one request is kept from here on."""
        if session.kind == "handle" and not self._sessions.knows(session):
            self._sessions.adopt(session, f"s_{secrets.token_urlsafe(12)}")
        self._sessions.bind(session, tab_id, opened=True)

    def _changed(self, change: Change) -> None:
        if change.kind == "tabs":  # a browser that went away may come back with its tabs
            for tab in change.tabs.closed:
                self._sessions.tab_closed(tab.tab_id)
