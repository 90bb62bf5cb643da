"""Unpacking a package: files and folders only, inside its own folder, bounded in size and number.

Owns which parts of a tarball are written to disk. Tarballs are untrusted: one with paths outside its folder, links or
devices is refused as a whole, and no file is made executable or run.
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
_MAX_FILES = 5_000
_MAX_BYTES = 64 * MB
_MAX_TAR = _MAX_BYTES + 16 * MB
"""Bytes of the tar file, with headers and padding."""
_MAX_DEPTH = 20
_MAX_PART = 200


class _TarStream:
    """The tar file in a tarball, read lazily and bounded: a header can declare any size and would be read whole."""

    def __init__(self, data: bytes) -> None:
        self._inner = gzip.GzipFile(fileobj=io.BytesIO(data))
        self.tell = self._inner.tell

    def read(self, size: int = -1) -> bytes:
        self._check(self.tell() + size if size >= 0 else _MAX_TAR + 1)
        return self._inner.read(size)

    def seek(self, position: int) -> int:
        self._check(position)
        return self._inner.seek(position)

    @staticmethod
    def _check(position: int) -> None:
        if position > _MAX_TAR:
            raise _too_large()


def unpack(data: bytes, folder: Path) -> None:
    """Write the files of an npm tarball into a new folder; the first part of each path (`package/`) is left out."""
    folder.mkdir(mode=0o700, parents=True)
    room = _MAX_BYTES
    try:
        with tarfile.open(fileobj=cast(Any, _TarStream(data)), mode="r:") as tar:
            for count, member in enumerate(tar):
                if count >= _MAX_FILES:
                    raise PluginError(f"The package has more than {_MAX_FILES} files; it is not unpacked.")
                if (parts := _target_parts(member)) is None:
                    continue
                room -= member.size
                if member.size < 0:
                    raise PluginError(f"The package declares that {member.name[:80]!r} is less than empty.")
                if room < 0:
                    raise _too_large()
                _write(tar, member, folder.joinpath(*parts))
    except (tarfile.TarError, EOFError, OSError, ValueError, ArithmeticError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise PluginError(f"The package could not be unpacked: {error.strerror}.") from None
        raise PluginError(f"The package is not a readable .tgz file: {error}.") from None


def _too_large() -> PluginError:
    return PluginError(f"The package is larger than {_MAX_BYTES // MB} MB unpacked; it is not used.")


def _target_parts(member: tarfile.TarInfo) -> tuple[str, ...] | None:
    """The path of a member below the folder; None for folders, which are created with their files."""
    name = member.name
    path = PurePosixPath(name)
    invalid = any(not part.isprintable() or "\\" in part or ":" in part or len(part) > _MAX_PART for part in path.parts)
    if path.is_absolute() or ".." in path.parts or invalid or len(path.parts) > _MAX_DEPTH or not path.parts:
        raise PluginError(f"The package contains a path outside its folder ({name[:80]!r}); nothing of it is used.")
    if member.isdir():
        return None
    if not member.isreg():
        raise PluginError(f"The package contains {name[:80]!r}, a link or device; nothing of it is used.")
    if len(path.parts) < 2:
        raise PluginError(f"The package contains {name[:80]!r} outside of its folder; nothing of it is used.")
    return path.parts[1:]


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = tar.extractfile(member)
    if content is None:
        raise PluginError(f"The package's file {member.name[:80]!r} cannot be read.")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with target.open("xb") as file:
        target.chmod(0o600)
        file.write(content.read(member.size))
