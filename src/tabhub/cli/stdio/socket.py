"""The daemon's socket as the command line sees it: find it, connect to it, ask it how the hub is.

Owns which path or port that is and whether it may be trusted. It imports next to nothing, because every stdio server
pays for it at its start. What is said after connecting is the bridge's.
"""

from __future__ import annotations

import json
import os
import socket
import sys

from tabhub.cli.hub.client import Hub, find_hub, read_json
from tabhub.client_errors import CliError
from tabhub.platform.socket_path import TCP, daemon_path, tcp_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONNECT = 3.0
_MOST = 1024 * 1024


class BridgeListener:
    """An open connection, and the token its first message must hold, if it needs one."""

    __slots__ = ("connection", "token")

    def __init__(self, connection: socket.socket, token: str | None) -> None:
        self.connection = connection
        self.token = token


def place(hub: Hub) -> str:
    """The path of this home's socket: from the environment, else from hub.json, else the default."""
    written = hub.record.get("socket")
    if not os.environ.get("TABHUB_SOCKET", "").strip() and isinstance(written, str):
        return written
    return daemon_path(hub.home, os.environ)


def elsewhere(hub: Hub) -> tuple[str, str] | None:
    """What is wrong, and what to do, if the environment names another socket than the running hub listens on."""
    written, path = hub.record.get("socket"), place(hub)
    if not isinstance(written, str) or written == path:
        return None
    return (
        f"TABHUB_SOCKET means {path} here, but the hub listens on {written}.",
        "Set TABHUB_SOCKET to the same for the hub and its clients, or for neither; then start the hub again.",
    )


def connect(hub: Hub | None = None) -> BridgeListener:
    """Connect, or raise OSError if no process listens."""
    hub = hub or find_hub()
    path = place(hub)
    if path == TCP:
        return _connect_tcp(hub)
    if os.stat(path).st_uid != os.geteuid():  # noqa: PTH116 - pathlib costs a CLI's start
        raise _strangers(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_CONNECT)
        connection.connect(path)
        if not _ours(connection):  # in a folder of theirs, another may have come to lie there since
            raise _strangers(path)
    except BaseException:
        connection.close()
        raise
    return BridgeListener(connection, None)


def _ours(connection: socket.socket) -> bool:
    """Whether a process of this user listens at the other end, as far as the system tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    facts = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(facts[4:8], sys.byteorder) == os.geteuid()


def _strangers(path: str) -> CliError:
    return CliError(
        f"The daemon's socket {path} belongs to another user.",
        "What you send would reach them. Set TABHUB_SOCKET or TABHUB_HOME to a path of your own.",
    )


def _connect_tcp(hub: Hub) -> BridgeListener:
    record = read_json(tcp_record(hub.home))
    port, token = (record.get("port"), record.get("token")) if isinstance(record, dict) else (None, None)
    if not isinstance(port, int) or not isinstance(token, str):
        raise ConnectionRefusedError("no hub has written its port")
    return BridgeListener(socket.create_connection(("127.0.0.1", port), timeout=_CONNECT), token)


def status(hub: Hub, timeout: float = 3.0) -> dict[str, Any]:
    """What the hub answers to STATUS, or OSError or CliError."""
    daemon = connect(hub)
    with daemon.connection as connection:
        connection.settimeout(timeout)
        token = {"token": daemon.token} if daemon.token is not None else {}
        connection.sendall(json.dumps({"type": "STATUS", "id": "status", **token}).encode() + b"\n")
        data = b""
        while not data.endswith(b"\n"):
            part = connection.recv(65536)
            data += part
            if not part or len(data) > _MOST:
                raise ConnectionResetError("the connection ended before the answer was whole")
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("type") != "STATUS_OK":
        raise CliError(f"The daemon's socket answered {data[:200]!r}.", "Is it the hub's? `tabhub logs` may tell more.")
    return answer
