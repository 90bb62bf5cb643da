"""`tabhub start --stdio`: the MCP server of one client, on stdin and stdout, over the daemon's socket of the hub.

Owns the process: its descriptors, its signals, and finding the hub again when the connection ends. A hub is started if
none runs. Nothing but JSON-RPC leaves on stdout; what the messages mean is the bridge's. One thread waits for all of
it, so that a client pays for little more than Python itself.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from tabhub.cli.stdio import socket as daemon
from tabhub.cli.stdio.bridge import Bridge
from tabhub.cli.stdio.liveness import LONGEST, PING, Silence
from tabhub.client_errors import BridgeProtocolError, CliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

MAX_LINE = 16 * 1024 * 1024
_MAX_ANSWER = 256 * 1024 * 1024
_READ = 262144
_PIECE = 4096
"""So much can be written to a pipe that has room without waiting."""
_FULL = 4 * 1024 * 1024
"""With more than this unread by one side, nothing more is taken from the other."""
_GRACE = 1.0
_GONE = 2.0
_BACKOFF = (0.05, 0.1, 0.2, 0.2, 0.5, 0.5, 1.0, 2.0)


def run_stdio(words: Sequence[str], *, gateway: bool, tools: str | None = None) -> int:
    """Serve until the client closes stdin."""
    # Whatever prints by mistake goes to stderr; the protocol has a descriptor of its own.
    out = os.dup(1)
    os.dup2(2, 1)
    return _Server(out, _reach(words), "gateway" if gateway else "all", tools).run()


def _reach(words: Sequence[str]) -> daemon.BridgeListener:
    """A connection to the hub, which is started if none is running."""
    try:
        return daemon.connect()
    except OSError:
        from tabhub.cli.hub.background import ensure_running

        hub, facts = ensure_running(words)
    try:
        return daemon.connect()
    except OSError as error:
        if (other := daemon.elsewhere(hub)) is not None:
            raise CliError(*other) from None
        raise CliError(
            f"The hub on {hub.address} (version {facts.get('version')}) answers, but its socket {daemon.place(hub)}"
            f" does not: {error.strerror or error}.",
            "Restart it: tabhub stop && tabhub start --background",
        ) from None


class _Split:
    """Bytes as lines; one that is too long is dropped in bounded memory."""

    def __init__(self, longest: int, line: Callable[[bytes], None], too_long: Callable[[int], None]) -> None:
        self._longest = longest
        self._line = line
        self._too_long = too_long
        self._pending = bytearray()
        self._dropping = False

    def feed(self, data: bytes) -> None:
        *whole, rest = data.split(b"\n")
        for part in whole:
            if not self._dropping:
                line = bytes(self._pending + part) if self._pending else part
                self._pending.clear()
                self._line(line)
            self._dropping = False
        if self._dropping:
            return
        self._pending += rest
        if len(self._pending) > self._longest:
            self._pending.clear()
            self._dropping = True
            self._too_long(self._longest)

    def end(self) -> None:
        """What came last needs no line break."""
        if self._pending:
            self._line(bytes(self._pending))


class _Server:
    """The process between one client and the hub."""

    def __init__(self, out: int, hub: daemon.BridgeListener, surface: str, tools: str | None) -> None:
        self._out = out
        self._to_client = bytearray()
        self._to_hub = bytearray()
        self._bridge = Bridge(self._say, surface=surface, tools=tools)
        self._client = _Split(MAX_LINE, lambda line: self._bridge.client_line(line, time.monotonic()), self._too_long)
        self._hub: socket.socket | None = None
        self._lines = self._hub_lines()
        self._silence = Silence()
        self._tries = 0
        self._next_try = 0.0
        self._until: float | None = None
        """The end of the time in which what is nearly done may still be done; None while the client is there."""
        self._wake, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # the descriptor wakes us
        self._take_up(hub)

    def _say(self, message: bytes) -> None:
        self._to_client += message
        self._to_client += b"\n"

    def _too_long(self, size: int) -> None:
        self._bridge.too_long(size)

    # the loop

    def run(self) -> int:
        """Carry lines both ways until the client disconnects, or a signal arrives."""
        while True:
            now = time.monotonic()
            if self._hub is None and now >= self._next_try:
                self._look(now)
            self._bridge.tick(now)
            self._listen_for_life(now)
            if self._until is not None and (now >= self._until or (self._bridge.idle and not self._to_client)):
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
        self._leave()
        return 0

    def _interests(self) -> tuple[list[int | socket.socket], list[int | socket.socket]]:
        reads: list[int | socket.socket] = [self._wake]
        writes: list[int | socket.socket] = []
        if self._until is None and len(self._to_hub) < _FULL:
            reads.append(0)
        if self._hub is not None:
            if len(self._to_client) < _FULL:
                reads.append(self._hub)
            if self._to_hub:
                writes.append(self._hub)
        if self._to_client:
            writes.append(self._out)
        return reads, writes

    def _timeout(self, now: float) -> float | None:
        moments = [self._bridge.deadline(), self._silence.deadline(), self._until]
        moments.append(self._next_try if self._hub is None else None)
        due = [moment for moment in moments if moment is not None]
        return max(0.0, min(due) - now) if due else None

    # the client

    def _read_client(self) -> None:
        try:
            data = os.read(0, _READ)
        except OSError as error:
            print(f"tabhub: stdin cannot be read: {error.strerror}", file=sys.stderr)
            data = b""
        if data:
            self._client.feed(data)
        else:
            self._client.end()
            self._until = time.monotonic() + _GRACE

    def _flush_client(self) -> bool:
        """Write a piece; False when the client has closed its end."""
        try:
            written = os.write(self._out, self._to_client[:_PIECE])
        except OSError:
            return False
        del self._to_client[:written]
        return True

    # the hub

    def _take_up(self, hub: daemon.BridgeListener) -> None:
        self._hub = hub.connection
        self._hub.setblocking(False)
        self._to_hub.clear()
        self._lines = self._hub_lines()
        self._bridge.connected(self._to_hub.extend, hub.token)

    def _hub_lines(self) -> _Split:
        def too_long(size: int) -> None:
            raise BridgeProtocolError(f"a line of the hub is longer than {size} bytes")

        return _Split(_MAX_ANSWER, lambda line: self._bridge.hub_line(line, time.monotonic()), too_long)

    def _look(self, now: float) -> None:
        """Try to reconnect; the hub may have another address now."""
        try:
            self._take_up(daemon.connect())
            self._tries = 0
        except (OSError, CliError):
            self._next_try = now + _BACKOFF[min(self._tries, len(_BACKOFF) - 1)]
            self._tries += 1

    def _read_hub(self) -> None:
        assert self._hub is not None  # noqa: S101 - the loop looks
        try:
            data = self._hub.recv(_READ)
            if data:
                self._silence.broken()
                self._lines.feed(data)
                return
        except BlockingIOError:
            return
        except OSError as error:
            print(f"tabhub: the connection to the hub broke: {error}", file=sys.stderr)
        except BridgeProtocolError as error:
            print(f"tabhub: what came from the hub's socket cannot be read: {error}", file=sys.stderr)
        self._lost()

    def _flush_hub(self) -> None:
        assert self._hub is not None  # noqa: S101 - the loop looks
        try:
            del self._to_hub[: self._hub.send(self._to_hub)]
        except BlockingIOError:
            return
        except OSError:
            # What the hub said before it closed can still be read; reading then finds the end.
            self._to_hub.clear()

    def _listen_for_life(self, now: float) -> None:
        """Detect a hub that hangs, so that no request waits forever."""
        waiting = self._hub is not None and not self._bridge.idle
        said = self._silence.look(now, waiting=waiting)
        if said == "ask":
            self._to_hub += PING
        elif said == "gone":
            print(f"tabhub: the hub has said nothing for {LONGEST:g} s though it was asked", file=sys.stderr)
            self._lost()

    def _lost(self) -> None:
        if self._hub is not None:
            self._hub.close()
            self._hub = None
        now = time.monotonic()
        self._next_try = now + _BACKOFF[0]
        self._bridge.lost(now)

    def _leave(self) -> None:
        """End the session at the hub, if it is still connected."""
        if self._hub is None:
            return
        self._bridge.goodbye()
        try:
            self._hub.settimeout(_GONE)
            self._hub.sendall(self._to_hub)
        except OSError as error:
            print(f"tabhub: the hub could not be notified: {error}", file=sys.stderr)
        self._hub.close()
