"""What one user may take of a relay node: of the time it reads in, and of the memory it keeps unread things in.

Owns both accounts, one for all connections of a user and one for all clients that have not said who they are. Knows
nothing of frames: a connection tells how long it was at work and how many bytes wait for it, and is told when to go on,
or that it is the one to be cut. Alone, a user may have all of a node's time; beside others at most half of it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Protocol

_STRETCH = 0.002
"""Seconds a user may have at a stretch."""
_PART = 0.5
"""Of the time, beside others."""
_LATELY = 1.0
"""Whoever was at work within so many seconds is there."""


class Reader(Protocol):
    """A connection."""

    def go_on(self) -> None:
        """It is its turn: read on, or wait again."""
        ...

    def weight(self) -> int:
        """The bytes that are kept for it: not sent yet, or not whole yet."""
        ...

    def cut(self, why: str) -> None:
        """End it at once: its user keeps too much, and it the most."""
        ...


class Share:
    """The account of one user."""

    __slots__ = ("at", "kept", "left", "name", "readers", "waiting")

    def __init__(self, name: str | None, now: float) -> None:
        self.name = name
        self.left = _STRETCH
        self.at = now
        """When `left` was reckoned."""
        self.kept = 0
        """Bytes, as far as they were told."""
        self.readers: set[Reader] = set()
        self.waiting: deque[Reader] = deque()


class Shares:
    """The accounts of all users of one node."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.perf_counter) -> None:
        """`most` bytes are kept for one user."""
        self.clock = clock
        self._most = most
        self._shares: dict[str | None, Share] = {}
        self._queue: dict[str | None, Share] = {}
        """Those with someone who waits."""
        self._part = _PART
        """Those who want more than they may share one half of the time; the other is for everyone else."""
        self._last: Share | None = None
        self._changed = float("-inf")
        """When somebody else than `_last` was last at work."""
        self._planned: asyncio.Handle | None = None
        self._due = 0.0
        """When the next turn is, by the loop's clock."""

    def __len__(self) -> int:
        return len(self._shares)

    def join(self, reader: Reader, name: str | None) -> Share:
        """A connection of this user is there."""
        share = self._shares.get(name)
        if share is None:
            share = self._shares[name] = Share(name, self.clock())
        share.readers.add(reader)
        return share

    def leave(self, reader: Reader, share: Share) -> None:
        """It has gone, or belongs to another from now on."""
        share.readers.discard(reader)
        if not share.readers and not share.waiting:
            self._shares.pop(share.name, None)

    # time

    def may_go(self, share: Share) -> bool:
        """Whether a connection of this user may be read now."""
        return share.left > 0 and not share.waiting

    def spent(self, share: Share, seconds: float, now: float) -> bool:
        """A connection was at work; whether it may go on."""
        if share is not self._last:
            self._last, self._changed = share, now
        left = share.left + (now - share.at) * self._part
        share.left = (left if left < _STRETCH else _STRETCH) - seconds
        share.at = now
        return share.left > 0

    def wait(self, reader: Reader, share: Share) -> None:
        """Have a connection go on when it is its turn."""
        share.waiting.append(reader)
        self._queue[share.name] = share
        self._part = _PART / len(self._queue)
        self._plan(0.0)

    def _plan(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if self._planned is not None:
            if self._due <= due:
                return
            self._planned.cancel()
        self._due = due
        self._planned = loop.call_later(seconds, self._turn) if seconds > 0 else loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._planned = None
        soonest = float("inf")
        for name, share in list(self._queue.items()):
            now = self.clock()
            alone = len(self._queue) == 1 and (share is self._last and now - self._changed > _LATELY)
            share.left = _STRETCH if alone else min(_STRETCH, share.left + (now - share.at) * self._part)
            share.at = now
            while share.waiting and share.left > 0:
                share.waiting.popleft().go_on()
            if not share.waiting:
                del self._queue[name]
                if not share.readers:
                    self._shares.pop(name, None)
            else:
                soonest = min(soonest, 0.0 if alone else -share.left / self._part)
        self._part = _PART / max(1, len(self._queue))
        if self._queue:
            self._plan(soonest)

    async def reckoned(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Do something for a user when it is that user's turn; the time it is at work, not that it waits, is spent."""
        request = _Request()
        share = request.share = self.join(request, name)
        try:
            if not self.may_go(share):
                self.wait(request, share)
                await request.turn
            await _Reckoned(self, share, work)
        finally:
            work.close()
            self.leave(request, share)

    # memory

    def keeps(self, share: Share, more: int) -> None:
        """So many more bytes (or less) are kept for a user."""
        share.kept += more
        if more > 0 and share.kept > self._most:
            weights = {reader: reader.weight() for reader in share.readers}
            if sum(weights.values()) > self._most:
                heaviest = max(weights, key=lambda reader: weights[reader])
                heaviest.cut("too much waits for the connections of its user, and most of it for this one")


class _Request:
    """What waits for its turn without being a connection that is read; nothing is kept for it."""

    share: Share

    def __init__(self) -> None:
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def go_on(self) -> None:
        # It begins later, and only then is known how long it takes: until then, nothing else of its user's does.
        self.share.left -= _STRETCH
        if not self.turn.done():
            self.turn.set_result(None)

    def weight(self) -> int:
        return 0

    def cut(self, why: str) -> None:
        raise AssertionError(f"nothing is kept for a request: {why}")


class _Reckoned:
    """Runs something step by step, and has the time of each step counted."""

    def __init__(self, shares: Shares, share: Share, work: Coroutine[Any, Any, None]) -> None:
        self._shares, self._share, self._work = shares, share, work

    def __await__(self) -> Generator[Any, Any, None]:
        value: Any = None
        thrown: BaseException | None = None
        while True:
            began = self._shares.clock()
            try:
                awaited = self._work.send(value) if thrown is None else self._work.throw(thrown)
            except StopIteration:
                return
            finally:
                now = self._shares.clock()
                self._shares.spent(self._share, now - began, now)
            value = thrown = None
            try:
                value = yield awaited
            except BaseException as error:  # noqa: BLE001 - whatever it is, a cancel included, it is for the work
                thrown = error
