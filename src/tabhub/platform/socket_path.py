"""The bridge socket: its path in this environment, and the modes it must have to be trusted.

Owns the choice of the path, the folder and file modes, and replacing the socket of a hub that died. The hub and the
command line must choose the same path, so both use this module. Imports little: every stdio server imports it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tabhub.errors import SetupError

TCP = "tcp"
"""As TABHUB_SOCKET: no unix socket but a loopback port, named with its token in run/bridge.json of the home."""
_LONGEST = 107 if sys.platform == "linux" else 103
_BACKLOG = 128
_XUCRED = 76
"""Bytes of a struct xucred."""


def bridge_path(home: str, env: Mapping[str, str]) -> str:
    """The socket path of this home's hub, or TCP; it is not checked."""
    named = env.get("TABHUB_SOCKET", "").strip()
    if named == TCP or (not named and not hasattr(socket, "AF_UNIX")):
        return TCP
    if named:
        # Not from the working folder: a hub in the background and its clients have different ones.
        return os.path.abspath(os.path.join(home, os.path.expanduser(named)))  # noqa: PTH100,PTH111,PTH118
    runtime = env.get("XDG_RUNTIME_DIR", "").strip()
    if runtime and _is_private(runtime):
        default = os.path.abspath(os.path.expanduser("~/.tabhub"))  # noqa: PTH100,PTH111
        return f"{runtime.rstrip('/')}/tabhub/bridge{'' if home == default else f'-{_short_hash(home)}'}.sock"
    inside = f"{home}/run/bridge.sock"
    if len(os.fsencode(inside)) <= _LONGEST:
        return inside
    # The folder is checked before use: it must be this user's, no link, and not writable for others.
    name = f"tabhub-{os.getuid()}/bridge-{_short_hash(home)}.sock"
    temporary = f"{env.get('TMPDIR', '').rstrip('/') or '/tmp'}/{name}"  # noqa: S108
    return temporary if len(os.fsencode(temporary)) <= _LONGEST else f"/tmp/{name}"  # noqa: S108


def tcp_record(home: str) -> str:
    """The file that names the loopback port and its token."""
    return f"{home}/run/bridge.json"


def checked(path: str) -> str:
    """The path, if the system can bind it."""
    size = len(os.fsencode(path))
    if size > _LONGEST:
        raise _setup_error(
            f"The path of the bridge socket has {size} bytes; the maximum is {_LONGEST}: {path}",
            hint="Set TABHUB_SOCKET to a shorter path, the same for the hub and the clients that start it.",
        )
    return path


def listen_unix(path: str) -> socket.socket:
    """A socket that listens on the path, for this user only; the socket of a dead hub is replaced."""
    checked(path)
    folder, name = os.path.split(path)
    _make_private_folder(folder)
    with _locked(folder):
        _remove_dead_socket(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            before = os.umask(0o177)  # the socket is private from the start
            try:
                listener.bind(path)
            finally:
                os.umask(before)
            os.chmod(path, 0o600)  # noqa: PTH101
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise _setup_error(
                f"The bridge socket {path} cannot be created: {error.strerror}.",
                hint=f"Check that {folder} is a folder of yours, or set TABHUB_SOCKET to another path ({name}).",
            ) from None
    return listener


def peer_uid(connection: socket.socket) -> int:
    """The user at the other end of a unix socket, as the system knows it."""
    if hasattr(socket, "SO_PEERCRED"):  # struct ucred: process, user, group
        return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
    # macOS and the BSDs: LOCAL_PEERCRED of level SOL_LOCAL gives a struct that begins with its version and the user.
    facts = connection.getsockopt(0, getattr(socket, "LOCAL_PEERCRED", 1), _XUCRED)
    return int.from_bytes(facts[4:8], sys.byteorder)


def listen_tcp() -> socket.socket:
    """A loopback port, on systems without Unix sockets."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    listener.setblocking(False)
    return listener


def _setup_error(message: str, *, hint: str) -> SetupError:
    from tabhub.errors import SetupError  # here, because a stdio server that starts well never needs it

    return SetupError(message, hint=hint)


def _is_private(folder: str) -> bool:
    """Whether a runtime folder belongs to this user; after `su` the variable may name another user's."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _short_hash(home: str) -> str:
    """A short hash of the home; FNV-1a, because importing hashlib would cost more than everything else here."""
    value = 0xCBF29CE484222325
    for byte in os.fsencode(home):
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"[:12]


def _make_private_folder(folder: str) -> None:
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)  # noqa: PTH103,PTH120
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102
        status = os.lstat(folder)
    except OSError as error:
        raise _setup_error(
            f"The folder {folder} of the bridge socket cannot be used: {error.strerror}.",
            hint="Set TABHUB_SOCKET to a path in a folder of yours.",
        ) from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise _setup_error(
            f"{folder} is not a safe folder for the bridge socket: it must be a folder of yours that others cannot"
            f" write to (it has mode {stat.S_IMODE(status.st_mode):04o}, user {status.st_uid}).",
            hint="Set TABHUB_SOCKET to a path in a folder of your own.",
        )


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold a lock on the folder, so that two hubs do not check one path at the same time."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _remove_dead_socket(path: str) -> None:
    """Remove the socket of a dead hub; a live socket or another kind of file is an error."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise _setup_error(
            f"{path} is the path of the bridge socket, but is not a socket.",
            hint="Move it away, or set TABHUB_SOCKET to another path.",
        )
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.settimeout(1.0)
        probe.connect(path)
    except (ConnectionRefusedError, FileNotFoundError):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108
        return
    except OSError as error:
        raise _setup_error(
            f"{path} cannot be taken over: {error.strerror or error}.", hint="Set TABHUB_SOCKET to another path."
        ) from None
    finally:
        probe.close()
    raise _setup_error(
        f"Another hub listens on {path}.",
        hint="Stop it with `tabhub stop`, or set TABHUB_SOCKET to another path for one of the two.",
    )
