"""The panel's methods for plugins: search, install, update, remove, change settings, open a folder.

Owns these methods and what the panel shows of each plugin. Agents cannot reach them. Slow work runs in a thread.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub.calls.sources.plugins import Plugins
from tabhub.errors import InvalidParams, PluginError
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.links.launch.browser_process import has_display
from tabhub.wire.panel import InstalledPlugin, InstallPlugin, NoParams, OpenFolder, PluginSearch, PluginSettings

if TYPE_CHECKING:
    from tabhub.plugins.install import Installer


@dataclass(frozen=True, slots=True)
class PluginPanel:
    """The panel's methods for plugins."""

    plugins: Plugins
    installer: Callable[[], Installer]
    """Made when it is needed: what it loads would delay the start of the hub."""
    reload: Callable[[], Any]
    open_folder: Callable[[Path], None]

    def methods(self) -> dict[str, Handler]:
        return {
            "plugin.search": self._search,
            "plugin.install": self._install,
            "plugin.updateFromRegistry": self._update,
            "plugin.remove": lambda _link, plugin: self._remove(plugin.name),
            "plugin.removeBySpecifier": lambda _link, package: self._remove(package.specifier),
            "plugin.checkUpdates": self._check,
            "config.setPluginSettings": self._set,
            "folder.open": self._folder,
        }

    def state(self) -> list[dict[str, Any]]:
        """Every plugin as the panel shows it, without permissions."""
        shown = []
        for active, details in zip(self.plugins.all(), self.plugins.details(), strict=True):
            plugin = active.plugin
            shown.append(
                {
                    **details,
                    "description": plugin.description,
                    "homepage": active.setup.homepage,
                    "path": plugin.path,
                    "package": plugin.package,
                    "problems": [*plugin.problems, *active.setup.problems],
                    "configSchema": {field.key: field.schema() for field in plugin.fields},
                    "settings": self.plugins.settings_of(active),
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
        found, installed = await asyncio.to_thread(
            lambda: (self.installer().search(search.query), {each.package for each in self.installer().installed()})
        )
        return {"results": [{**asdict(each), "installed": each.package in installed} for each in found]}

    async def _install(self, _link: ExtensionLink, wanted: InstallPlugin) -> dict[str, Any]:
        if "/" in wanted.name and not wanted.name.startswith("@"):
            raise InvalidParams("`name` must be the name of a plugin or package, not a path.")
        plugin = await asyncio.to_thread(lambda: self.installer().install(wanted.name, wanted.version))
        self.reload()
        return {"name": plugin.name, "package": plugin.package, "version": plugin.version}

    async def _update(self, _link: ExtensionLink, installed: InstalledPlugin) -> dict[str, Any]:
        plugin, before = await asyncio.to_thread(lambda: self.installer().update(installed.name))
        if plugin is not None:
            self.reload()
        return {"name": installed.name, "from": before, "version": before if plugin is None else plugin.version}

    async def _remove(self, name: str) -> dict[str, Any]:
        known = await asyncio.to_thread(lambda: self.installer().remove(name))
        self.reload()
        return {"name": known.name, "package": known.package}

    async def _check(self, _link: ExtensionLink, _params: NoParams) -> dict[str, Any]:
        updates, problems = await asyncio.to_thread(lambda: self.installer().updates())
        return {"updates": [asdict(update) for update in updates], "problems": problems}

    def _set(self, _link: ExtensionLink, wanted: PluginSettings) -> dict[str, Any]:
        return {"settings": self.plugins.configure(wanted.plugin, wanted.settings)}

    def _folder(self, _link: ExtensionLink, folder: OpenFolder) -> dict[str, Any]:
        path = Path(folder.path)
        if path not in self.plugins.folders() or not path.is_dir():
            raise InvalidParams(
                "That is not a folder of a plugin.", hint="Only folders that the panel shows are opened."
            )
        self.open_folder(path)
        return {}


def show_folder(path: Path) -> None:
    opener = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if opener is None or not has_display(os.environ):
        raise PluginError(f"There is no file manager to show {path} with.", hint="Open it yourself.")
    quiet = subprocess.DEVNULL
    subprocess.Popen([opener, str(path)], stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
