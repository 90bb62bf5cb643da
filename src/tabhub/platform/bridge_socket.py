"""The bridge socket as the hub opens it: private to this user, and in place of the socket of a hub that died.

Owns the modes of the socket and its folder. The choice of the path is socket_path's.
"""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

from tabhub.errors import SetupError
from tabhub.platform.files import make_private_folder
from tabhub.platform.locks import locked
from tabhub.platform.socket_path import checked

_BACKLOG = 128


def listen_unix(path: str) -> socket.socket:
    """A socket that listens on the path, for this user only; the socket of a dead hub is replaced."""
    checked(path)
    folder = Path(path).parent
    make_private_folder(folder, follow_links=False)
    with locked(folder / ".bridge.lock"):  # two hubs must not check one path at the same time
        _remove_dead_socket(path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # the socket is private from the start
        try:
            listener.bind(path)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError as error:
            listener.close()
            raise SetupError(
                f"The bridge socket {path} cannot be created: {error.strerror}.",
                hint=f"Check that {folder} is yours and writable, or set TABHUB_SOCKET to another path.",
            ) from None
        finally:
            os.umask(before)
    return listener


def listen_tcp() -> socket.socket:
    """A loopback port, on systems without Unix sockets."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=_BACKLOG)
    listener.setblocking(False)
    return listener


def _remove_dead_socket(path: str) -> None:
    """Remove the socket of a dead hub; a live socket or another kind of file is an error."""
    try:
        mode = Path(path).lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SetupError(
            f"{path} is the path of the bridge socket, but is not a socket.",
            hint="Move it away, or set TABHUB_SOCKET to another path.",
        )
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1.0)
            probe.connect(path)
    except (ConnectionRefusedError, FileNotFoundError):
        Path(path).unlink(missing_ok=True)
        return
    except OSError as error:
        raise SetupError(
            f"{path} cannot be taken over: {error.strerror or error}.", hint="Set TABHUB_SOCKET to another path."
        ) from None
    raise SetupError(
        f"Another hub listens on {path}.",
        hint="Stop it with `tabhub stop`, or set TABHUB_SOCKET to another path for one of the two.",
    )
