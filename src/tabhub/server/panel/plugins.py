"""What the panel asks of plugins: search, install, update, remove, settings, and opening a folder.

Owns the panel's plugin methods and what it shows of each plugin. Only links of the person's own extension get them;
agents cannot reach them. What takes long runs in a thread.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tabhub.calls.sources.plugins import Plugins
from tabhub.errors import InvalidParams, PluginError, TabhubError
from tabhub.links.extension import ExtensionLink, Handler
from tabhub.plugins.install import Installer, plugin_name

log = logging.getLogger("tabhub.plugins")

_LONGEST = 300


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
        self._tasks: set[asyncio.Task[Any]] = set()

    def methods(self) -> dict[str, Handler]:
        """The methods by name, for links of the person's own extension."""
        return {
            "plugin.search": self._later(self._search),
            "plugin.install": self._later(self._install),
            "plugin.updateFromRegistry": self._later(self._update),
            "plugin.remove": self._later(self._remove),
            "plugin.removeBySpecifier": self._later(self._remove_package),
            "plugin.checkUpdates": self._later(self._check),
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

    def _later(self, work: Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]) -> Handler:
        def handle(_link: ExtensionLink, params: dict[str, Any]) -> asyncio.Future[Any]:
            task = asyncio.ensure_future(_logged(work(params)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return task

        return handle

    async def _search(self, params: dict[str, Any]) -> dict[str, Any]:
        found, installed = await asyncio.to_thread(self._find, _text(params, "query", empty=True))
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

    async def _install(self, params: dict[str, Any]) -> dict[str, Any]:
        name = _text(params, "name")
        version = _text(params, "version") if params.get("version") is not None else None
        if "/" in name and not name.startswith("@"):
            raise InvalidParams("`name` must be the name of a plugin or package, not a path.")
        plugin = await asyncio.to_thread(self.installer.install, name, version)
        self._reload()
        return {"name": plugin.name, "package": plugin.package, "version": plugin.version}

    async def _update(self, params: dict[str, Any]) -> dict[str, Any]:
        name = _text(params, "name")
        plugin, before = await asyncio.to_thread(self.installer.update, name)
        if plugin is not None:
            self._reload()
        return {"name": name, "from": before, "version": plugin.version if plugin is not None else before}

    async def _remove(self, params: dict[str, Any]) -> dict[str, Any]:
        return await self._removed(_text(params, "name"))

    async def _remove_package(self, params: dict[str, Any]) -> dict[str, Any]:
        return await self._removed(plugin_name(_text(params, "specifier")))

    async def _removed(self, name: str) -> dict[str, Any]:
        known = await asyncio.to_thread(self.installer.remove, name)
        self._reload()
        return {"name": known.name, "package": known.package}

    async def _check(self, _params: dict[str, Any]) -> dict[str, Any]:
        found, problems = await asyncio.to_thread(self.installer.updates)
        updates = [{"name": u.name, "package": u.package, "version": u.version, "newest": u.newest} for u in found]
        return {"updates": updates, "problems": problems}

    def _set(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        given = params.get("settings")
        if not isinstance(given, dict):
            raise InvalidParams("`settings` must be an object.")
        return {"settings": self._plugins.configure(_text(params, "plugin"), given)}

    def _folder(self, _link: ExtensionLink, params: dict[str, Any]) -> dict[str, Any]:
        path = Path(_text(params, "path", longest=4_096))
        if path not in self._plugins.folders() or not path.is_dir():
            raise InvalidParams("That is not a folder of a plugin.", hint="Only folders the hub told of are opened.")
        self._open(path)
        return {}


async def _logged(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except TabhubError:
        raise
    except Exception:
        log.exception("a request of the panel failed inside")
        raise


def _text(params: dict[str, Any], key: str, *, empty: bool = False, longest: int = _LONGEST) -> str:
    value = params.get(key)
    if not isinstance(value, str) or len(value) > longest or (not value and not empty) or not value.isprintable():
        raise InvalidParams(f"`{key}` must be a text of at most {longest} characters.")
    return value


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
