"""Private folders and atomic file replacement. Knows nothing of the files' contents."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from tabhub.errors import SetupError

_TEMP = ".tmp"
_ANOTHER = "choose another folder with TABHUB_HOME or TABHUB_SOCKET."


def write_atomic(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file atomically: readers see the old text or the new, and a failure leaves the old one."""
    raw = data.encode() if isinstance(data, str) else data
    target = os.path.realpath(path)  # a linked file stays a link, and what it points to is replaced
    folder, name = os.path.split(target)
    temp = f"{folder}/.{name}.{os.getpid()}.{os.urandom(4).hex()}{_TEMP}"
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(fd, "wb") as file:
                os.fchmod(fd, mode)
                file.write(raw)
                file.flush()
                os.fsync(fd)
            os.replace(temp, target)  # noqa: PTH105 - plain strings are cheaper here
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temp)  # noqa: PTH108
            raise
        _sync_folder(folder)
    except OSError as error:
        raise SetupError(
            f"Could not write {path}: {error.strerror or error}.",
            hint="The file is unchanged. Free space on the disk and check that the folder is yours and writable.",
        ) from error


def read_trusted(path: Path, largest: int, *, writable_by: int) -> bytes | None:
    """The contents of a file whose mode has none of the bits `writable_by`; None if there is no file."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            raw = file.read(largest + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(
            f"Could not read {path}: {error.strerror}.", hint="Check that the file is yours and readable."
        ) from error
    if mode & writable_by:
        raise SetupError(
            f"Other users may write to {path}.", hint=f"Check that it is as you left it, then: chmod 600 {path}"
        )
    if len(raw) > largest:
        raise SetupError(f"{path} is larger than {largest} bytes.", hint="Remove it, or restore it from a backup.")
    return raw


def stamp(path: Path | str) -> tuple[int, int, int] | None:
    """What changes when a file is replaced or written; None if there is no file."""
    try:
        status = os.stat(path)  # noqa: PTH116 - cheaper than Path.stat, and done for every call with a token
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def make_private_folder(folder: Path, *, follow_links: bool = True) -> None:
    """Create a folder for this user only; raises SetupError for an existing one that others could change."""
    try:
        try:
            os.makedirs(folder.parent, exist_ok=True)  # noqa: PTH103
            os.mkdir(folder, 0o700)  # noqa: PTH102
        except FileExistsError:
            pass
        else:
            os.chmod(folder, 0o700)  # noqa: PTH101 - independent of the umask
        status = os.stat(folder, follow_symlinks=follow_links)  # noqa: PTH116
    except OSError as error:
        raise SetupError(
            f"Could not create the folder {folder}: {error.strerror}.", hint=f"Make it writable for you, or {_ANOTHER}"
        ) from error
    if not stat.S_ISDIR(status.st_mode):
        raise SetupError(f"{folder} is not a folder.", hint=f"Move it away, or {_ANOTHER}")
    if status.st_uid != os.geteuid():
        raise SetupError(
            f"{folder} belongs to another user (uid {status.st_uid}; you are {os.geteuid()}).",
            hint="Run as that user, or choose a folder that you own with TABHUB_HOME or TABHUB_SOCKET.",
        )
    if status.st_mode & 0o022:
        raise SetupError(
            f"Other users may write to {folder} (mode {stat.S_IMODE(status.st_mode):04o}).",
            hint=f"Run: chmod 700 {folder}",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SetupError(f"{folder} is not writable.", hint=f"Make it writable for you, or {_ANOTHER}")


def remove_stale_temporaries(folder: Path) -> None:
    """Remove temporary files of writers that were killed; a running writer's file carries its process id."""
    for entry in os.scandir(folder):
        parts = entry.name.split(".")
        if entry.name.startswith(".") and entry.name.endswith(_TEMP) and len(parts) > 4 and parts[-3].isdigit():
            try:
                os.kill(int(parts[-3]), 0)
            except ProcessLookupError:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)  # noqa: PTH108
            except (PermissionError, OverflowError):
                continue  # alive under another user, or no process id at all


def _sync_folder(folder: str) -> None:
    """Make the rename durable; a file system that cannot do that has still renamed."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
