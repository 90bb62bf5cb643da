"""The parts of the hub that plugins are made of, put together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tabhub.calls.sources.plugin_logs import PluginLogs
from tabhub.calls.sources.plugins import Plugins
from tabhub.plugins.install import Installer
from tabhub.plugins.npm import find_registry
from tabhub.server.panel.plugins import PluginPanel

if TYPE_CHECKING:
    from tabhub.server.hub import Hub


def plugin_parts(hub: Hub) -> tuple[Plugins, PluginPanel]:
    """The plugins of a hub and what the panel may do with them."""
    engine = hub.engine
    edges = (hub.mcp.handshake, hub.gateway.handshake)
    plugins = Plugins(
        hub.home,
        hub.registry,
        hub.browsers,
        hub.transport,
        PluginLogs(engine.limits, engine.calls, edges, engine.wall),
        limits=engine.limits,
        leases=hub.binding,
        config=lambda: hub.config,
        apply=hub.reload,
        wall=engine.wall,
    )
    installer = Installer(hub.home.plugins, lambda: find_registry(hub.config.plugin_registry, os.environ))
    return plugins, PluginPanel(plugins, installer, reload=hub.reload)
