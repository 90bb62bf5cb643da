"""`tabhub start --stdio`: the MCP server of one client on stdin and stdout, connected to the hub's bridge socket.

Owns the process: descriptors, signals and reconnecting; a hub is started if none is running. Only JSON-RPC is written
to stdout, and `bridge` decides what. One thread and `select`, so that a client pays for little more than Python itself.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from tabhub.cli.stdio import socket as bridge_socket
from tabhub.cli.stdio.bridge import MAX_LINE, Bridge
from tabhub.client_errors import BridgeProtocolError, CliError
from tabhub.wire.lines import LineSplitter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

_MAX_ANSWER = 256 * 1024 * 1024
_READ_SIZE = 262144
_MAX_WRITE = 4096
"""A pipe that is ready for writing accepts this many bytes without blocking."""
_MAX_BUFFERED = 4 * 1024 * 1024
"""With more than this unread by one side, reading from the other pauses."""
_GRACE_SECONDS = 1.0
_CLOSE_SECONDS = 2.0
_BACKOFF = (0.05, 0.1, 0.2, 0.2, 0.5, 0.5, 1.0, 2.0)


def run_stdio(words: Sequence[str], *, gateway: bool, tools: str | None = None, agent: str | None = None) -> int:
    """`agent` names the client whose token is used; without it TABHUB_TOKEN is."""
    if agent is not None and bridge_socket.client_token(agent) is None:
        raise CliError(
            f"There is no token for {agent!r}, or it was revoked.", "Create it: tabhub setup CLIENT --stdio --write"
        )
    # A stray print goes to stderr: the protocol has its own descriptor.
    out = os.dup(1)
    os.dup2(2, 1)
    return _Server(out, _connect(words), "gateway" if gateway else "all", tools, agent).run()


def _connect(words: Sequence[str]) -> tuple[socket.socket, str | None]:
    """A connection to the hub, which is started if none is running."""
    try:
        return bridge_socket.connect()
    except OSError:
        from tabhub.cli.hub.background import ensure_running

        hub, facts = ensure_running(words)
    try:
        return bridge_socket.connect()
    except OSError as error:
        if (other := bridge_socket.socket_mismatch(hub)) is not None:
            raise CliError(*other) from None
        raise CliError(
            f"The hub on {hub.address} (version {facts.get('version')}) answers, but its socket "
            f"{bridge_socket.socket_path(hub)} does not: {error.strerror or error}.",
            "Restart it: tabhub stop && tabhub start --background",
        ) from None


class _Server:
    """The process between one client and the hub."""

    def __init__(
        self, out: int, hub: tuple[socket.socket, str | None], surface: str, tools: str | None, agent: str | None
    ) -> None:
        self._out = out
        self._agent = agent
        self._to_client = bytearray()
        self._to_hub = bytearray()
        self._bridge = Bridge(self._write, surface=surface, tools=tools)
        self._client = LineSplitter(
            MAX_LINE, lambda line: self._bridge.client_line(line, time.monotonic()), self._bridge.line_too_long
        )
        self._hub: socket.socket | None = None
        self._lines = self._hub_lines()
        self._attempts = 0
        self._next_attempt = 0.0
        self._exit_at: float | None = None
        """When to exit after the client closed stdin, also with pending requests; None before."""
        self._wake, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # the wakeup descriptor ends the loop
        self._use_connection(*hub)

    def _write(self, message: bytes) -> None:
        self._to_client += message
        self._to_client += b"\n"

    def run(self) -> int:
        while True:
            now = time.monotonic()
            if self._hub is None and now >= self._next_attempt:
                self._reconnect(now)
            try:
                self._bridge.tick(now)
            except BridgeProtocolError as error:
                self._disconnected(str(error))
            if self._exit_at is not None and (now >= self._exit_at or (self._bridge.idle and not self._to_client)):
                break
            readable, writable, _ = select.select(*self._interests(), [], self._timeout(now))
            if self._wake in readable:
                break
            if self._hub is not None and self._hub in writable:
                self._flush_hub()
            if self._out in writable and not self._flush_client():
                break
            if self._hub is not None and self._hub in readable:
                self._read_hub()
            if 0 in readable:
                self._read_client()
        self._close()
        return 0

    def _interests(self) -> tuple[list[int | socket.socket], list[int | socket.socket]]:
        reads: list[int | socket.socket] = [self._wake]
        writes: list[int | socket.socket] = []
        if self._exit_at is None and len(self._to_hub) < _MAX_BUFFERED:
            reads.append(0)
        if self._hub is not None:
            if len(self._to_client) < _MAX_BUFFERED:
                reads.append(self._hub)
            if self._to_hub:
                writes.append(self._hub)
        if self._to_client:
            writes.append(self._out)
        return reads, writes

    def _timeout(self, now: float) -> float | None:
        moments = [self._bridge.deadline(), self._exit_at, self._next_attempt if self._hub is None else None]
        due = [moment for moment in moments if moment is not None]
        return max(0.0, min(due) - now) if due else None

    def _read_client(self) -> None:
        try:
            data = os.read(0, _READ_SIZE)
        except OSError as error:
            print(f"tabhub: stdin cannot be read: {error.strerror}", file=sys.stderr)
            data = b""
        if data:
            self._client.feed(data)
        else:
            self._client.end()
            self._exit_at = time.monotonic() + _GRACE_SECONDS

    def _flush_client(self) -> bool:
        """Write a piece; False when the client has closed its end."""
        try:
            written = os.write(self._out, self._to_client[:_MAX_WRITE])
        except OSError:
            return False
        del self._to_client[:written]
        return True

    def _use_connection(self, connection: socket.socket, token: str | None) -> None:
        self._hub = connection
        self._hub.setblocking(False)
        self._to_hub.clear()
        self._lines = self._hub_lines()
        self._bridge.connected(self._to_hub.extend, token, bridge_socket.client_token(self._agent))

    def _hub_lines(self) -> LineSplitter:
        def too_long(_beginning: bytes) -> None:
            raise BridgeProtocolError(f"a line of the hub is longer than {_MAX_ANSWER} bytes")

        return LineSplitter(_MAX_ANSWER, lambda line: self._bridge.hub_line(line, time.monotonic()), too_long)

    def _reconnect(self, now: float) -> None:
        """Try to reconnect; the hub may have another address now."""
        try:
            self._use_connection(*bridge_socket.connect())
            self._attempts = 0
        except (OSError, CliError):
            self._next_attempt = now + _BACKOFF[min(self._attempts, len(_BACKOFF) - 1)]
            self._attempts += 1

    def _read_hub(self) -> None:
        assert self._hub is not None  # noqa: S101 - checked by the loop
        try:
            data = self._hub.recv(_READ_SIZE)
            if data:
                self._bridge.data_received()
                self._lines.feed(data)
                return
            self._disconnected(None)
        except BlockingIOError:
            return
        except OSError as error:
            self._disconnected(f"the connection to the hub broke: {error}")
        except BridgeProtocolError as error:
            self._disconnected(f"invalid data from the hub's socket: {error}")

    def _flush_hub(self) -> None:
        assert self._hub is not None  # noqa: S101 - checked by the loop
        try:
            del self._to_hub[: self._hub.send(self._to_hub)]
        except BlockingIOError:
            return
        except OSError:
            # What the hub sent before it closed can still be read; reading then finds the end.
            self._to_hub.clear()

    def _disconnected(self, why: str | None) -> None:
        if why is not None:
            print(f"tabhub: {why}", file=sys.stderr)
        if self._hub is not None:
            self._hub.close()
            self._hub = None
        now = time.monotonic()
        self._next_attempt = now + _BACKOFF[0]
        self._bridge.disconnected(now)

    def _close(self) -> None:
        """End the session at the hub, if it is still connected."""
        if self._hub is None:
            return
        self._bridge.disconnect()
        try:
            self._hub.settimeout(_CLOSE_SECONDS)
            self._hub.sendall(self._to_hub)
        except OSError as error:
            print(f"tabhub: the hub could not be notified: {error}", file=sys.stderr)
        self._hub.close()
