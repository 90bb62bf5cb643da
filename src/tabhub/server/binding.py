"""Which tab a call works on: the one it names, the session's own, or a new one opened for it.

Owns binding sessions to tabs. A tab is opened in the background and only when a call needs one.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

from tabhub.errors import TabNotFound
from tabhub.hub.sessions import Session, Sessions
from tabhub.hub.tabs import Tab
from tabhub.hub.tools import CallContext
from tabhub.links.browsers import Browsers, Change, TabRef


class Binding:
    """Sessions and their tabs."""

    def __init__(self, sessions: Sessions, browsers: Browsers) -> None:
        self._sessions = sessions
        self._browsers = browsers
        self._opening: dict[Session, asyncio.Future[TabRef]] = {}
        browsers.on_change(self._changed)

    async def own(self, ctx: CallContext) -> Tab:
        """The session's own tab."""
        return (await self.choose(ctx, None)).tab

    async def choose(self, ctx: CallContext, tab_id: int | None) -> TabRef:
        """The tab for a call."""
        session: Session = ctx.session
        if tab_id is not None:
            ref = self._browsers.tab(tab_id)
            if session.tab != tab_id and session.kind != "handle":
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
        opening = self._opening.get(session)
        if opening is None:
            opening = self._opening[session] = asyncio.ensure_future(self._open(session))
            opening.add_done_callback(lambda _: self._opening.pop(session, None))
        # Several first calls of one session share one new tab; a cancelled one must not take it from the others.
        return await asyncio.shield(opening)

    async def _open(self, session: Session) -> TabRef:
        link = self._browsers.default_link()
        raw: Any = await link.request("createTab", {"url": "about:blank", "active": False})
        tab = self._browsers.described(link, raw, "created")
        if session.kind == "handle" and not self._sessions.knows(session):
            self._sessions.adopt(session, f"s_{secrets.token_urlsafe(12)}")
        self._sessions.bind(session, tab.tab_id, opened=True)
        return TabRef(link, tab)

    def _changed(self, change: Change) -> None:
        if change.kind == "tabs":  # a browser that went away may come back with its tabs
            for tab in change.tabs.closed:
                self._sessions.tab_closed(tab.tab_id)
