"""An agent over HTTP at a relay: its engine, which runs the tools in the browsers of the agent's user.

Owns one agent's registry, sessions, tabs and endpoint. Links to the browsers are browsers.py's. What is permitted in a
browser is decided there; nothing here is trusted with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tabhub import __version__
from tabhub.calls.approvals.permission import Permission
from tabhub.calls.engine import Engine
from tabhub.calls.protocols import Caller
from tabhub.config.settings import Config
from tabhub.core.listing.catalogue import Catalogues
from tabhub.core.listing.profiles import Profiles
from tabhub.core.registry import Entry
from tabhub.core.resources import ResourceDirectory
from tabhub.core.tools import BROWSER, ToolResult
from tabhub.errors import Busy, CallTimeout, RateLimited, TabhubError
from tabhub.http.messages import Request, Response
from tabhub.limits import Limits
from tabhub.mcp.build import TabParts, build_listing, make_endpoint
from tabhub.mcp.resources import UpstreamResources
from tabhub.mcp.subscriptions import ResourceSubscribers
from tabhub.mcp.surface import FullSurface
from tabhub.relay.engines.browsers import UserBrowserLinks
from tabhub.relay.engines.tools import relay_tools
from tabhub.relay.node import Node
from tabhub.store.audit import AuditLog
from tabhub.store.page_tools import PageToolStore
from tabhub.store.results import ResultStore
from tabhub.trust.approvals import Approval
from tabhub.trust.jwt import Claims
from tabhub.trust.sliding_window import SlidingWindow

if TYPE_CHECKING:
    pass

log = logging.getLogger("tabhub.relay")

_CLOSING = 2.0
"""Seconds for the tabs of a session to be closed when its engine ends."""
ADVICE = (
    "Start the browser that is yours and has the Tabhub extension; in its panel, this relay's address and a token of "
    "yours must be set."
)
_ASKED = "The person at the browser may have been asked whether to allow it: call again when they have answered."


def engine_limits(limits: Limits) -> Limits:
    """The limits of one engine among many."""
    most = limits.relay_engine_bytes
    return replace(
        limits,
        sessions=limits.relay_engine_sessions,
        result_store=most,
        result_memory=most,
        record_all=most,
        record_bytes=min(limits.record_bytes, most // 4),
        stream_bytes=min(limits.stream_bytes, most // 64),
        tabs_per_browser=min(limits.tabs_per_browser, 500),
        tab_text=min(limits.tab_text, 2048),
        page_tools_all=min(limits.page_tools_all, 2000),
        page_cached=min(limits.page_cached, 100),
    )


class RelayEngine:
    """One agent's engine."""

    def __init__(
        self,
        node: Node,
        claims: Claims,
        *,
        limits: Limits,
        audit: AuditLog,
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self.user = claims.user
        self.open = 0
        """Requests and streams that are being served."""
        self.used = self._began = clock()
        self.ended: TabhubError | None = None
        self.running: asyncio.Task[None] | None = None
        self._limits = limits
        config = Config()
        tabs = TabParts(limits, clock=clock, wall=wall, advice=ADVICE)
        self.sessions, self.browsers, self._binding = tabs.sessions, tabs.browsers, tabs.binding
        pages = tabs.page_tools(config, audit, PageToolStore(None, limits))
        self._engine = tabs.engine(Permission(), audit, ResultStore(None, limits, clock=wall))
        tabs.register(BROWSER, relay_tools(self.browsers, self._binding, self._facts))
        self.browsers.on_change(lambda change: pages.tabs_changed(change.tabs.changed), "changed")
        listing = build_listing(tabs, lambda _: False, show_disabled=False)
        self._notices = listing.notices
        self._endpoint = make_endpoint(
            self._engine,
            RelaySurface(self._engine, listing.catalogues, listing.profiles, lambda: config.tools),
            listing,
            UpstreamResources(
                self._engine,
                lambda _: False,
                ResourceDirectory(limits.list_page, lambda _server, _method: False),
                ResourceSubscribers(limits, lambda _server: None),
                None,
            ),
            SlidingWindow(limits.session_rate),
            pages=pages.capabilities,
        )
        self.road = UserBrowserLinks(node, claims, self.browsers, limits, wall=wall)

    def _facts(self) -> dict[str, Any]:
        """What the agent learns of the relay."""
        return {
            "version": __version__,
            "relay": True,
            "uptimeSeconds": round(self._engine.clock() - self._began),
            "sessions": len(self.sessions),
            "callsInFlight": len(self._engine.calls),
        }

    async def run(self) -> None:
        """Run until the token is revoked or the node stops."""
        reason = "it was ended"
        try:
            reason = await self.road.run(self._pause)
        finally:
            self._over(reason)
            self._binding.stop()

    def _pause(self) -> None:
        """The token has expired: open requests end. The sessions wait for a newer token."""
        self.used = self._engine.clock()
        self._stop("the token has come to its end")

    # requests

    def knows(self, session_id: str) -> bool:
        """Whether a session of the handshake era is one of this engine's."""
        return session_id in self._endpoint.handshake.sessions

    async def serve(self, request: Request) -> Response | None:
        """Serve one request, once connected browsers have reported their tabs."""
        if self.open >= self._limits.relay_engine_requests:
            raise Busy(
                f"{self.open} requests of this token are open, which is the limit.",
                hint="Close streams that are not needed, then try again.",
            )
        self.open += 1
        try:
            await self.road.settled()
            if self.ended is not None:
                raise self.ended
            if (wait := self.road.weigh()) is not None:
                raise RateLimited("Too many messages of this user or token.", retry_after=int(wait) + 1)
            return await self._endpoint.serve(request)
        finally:
            self.open -= 1
            self.used = self._engine.clock()

    # time and end

    def keep(self) -> None:
        """Once a second: drop what has expired."""
        for session in self.sessions.expired(self._engine.clock()):
            self._endpoint.handshake.end(session.id, "the session was idle too long")
        self._engine.results.expire()

    async def leave(self, reason: str) -> None:
        """End the sessions, and close the tabs they opened."""
        self._over(reason)
        await self._binding.wait_until_closed(_CLOSING)

    def _over(self, reason: str) -> None:
        """End all requests, and accept no more."""
        if self.ended is not None:
            return
        self.ended = Busy(f"This agent's place at the relay has ended: {reason}.", hint="Send the request once more.")
        for session in self.sessions.all():
            self._endpoint.handshake.end(session.id, reason)
        self._stop(reason)
        self._engine.results.close()

    def _stop(self, reason: str) -> None:
        self._engine.cancel_all(reason)
        self._notices.close()


class RelaySurface(FullSurface):
    """All tools; a call that timed out may have waited for an approval, which its error says."""

    def __init__(self, engine: Engine, catalogues: Catalogues, profiles: Profiles, usual: Callable[[], str]) -> None:
        super().__init__(engine, catalogues, profiles, usual)
        self.call = self._asking

    async def _asking(
        self,
        caller: Caller,
        name: str,
        arguments: dict[str, Any],
        found: Entry | None = None,
        approval: Approval | None = None,
    ) -> ToolResult:
        try:
            return await self._engine.call(caller, name, arguments, found, approval)
        except CallTimeout as error:
            error.hint = f"{error.hint} {_ASKED}" if error.hint else _ASKED
            raise
