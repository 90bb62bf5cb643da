"""The way out of a WebSocket for code that cannot wait.

Owns order and backpressure: a message goes out at once while the socket takes it; once it does not, messages queue, and
a reader that lets the queue pass its bound is cut. Sending costs no task: the server's own `send` coroutine is stepped
by hand, and only if it has to wait does a callback finish it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from tabhub.server.http import Send


class Outbox:
    """Messages on their way to one reader."""

    def __init__(
        self, send: Send, bound: int, overrun: Callable[[], None], failed: Callable[[Exception], None]
    ) -> None:
        self._send = send
        self._bound = bound
        self._overrun = overrun
        self._failed = failed
        self._queue: deque[tuple[dict[str, Any], int]] = deque()
        self._waiting = 0
        self._stuck = False
        self._closed = False

    def push(self, data: bytes) -> None:
        """Send one text message."""
        if self._closed:
            return
        message = {"type": "websocket.send", "text": data.decode()}
        if not self._stuck:
            self._begin(message)
            return
        self._queue.append((message, len(data)))
        self._waiting += len(data)
        if self._waiting > self._bound:
            self._closed = True
            self._queue.clear()
            self._overrun()

    def close(self, code: int, reason: str) -> None:
        """Close the socket, after what is on its way unless that is stuck."""
        if self._closed and not self._stuck:
            return
        self._closed = True
        self._queue.clear()
        message = {"type": "websocket.close", "code": code, "reason": reason[:120]}
        if self._stuck:
            self._queue.append((message, 0))
        else:
            self._begin(message)

    def _begin(self, message: dict[str, Any]) -> None:
        self._step(self._send(message))  # type: ignore[arg-type]

    def _step(self, sending: Coroutine[Any, Any, None]) -> None:
        """Run a send as far as it goes without waiting; go on by callback when it can."""
        while True:
            try:
                blocker: asyncio.Future[Any] = sending.send(None)
            except StopIteration:
                self._stuck = False
                if not self._queue:
                    return
                message, size = self._queue.popleft()
                self._waiting -= size
                sending = self._send(message)  # type: ignore[assignment]
                continue
            except (OSError, RuntimeError) as error:
                self._closed = True
                self._queue.clear()
                self._failed(error)
                return
            break
        self._stuck = True
        blocker._asyncio_future_blocking = False
        blocker.add_done_callback(lambda _: self._step(sending))
