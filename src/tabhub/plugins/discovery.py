"""Finding plugins: local folders, folders of such folders, installed packages, and Python packages.

Owns the order (of two plugins with one name the first is used) and that a broken plugin affects no other. Plugins are
reread only when their files change. Python plugins are code that the person installed or named, so it is run.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from tabhub.config.settings import Config
from tabhub.errors import PluginError, TabhubError
from tabhub.plugins.author import Definition
from tabhub.plugins.manifest import ADAPTER, MANIFEST, PRE_SCRIPT, TOOLS, read_package
from tabhub.plugins.model import Failure, Plugin, PluginSource

log = logging.getLogger("tabhub.plugins")

GROUP = "tabhub.plugins"
PYTHON = "plugin.py"
FILES = (MANIFEST, TOOLS, ADAPTER, PRE_SCRIPT)
_MAX = 1_000

Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Discovered:
    """Everything that was found."""

    plugins: tuple[Plugin, ...] = ()
    failures: tuple[Failure, ...] = ()
    problems: tuple[str, ...] = ()
    """Other problems, without consequences."""
    watched: tuple[Path, ...] = ()
    """Folders of local plugins."""
    above: tuple[Path, ...] = ()
    """Folders in which new ones may appear."""
    pending: tuple[Path, ...] = ()
    """Watched folders that do not exist or contain no plugin yet."""


class Discovery:
    """Finds plugins repeatedly; unchanged ones are kept."""

    def __init__(self, installed: Path) -> None:
        self._installed = installed
        self._kept: dict[tuple[Path, PluginSource], tuple[Stamp, Plugin]] = {}

    def look(self, config: Config) -> Discovered:
        found: dict[str, Plugin] = {}
        failures: list[Failure] = []
        problems: list[str] = []
        pending: list[Path] = []
        kept: dict[tuple[Path, PluginSource], tuple[Stamp, Plugin]] = {}

        def add(plugin: Plugin) -> None:
            if (other := found.setdefault(plugin.name, plugin)) is plugin:
                problems.extend(f"{plugin.name}: {problem}" for problem in plugin.problems)
            else:
                why = f"It is not used: another plugin is named {plugin.name!r}: {other.path}. Remove one of them."
                failures.append(Failure(plugin.path, why))

        folders = self._folders(config, problems)
        for folder, source in folders.items():
            try:
                if not folder.is_dir():
                    raise PluginError("There is no such folder.")
                stamp = stamp_of(folder)
                known = self._kept.get((folder, source))
                plugin = known[1] if known is not None and known[0] == stamp else load(folder, source)
            except TabhubError as error:
                failures.append(Failure(str(folder), error.text()))
                if source == "local":
                    pending.append(folder)
            else:
                kept[folder, source] = (stamp, plugin)
                add(plugin)
        for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
            try:
                add(_from_package(point))
            except TabhubError as error:
                failures.append(Failure(f"{point.dist.name if point.dist else point.value}", error.text()))
        self._kept = kept
        watched = tuple(folder for folder, source in folders.items() if source == "local")
        above = tuple(Path(text).expanduser() for text in config.local_plugin_dirs)
        return Discovered(tuple(found.values()), tuple(failures), tuple(problems), watched, above, tuple(pending))

    def _folders(self, config: Config, problems: list[str]) -> dict[Path, PluginSource]:
        folders: dict[Path, PluginSource] = {Path(text).expanduser(): "local" for text in config.local_plugins}
        for text in config.local_plugin_dirs:
            above = Path(text).expanduser()
            if not above.is_dir():
                problems.append(f"localPluginDirs: there is no folder {above}")
                continue
            for folder in _below(above):
                if any((folder / name).is_file() for name in (MANIFEST, PYTHON)):
                    folders[folder] = "local"
        if self._installed.is_dir():
            for folder in _below(self._installed):
                folders.setdefault(folder, "npm")
        return folders


def load(folder: Path, source: PluginSource) -> Plugin:
    """Load the plugin of a folder, in either form."""
    if source == "local" and (folder / PYTHON).is_file() and not (folder / MANIFEST).is_file():
        return _from_file(folder)
    return read_package(folder, source)


def stamp_of(folder: Path) -> Stamp:
    """A value that changes when the plugin's files change."""
    python = (folder / PYTHON).exists() and not (folder / MANIFEST).exists()
    paths = sorted((*folder.glob("*.py"), *folder.glob("*.js"))) if python else [folder / name for name in FILES]
    stamp = []
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            stamp.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(stamp)


def _below(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir())[:_MAX]
    except OSError as error:
        log.warning("%s cannot be read: %s", folder, error.strerror)
        return []


def _from_file(folder: Path) -> Plugin:
    """A Python plugin in a folder; its file is run again whenever it changed."""
    name = f"_tabhub_plugin_{abs(hash(folder))}"
    spec = importlib.util.spec_from_file_location(name, folder / PYTHON)
    if spec is None or spec.loader is None:
        raise PluginError(f"{folder / PYTHON} cannot be loaded.")
    module, loader = importlib.util.module_from_spec(spec), spec.loader

    def run() -> object:
        loader.exec_module(module)
        return getattr(module, "plugin", None)

    cached, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # cached bytecode is compared in whole seconds
    try:
        return _definition(run, str(folder / PYTHON)).build("local", str(folder))
    finally:
        sys.dont_write_bytecode = cached


def _from_package(point: EntryPoint) -> Plugin:
    package = point.dist.name if point.dist is not None else None
    return _definition(point.load, point.value).build("python", package or point.value, package)


def _definition(run: Callable[[], object], where: str) -> Definition:
    """Run a plugin's Python code; whatever it does becomes an error of this plugin only."""
    try:
        plugin = run()
    except TabhubError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001
        raise PluginError(f"{where} fails: {type(error).__name__}: {str(error)[:300]}") from None
    if not isinstance(plugin, Definition):
        raise PluginError(f"{where} has no `plugin` made with tabhub.plugins.author.define().")
    return plugin
