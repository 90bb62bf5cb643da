"""The hub put together: one object that owns every part and their common life.

Owns construction and the small upkeep (expiry, rotation of the secret). The parts do not know each other beyond what
they are handed here.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub import __version__
from tabhub.browser import browser_tools
from tabhub.browser.families import CORE, FAMILIES
from tabhub.calls.engine import Engine
from tabhub.calls.results import read_result_tool
from tabhub.calls.sources.page_tools import PageTools
from tabhub.calls.tab_binding import TabBinding
from tabhub.config.settings import Config
from tabhub.core.leases import Leases
from tabhub.core.listing.catalogue import Catalogues
from tabhub.core.listing.profiles import ALL, Profiles
from tabhub.core.registry import Entry, Registry
from tabhub.core.sessions import Sessions
from tabhub.core.tools import BROWSER, HUB, Source, Tool
from tabhub.errors import InvalidParams
from tabhub.http.guard import Guard
from tabhub.http.write_batch import WriteBatch
from tabhub.links.browsers import Browsers, Change
from tabhub.links.sites import LinkSites
from tabhub.links.transport import LinkTransport
from tabhub.mcp.build import make_endpoint
from tabhub.mcp.endpoint import McpEndpoint
from tabhub.mcp.gateway import GatewaySurface
from tabhub.mcp.notifications import Notices
from tabhub.mcp.resources import Offering
from tabhub.mcp.surface import FullSurface, Surface
from tabhub.platform.socket_path import daemon_path
from tabhub.server.bridge.listener import Daemon
from tabhub.server.config_reload import Reloading, Reloads
from tabhub.server.extension_socket import ExtensionSocket
from tabhub.server.managed_browser import Managed
from tabhub.server.panel.agent import agent_parts
from tabhub.server.plugin_parts import plugin_parts
from tabhub.server.security import Trust
from tabhub.server.session_persistence import Keeping
from tabhub.server.upstream_routes import upstream_parts
from tabhub.store.audit import AuditLog
from tabhub.store.config_file import ConfigFile
from tabhub.store.home import Home
from tabhub.store.page_tools import PageToolStore
from tabhub.store.results import ResultStore
from tabhub.store.sessions import SessionStore
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.wire.mcp import LISTS

if TYPE_CHECKING:
    from tabhub.config.relay import RelaySettings
    from tabhub.links.relays import Relays

log = logging.getLogger("tabhub.hub")

_UPKEEP = 1.0


class Hub:
    """Everything a running hub is."""

    def __init__(
        self,
        home: Home,
        *,
        port: int,
        config_file: ConfigFile,
        secret: str,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.home = home
        self.port = port
        self.pid = os.getpid()
        self.config: Config = config_file.current
        self.config_error: str | None = config_file.error
        self.started = clock()
        self.reloading = Reloading(self, config_file, secret)
        self.managed: Managed | None = None
        self.relays: Relays | None = None
        self.more_relays: tuple[RelaySettings, ...] = ()
        """Besides those of the configuration."""
        self.batch = WriteBatch()
        self.limits = limits = self.config.limits
        self.registry = Registry()
        self.sessions = Sessions(limits)
        self.browsers = Browsers(limits, wall=wall)
        self.browsers.starting = lambda: self.managed is not None and self.managed.starting
        self.leases = Leases(self.sessions, limits)
        self.binding = TabBinding(
            self.sessions,
            self.leases,
            self.browsers,
            clock=clock,
            runs_calls=lambda session_id: bool(self.engine.calls.of_session(session_id)),
        )
        self._take_lease_settings()
        audit = AuditLog(home.audit, limits, clock=wall, batch=self.batch)
        self.trust = Trust(self, audit, clock=clock, wall=wall)
        self.engine = Engine(
            registry=self.registry,
            sessions=self.sessions,
            limits=limits,
            permission=self.trust.permission,
            audit=audit,
            results=ResultStore(home.results_db, limits, clock=wall),
            clock=clock,
            wall=wall,
            keep_arguments=self.config.audit_arguments,
        )
        self.engine.when_ended = self.binding.session_ended
        if self.engine.audit.torn:
            log.warning("the last line of %s is torn, as a hub that was killed leaves it; it is skipped", home.audit)
        self.catalogues = Catalogues(self.registry, limits, self._is_off, self.config.show_disabled)
        self.catalogue = self.catalogues.everything
        self.profiles = Profiles(FAMILIES, CORE)
        self.notices = Notices(limits)
        self.registry.on_change(self.notices.tools_changed)
        self.guard = Guard(port, secret.encode(), limits, self.trust.tokens)
        self.guard.tokens_required = self.config.require_tokens
        self.socket = ExtensionSocket(self.browsers, secret.encode(), limits)
        self.socket.log_messages = self.config.log_messages
        rate = SlidingWindow(limits.session_rate)
        self.offering = Offering(self.engine, self._is_off, lambda: self.upstream)
        self.mcp = self._endpoint(FullSurface(self.engine, self.catalogues, self.profiles, self._listed), rate)
        self.gateway = self._endpoint(GatewaySurface(self.engine, self.catalogue), rate)
        self.daemon = Daemon(
            daemon_path(str(home.root), os.environ),
            home.root,
            engine=self.engine,
            endpoints={"all": self.mcp, "gateway": self.gateway},
            notices=self.notices,
            rate=rate,
            select=self.profiles.select,
            status=self.status,
        )
        self.daemon.admit = self.trust.admit
        self.keeping = Keeping(
            SessionStore(home.root / "sessions.json"),
            self.sessions,
            self.leases,
            self.binding,
            self.engine.pause,
            {"/mcp": self.mcp.handshake, "/mcp/gateway": self.gateway.handshake},
            clock=clock,
            wall=wall,
        )
        if count := self.keeping.take_up():
            log.info("%d sessions from before go on", count)
        self._upkeep: asyncio.Task[None] | None = None
        files = Path(self.config.files_dir).expanduser() if self.config.files_dir else home.files
        self.transport = LinkTransport(self.browsers)
        self.plugins, self.plugin_panel = plugin_parts(self)
        may = {"files_anywhere": self.config.files_anywhere, "file_urls": self.config.file_urls}
        sites = self.plugins.sites
        own = browser_tools(self.browsers, self.binding, files, hub_facts=self.facts, plugins=sites, **may)
        self.register(BROWSER, (Entry(tool, run) for tool, run in own))
        self.register(HUB, [read_result_tool(self.engine.results)])
        self.transport.settings(self._page_settings())
        self.pages = PageTools(
            self.transport,
            self.registry,
            self.browsers.book,
            LinkSites(self.browsers),
            PageToolStore(home.root / "page-tools.json", limits),
            limits=limits,
            settings=self.config.pages,
            audit=self.engine.audit,
            clock=clock,
            wall=wall,
            leases=self.binding,
            approvals=self.trust.approvals,
        )
        self.browsers.on_change(self._browsers_changed)
        self.trust.panel.add(
            self.plugin_panel.methods(), plugins=self.plugin_panel.state, failedPlugins=self.plugins.failures
        )
        self.plugins.load()
        self.upstream = upstream_parts(self)
        self.agent = agent_parts(self)

    def _endpoint(self, surface: Surface, rate: SlidingWindow) -> McpEndpoint:
        return make_endpoint(
            self.engine,
            surface,
            self.notices,
            self.offering,
            rate,
            pages=self._told_of_pages,
            select=self.profiles.select,
        )

    def _told_of_pages(self) -> dict[str, Any]:
        return self.pages.capabilities()

    def _browsers_changed(self, change: Change) -> None:
        self.pages.tabs_changed(change.tabs)
        if change.synced:
            self.engine.browser_wait.stop_waiting()

    def _page_settings(self) -> dict[str, Any]:
        pages = self.config.pages
        return {"modelContext": pages.model_context, "allowedOrigins": list(pages.allowed_origins)}

    def _take_lease_settings(self) -> None:
        self.binding.apply_settings(self.config)

    def _listed(self) -> str:
        """What is listed to agents that do not say."""
        try:
            self.profiles.select(self.config.tools)
        except InvalidParams as error:
            log.warning("the setting `tools` is not used, all tools are listed: %s", error.text())
            return ALL
        return self.config.tools

    def _is_off(self, tool: Tool) -> bool:
        return self.trust.permission.is_off(tool)

    def register(self, source: Source, entries: Iterable[Entry]) -> None:
        """Set the tools of one source; what is refused is logged and harms no other."""
        for problem in self.registry.replace(source, entries):
            log.warning("tool refused: %s", problem)

    def facts(self) -> dict[str, Any]:
        """What an agent is told of the hub itself."""
        managed = {"managedBrowser": self.managed.facts()} if self.managed is not None else {}
        return {
            **managed,
            "version": __version__,
            "uptimeSeconds": round(self.engine.clock() - self.started),
            "sessions": len(self.sessions),
            "callsInFlight": len(self.engine.calls),
        }

    def status(self) -> dict[str, Any]:
        """What STATUS on the daemon's socket is answered with: connected means that an extension is, now."""
        known = ("browserId", "browserName", "connected", "tabs")
        browsers = [{key: facts[key] for key in known if key in facts} for facts in self.browsers.status()]
        return {
            "extensionConnected": any(facts.get("connected") for facts in browsers),
            "activeSessions": len(self.sessions),
            "browsers": browsers,
            "paused": self.engine.pause.paused is not None,
            "version": __version__,
            "pid": self.pid,
            "port": self.port,
        }

    def managed_facts(self) -> dict[str, Any] | None:
        """What is known of the browser this hub started."""
        return self.managed.facts() if self.managed is not None else None

    # life

    async def start(self) -> None:
        """Begin upkeep, and the managed browser if there is to be one."""
        await self.daemon.start()
        self.trust.key.publish()
        self._upkeep = asyncio.create_task(self._keep())
        self.plugins.start()
        self.upstream.start()
        browser_wait, limits = self.engine.browser_wait, self.engine.limits
        if self.binding.away:
            browser_wait.expect(limits.extension_back)
        if self.managed is not None:
            browser_wait.expect(limits.browser_start)
            self.managed.on_failure = browser_wait.stop_waiting
            self.managed.begin()
        if relays := (*self.config.relays, *self.more_relays):
            from tabhub.links.relays import Relays  # most hubs have none, and its parts take long to load

            self.relays = Relays(relays, self.browsers, self.engine.limits)
            self.relays.start()

    def closing(self) -> None:
        """Tell everyone that the hub is going, before connections are closed."""
        self.notices.close()
        self.agent.closing()
        self.daemon.closing()
        self.socket.close()
        for waits in self.engine.waits:
            waits.cancel_all("the hub is shutting down")
        for call in self.engine.calls:
            self.engine.cancel(call, "the hub is shutting down")

    async def stop(self) -> None:
        """End what start began."""
        if self._upkeep is not None:
            self._upkeep.cancel()
        await self.agent.stop()
        await self.daemon.stop()
        self.trust.panel.stop()
        self.trust.key.withdraw()
        if self.managed is not None:
            await self.managed.stop()
        if self.relays is not None:
            await self.relays.stop()
        self.pages.close()
        self.plugins.stop()
        await self.upstream.stop()
        self.binding.stop()
        self.keeping.keep_now()
        self.engine.audit.close()
        self.engine.results.close()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_UPKEEP)
            self.expire_sessions()
            self.end_locked_out()
            await self.keeping.keep()
            self.engine.audit.flush()
            self.check_secret()
            self.reloading.check_config()
            self.trust.panel.mark_tabs()
            await self.daemon.keep()
            await self.pages.keep()
            self.plugins.keep()
            await asyncio.to_thread(self.engine.results.expire)

    def expire_sessions(self) -> None:
        """End sessions nobody has used for long."""
        for session in self.sessions.expired(self.engine.clock()):
            self.end_session(session.id, "the session was idle too long")

    def end_locked_out(self) -> None:
        """End what those still have whose token was taken back, or who need one now."""
        for session in self.sessions.all():
            if session.kind in ("mcp", "daemon") and self.trust.locked_out(session.token):
                self.end_session(session.id, "its token is not valid any more")
        self.notices.end(self.trust.locked_out)

    def end_session(self, session_id: str, reason: str) -> bool:
        """End a session of any kind: its calls are cancelled, its leases free, its tabs closed. False if none was."""
        known = self.sessions.get(session_id) is not None
        for endpoint in (self.mcp, self.gateway):
            endpoint.handshake.end(session_id, reason)
        return known

    # changes while running

    @property
    def reloads(self) -> Reloads:
        """How often and when the configuration was read again."""
        return self.reloading.reloads

    def check_secret(self) -> None:
        """Take over a secret that was rotated on disk."""
        self.reloading.check_secret()

    def reload(self) -> dict[str, Any]:
        """Read configuration and secret again, and look for plugins."""
        return self.reloading.reload()

    def apply_config(self) -> None:
        """Put the settings in force that can change while the hub runs."""
        self.engine.keep_arguments = self.config.audit_arguments
        self.socket.log_messages = self.config.log_messages
        self.trust.apply_settings()
        self.end_locked_out()
        self._take_lease_settings()
        self.pages.allow(self.config.pages)
        self.transport.settings(self._page_settings())
        self.catalogues.show(marked=self.config.show_disabled)
        for kind in LISTS:
            self.notices.changed(kind)
