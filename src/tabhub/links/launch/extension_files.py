"""Installs the extension where a browser can load it, together with its key for this hub.

Owns the files of `$TABHUB_HOME/extension` and of the managed browser's copy: the extension's files and `auth.json`,
which only the person can read. It knows no browser.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from tabhub.errors import SetupError
from tabhub.store.extension_key import SCOPE

AUTH_FILE = "auth.json"
"""By which the extension in the folder finds the hub and authenticates; store.extension_key reads it too."""
ADAPTERS = "adapters"
"""The folder for the scripts of plugins, which are not part of the extension."""
_MANIFEST = "manifest.json"
_LOCALES = "_locales"
"""The only folder whose name may start with an underscore; browsers refuse others."""


def packaged_extension() -> Path:
    """The extension as shipped: inside the installed package, or next to `src` in a checkout."""
    package = Path(__file__).resolve().parents[2]
    for place in (package / "_extension", package.parents[1] / "extension"):
        if (place / _MANIFEST).is_file():
            return place
    raise SetupError(
        "The browser extension is missing from this installation of tabhub.",
        hint="Install tabhub again; in a checkout, restore its extension folder.",
    )


def install_extension(home_extension_dir: Path, *, key: str, port: int, managed: bool = False) -> Path:
    """Make the folder contain exactly the shipped extension and `auth.json`, and return it.

    Only files that differ are written, each atomically. `manifest.json` comes last, so that a browser that loads the
    folder at the same time never sees a new manifest with old files.
    """
    source = packaged_extension()
    try:
        _own_folder(home_extension_dir)
        auth = {"secret": key, "scope": SCOPE, "port": port, "host": "127.0.0.1", "managed": managed}
        _write_if_changed(home_extension_dir / AUTH_FILE, (json.dumps(auth, indent=2) + "\n").encode(), mode=0o600)
        wanted = _shipped(source)
        for name in sorted(wanted, key=lambda n: n == _MANIFEST):
            _write_if_changed(home_extension_dir / name, wanted[name])
        _remove_stale(home_extension_dir, set(wanted) | {AUTH_FILE})
    except OSError as error:
        raise SetupError(
            f"The extension could not be installed to {home_extension_dir}: {error.strerror or error}.",
            hint="Make the folder writable and free space on the disk, or set TABHUB_HOME to another folder.",
        ) from error
    return home_extension_dir


def extension_version(directory: Path) -> str:
    path, hint = directory / _MANIFEST, "Start the hub again to reinstall the extension."
    try:
        manifest = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SetupError(f"{path} cannot be read: {error}.", hint=hint) from error
    version = manifest.get("version") if isinstance(manifest, dict) else None
    if not isinstance(version, str):
        raise SetupError(f"{path} has no version.", hint=hint)
    return version


def extension_stamp(directory: Path) -> str:
    """Version and digest of the folder's files; it changes exactly when a browser has to reload them."""
    digest = hashlib.sha256()
    for name, content in sorted(_shipped(directory).items()):
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return f"{extension_version(directory)}+{digest.hexdigest()[:16]}"


def _shipped(source: Path) -> dict[str, bytes]:
    """The files that belong to the extension, by their path within it."""
    files: dict[str, bytes] = {}
    for folder, folders, names in os.walk(source):
        folders[:] = [f for f in folders if not f.startswith(".") and (f[0] != "_" or f == _LOCALES)]
        if Path(folder) == source and ADAPTERS in folders:
            folders.remove(ADAPTERS)
        for name in names:
            if name[0] not in "._" and name != AUTH_FILE and not name.endswith(".d.ts"):
                path = Path(folder, name)
                files[path.relative_to(source).as_posix()] = path.read_bytes()
    return files


def _own_folder(directory: Path) -> None:
    """Create the folder, or check that it is ours, because stale files in it are removed."""
    ours = {AUTH_FILE, _MANIFEST}
    if directory.is_dir():
        names = {path.name for path in directory.iterdir()}
        if names and not names & ours:
            raise SetupError(
                f"{directory} contains files that are not the extension's; nothing was changed.",
                hint="Move them away, or set TABHUB_HOME to another folder.",
            )
    for folder in (*reversed(directory.parents), directory):
        if not folder.exists():
            folder.mkdir(mode=0o700)
    if directory.stat().st_mode & 0o777 != 0o700:
        directory.chmod(0o700)


def _write_if_changed(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    if (
        path.is_file()
        and not path.is_symlink()
        and path.stat().st_mode & 0o777 == mode
        and path.read_bytes() == content
    ):
        return
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _remove_stale(directory: Path, keep: set[str]) -> None:
    """Remove stale files, bottom up; a link is removed, never followed."""
    for folder, folders, names in os.walk(directory, topdown=False):
        here = Path(folder)
        if here == directory / ADAPTERS and not here.is_symlink():
            continue
        for name in names:
            if (here / name).relative_to(directory).as_posix() not in keep:
                (here / name).unlink()
        for name in folders:
            child = here / name
            if child.is_symlink():
                child.unlink()
            elif not any(child.iterdir()):
                child.rmdir()
