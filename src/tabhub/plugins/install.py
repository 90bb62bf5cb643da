"""Installing, updating and removing plugins in `$TABHUB_HOME/plugins/<name>/`.

Owns that folder. A package is unpacked and checked next to the installed one and then replaces it in one step, so that
a failure changes nothing. Scripts of a package are never run and dependencies are not fetched: an adapter is complete.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tabhub.errors import PackageNotFound, PluginError, VersionNotFound
from tabhub.platform.files import write_atomic
from tabhub.platform.locks import locked
from tabhub.plugins.archive import unpack
from tabhub.plugins.manifest import read_bounded, read_package
from tabhub.plugins.model import Plugin, check_name, packages_of
from tabhub.plugins.npm import Found, Registry, Release

RECORD = ".tabhub.json"
_MAX_FILE = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Installed:
    """One installed plugin, from its record."""

    name: str
    package: str
    version: str
    registry: bool
    """Whether it came from a registry, and so can be updated from there."""


@dataclass(frozen=True, slots=True)
class Update:
    """A newer version of an installed plugin."""

    name: str
    package: str
    version: str
    newest: str


class Installer:
    """The installed plugins of one home."""

    def __init__(self, folder: Path, registry: Callable[[], Registry]) -> None:
        self.folder = folder
        self._registry = registry

    def installed(self) -> list[Installed]:
        folders = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return [_record(path) for path in folders if path.is_dir() and not path.name.startswith(".")]

    def search(self, query: str) -> list[Found]:
        return self._registry().search(query)

    def install(self, what: str, version: str | None = None) -> Plugin:
        """Install a package of the registry by its name or short name (`name@1.2.3` too), or one that is a file."""
        if what.endswith((".tgz", ".tar.gz")) or what.startswith(("./", "../", "/", "~")):
            return self._put(_read_file(Path(what).expanduser()), "file", None)
        bare, at, wanted = what.rpartition("@")
        if at and bare:
            what, version = bare, version or wanted
        release, registry = self._find(packages_of(what), version)
        return self._put(registry.download(release), "registry", release)

    def update(self, name: str) -> tuple[Plugin | None, str]:
        """Update a plugin: returns it, or None if it is up to date, and its previous version."""
        known = self._known(name)
        if not known.registry:
            raise PluginError(
                f"{name} was installed from a file, so it is not known where newer versions come from.",
                hint=f"Reinstall it: tabhub plugin install {known.package}",
            )
        registry = self._registry()
        release = registry.release(known.package)
        if release.version == known.version:
            return None, known.version
        return self._put(registry.download(release), "registry", release), known.version

    def updates(self) -> tuple[list[Update], list[str]]:
        """Available updates, and the plugins that could not be checked."""
        found: list[Update] = []
        problems: list[str] = []
        registry: Registry | None = None
        for known in self.installed():
            if not known.registry:
                continue
            try:
                registry = registry or self._registry()
                newest = registry.release(known.package).version
            except PluginError as error:
                problems.append(f"{known.name}: {error.message}")
                continue
            if newest != known.version:
                found.append(Update(known.name, known.package, known.version, newest))
        return found, problems

    def remove(self, name: str) -> Installed:
        """Remove an installed plugin, by its name or its package's."""
        known = self._known(name)
        with locked(self.folder.parent / "plugins.lock"):
            aside = self.folder / f".old-{secrets.token_hex(6)}"
            (self.folder / known.name).rename(aside)
            shutil.rmtree(aside)
        return known

    def _known(self, name: str) -> Installed:
        there = self.installed()
        for known in there:
            if name in (known.name, known.package):
                return known
        names = ", ".join(each.name for each in there)
        hint = f"Installed: {names}." if names else "Nothing is installed; local plugins are only in localPlugins."
        raise PluginError(f"No plugin named {name[:100]!r} is installed.", hint=hint)

    def _find(self, packages: tuple[str, ...], version: str | None) -> tuple[Release, Registry]:
        registry = self._registry()
        *others, last = packages
        for package in others:
            try:
                return registry.release(package, version), registry
            except VersionNotFound:
                raise
            except PackageNotFound:
                continue
        return registry.release(last, version), registry

    def _put(self, data: bytes, origin: str, release: Release | None) -> Plugin:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self.folder.parent / "plugins.lock"):
            self._sweep()
            fresh = self.folder / f".new-{secrets.token_hex(6)}"
            try:
                unpack(data, fresh)
                plugin = read_package(fresh, "npm")
                if release is not None and (plugin.package, plugin.version) != (release.package, release.version):
                    raise PluginError(
                        f"The package says it is {plugin.package} {plugin.version}, but {release.package} "
                        f"{release.version} was asked for. Nothing was installed."
                    )
                record = {"package": plugin.package, "version": plugin.version, "from": origin}
                write_atomic(fresh / RECORD, json.dumps(record) + "\n")
                self._swap(fresh, self.folder / check_name(plugin.name))
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
            return read_package(self.folder / plugin.name, "npm")

    def _swap(self, fresh: Path, place: Path) -> None:
        """Replace the installed folder; if that fails, the old one is restored."""
        aside = self.folder / f".old-{secrets.token_hex(6)}"
        if not place.exists():
            fresh.rename(place)
            return
        if (before := _record(place).package) not in (place.name, _record(fresh).package):
            raise PluginError(
                f"Another package, {before}, is installed as {place.name}.", hint=f"tabhub plugin remove {place.name}"
            )
        place.rename(aside)
        try:
            fresh.rename(place)
        except OSError:
            aside.rename(place)
            raise
        shutil.rmtree(aside, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove the remains of an installation that was killed."""
        for path in self.folder.iterdir():
            if path.name.startswith((".new-", ".old-")):
                shutil.rmtree(path, ignore_errors=True)


def _record(folder: Path) -> Installed:
    """The record in an installed folder; without one, only the name is known."""
    try:
        record = json.loads((folder / RECORD).read_bytes()[:65536])
    except (OSError, ValueError):
        record = None
    if not isinstance(record, dict):
        record = {}
    package, version = str(record.get("package", folder.name)), str(record.get("version", ""))
    return Installed(folder.name, package, version, record.get("from") == "registry")


def _read_file(path: Path) -> bytes:
    if path.is_dir():
        raise PluginError(
            f"{path} is a folder.", hint="A plugin in a folder is used in place: tabhub plugin dev, or localPlugins."
        )
    try:
        return read_bounded(path, _MAX_FILE)
    except FileNotFoundError:
        raise PluginError(f"{path} does not exist.") from None
