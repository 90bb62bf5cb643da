"""A command of Tabhub on its own pseudo-terminal of 80 columns."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
from pathlib import Path

from tests.harness.process import environment
from tests.harness.waiting import until


class Terminal:
    """A command on its own pseudo-terminal."""

    def __init__(self, home: Path, *words: str) -> None:
        self.shown = b""
        self._words, self._home = words, home
        self._main = -1

    async def __aenter__(self) -> Terminal:
        self._main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        command = (sys.executable, "-m", "tabhub", *self._words)
        env = environment(self._home) | {"NO_COLOR": "1", "TERM": "dumb"}
        self.process = await asyncio.create_subprocess_exec(*command, env=env, stdin=other, stdout=other, stderr=other)
        os.close(other)
        os.set_blocking(self._main, False)
        asyncio.get_running_loop().add_reader(self._main, self._read)
        return self

    def _read(self) -> None:
        try:
            self.shown += os.read(self._main, 65536)
        except OSError:  # the other end is closed
            asyncio.get_running_loop().remove_reader(self._main)

    async def sees(self, text: str) -> None:
        await until(lambda: text.encode() in self.shown)

    def type(self, text: str) -> None:
        os.write(self._main, text.encode())

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        asyncio.get_running_loop().remove_reader(self._main)
        os.close(self._main)
