"""An agent over HTTP at a relay: its engine, which runs tools in the browsers of the agent's user.

Owns one agent's registry, sessions, tabs and endpoint. Links to the browsers belong to links.py. Each browser decides
itself what agents may do in it; nothing here is trusted with that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tabhub import __version__
from tabhub.calls.approvals.permission import Permission
from tabhub.calls.protocols import Caller
from tabhub.calls.situations import Situations
from tabhub.config.settings import Config
from tabhub.core.resources import ResourceDirectory
from tabhub.core.tools import BROWSER, ToolResult
from tabhub.errors import Busy, CallTimeout, RateLimited, TabhubError
from tabhub.http.messages import Request, Response
from tabhub.limits import Limits
from tabhub.mcp.build import TabParts, build_listing, make_endpoint
from tabhub.mcp.resources import UpstreamResources
from tabhub.mcp.subscriptions import ResourceSubscribers
from tabhub.mcp.surface import FullSurface
from tabhub.relay.engines.links import UserBrowserLinks
from tabhub.relay.engines.tools import relay_tools
from tabhub.relay.node import Node
from tabhub.store.audit import AuditLog
from tabhub.store.page_tools import PageToolStore
from tabhub.store.results import ResultStore
from tabhub.trust.jwt import Claims
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.trust.value_mask import ValueMask

_CLOSE_TIMEOUT = 2.0
"""Seconds for closing the tabs of a session when its engine ends."""
_NO_BROWSER_HINT = (
    "Start your browser with the Tabhub extension; its panel needs this relay's URL and one of your tokens."
)
_APPROVAL_HINT = "The person at the browser may have been asked for approval: call again when they have decided."


def engine_limits(limits: Limits) -> Limits:
    size = limits.relay_engine_bytes
    return replace(
        limits,
        sessions=limits.relay_engine_sessions,
        result_store=size,
        result_memory=size,
        record_all=size,
        record_bytes=min(limits.record_bytes, size // 4),
        stream_bytes=min(limits.stream_bytes, size // 64),
        tabs_per_browser=min(limits.tabs_per_browser, 500),
        tab_text=min(limits.tab_text, 2048),
        page_tools_all=min(limits.page_tools_all, 2000),
        page_bytes_all=min(limits.page_bytes_all, size // 4),
        page_cached=min(limits.page_cached, 100),
        page_cached_bytes=min(limits.page_cached_bytes, size // 64),
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
        new_id: Callable[[], str],
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self.user = claims.user
        self.open = 0
        """Requests and streams that are being served."""
        self.last_used = self._started = clock()
        self.ended: TabhubError | None = None
        """The error for further requests, once it has ended."""
        self._limits = limits
        config = Config()
        tabs = TabParts(limits, clock=clock, wall=wall, advice=_NO_BROWSER_HINT)
        self.sessions, self.browsers, self._binding = tabs.sessions, tabs.browsers, tabs.binding
        pages = tabs.page_tools(config, audit, PageToolStore(None, limits))
        self._engine = tabs.engine(Permission(), audit, ResultStore(None, limits, clock=wall), ValueMask())
        tabs.register(BROWSER, relay_tools(self.browsers, self._binding, self._facts))
        self.browsers.on_change(lambda change: pages.tabs_changed(change.tabs.changed), "changed")
        listing = build_listing(tabs, lambda _: False, show_disabled=False, budget=lambda: config.catalogue_tokens)
        self._notices = listing.notices
        self._endpoint = make_endpoint(
            self._engine,
            RelaySurface(
                self._engine,
                listing.catalogues,
                listing.profiles,
                lambda: config.tools,
                Situations(self.browsers.book).of,
            ),
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
            new_id=new_id,
        )
        self.links = UserBrowserLinks(node, claims, self.browsers, limits, wall=wall)
        self.task = node.spawn(self._run())
        """Ends when the token is revoked or the node stops."""

    def _facts(self) -> dict[str, Any]:
        """Facts about the relay for `browser_status`."""
        return {
            "version": __version__,
            "relay": True,
            "uptimeSeconds": round(self._engine.clock() - self._started),
            "sessions": len(self.sessions),
            "callsInFlight": len(self._engine.calls),
        }

    async def _run(self) -> None:
        reason = "it was stopped"
        try:
            reason = await self.links.run(self._pause)
        finally:
            self._end(reason)
            self._binding.orphans.stop()

    def _pause(self) -> None:
        """The token has expired: open requests end. The sessions wait for a newer token."""
        self.last_used = self._engine.clock()
        self._cancel_calls("the token has expired")

    @property
    def busy(self) -> bool:
        """Whether a call runs."""
        return bool(len(self._engine.calls))

    def has_session(self, session_id: str) -> bool:
        return session_id in self._endpoint.handshake.sessions

    async def serve(self, request: Request) -> Response | None:
        """Serve one request, once connected browsers have reported their tabs."""
        if self.open >= self._limits.relay_engine_requests:
            raise Busy(
                f"This token has {self.open} open requests, the maximum.",
                hint="Close streams that are not needed, then try again.",
            )
        self.open += 1
        try:
            await self.links.wait_settled()
            if self.ended is not None:
                raise self.ended
            if (wait := self.links.check_rate()) is not None:
                raise RateLimited("Too many requests for this user or token.", retry_after=int(wait) + 1)
            return await self._endpoint.serve(request)
        finally:
            self.open -= 1
            self.last_used = self._engine.clock()

    def tick(self) -> None:
        """To be called about once a second: drops what has expired."""
        for session in self.sessions.expired(self._engine.clock()):
            self._endpoint.handshake.end(session.id, "the session was idle too long")
        self._engine.results.expire()

    async def close(self, reason: str) -> None:
        """End the sessions and close the tabs they opened."""
        self._end(reason)
        try:
            await self._binding.orphans.wait_until_closed(_CLOSE_TIMEOUT)
        finally:
            self.task.cancel()

    def _end(self, reason: str) -> None:
        """End all requests and accept no more."""
        if self.ended is not None:
            return
        self.ended = Busy(f"The relay ended the engine of this agent: {reason}.", hint="Send the request again.")
        for session in self.sessions.all():
            self._endpoint.handshake.end(session.id, reason)
        self._cancel_calls(reason)

    def _cancel_calls(self, reason: str) -> None:
        self._engine.cancel_all(reason)
        self._notices.close()


class RelaySurface(FullSurface):
    """The tools of a selection; a call that timed out may have waited for an approval, which its error says."""

    async def run(self, caller: Caller, name: str, arguments: dict[str, Any]) -> ToolResult:
        try:
            return await super().run(caller, name, arguments)
        except CallTimeout as error:
            error.hint = f"{error.hint} {_APPROVAL_HINT}" if error.hint else _APPROVAL_HINT
            raise
