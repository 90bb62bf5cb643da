"""A server that is a local command, connected through its standard input and output.

Owns the process from start to end, the bounds of its lines, and the end of what it wrote to standard error. A line that
is not a message is counted and skipped: programs greet, warn and print. The command is a program and its arguments; no
shell is involved. The process has a session of its own, and everything it started is ended with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from tabhub.errors import SetupError
from tabhub.upstream.launch_plan import ConnectionPlan
from tabhub.upstream.transport.messages import read_message

log = logging.getLogger("tabhub.upstream")

_GRACE = 2.0
_KILL = 1.0
_STDERR_LINES = 20
_STDERR_LENGTH = 500
_CHUNK = 64 * 1024
_MAX_INVALID_LINES = 10_000
"""Lines that are no messages before the process is given up."""
_MAX_WAITING = 64
"""Messages read from the process that the session has not taken."""


class Process:
    """One running command."""

    def __init__(self, plan: ConnectionPlan, longest: int) -> None:
        self._plan = plan
        self._longest = longest
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self.invalid_lines = 0
        self.ended = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None

    def stderr_tail(self) -> str:
        return " | ".join(self._stderr)[-_STDERR_LENGTH:]

    def exit_reason(self) -> str:
        code = self._process.returncode if self._process is not None else None
        how = "" if code is None else f" with exit code {code}" if code >= 0 else f" by signal {-code}"
        written = f"; it wrote: {tail}" if (tail := self.stderr_tail()) else ""
        invalid = f"; {self.invalid_lines} lines of its output were no messages" if self.invalid_lines else ""
        return f"The command ended{how}{invalid}{written}."

    @asynccontextmanager
    async def streams(self) -> AsyncIterator[tuple[MemoryObjectReceiveStream[SessionMessage], _Input]]:
        """Start the process and return the SDK's two streams. Leaving ends it."""
        process = await self._start()
        self._process = process
        send, receive = anyio.create_memory_object_stream[SessionMessage](_MAX_WAITING)
        tasks = [asyncio.ensure_future(work) for work in (self._read(process, send), self._read_stderr(process))]
        try:
            yield receive, _Input(process, self.ended)
        finally:
            send.close()
            receive.close()
            with anyio.CancelScope(shield=True):
                await _run_uncancelled(self._stop(process, tasks))

    async def _start(self) -> asyncio.subprocess.Process:
        plan = self._plan
        try:
            return await asyncio.create_subprocess_exec(
                *plan.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=dict(plan.env),
                cwd=plan.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise SetupError(f"The command {plan.argv[0]} of {plan.name} cannot be started: {why}.") from None

    async def _read(
        self, process: asyncio.subprocess.Process, messages: MemoryObjectSendStream[SessionMessage]
    ) -> None:
        assert process.stdout is not None  # noqa: S101 - asked for above
        line = bytearray()
        try:
            while chunk := await process.stdout.read(_CHUNK):
                *whole, rest = chunk.split(b"\n")
                for part in whole:
                    line += part
                    if (message := self._message(bytes(line))) is not None:
                        await messages.send(message)
                    line.clear()
                line += rest
                if len(line) > self._longest or self.invalid_lines > _MAX_INVALID_LINES:
                    self._stderr.append(
                        f"more than {self._longest} bytes in a line, or {_MAX_INVALID_LINES} lines of junk"
                    )
                    return
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            log.debug("the session with %s ended while it was writing", self._plan.name)
        finally:
            self.ended.set()
            messages.close()

    def _message(self, line: bytes) -> SessionMessage | None:
        if not line.strip():
            return None
        try:
            return SessionMessage(read_message(line))
        except ValueError:
            self.invalid_lines += 1
            if self.invalid_lines == 1:
                log.warning("%s writes lines to its standard output that are not messages: skipped", self._plan.name)
            return None

    async def _read_stderr(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None  # noqa: S101 - asked for above
        while chunk := await process.stderr.read(_CHUNK):
            for line in chunk.decode("utf-8", "replace").splitlines():
                if line.strip():
                    self._stderr.append(line.strip()[:_STDERR_LENGTH])

    async def _stop(self, process: asyncio.subprocess.Process, tasks: list[asyncio.Task[None]]) -> None:
        """Close its input, wait, terminate, kill; every wait is bounded."""
        if process.stdin is not None:
            process.stdin.close()
        for wait, then in ((_GRACE, signal.SIGTERM), (_KILL, signal.SIGKILL), (_KILL, None)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await process.wait()
                break
            if then is not None:
                _signal(process.pid, then)
        _signal(process.pid, signal.SIGKILL)  # whatever it started and left behind
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _Input:
    """The process's standard input, as a stream the SDK's session writes (its WriteStream)."""

    def __init__(self, process: asyncio.subprocess.Process, ended: asyncio.Event) -> None:
        assert process.stdin is not None  # noqa: S101 - asked for above
        self._stdin = process.stdin
        self._ended = ended

    async def send(self, given: SessionMessage) -> None:
        text = given.message.model_dump_json(by_alias=True, exclude_unset=True)
        if self._stdin.is_closing():
            raise anyio.ClosedResourceError
        try:
            self._stdin.write(text.encode() + b"\n")
            await self._stdin.drain()
        except OSError:
            self._ended.set()
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        """The process is ended by Process.streams."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _run_uncancelled(work: Coroutine[Any, Any, None]) -> None:
    """Finish work even if this task is cancelled meanwhile: a process must not be left behind."""
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
