"""Finding plugins: folders the person names, folders of such folders, what was installed, and Python packages.

Owns the order (the first of two with one name counts) and that one broken plugin stops no other. What was read is kept
until its files change. Python plugins are code of this machine that the person installed or named: they are run.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Iterator
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
_MOST = 1_000

Stamp = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Discovered:
    """Everything that was found."""

    plugins: tuple[Plugin, ...] = ()
    failures: tuple[Failure, ...] = ()
    """Plugins that could not be loaded."""
    problems: tuple[str, ...] = ()
    """What else is wrong, and harms nothing."""
    watched: tuple[Path, ...] = ()
    """Folders of local plugins."""
    above: tuple[Path, ...] = ()
    """Folders in which new ones may appear."""
    pending: tuple[Path, ...] = ()
    """Such folders that are not there, or hold no plugin yet."""


class Discovery:
    """Looks for plugins, again and again."""

    def __init__(self, installed: Path) -> None:
        self._installed = installed
        self._kept: dict[tuple[Path, PluginSource], tuple[Stamp, Plugin]] = {}

    def look(self, config: Config) -> Discovered:
        """Find all plugins that exist now."""
        found: dict[str, Plugin] = {}
        failures: list[Failure] = []
        problems: list[str] = []
        watched: dict[Path, None] = {}
        pending: list[Path] = []
        kept: dict[tuple[Path, PluginSource], tuple[Stamp, Plugin]] = {}

        def take(plugin: Plugin) -> None:
            other = found.get(plugin.name)
            if other is not None:
                said = f"another plugin is named {plugin.name!r}: {other.path}"
                failures.append(Failure(plugin.path, f"It is not used: {said}. Remove one of them."))
                return
            found[plugin.name] = plugin
            problems.extend(f"{plugin.name}: {problem}" for problem in plugin.problems)

        for folder, source in self._folders(config, problems):
            if source == "local":
                watched[folder] = None
            if not folder.is_dir():
                pending.append(folder)
                failures.append(Failure(str(folder), "There is no such folder."))
                continue
            try:
                stamp = stamp_of(folder)
                known = self._kept.get((folder, source))
                plugin = known[1] if known is not None and known[0] == stamp else load(folder, source)
            except TabhubError as error:
                failures.append(Failure(str(folder), error.text()))
                if source == "local":
                    pending.append(folder)
            else:
                kept[folder, source] = (stamp, plugin)
                take(plugin)
        for point in _points():
            try:
                take(_from_package(point))
            except TabhubError as error:
                failures.append(Failure(f"{point.dist.name if point.dist else point.value}", error.text()))
        self._kept = kept
        above = tuple(Path(text).expanduser() for text in config.local_plugin_dirs)
        return Discovered(
            tuple(found.values()), tuple(failures), tuple(problems), tuple(watched), above, tuple(pending)
        )

    def _folders(self, config: Config, problems: list[str]) -> Iterator[tuple[Path, PluginSource]]:
        seen: set[Path] = set()
        for text in config.local_plugins:
            folder = Path(text).expanduser()
            if folder not in seen:
                seen.add(folder)
                yield folder, "local"
        for text in config.local_plugin_dirs:
            above = Path(text).expanduser()
            if not above.is_dir():
                problems.append(f"localPluginDirs: there is no folder {above}")
                continue
            for folder in _below(above):
                holds = (folder / MANIFEST).is_file() or (folder / PYTHON).is_file()
                if folder not in seen and holds:
                    seen.add(folder)
                    yield folder, "local"
        if self._installed.is_dir():
            for folder in _below(self._installed):
                yield folder, "npm"


def load(folder: Path, source: PluginSource) -> Plugin:
    """Load the plugin of a folder, in either form."""
    if source == "local" and (folder / PYTHON).is_file() and not (folder / MANIFEST).is_file():
        return _from_file(folder)
    return read_package(folder, source)


def stamp_of(folder: Path) -> Stamp:
    """A value that changes when the plugin's files change."""
    stamp = []
    names = FILES if (folder / MANIFEST).exists() or not (folder / PYTHON).exists() else _python_files(folder)
    for name in names:
        try:
            facts = (folder / name).stat()
        except OSError:
            continue
        stamp.append((name, facts.st_mtime_ns, facts.st_size))
    return tuple(stamp)


def _python_files(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in folder.iterdir() if path.suffix in (".py", ".js")))


def _below(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and path.is_dir())[:_MOST]
    except OSError as error:
        log.warning("%s cannot be read: %s", folder, error.strerror)
        return []


def _from_file(folder: Path) -> Plugin:
    """A plugin in Python that lies in a folder; its file is run anew each time it changed."""
    name = f"_tabhub_plugin_{abs(hash(folder))}"
    spec = importlib.util.spec_from_file_location(name, folder / PYTHON)
    if spec is None or spec.loader is None:
        raise PluginError(f"{folder / PYTHON} cannot be loaded.")
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # the cache goes by whole seconds
    try:
        spec.loader.exec_module(module)
    except TabhubError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a plugin does, it stops no other
        raise PluginError(f"{folder / PYTHON} fails: {type(error).__name__}: {str(error)[:300]}") from None
    finally:
        sys.dont_write_bytecode = written
    return _definition(getattr(module, "plugin", None), str(folder / PYTHON)).build("local", str(folder))


def _points() -> list[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda point: point.name)


def _from_package(point: EntryPoint) -> Plugin:
    try:
        given = point.load()
    except TabhubError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a plugin does, it stops no other
        raise PluginError(f"{point.value} fails: {type(error).__name__}: {str(error)[:300]}") from None
    package = point.dist.name if point.dist is not None else None
    return _definition(given, point.value).build("python", package or point.value, package)


def _definition(given: object, where: str) -> Definition:
    if not isinstance(given, Definition):
        raise PluginError(f"{where} gives no `plugin` made with tabhub.plugins.author.define().")
    return given
