"""The hub: builds its parts, starts and stops them.

Owns construction (every part after those it needs), the lifetime of the parts and the upkeep once a second. No part
receives this object.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from tabhub import __version__
from tabhub.browser import bind_tools, make_toolbox
from tabhub.browser.secrets.text import SecretText
from tabhub.calls.approvals.element_lookup import ElementLookup, Seen
from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.approvals.memory import ApprovalMemory
from tabhub.calls.approvals.permission_check import PermissionCheck
from tabhub.calls.approvals.requests import Request
from tabhub.calls.call_sites import CallSites
from tabhub.calls.context import Context
from tabhub.calls.situations import Situations
from tabhub.calls.sources.page_resources import PageResources
from tabhub.calls.sources.plugin_logs import PluginLogs
from tabhub.calls.sources.plugins import Plugins
from tabhub.calls.sources.upstream import Upstreams
from tabhub.config.public_suffixes import load_list
from tabhub.config.settings import Config
from tabhub.core.calls import Area
from tabhub.core.listing.profiles import DEFAULT
from tabhub.core.registry import Entry
from tabhub.core.resources import ResourceDirectory
from tabhub.core.tabs import Tab
from tabhub.core.tools import BROWSER
from tabhub.errors import InvalidParams
from tabhub.http.guard import Guard
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.mcp.build import TabParts, build_listing, make_endpoint
from tabhub.mcp.endpoint import McpEndpoint
from tabhub.mcp.gateway import Finder, GatewaySurface
from tabhub.mcp.resources import UpstreamResources, request_tool
from tabhub.mcp.rest import Rest
from tabhub.mcp.subscriptions import ResourceSubscribers
from tabhub.mcp.surface import FullSurface, Surface
from tabhub.platform.memory import FreedMemory, return_freed_memory
from tabhub.platform.socket_path import bridge_path
from tabhub.server.access import Access, PersonKey
from tabhub.server.admin_routes import Admin
from tabhub.server.approval_routes import ApprovalRoutes
from tabhub.server.bridge.listener import BridgeListener
from tabhub.server.extension_socket import ExtensionSocket
from tabhub.server.health import Health
from tabhub.server.managed_browser import Managed
from tabhub.server.panel.agent import PanelAgent
from tabhub.server.panel.open_panels import OpenPanels
from tabhub.server.panel.panel import Panel
from tabhub.server.panel.plugins import PluginPanel, show_folder
from tabhub.server.panel.previews import Previews
from tabhub.server.panel.sites import SitePanel
from tabhub.server.panel.state import PanelState
from tabhub.server.panel.tab_marks import TabMarks
from tabhub.server.permission_routes import PermissionRoutes
from tabhub.server.reload import Reload
from tabhub.server.routes import make_routes
from tabhub.server.session_control import SessionControl
from tabhub.server.session_persistence import SessionPersistence
from tabhub.server.session_routes import SessionRoutes
from tabhub.server.settings import ExtensionKey, Settings
from tabhub.server.upstream_routes import UpstreamRoutes
from tabhub.store.audit import AuditLog
from tabhub.store.config_file import ConfigFile
from tabhub.store.conversations import ConversationStore
from tabhub.store.grants import GrantStore
from tabhub.store.home import Home
from tabhub.store.named_secrets import SecretStore, system_keyring
from tabhub.store.old_secret import OldSecret
from tabhub.store.page_tools import PageToolStore
from tabhub.store.pins import PinStore
from tabhub.store.results import ResultStore
from tabhub.store.sessions import SessionStore
from tabhub.store.tokens import TokenStore
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.trust.tokens import PANEL
from tabhub.trust.value_mask import ValueMask
from tabhub.wire.bridge import StatusReply
from tabhub.wire.mcp import LISTS

if TYPE_CHECKING:
    from tabhub.config.setting_types import RelaySettings
    from tabhub.links.relays import Relays
    from tabhub.plugins.install import Installer

log = logging.getLogger("tabhub.hub")

_UPKEEP = 1.0
_SHUTTING_DOWN = "the hub is shutting down"


class Hub:
    """One running hub."""

    def __init__(
        self,
        home: Home,
        *,
        port: int,
        config_file: ConfigFile,
        extension_key: str,
        managed: Managed | None = None,
        more_relays: tuple[RelaySettings, ...] = (),
        mask: ValueMask | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """`managed` is a browser to start; `more_relays` are relays in addition to those of the settings; `mask`
        has the secrets that logs must not have."""
        self._port = port
        self._managed = managed
        self._upkeep: asyncio.Task[None] | None = None
        self._loading_list: asyncio.Task[Any] | None = None
        self._freed = FreedMemory()
        self.settings = settings = Settings(home, config_file)
        self.extension_key = ExtensionKey(home, extension_key)
        config = settings.current
        limits = config.limits
        self.batch = WriteBatch()
        audit = AuditLog(home.audit, limits, clock=wall, batch=self.batch)
        if audit.torn:
            log.warning("the last line of %s is incomplete, as after a crash; it is skipped", home.audit)

        # browsers, sessions and tabs
        self.tabs = tabs = TabParts(
            limits, clock=clock, wall=wall, starting=lambda: managed is not None and managed.starting
        )
        self.registry, self.sessions, self.leases = tabs.registry, tabs.sessions, tabs.leases
        self.browsers, self.binding = browsers, binding = tabs.browsers, tabs.binding
        binding.apply_settings(config)
        self.relays = _relays((*config.relays, *more_relays), browsers, limits)

        # permissions and calls
        tokens = TokenStore(home)
        self.person_key = PersonKey(home)
        self.old_secret = OldSecret(home)
        access = Access(self.person_key, tokens, self.old_secret, lambda: settings.current)
        pins = PinStore(home.root / "pins.json")
        memory = ApprovalMemory(pins, GrantStore(home, limits.grants), wall)
        binding.on_session_end(lambda session: memory.forget_session(session.id))

        def look(request: Request) -> Awaitable[Seen] | None:
            return self._lookup.look(request.session, request.acts, request.tab_id)

        self.approvals = approvals = ApprovalInbox(
            config,
            limits=limits,
            sessions=tabs.sessions,
            browsers=browsers,
            audit=audit,
            clock=clock,
            wall=wall,
            memory=memory,
            look=look,
        )

        def plugin_tabs(plugin: str) -> list[Tab]:
            return self.plugins.open_tabs(plugin)

        def plugin_patterns(plugin: str) -> tuple[str, ...]:
            return self.plugins.patterns(plugin)

        page_store = PageToolStore(home.root / "page-tools.json", limits)
        self.pages = pages = tabs.page_tools(config, audit, page_store, approvals)
        self.permission = permission = PermissionCheck(
            config,
            inbox=approvals,
            memory=memory,
            browsers=browsers,
            audit=audit,
            sites=CallSites(browsers.book, plugin_tabs, plugin_patterns, binding.holds),
            declared=pages.declared,
            require_free=binding.require_free,
            held_by_others=binding.held_by_others,
        )
        results = ResultStore(home.results, limits, clock=wall)
        mask = mask or ValueMask()

        def outline(call: Context, area: Area) -> None:
            self._marks.outline(call, area)

        self.engine = engine = tabs.engine(
            permission,
            audit,
            results,
            mask,
            keep_arguments=config.audit_arguments,
            on_target=outline,
        )
        self._marks = TabMarks(
            engine,
            browsers,
            tabs.leases,
            tabs.colours,
            lambda browser: managed is not None and managed.headless and browsers.is_managed(browser),
        )

        # what agents are shown
        listing = build_listing(
            tabs,
            permission.tools.is_off,
            show_disabled=config.show_disabled,
            budget=lambda: settings.current.catalogue_tokens,
            hidden=permission.hidden_tools,
        )
        self.notices, self.catalogues = listing.notices, listing.catalogues
        directory = ResourceDirectory(
            limits.list_page, lambda server, method: permission.tools.is_off(request_tool(server, method))
        )

        def subscriptions_changed(server: str) -> None:
            self.upstream.subscriptions_changed(server)

        subscribers = ResourceSubscribers(limits, subscriptions_changed)
        self.upstream = upstream = Upstreams(
            home.root,
            port,
            limits=limits,
            registry=tabs.registry,
            browsers=browsers,
            pins=pins,
            resources=directory,
            allowed_hosts=lambda: settings.current.upstream_hosts,
            list_changed=listing.notices.changed,
            resource_updated=subscribers.updated,
            subscribed_uris=subscribers.uris,
        )
        page_resources = PageResources(pages.pages, pages.calls, directory, listing.notices.changed)
        pages.on_publish(page_resources.publish)
        resources = UpstreamResources(
            engine, permission.tools.is_off, directory, subscribers, upstream, page_resources, permission.hidden_tools
        )
        session_rate = SlidingWindow(limits.session_rate)

        def selection() -> str:
            """The selection of tools for agents that name none."""
            try:
                listing.profiles.select(settings.current.tools)
            except InvalidParams as error:
                log.warning("the setting `tools` is ignored: %s", error.text())
                return DEFAULT
            return settings.current.tools

        def endpoint(surface: Surface) -> McpEndpoint:
            return make_endpoint(engine, surface, listing, resources, session_rate, pages=pages.capabilities)

        everything = listing.catalogues.everything

        def plugin_owns(plugin: str, url: str) -> bool:
            return self.plugins.owns(plugin, url)

        situations = Situations(browsers.book, plugin_owns)
        self.mcp = endpoint(FullSurface(engine, listing.catalogues, listing.profiles, selection, situations.of))
        self.gateway = endpoint(
            GatewaySurface(engine, Finder(engine, listing.catalogues, situations.of), listing.profiles)
        )
        edges = {"/mcp": self.mcp.handshake, "/mcp/gateway": self.gateway.handshake}

        def broadcast_log(level: str, logger: str, data: Any) -> None:
            for edge in edges.values():
                edge.broadcast_log(
                    level, logger, mask.value(data), lambda agent: permission.hidden.hides_log(agent, logger)
                )

        # sources of tools
        secret_store = SecretStore(home, system_keyring())
        self._secrets = SecretText(secret_store, mask, wall)
        self.plugins = plugins = Plugins(
            home,
            tabs.registry,
            browsers,
            tabs.transport,
            PluginLogs(limits, engine.calls, broadcast_log, wall, permission.hidden.hides_log),
            limits=limits,
            leases=binding,
            config=lambda: settings.current,
            reload_settings=settings.reload,
            secrets=secret_store,
            mask=mask,
            wall=wall,
        )

        def report_download(tab: Tab | None, site: str, *, deleted: bool) -> None:
            tab_id = tab.tab_id if tab is not None else None
            what = "download deleted" if deleted else "download not deleted"
            audit.event(what, BROWSER, tab_id=tab_id, origin=site)

        self._toolbox = make_toolbox(
            browsers,
            binding,
            home.files_folder(config.files_dir),
            hub_facts=self._describe,
            plugins=plugins.sites,
            files_anywhere=config.files_anywhere,
            file_urls=config.file_urls,
            secrets=self._secrets,
            view=permission.view,
            report_download=report_download,
        )
        self._lookup = ElementLookup(self._toolbox)
        tabs.register(BROWSER, (Entry(tool, run) for tool, run in bind_tools(self._toolbox)))
        tabs.transport.settings(_page_settings(config))
        browsers.on_change(lambda change: pages.tabs_changed(change.tabs.changed), "changed")
        browsers.on_change(lambda _: engine.browser_wait.expect(limits.extension_back), "connected")
        browsers.on_change(lambda _: engine.browser_wait.stop_waiting(), "synced")

        # connections
        self.extension = ExtensionSocket(browsers, extension_key.encode(), limits, config.log_messages, mask)
        self.bridge = BridgeListener(
            bridge_path(str(home.root), os.environ),
            home.root,
            batch=self.batch,
            engine=engine,
            endpoints={"all": self.mcp, "gateway": self.gateway},
            notices=listing.notices,
            rate=session_rate,
            select=listing.profiles.select,
            status=self._status,
            admit=access.admit,
        )

        # what the person sees and does
        session_store = SessionStore(home.root / "sessions.json")
        self.persistence = SessionPersistence(session_store, engine, tabs.leases, binding, edges)
        self.session_control = SessionControl(
            engine,
            tabs.leases,
            binding,
            browsers,
            self.persistence,
            tuple(edges.values()),
            listing.notices,
            access.locked_out,
        )
        self.reload = Reload(settings, self.extension_key, plugins, clock, wall)
        self.health = health = Health(
            home=home,
            port=port,
            started=clock(),
            settings=settings,
            engine=engine,
            browsers=browsers,
            leases=tabs.leases,
            catalogue=everything,
            inbox=approvals,
            pages=pages,
            plugins=plugins,
            upstream=upstream,
            sessions=session_store,
            pins=pins,
            tokens=tokens,
            old_secret=self.old_secret,
            reload=self.reload,
            managed=managed,
            relays=self.relays,
        )

        def installer() -> Installer:
            from tabhub.plugins.install import Installer
            from tabhub.plugins.npm import find_registry

            return Installer(home.plugins, lambda: find_registry(settings.current.plugin_registry, os.environ))

        self.plugin_panel = PluginPanel(plugins, installer, self.reload, show_folder)
        upstream_routes = UpstreamRoutes(upstream, limits)
        panels = OpenPanels()
        conversations = ConversationStore(home.root / "conversations", limits.agent_conversations)
        self.agent = PanelAgent(conversations, port, settings, tokens.create_temporary(PANEL), tabs.sessions, panels)
        site_panel = SitePanel(home, settings, permission, memory, tabs.registry)
        panel_state = PanelState(
            settings,
            permission,
            engine,
            browsers,
            self.session_control,
            health,
            approvals,
            plugins,
            self.plugin_panel,
            upstream,
            site_panel,
            tabs.colours,
        )
        previews = Previews(approvals, self._lookup, self._marks, tabs.colours)
        self.panel = Panel(
            panel_state,
            settings,
            engine,
            browsers,
            self.session_control,
            approvals,
            permission,
            memory,
            panels,
            self._marks,
            previews.methods()
            | self.plugin_panel.methods()
            | upstream_routes.methods()
            | self.agent.methods()
            | site_panel.methods(),
        )
        refused: Counter[int] = Counter()
        routes = make_routes(
            {"/mcp": self.mcp.serve, "/mcp/gateway": self.gateway.serve},
            rest=Rest(engine, listing.catalogues),
            admin=Admin(port, self.extension_key, engine, health, self.reload, browsers, plugins, refused),
            sessions=SessionRoutes(self.session_control, limits),
            approvals=ApprovalRoutes(approvals, engine),
            permissions=PermissionRoutes(permission, tabs.registry, limits),
            upstream=upstream_routes,
        )
        self.guard = Guard(
            port,
            limits,
            access.identify,
            clock=clock,
            endpoints=routes,
            websockets={"/ws": self.extension.route},
            refused=refused,
        )

        settings.on_change(self._apply_settings)
        self.extension_key.on_change(self._apply_extension_key)
        if count := self.persistence.restore():
            log.info("%d sessions from before the restart continue", count)
        plugins.load()

    def _describe(self) -> dict[str, Any]:
        """What agents learn about the hub itself."""
        return {
            **({"managedBrowser": self._managed.status()} if self._managed is not None else {}),
            "version": __version__,
            "uptimeSeconds": self.health.uptime,
            "secrets": self._secrets.describe(),
            "sessions": len(self.sessions),
            "callsInFlight": len(self.engine.calls),
        }

    def _status(self, ident: str) -> StatusReply:
        """The answer to STATUS on the bridge socket; connected means that an extension is connected now."""
        known = ("browserId", "browserName", "connected", "tabs")
        browsers = [{name: facts[name] for name in known if name in facts} for facts in self.browsers.status()]
        return StatusReply(
            ident,
            extension_connected=any(facts.get("connected") for facts in browsers),
            active_sessions=len(self.sessions),
            browsers=browsers,
            paused=self.session_control.paused,
            version=__version__,
            pid=os.getpid(),
            port=self._port,
        )

    async def start(self) -> None:
        await self.bridge.start()
        self.person_key.publish()
        self._upkeep = asyncio.create_task(self._keep())
        self.plugins.start()
        self.upstream.start()
        browser_wait, limits = self.engine.browser_wait, self.engine.limits
        if self.binding.away:
            browser_wait.expect(limits.extension_back)
        if self._managed is not None:
            browser_wait.expect(limits.browser_start)
            self._managed.begin(connected=lambda: bool(self.browsers.links()), on_failure=browser_wait.stop_waiting)
        if self.relays is not None:
            self.relays.start()
        # Now, because later it would hold up calls.
        self._loading_list = asyncio.create_task(asyncio.to_thread(load_list))

    def closing(self) -> None:
        """Notify agents and browsers before connections are closed."""
        self.notices.close()
        self.agent.closing()
        self.bridge.closing()
        self.extension.close()
        self.engine.cancel_all(_SHUTTING_DOWN)

    async def stop(self) -> None:
        if self._upkeep is not None:
            self._upkeep.cancel()
        await self.agent.stop()
        await self.bridge.stop()
        self.panel.stop()
        self.person_key.withdraw()
        if self._managed is not None:
            await self._managed.stop()
        if self.relays is not None:
            await self.relays.stop()
        self.pages.close()
        self.plugins.stop()
        await self.upstream.stop()
        self.binding.orphans.stop()
        self.persistence.save_now()
        self.engine.audit.close()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_UPKEEP)
            self.session_control.expire()
            await self.persistence.save()
            self.engine.audit.flush()
            self.reload.check_files()
            self._marks.update()
            await self.bridge.restore_socket()
            await self.pages.keep()
            self.plugins.watcher.poll()
            await asyncio.to_thread(self.engine.results.expire)
            if self._freed.is_much(len(self.registry.by_name) + len(self.sessions)):
                await asyncio.to_thread(return_freed_memory)

    def _apply_settings(self, config: Config) -> None:
        for part in (self.engine, self.extension, self.approvals, self.permission, self.binding):
            part.apply_settings(config)
        self.session_control.end_locked_out()
        self.pages.allow(config.pages)
        self.tabs.transport.settings(_page_settings(config))
        self.catalogues.show(marked=config.show_disabled)
        for kind in LISTS:
            self.notices.changed(kind)

    def _apply_extension_key(self, key: str) -> None:
        if self._managed is not None:
            self._managed.install(key)
        self.extension.replace_key(key.encode())


def _relays(settings: Sequence[RelaySettings], browsers: Browsers, limits: Limits) -> Relays | None:
    if not settings:
        return None
    from tabhub.links.relays import Relays  # most hubs have none, and the module takes long to load

    return Relays(settings, browsers, limits)


def _page_settings(config: Config) -> dict[str, Any]:
    pages, limits = config.pages, config.limits
    return {
        "modelContext": pages.model_context,
        "allowedOrigins": list(pages.allowed_origins),
        "maxTools": limits.page_tools,
        "maxBytes": limits.page_bytes,
        "maxDocuments": limits.page_documents,
        "maxUpdates": limits.page_update_rate,
    }
