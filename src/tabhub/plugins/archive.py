"""Unpacking a package: files and folders only, inside its own folder, within bounds.

Owns what of a tarball may reach the disk. A tarball is a stranger's: names that lead elsewhere, links and devices
refuse it whole, sizes are counted while unpacking, and nothing of it is ever made executable or run.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, cast

from tabhub.errors import PluginError

MB = 1024 * 1024
_FILES = 5_000
_BYTES = 64 * MB
_STREAM = _BYTES + 16 * MB
"""Unpacked bytes that are looked at, with what is around the files: their heads, and what lies between."""
_DEPTH = 20
_LONGEST = 200


class _Stream:
    """The unpacked bytes of a tarball, up to the bound: a head can claim any size, and would be read whole."""

    def __init__(self, data: bytes) -> None:
        self._inner = gzip.GzipFile(fileobj=io.BytesIO(data))

    def read(self, size: int = -1) -> bytes:
        self._check(self._inner.tell() + size if size >= 0 else _STREAM + 1)
        return self._inner.read(size)

    def seek(self, place: int) -> int:
        self._check(place)
        return self._inner.seek(place)

    def tell(self) -> int:
        return self._inner.tell()

    @staticmethod
    def _check(place: int) -> None:
        if place > _STREAM:
            raise PluginError(f"The package is larger than {_BYTES // MB} MB unpacked; it is not used.")


def unpack(data: bytes, folder: Path) -> None:
    """Write the files of an npm tarball into a new folder; the first step of each path (`package/`) is left out."""
    folder.mkdir(mode=0o700, parents=True)
    room = _BYTES
    try:
        with tarfile.open(fileobj=cast(Any, _Stream(data)), mode="r:") as tar:
            for count, member in enumerate(tar):
                if count >= _FILES:
                    raise PluginError(f"The package has more than {_FILES} files; it is not unpacked.")
                steps = _steps(member)
                if steps is None:
                    continue
                room -= member.size
                if member.size < 0:
                    raise PluginError(f"The package says of {member.name[:80]!r} that it is less than empty.")
                if room < 0:
                    raise PluginError(f"The package is larger than {_BYTES // MB} MB unpacked; it is not used.")
                _write(tar, member, folder.joinpath(*steps))
    except (tarfile.TarError, EOFError, OSError, ValueError, ArithmeticError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise PluginError(f"The package could not be unpacked: {error.strerror}.") from None
        raise PluginError(f"The package is not a readable .tgz file: {error}.") from None


def _steps(member: tarfile.TarInfo) -> tuple[str, ...] | None:
    """Where a member goes; None for the folders, which come with their files."""
    name = member.name
    path = PurePosixPath(name)
    odd = any(not part.isprintable() or "\\" in part or ":" in part or len(part) > _LONGEST for part in path.parts)
    if path.is_absolute() or ".." in path.parts or odd or len(path.parts) > _DEPTH or not path.parts:
        raise PluginError(f"The package holds a file that leads elsewhere ({name[:80]!r}); nothing of it is used.")
    if member.isdir():
        return None
    if not member.isreg():
        raise PluginError(f"The package holds {name[:80]!r}, a link or device; nothing of it is used.")
    if len(path.parts) < 2:
        raise PluginError(f"The package holds {name[:80]!r} outside of its folder; nothing of it is used.")
    return path.parts[1:]


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = tar.extractfile(member)
    if content is None:
        raise PluginError(f"The package's file {member.name[:80]!r} cannot be read.")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with target.open("xb") as file:
        target.chmod(0o600)
        file.write(content.read(member.size))
