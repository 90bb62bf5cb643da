"""Messages of a server on their way to the SDK's session: from several sources, in order of arrival.

Owns the queue and its bound; each message keeps the context of the call it belongs to, if any.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any, Self

import anyio

_HIGH_WATER = 64
"""Messages that wait before their sources are asked to pause."""


class MessageQueue:
    """The stream the SDK's session reads from (its ReadStream)."""

    def __init__(self) -> None:
        self._items: deque[tuple[Context | None, Any]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        self._paused_sources: list[Callable[[], None]] = []
        self._end_callbacks: list[Callable[[], None]] = []
        self.interceptor: Callable[[Any], bool] | None = None
        """Who sees each message first, and may take it."""
        self.last_context: Context | None = None
        """The context of the message that was read last."""

    @property
    def full(self) -> bool:
        """Whether sources should pause."""
        return len(self._items) >= _HIGH_WATER and not self._closed

    def on_space(self, resume: Callable[[], None]) -> None:
        """Call `resume` once there is room again."""
        self._paused_sources.append(resume)

    def on_end(self, callback: Callable[[], None]) -> None:
        self._end_callbacks.append(callback)

    def put(self, item: Any, context: Context | None = None) -> None:
        if self.interceptor is not None and self.interceptor(item):
            return
        if not self._closed:
            self._items.append((context, item))
            self._wake()

    async def put_wait(self, item: Any, context: Context | None = None) -> None:
        """Put, waiting while the queue is full."""
        while self.full:
            roomy: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.on_space(lambda roomy=roomy: None if roomy.done() else roomy.set_result(None))  # type: ignore[misc]
            await roomy
        self.put(item, context)

    def end(self) -> None:
        """Nothing more will arrive."""
        self._closed = True
        self._wake()
        self._resume()
        for callback in self._end_callbacks:
            callback()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _resume(self) -> None:
        sources, self._paused_sources = self._paused_sources, []
        for each in sources:
            each()

    async def receive(self) -> Any:
        """The next message; raises EndOfStream after the last."""
        while not self._items:
            if self._closed:
                raise anyio.EndOfStream
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self.last_context, item = self._items.popleft()
        if self._paused_sources and len(self._items) <= _HIGH_WATER // 2:
            self._resume()
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._items.clear()
        self.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
