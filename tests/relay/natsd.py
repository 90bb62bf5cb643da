"""A real nats-server for tests, which can be killed, frozen and restarted on the same port."""

from __future__ import annotations

import asyncio
import signal
import sysconfig
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.harness.ports import free_port

_BINARY = Path(sysconfig.get_path("scripts")) / "nats-server"


class NatsServer:
    """One server."""

    def __init__(self, *words: str) -> None:
        self.port = free_port()
        self._words = words
        self._process: asyncio.subprocess.Process | None = None
        self._rest: asyncio.Task[bytes]
        """Reads its log continuously, so that the pipe does not fill up."""

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            *(str(_BINARY), "-a", "127.0.0.1", "-p", str(self.port), *self._words),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        log = self._process.stderr
        assert log is not None
        async with asyncio.timeout(30):
            while b"Server is ready" not in (line := await log.readline()):
                assert line, "nats-server ended before it was ready"
        self._rest = asyncio.create_task(log.read())

    async def kill(self) -> None:
        """Kill it without a clean shutdown."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
            await self._rest

    def freeze(self, frozen: bool) -> None:
        """Suspend or resume it."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP if frozen else signal.SIGCONT)

    def announce_shutdown(self) -> None:
        """Enter lame duck mode, in which it closes its connections one by one after a while."""
        assert self._process is not None
        self._process.send_signal(signal.SIGUSR2)


@asynccontextmanager
async def nats_server(*words: str) -> AsyncIterator[NatsServer]:
    """A running server, stopped at the end of the test."""
    server = NatsServer(*words)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()
