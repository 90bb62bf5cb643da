"""Writes of one iteration of the event loop: the first leaves at once, the others together at its end.

Owns the order, also between log lines and answers: whatever must be on disk before an answer leaves is written by a
hook that runs before every write. Under load many calls are answered in one iteration; each separate write would wake
the other process again. A single call loses nothing, and while one write after the other was alone, most are not
followed by a look for more at the iteration's end, which would cost the event loop another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_MAX_HELD = 1024 * 1024
"""Bytes held before they are written without waiting for the iteration's end."""
_ALONE = 16
"""Writes that were alone after which the next ones are taken to be, too."""
_UNTIL_NEXT_LOOK = 64
"""Writes after which it is looked again whether others follow."""


class WriteBatch:
    """The writes of all connections of one application."""

    __slots__ = ("_alone", "_held", "_held_bytes", "_hooks", "_loop", "open")

    def __init__(self) -> None:
        self.open = False
        """Whether something was written in this iteration, so that more writes wait for its end."""
        self._alone = 0
        """Writes in a row that no other followed in their iteration, or that are taken to be alone."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hooks: list[Callable[[], None]] = []
        self._held: dict[asyncio.WriteTransport, list[bytes]] = {}
        self._held_bytes = 0

    def before_write(self, hook: Callable[[], None]) -> None:
        self._hooks.append(hook)

    def write(self, transport: asyncio.WriteTransport, data: bytes) -> None:
        if not self.open:
            if self._alone < _ALONE:
                self.open = True
                if self._loop is None:
                    self._loop = asyncio.get_running_loop()
                self._loop.call_soon(self._end)
            else:
                self._alone = self._alone + 1 if self._alone < _UNTIL_NEXT_LOOK else 0
            for hook in self._hooks:
                hook()
            transport.write(data)
            return
        held = self._held.get(transport)
        if held is None:
            self._held[transport] = [data]
        else:
            held.append(data)
        self._held_bytes += len(data)
        if self._held_bytes > _MAX_HELD:
            self._flush()

    def flush(self, transport: asyncio.WriteTransport) -> None:
        """Write what is held for one connection, before it is closed."""
        if (parts := self._held.pop(transport, None)) is not None:
            for hook in self._hooks:
                hook()
            transport.writelines(parts)

    def _end(self) -> None:
        self.open = False
        if self._held:
            self._alone = 0
            self._flush()
        else:
            self._alone += 1

    def _flush(self) -> None:
        for hook in self._hooks:
            hook()
        held, self._held, self._held_bytes = self._held, {}, 0
        for transport, parts in held.items():
            if not transport.is_closing():
                transport.writelines(parts)
