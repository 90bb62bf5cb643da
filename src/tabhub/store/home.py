"""The home folder: the paths of the hub's files, who may read them, and atomic replacement.

Owns paths, modes and atomic writes. Knows nothing of the files' contents. Imports little: every command uses it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from tabhub.errors import SetupError

_TEMP = ".tmp"


class Home:
    """The folder `~/.tabhub`, or the one `TABHUB_HOME` names."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "config.json"
        self.extension = root / "extension"
        self.auth = self.extension / "auth.json"
        self.managed = root / "managed"
        self.audit = root / "audit.log"
        self.logs = root / "logs"
        self.hub_log = self.logs / "hub.log"
        self.hub_json = root / "hub.json"
        self.results_db = root / "results.db"
        self.files = root / "files"
        self.plugins = root / "plugins"
        self.lock = root / "hub.lock"

    def __repr__(self) -> str:
        return f"Home({str(self.root)!r})"

    @classmethod
    def find(cls, env: Mapping[str, str] = os.environ) -> Home:
        named = env.get("TABHUB_HOME", "").strip()
        folder = named or env.get("HOME", "").strip() or os.path.expanduser("~")  # noqa: PTH111 - never raises
        if folder.startswith("~"):
            folder = os.path.expanduser(folder)  # noqa: PTH111 - the same
            if folder.startswith("~"):
                raise SetupError(f"No home folder: {folder!r} means nothing here.", hint="Set TABHUB_HOME to a folder.")
        root = Path(os.path.abspath(folder))  # noqa: PTH100 - keeps links as the person wrote them
        return cls(root if named else root / ".tabhub")

    def ensure(self) -> None:
        """Create the folders, private to this user; raises SetupError for a home that others could change or we
        cannot."""
        for folder in (self.root, self.extension, self.logs, self.files, self.managed):
            _private_folder(folder)
        for folder in (self.root, self.extension):
            _sweep(folder)


def write_atomic(path: Path, data: bytes | str, mode: int = 0o600) -> None:
    """Replace a file atomically: readers see the old text or the new, and a failure leaves the old one."""
    raw = data.encode() if isinstance(data, str) else data
    target = os.path.realpath(path)  # a linked file stays a link, and what it points to is replaced
    folder, name = os.path.split(target)
    temp = f"{folder}/.{name}.{os.getpid()}.{os.urandom(4).hex()}{_TEMP}"
    try:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            try:
                os.fchmod(fd, mode)
                view = memoryview(raw)
                while view:
                    view = view[os.write(fd, view) :]
                os.fsync(fd)
            finally:
                os.close(fd)
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


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock file; the system releases it when its holder dies."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise SetupError(
            f"Could not open the lock {path}: {error.strerror}.", hint="Check that the folder is yours and writable."
        ) from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _private_folder(folder: Path) -> None:
    try:
        try:
            os.makedirs(folder.parent, exist_ok=True)  # noqa: PTH103
            os.mkdir(folder, 0o700)  # noqa: PTH102
        except FileExistsError:
            pass
        else:
            os.chmod(folder, 0o700)  # noqa: PTH101 - whatever the umask made of it
        facts = os.stat(folder)  # noqa: PTH116
    except OSError as error:
        raise SetupError(
            f"Could not make the folder {folder}: {error.strerror}.",
            hint="Make it writable for you, or set TABHUB_HOME to another folder.",
        ) from error
    if not stat.S_ISDIR(facts.st_mode):
        raise SetupError(f"{folder} is not a folder.", hint="Move it away, or set TABHUB_HOME to another folder.")
    if facts.st_uid != os.geteuid():
        raise SetupError(
            f"{folder} belongs to another user (uid {facts.st_uid}; you are {os.geteuid()}).",
            hint="Run as that user, or set TABHUB_HOME to a folder of your own.",
        )
    if facts.st_mode & 0o022:
        raise SetupError(
            f"Other users may write to {folder} (mode {stat.S_IMODE(facts.st_mode):04o}).",
            hint=f"Run: chmod 700 {folder}",
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SetupError(
            f"{folder} is not writable.", hint="Make it writable for you, or set TABHUB_HOME to another folder."
        )


def _sweep(folder: Path) -> None:
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
