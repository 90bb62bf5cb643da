"""The path of the bridge socket in this environment, and the user at the other end of a connection.

The hub and the command line must choose the same path, so both use this module. Imports little: every stdio server
imports it. Creating the socket is bridge_socket's.
"""

from __future__ import annotations

import os
import socket
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

TCP = "tcp"
"""As TABHUB_SOCKET: no unix socket but a loopback port, named with its token in run/bridge.json of the home."""
_LONGEST = 107 if sys.platform == "linux" else 103
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
        from tabhub.errors import SetupError  # here, because a stdio server that starts well never needs it

        raise SetupError(
            f"The path of the bridge socket has {size} bytes; the maximum is {_LONGEST}: {path}",
            hint="Set TABHUB_SOCKET to a shorter path, the same for the hub and the clients that start it.",
        )
    return path


def peer_uid(connection: socket.socket) -> int:
    """The user at the other end of a unix socket, as the system knows it."""
    if hasattr(socket, "SO_PEERCRED"):  # struct ucred: process, user, group
        return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], sys.byteorder)
    # macOS and the BSDs: LOCAL_PEERCRED of level SOL_LOCAL gives a struct that begins with its version and the user.
    credentials = connection.getsockopt(0, getattr(socket, "LOCAL_PEERCRED", 1), _XUCRED)
    return int.from_bytes(credentials[4:8], sys.byteorder)


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
