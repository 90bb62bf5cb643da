"""A server that is a local command, connected through its standard input and output.

Owns the process from start to end, the bounds of its lines, and the end of what it wrote to standard error. A line that
is not a message is counted and skipped: programs greet, warn and print. The command is a program and its arguments; no
shell is involved. The process has its own session, and everything it started is ended with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from anyio.abc import ObjectSendStream
from mcp.shared.message import SessionMessage

from tabhub.errors import SetupError, UpstreamOffline
from tabhub.upstream.launch_plan import ConnectionPlan
from tabhub.upstream.transport.messages import ReceivedMessages, read_message, write_message
from tabhub.wire.lines import LineSplitter

log = logging.getLogger("tabhub.upstream")

_GRACE = 2.0
_KILL = 1.0
_STDERR_LINES = 20
_STDERR_LENGTH = 500
_MAX_INVALID_LINES = 10_000
"""Invalid lines after which the connection is given up."""


class Process(asyncio.SubprocessProtocol, ObjectSendStream[SessionMessage]):
    """One running command; the session sends its messages here."""

    def __init__(self, plan: ConnectionPlan, max_line: int, lost: Callable[[], None]) -> None:
        """`lost` is called when the command ends on its own."""
        self._plan = plan
        self._lost = lost
        self._received = ReceivedMessages()
        self._max_line = max_line
        self._lines = LineSplitter(max_line, self._read_line, self._give_up)
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._invalid_lines = 0
        self._transport: asyncio.SubprocessTransport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._exited = asyncio.Event()
        self._stopping = False
        self.ended = False
        """Whether it can no longer be spoken to."""

    @property
    def failure(self) -> UpstreamOffline | None:
        """Why there can be no session."""
        if not self.ended:
            return None
        code = self._transport.get_returncode() if self._transport is not None else None
        how = "" if code is None else f" with exit code {code}" if code >= 0 else f" by signal {-code}"
        written = f"; it wrote: {tail}" if (tail := self.stderr_tail()) else ""
        invalid = f"; {self._invalid_lines} lines of its output were not messages" if self._invalid_lines else ""
        return UpstreamOffline(f"{self._plan.name} does not start. The command ended{how}{invalid}{written}.")

    def stderr_tail(self) -> str:
        return " | ".join(self._stderr)[-_STDERR_LENGTH:]

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[ReceivedMessages, Process]]:
        """Start the process and return the SDK's two streams. Leaving ends it."""
        plan = self._plan
        try:
            transport, _ = await asyncio.get_running_loop().subprocess_exec(
                lambda: self, *plan.argv, env=dict(plan.env), cwd=plan.cwd, start_new_session=True
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise SetupError(f"The command {plan.argv[0]} of {plan.name} cannot be started: {why}.") from None
        try:
            yield self._received, self
        finally:
            self._stopping = self._stopping or not self.ended
            await _run_uncancelled(self._stop(transport))

    async def send(self, item: SessionMessage) -> None:
        await self._writable.wait()
        if self.ended or self._transport is None:
            raise anyio.ClosedResourceError
        stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        self._received.expect(item.message)
        stdin.write(write_message(item.message) + b"\n")

    async def aclose(self) -> None:
        """The session has nothing more to send; `streams` ends the process."""

    async def _stop(self, transport: asyncio.SubprocessTransport) -> None:
        """Close its input, wait, terminate, kill; every wait is bounded."""
        if (stdin := transport.get_pipe_transport(0)) is not None:
            stdin.close()
        for wait, then in ((_GRACE, signal.SIGTERM), (_KILL, signal.SIGKILL), (_KILL, signal.SIGKILL)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._exited.wait()
                break
            _signal(transport.get_pid(), then)
        _signal(transport.get_pid(), signal.SIGKILL)  # whatever it started and left behind
        transport.close()

    # from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)  # uvloop's does not inherit from it

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._lines.feed(data)
        else:
            lines = (line.strip()[:_STDERR_LENGTH] for line in data.decode("utf-8", "replace").splitlines())
            self._stderr.extend(filter(None, lines))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd != 2:
            self._end()

    def process_exited(self) -> None:
        self._exited.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def _read_line(self, line: bytes) -> None:
        if not line.strip() or self.ended:
            return
        try:
            self._received.put(read_message(line))
        except ValueError:
            self._invalid_lines += 1
            if self._invalid_lines == 1:
                log.warning("%s writes lines to its standard output that are not messages: skipped", self._plan.name)
            elif self._invalid_lines > _MAX_INVALID_LINES:
                self._give_up(line)

    def _give_up(self, _line: bytes) -> None:
        self._stderr.append(f"more than {self._max_line} bytes in a line, or {_MAX_INVALID_LINES} invalid lines")
        self._end()

    def _end(self) -> None:
        if self.ended:
            return
        self.ended = True
        self._writable.set()
        self._received.close()
        if not self._stopping:
            self._lost()


async def _run_uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Finish work even if this task is cancelled: a process must not be left behind."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _signal(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, which)
