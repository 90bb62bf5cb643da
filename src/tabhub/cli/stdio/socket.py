"""The hub's bridge socket: find it, connect to it, query the hub's status.

Owns which path or port that is and whether it can be trusted. It imports next to nothing, because every stdio server
pays for it at its start.
"""

from __future__ import annotations

import json
import os
import socket

from tabhub.cli.hub.client import Hub, find_hub, home, read_json
from tabhub.client_errors import CliError
from tabhub.platform.socket_path import TCP, bridge_path, peer_uid, tcp_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONNECT_SECONDS = 3.0
_MAX_STATUS = 1024 * 1024


def socket_path(hub: Hub) -> str:
    """From the environment, else from hub.json, else the default."""
    written = hub.record.get("socket")
    if not os.environ.get("TABHUB_SOCKET", "").strip() and isinstance(written, str):
        return written
    return bridge_path(hub.home, os.environ)


def socket_mismatch(hub: Hub) -> tuple[str, str] | None:
    """Error and hint if the environment names another socket than the running hub listens on."""
    written, path = hub.record.get("socket"), socket_path(hub)
    if not isinstance(written, str) or written == path:
        return None
    return (
        f"TABHUB_SOCKET means {path} here, but the hub listens on {written}.",
        "Set TABHUB_SOCKET to the same value for the hub and its clients, or for neither; then restart the hub.",
    )


def connect(hub: Hub | None = None) -> tuple[socket.socket, str | None]:
    """A connection and the token its first message must contain, if any; OSError if no process listens."""
    hub = hub or find_hub()
    path = socket_path(hub)
    if path == TCP:
        return _connect_tcp(hub)
    if os.stat(path).st_uid != os.geteuid():  # noqa: PTH116 - pathlib costs a CLI's start
        raise _foreign_socket(path)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_CONNECT_SECONDS)
        connection.connect(path)
        if peer_uid(connection) != os.geteuid():  # its owner may have replaced it since
            raise _foreign_socket(path)
    except BaseException:
        connection.close()
        raise
    return connection, None


def _foreign_socket(path: str) -> CliError:
    return CliError(
        f"The bridge socket {path} belongs to another user.",
        "What you send would reach them. Set TABHUB_SOCKET or TABHUB_HOME to a path of your own.",
    )


def _connect_tcp(hub: Hub) -> tuple[socket.socket, str]:
    record = read_json(tcp_record(hub.home))
    port, token = (record.get("port"), record.get("token")) if isinstance(record, dict) else (None, None)
    if not isinstance(port, int) or not isinstance(token, str):
        raise ConnectionRefusedError("no hub has written its port")
    return socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_SECONDS), token


def client_token(name: str | None) -> str | None:
    """The token of a client that `tabhub setup` configured, if it was not revoked; without a name TABHUB_TOKEN."""
    if name is None:
        return os.environ.get("TABHUB_TOKEN", "").strip() or None
    path = f"{home()}/client-tokens/{os.path.basename(name)}"  # noqa: PTH119 - pathlib costs a CLI's start
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123 - the same
            return file.read().strip() or None
    except OSError:
        return None


def status(hub: Hub) -> dict[str, Any]:
    """The hub's STATUS_OK; raises OSError or CliError."""
    connection, token = connect(hub)
    with connection, connection.makefile("rb") as lines:
        credentials = {"token": token} if token is not None else {}
        connection.sendall(json.dumps({"type": "STATUS", "id": "status", **credentials}).encode() + b"\n")
        data = lines.readline(_MAX_STATUS)
    if not data.endswith(b"\n"):
        raise ConnectionResetError("the connection closed before the answer was complete")
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("type") != "STATUS_OK":
        raise CliError(f"The bridge socket answered {data[:200]!r}.", "Is it the hub's? Look at `tabhub logs`.")
    return answer
