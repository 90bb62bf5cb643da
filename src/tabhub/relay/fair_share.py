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
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
_FEW = 64
"""Accounts that are kept without looking whether they are still needed."""
_STRETCH = 0.002
"""Seconds a user may have in one turn of the loop; then all others have theirs."""
_SAVED = 0.02
"""Seconds that may be saved up, so that a moment with much to do is not slowed down."""
_PART = 0.5
"""Of the time, beside others."""
_LATELY = 0.2
"""Whoever was at work within so many seconds is there."""


class Participant(Protocol):
    """A connection."""

    def resume(self) -> None:
        """It is its turn: read on, or wait again."""
        ...

    def buffered_bytes(self) -> int:
        """The bytes that are kept for it: not sent yet, or not whole yet."""
        ...

    def abort(self, why: str) -> None:
        """End it at once: its user keeps too much, and it the most."""
        ...


class UserShare:
    """The account of one user."""

    __slots__ = ("at", "kept", "left", "name", "paying", "readers", "turn", "used", "waiting")

    def __init__(self, name: str | None, now: float) -> None:
        self.name = name
        self.left = _SAVED
        """Seconds it may have beside others."""
        self.paying = False
        """Whether it had more than it may, and waits until it has saved a stretch."""
        self.at = now
        """When `left` was reckoned."""
        self.turn = 0
        self.used = 0.0
        """Seconds it had in the turn of that number."""
        self.kept = 0
        """Bytes, as far as they were told."""
        self.readers: set[Participant] = set()
        self.waiting: deque[Participant] = deque()


class FairShare:
    """The accounts of all users of one node."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.perf_counter) -> None:
        """`most` bytes are kept for one user."""
        self.clock = clock
        self._most = most
        self._shares: dict[str | None, UserShare] = {}
        self._queue: dict[str | None, UserShare] = {}
        """Those with someone who waits."""
        self.sole_user: UserShare | None = None
        """The only one who was at work lately: nothing is reckoned for it, it only lets the loop have its turn."""
        self._last: UserShare | None = None
        self._changed = float("-inf")
        """When somebody else than `_last` was last at work."""
        self._turn = 1
        self._turning = False
        self._timer: asyncio.TimerHandle | None = None
        self._sweep_at = _FEW

    def __len__(self) -> int:
        """Users with a connection or request."""
        return sum(1 for share in self._shares.values() if share.readers)

    def add(self, reader: Participant, name: str | None) -> UserShare:
        """A connection or request of this user begins."""
        share = self._shares.get(name)
        if share is None:
            now = self.clock()
            if len(self._shares) >= self._sweep_at:
                self._sweep(now)
            share = self._shares[name] = UserShare(name, now)
        share.readers.add(reader)
        return share

    def remove(self, reader: Participant, share: UserShare) -> None:
        """It has ended, or belongs to another user from now on."""
        share.readers.discard(reader)

    def _sweep(self, now: float) -> None:
        """Forget users without connections. What a user has spent is kept until it is made up for: each request of
        its own would otherwise begin with a new account."""
        for share in [each for each in self._shares.values() if not each.readers and not each.waiting]:
            self._save(share, now)
            if share.left >= _SAVED:
                del self._shares[share.name]
        self._sweep_at = 2 * len(self._shares) + _FEW

    # time

    def may_read(self, share: UserShare) -> bool:
        """Whether a connection of this user may be read now."""
        if share.waiting:
            return False
        return share is self.sole_user or (share.left > 0 and (share.turn != self._turn or share.used < _STRETCH))

    def charge(self, share: UserShare, seconds: float, now: float) -> bool:
        """A connection was at work; whether it may go on in this turn."""
        if share is not self._last:
            self._last, self._changed, self.sole_user = share, now, None
        elif now - self._changed > _LATELY:
            self.sole_user = share
        self._save(share, now)
        share.left -= seconds
        if share.turn != self._turn:
            share.turn, share.used = self._turn, 0.0
            self._begin()
        share.used += seconds
        return share.used < _STRETCH and (share.left > 0 or share is self.sole_user)

    def enqueue(self, reader: Participant, share: UserShare) -> None:
        """Have a connection go on when it is its turn."""
        share.waiting.append(reader)
        self._queue[share.name] = share
        self._plan(share)

    def _plan(self, share: UserShare) -> None:
        """Come back to one of whom somebody waits."""
        share.paying = share is not self.sole_user and share.left <= 0
        if share.paying:
            self._later(self._until(share))
        else:
            self._begin()

    def _save(self, share: UserShare, now: float) -> None:
        """Reckon what a user may have by now; those who wait share what there is beside others."""
        left = share.left + (now - share.at) * _PART / max(1, len(self._queue))
        share.left, share.at = (left if left < _SAVED else _SAVED), now

    def _until(self, share: UserShare) -> float:
        """Seconds until it has saved enough that going on is worth it: many connections then go on together."""
        return max(0.0, (_STRETCH - share.left) * max(1, len(self._queue)) / _PART)

    def _begin(self) -> None:
        """Something was done in this turn of the loop: the next one is noticed."""
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._next)

    def _later(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._timer is None or self._timer.when() > at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(at, self._woken)

    def _woken(self) -> None:
        self._timer = None
        self._next()

    def _next(self) -> None:
        """The next turn of the loop: those who waited for it, or have paid, go on."""
        self._turning = False
        self._turn += 1
        for name, share in list(self._queue.items()):
            self._save(share, self.clock())
            if share.paying and share is not self.sole_user and share.left < _STRETCH:
                self._later(self._until(share))
                continue
            share.turn, share.used = self._turn, 0.0
            while share.waiting and share.used < _STRETCH and (share.left > 0 or share is self.sole_user):
                share.waiting.popleft().resume()
            if share.waiting:
                self._plan(share)
            else:
                del self._queue[name]
                if not share.readers:
                    self._shares.pop(name, None)

    async def run(self, name: str, work: Coroutine[Any, Any, T]) -> T:
        """Do something for a user when it is that user's turn; the time it is at work, not that it waits, is spent."""
        request = _Request()
        share = request.share = self.add(request, name)
        try:
            if not self.may_read(share):
                self.enqueue(request, share)
                await request.turn
            return await _Reckoned(self, share, work)
        finally:
            work.close()
            self.remove(request, share)

    # memory

    def add_buffered(self, share: UserShare, more: int) -> None:
        """So many more bytes (or less) are kept for a user."""
        share.kept += more
        if more > 0 and share.kept > self._most:
            weights = {reader: reader.buffered_bytes() for reader in share.readers}
            if sum(weights.values()) > self._most:
                heaviest = max(weights, key=lambda reader: weights[reader])
                heaviest.abort("too much waits for the connections of its user, and most of it for this one")


class _Request:
    """What waits for its turn without being a connection that is read; nothing is kept for it."""

    share: UserShare

    def __init__(self) -> None:
        self.turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        # It begins later, and only then is known how long it takes: until then, nothing else of its user's does.
        self.share.left -= _STRETCH
        if not self.turn.done():
            self.turn.set_result(None)

    def buffered_bytes(self) -> int:
        return 0

    def abort(self, why: str) -> None:
        raise AssertionError(f"nothing is kept for a request: {why}")


class _Reckoned(Generic[T]):
    """Runs something step by step, and has the time of each step counted."""

    def __init__(self, shares: FairShare, share: UserShare, work: Coroutine[Any, Any, T]) -> None:
        self._shares, self._share, self._work = shares, share, work

    def __await__(self) -> Generator[Any, Any, T]:
        value: Any = None
        thrown: BaseException | None = None
        while True:
            began = self._shares.clock()
            try:
                awaited = self._work.send(value) if thrown is None else self._work.throw(thrown)
            except StopIteration as done:
                result: T = done.value
                return result
            finally:
                now = self._shares.clock()
                self._shares.charge(self._share, now - began, now)
            value = thrown = None
            try:
                value = yield awaited
            except BaseException as error:  # noqa: BLE001 - whatever it is, a cancel included, it is for the work
                thrown = error
