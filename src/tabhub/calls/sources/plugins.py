"""Site plugins in the hub: installed plugins become tools of the registry and adapters in the browsers.

Owns the table of plugins in use, which is replaced as a whole: a call in flight keeps the plugin it began with. Also
what browsers report about plugins (ready tabs, logs), and what health and the panel show. Finding and reading plugins
is plugins/'s, calls are plugin_calls'.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import Any

from tabhub.browser.tool_spec import PluginSite
from tabhub.calls.sources.plugin_calls import Active, PluginCalls
from tabhub.calls.sources.plugin_logs import PluginLogs
from tabhub.calls.sources.plugin_requests import PluginRequests
from tabhub.calls.sources.tab_calls import TabCalls
from tabhub.calls.tab_binding import TabBinding
from tabhub.config.settings import Config
from tabhub.core.registry import Registry
from tabhub.core.tabs import Tab
from tabhub.core.tools import Source
from tabhub.errors import NotFound, SetupError, TabhubError
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers, Change, PluginMessage
from tabhub.links.extension import ExtensionLink
from tabhub.links.transport import TabHubTransport
from tabhub.plugins import adapters, settings
from tabhub.plugins.discovery import Discovered, Discovery
from tabhub.plugins.model import Plugin, agents_name
from tabhub.plugins.secret_settings import write_settings
from tabhub.plugins.watch import Watcher
from tabhub.store.home import Home
from tabhub.store.named_secrets import SecretStore
from tabhub.trust.value_mask import ValueMask
from tabhub.wire.extension_link import PluginLog, PluginState, PluginStateChanged

log = logging.getLogger("tabhub.plugins")


@dataclass(eq=False)
class Plugins:
    """All plugins in use."""

    home: Home
    registry: Registry
    browsers: Browsers
    transport: InitVar[TabHubTransport]
    logs: PluginLogs
    limits: Limits
    leases: InitVar[TabBinding]
    config: Callable[[], Config]
    reload_settings: Callable[[], None]
    secrets: SecretStore
    mask: InitVar[ValueMask]
    wall: InitVar[Callable[[], float]] = time.time

    def __post_init__(
        self, transport: TabHubTransport, leases: TabBinding, mask: ValueMask, wall: Callable[[], float]
    ) -> None:
        self.problem: str | None = None
        """Why adapters cannot reach the browsers."""
        self.changes = 0
        """Counts changes of what the panel shows."""
        self._wall = wall
        self._discovery = Discovery(self.home.plugins)
        self._found = Discovered()
        self._active: dict[str, Active] = {}
        self._ready_tabs: dict[str, dict[str, dict[int, bool]]] = {}
        """By browser and plugin: the browser's own tab ids, and whether each tab is ready."""
        self._uninstalls: set[asyncio.Task[None]] = set()
        requests = PluginRequests(self.secrets, mask, self.limits, lambda: self.config().upstream_hosts)
        self.calls = PluginCalls(
            TabCalls(transport, self.browsers.book, self.limits, leases), self.browsers, self._is_ready, requests
        )
        self.watcher = Watcher(self._changed_on_disk, wall)
        self.browsers.on_plugins(self._receive)
        self.browsers.on_hello(self._send_all)
        self.browsers.on_change(self._disconnected, "disconnected")

    def __len__(self) -> int:
        return len(self._active)

    def all(self) -> tuple[Active, ...]:
        return tuple(self._active[name] for name in sorted(self._active))

    def get(self, name: str) -> Active:
        found = self._active.get(name)
        if found is None:
            names = ", ".join(sorted(self._active)[:30])
            raise NotFound(
                f"There is no plugin named {name[:100]!r}.",
                hint=f"Plugins: {names}." if names else "No plugins are installed: tabhub plugin install",
            )
        return found

    def failures(self) -> list[dict[str, str]]:
        return [{"path": failure.path, "error": failure.error} for failure in self._found.failures]

    @property
    def problems(self) -> list[str]:
        """What is wrong and stops nothing."""
        return [*self._found.problems, *(p for active in self.all() for p in active.setup.problems)]

    def load(self, *, watched: bool = False) -> None:
        """Find plugins and replace the table."""
        found = self._discovery.look(self.config())
        self._move_secrets(found.plugins)
        config = self.config()
        for failure in found.failures:
            if failure not in self._found.failures:
                log.warning("plugin not loaded: %s: %s", failure.path, failure.error)
        fresh = {plugin.name: self._activate(plugin, config) for plugin in found.plugins}
        if watched:
            # A file that is saved half-way or broken must not remove tools that agents are using.
            broken = {failure.path for failure in found.failures}
            fresh |= {n: a for n, a in self._active.items() if n not in fresh and a.plugin.path in broken}
        before, self._active, self._found = self._active, fresh, found
        self._write()
        changed = [name for name, active in fresh.items() if before.get(name) != active]
        removed = [name for name in before if name not in fresh]
        for name in removed:
            self.registry.remove(Source("plugin", name))
            self.logs.forget(name)
        for name in changed:
            for problem in self.registry.replace(Source("plugin", name), self.calls.entries(fresh[name])):
                log.warning("tool refused: %s", problem)
        self.watcher.watch(found.watched, found.above, len(found.pending))
        self._notify_browsers(
            changed, removed, only_changed=watched and not removed and all(name in before for name in changed)
        )

    def _move_secrets(self, plugins: Iterable[Plugin]) -> None:
        """Move secrets that are in the config file, from an earlier version or an editor, to the store."""
        moved = False
        for plugin in plugins:
            values = self.config().settings.get(plugin.name, {})
            if not settings.clear_secrets(plugin, values):
                continue
            try:
                write_settings(self.home, self.secrets, plugin, values, self._wall())
            except SetupError as error:
                log.warning("the secrets of the plugin %s stay in config.json: %s", plugin.name, error.text())
            else:
                moved = True
                log.info("the secrets of the plugin %s were moved from config.json to the store", plugin.name)
        if moved:
            self.reload_settings()

    def _activate(self, plugin: Plugin, config: Config) -> Active:
        setup = settings.resolve(plugin, config.settings.get(plugin.name, {}))
        known = self._active.get(plugin.name)
        if known is not None and known.plugin == plugin and known.setup == setup:
            return known
        return Active(plugin, setup, adapters.compose(plugin, setup))

    def _write(self) -> None:
        folders = (self.home.extension, self.home.managed / "extension")
        try:
            adapters.write(folders, [active.adapter for active in self._active.values()])
            self.problem = None
        except SetupError as error:
            self.problem = error.text()
            log.error("%s", error.text())

    def _changed_on_disk(self) -> None:
        began = time.monotonic()
        self.load(watched=True)
        log.info("plugins reloaded after a change on disk, in %.0f ms", (time.monotonic() - began) * 1000)

    def start(self) -> None:
        """Begin to watch; the managed browser's folder is there by now."""
        self._write()
        self.watcher.start()

    def stop(self) -> None:
        self.watcher.stop()
        for task in self._uninstalls:
            task.cancel()

    def _send_all(self, link: ExtensionLink) -> None:
        link.notify("sync.full", {"plugins": [self._wire(active, link) for active in self.all()]})

    def _notify_browsers(self, changed: list[str], removed: list[str], *, only_changed: bool) -> None:
        if not changed and not removed:
            return
        self.changes += 1
        for link in self.browsers.links():
            for name in removed:
                task = asyncio.ensure_future(_uninstall(link, name))
                self._uninstalls.add(task)
                task.add_done_callback(self._uninstalls.discard)
            if only_changed:
                for name in changed:
                    link.notify("plugin.update", {"plugin": self._wire(self._active[name], link)})
            else:
                self._send_all(link)
            link.notify("plugins.changed", {})

    def _wire(self, active: Active, link: ExtensionLink) -> dict[str, Any]:
        plugin, setup, adapter = active.plugin, active.setup, active.adapter
        facts: dict[str, Any] = {
            "name": plugin.name,
            "displayName": plugin.display_name,
            "version": plugin.version,
            "description": plugin.description,
            "urlPatterns": list(setup.url_patterns),
            "excludePatterns": list(plugin.exclude_patterns),
            "homepage": setup.homepage,
            "adapterHash": adapter.hash,
            # The folder of a browser elsewhere cannot be written to.
            **({"adapterFile": adapter.file} if link.local else {"adapterSource": adapter.text}),
            "tools": [tool.name for tool in plugin.tools],
        }
        if adapter.pre_file is not None and link.local:
            facts["preScriptFile"] = adapter.pre_file
        if plugin.icon_svg is not None:
            facts["iconSvg"] = plugin.icon_svg
        if setup.instances:
            facts["instances"] = [{"name": name, "urlPatterns": list(texts)} for name, texts in setup.instances.items()]
        return facts

    def _receive(self, link: ExtensionLink, message: PluginMessage) -> None:
        if isinstance(message, PluginLog):
            self.logs.receive(message, self._active.__contains__)
        elif isinstance(message, PluginStateChanged):
            self._state(link.browser_id, message.plugin, message)
        else:
            self._ready_tabs[link.browser_id] = {}
            for name, state in message.plugins.items():
                self._state(link.browser_id, name, state)

    def _state(self, browser_id: str, name: str, state: PluginState) -> None:
        if name not in self._active:
            return
        ready = {tab.tab_id: tab.ready for tab in state.tabs[: self.limits.tabs_per_browser]}
        reported = self._ready_tabs.setdefault(browser_id, {})
        if reported.get(name) != ready:
            reported[name] = ready
            self.changes += 1

    def _disconnected(self, change: Change) -> None:
        self._ready_tabs.pop(change.browser_id, None)

    def _is_ready(self, tab: Tab, plugin: str) -> bool:
        return self._ready_tabs.get(tab.browser_id, {}).get(plugin, {}).get(tab.chrome_id) is True

    def sites(self) -> list[PluginSite]:
        """What the browser tools know of plugins."""
        return [PluginSite(active.name, active.setup.url_patterns, self._about(active)) for active in self.all()]

    def _about(self, active: Active) -> Callable[[Tab], dict[str, Any] | None]:
        def about(tab: Tab) -> dict[str, Any] | None:
            if not active.owns(tab.url):
                return None
            facts: dict[str, Any] = {"ready": self._is_ready(tab, active.name)}
            instance = active.setup.instance_of(tab.url)
            return facts if instance is None else {**facts, "instance": instance}

        return about

    def owns(self, name: str, url: str) -> bool:
        """Whether a URL belongs to a plugin by its name."""
        active = self._active.get(name)
        return active is not None and active.owns(url)

    def open_tabs(self, name: str) -> list[Tab]:
        """The open tabs of a plugin by its name; none if there is no such plugin."""
        active = self._active.get(name)
        return [] if active is None else [tab for tab in self.browsers.book if active.owns(tab.url)]

    def patterns(self, name: str) -> tuple[str, ...]:
        """The URL patterns of a plugin by its name; none if there is no such plugin."""
        active = self._active.get(name)
        return () if active is None else tuple(active.setup.url_patterns)

    def tabs(self, active: Active) -> list[dict[str, Any]]:
        """The open tabs of a plugin, as health and the panel show them."""
        about = self._about(active)
        found = [(tab, about(tab)) for tab in self.browsers.book]
        return [
            {"tabId": tab.tab_id, "url": tab.url, "title": tab.title, **more} for tab, more in found if more is not None
        ]

    def details(self) -> list[dict[str, Any]]:
        """`pluginDetails` of /health (seed 002)."""
        return [self._details(active) for active in self.all()]

    def _details(self, active: Active) -> dict[str, Any]:
        plugin, tabs = active.plugin, self.tabs(active)
        facts: dict[str, Any] = {
            "name": plugin.name,
            "displayName": plugin.display_name,
            "version": plugin.version,
            "toolCount": len(plugin.tools),
            "tools": [agents_name(plugin.name, tool.name) for tool in plugin.tools],
            "tabState": "ready" if any(tab["ready"] for tab in tabs) else "unavailable" if tabs else "closed",
            "tabs": tabs,
            "source": plugin.source,
            "sdkVersion": plugin.sdk_version,
            "logBufferSize": self.logs.size(plugin.name),
        }
        if plugin.icon_svg is not None:
            facts["iconSvg"] = plugin.icon_svg
        return facts

    def configure(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Set settings of a plugin, checked against its schema, and put them in force; gives what may be shown."""
        active = self.get(name)
        stored = self.config().settings.get(name, {})
        values = settings.check(active.plugin, stored, given)
        write_settings(self.home, self.secrets, active.plugin, values, self._wall())
        self.reload_settings()
        self.load()
        return self.settings_of(self.get(name))

    def settings_of(self, active: Active) -> dict[str, Any]:
        """A plugin's settings as the config file has them, secrets hidden."""
        return settings.masked(active.plugin, self.config().settings.get(active.name, {}))

    def folders(self) -> set[Path]:
        """The folders that the panel may open for the person."""
        own = {Path(active.plugin.path) for active in self.all() if active.plugin.source != "python"}
        return {self.home.root, self.home.plugins, self.home.files, *own, *(Path(f.path) for f in self._found.failures)}


async def _uninstall(link: ExtensionLink, name: str) -> None:
    try:
        await link.request("plugin.uninstall", {"name": name})
    except TabhubError as error:
        log.warning("browser %s did not confirm that %s is removed: %s", link.browser_id, name, error.message)
