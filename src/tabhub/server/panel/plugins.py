"""What the panel asks of plugins: search, install, update, remove, settings, and opening a folder.

Owns the panel's plugin methods and what it shows of each plugin. Only links of the person's own extension get them;
agents cannot reach them. What takes long runs in a thread.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tabhub.calls.sources.plugins import Plugins
from tabhub.errors import InvalidParams, PluginError
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.plugins.install import Installer, plugin_name
from tabhub.wire.panel import InstalledPlugin, InstallPlugin, NoParams, OpenFolder, PluginSearch, PluginSettings


class PluginPanel:
    """The panel's side of plugins."""

    def __init__(
        self,
        plugins: Plugins,
        installer: Installer,
        *,
        reload: Callable[[], Any],
        open_folder: Callable[[Path], None] | None = None,
    ) -> None:
        self._plugins = plugins
        self.installer = installer
        self._reload = reload
        self._open = open_folder or show_folder

    def methods(self) -> dict[str, Handler]:
        """The methods by name, for links of the person's own extension."""
        return {
            "plugin.search": self._search,
            "plugin.install": self._install,
            "plugin.updateFromRegistry": self._update,
            "plugin.remove": lambda _link, plugin: self._remove(plugin.name),
            "plugin.removeBySpecifier": lambda _link, package: self._remove(plugin_name(package.specifier)),
            "plugin.checkUpdates": self._check,
            "config.setPluginSettings": self._set,
            "folder.open": self._folder,
        }

    def state(self) -> list[dict[str, Any]]:
        """Every plugin as the panel shows it, without permissions."""
        shown = []
        for active, details in zip(self._plugins.all(), self._plugins.details(), strict=True):
            plugin = active.plugin
            shown.append(
                {
                    **details,
                    "description": plugin.description,
                    "homepage": active.setup.homepage,
                    "path": plugin.path,
                    "package": plugin.package,
                    "problems": [*plugin.problems, *active.setup.problems],
                    "configSchema": {field.key: field.facts() for field in plugin.fields},
                    "settings": self._plugins.settings_of(active),
                    "instances": list(active.instances),
                    "tools": [
                        {
                            "name": called,
                            "title": tool.title,
                            "description": tool.description,
                            "readOnly": tool.annotations.get("readOnlyHint") is True,
                            **({"group": tool.group} if tool.group else {}),
                        }
                        for called, tool in zip(details["tools"], plugin.tools, strict=True)
                    ],
                }
            )
        return shown

    async def _search(self, _link: ExtensionLink, search: PluginSearch) -> dict[str, Any]:
        found, installed = await asyncio.to_thread(self._find, search.query)
        return {
            "results": [
                {
                    "package": each.package,
                    "name": each.name,
                    "version": each.version,
                    "description": each.description,
                    "author": each.author,
                    "installed": each.package in installed,
                }
                for each in found
            ]
        }

    def _find(self, query: str) -> tuple[list[Any], set[str]]:
        return self.installer.search(query), {each.package for each in self.installer.installed()}

    async def _install(self, _link: ExtensionLink, wanted: InstallPlugin) -> dict[str, Any]:
        if "/" in wanted.name and not wanted.name.startswith("@"):
            raise InvalidParams("`name` must be the name of a plugin or package, not a path.")
        plugin = await asyncio.to_thread(self.installer.install, wanted.name, wanted.version)
        self._reload()
        return {"name": plugin.name, "package": plugin.package, "version": plugin.version}

    async def _update(self, _link: ExtensionLink, installed: InstalledPlugin) -> dict[str, Any]:
        name = installed.name
        plugin, before = await asyncio.to_thread(self.installer.update, name)
        if plugin is not None:
            self._reload()
        return {"name": name, "from": before, "version": plugin.version if plugin is not None else before}

    async def _remove(self, name: str) -> dict[str, Any]:
        known = await asyncio.to_thread(self.installer.remove, name)
        self._reload()
        return {"name": known.name, "package": known.package}

    async def _check(self, _link: ExtensionLink, _params: NoParams) -> dict[str, Any]:
        found, problems = await asyncio.to_thread(self.installer.updates)
        updates = [{"name": u.name, "package": u.package, "version": u.version, "newest": u.newest} for u in found]
        return {"updates": updates, "problems": problems}

    def _set(self, _link: ExtensionLink, wanted: PluginSettings) -> dict[str, Any]:
        return {"settings": self._plugins.configure(wanted.plugin, wanted.settings)}

    def _folder(self, _link: ExtensionLink, folder: OpenFolder) -> dict[str, Any]:
        path = Path(folder.path)
        if path not in self._plugins.folders() or not path.is_dir():
            raise InvalidParams(
                "That is not a folder of a plugin.", hint="Only folders that the panel shows are opened."
            )
        self._open(path)
        return {}


def show_folder(path: Path) -> None:
    """Show a folder in the person's file manager."""
    opener = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if opener is None or (
        sys.platform != "darwin" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    ):
        raise PluginError(f"There is no file manager to show {path} with.", hint="Open it yourself.")
    subprocess.Popen(
        [opener, str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
