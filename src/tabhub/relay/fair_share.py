"""The share of one user in a relay node: of the time spent reading, and of the memory for buffered data.

Owns one share for all connections of a user, and one for all clients that are not authenticated yet. Knows nothing of
frames: a connection reports how long it worked and how many bytes it buffers, and is resumed or aborted. A user who is
the only active one may use all of a node's time, otherwise at most half of it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass, field
from types import coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
_SWEEP_THRESHOLD = 64
"""Shares that are kept without checking whether they are still needed."""
_SLICE = 0.002
"""Seconds a user may work in one iteration of the event loop."""
_MAX_CREDIT = 0.02
"""Seconds of credit a user can save up, so that a short burst is not delayed."""
_FRACTION = 0.5
"""The fraction of time a user gets while others are active."""
_RECENT = 0.2
"""Seconds for which a user counts as active after its last work."""


class Participant(Protocol):
    """A connection, as this module sees it."""

    def resume(self) -> None:
        """Continue reading, or enqueue again."""
        ...

    def buffered_bytes(self) -> int:
        """Bytes not sent yet, and bytes of incomplete messages."""
        ...

    def abort(self, reason: str) -> None:
        """Close at once: its user buffers too much, and this connection the most."""
        ...


@dataclass(slots=True, eq=False)
class UserShare:
    """The share of one user."""

    name: str | None
    updated: float
    """When `credit` was last updated."""
    credit: float = _MAX_CREDIT
    """Seconds it may work while others are active."""
    in_debt: bool = False
    """Whether it exceeded its credit and waits until it has one slice again."""
    iteration: int = 0
    used: float = 0.0
    """Seconds worked in that iteration."""
    buffered: int = 0
    """Bytes, as last reported."""
    participants: set[Participant] = field(default_factory=set)
    waiting: deque[Participant] = field(default_factory=deque)


class FairShare:
    """The shares of all users of one node."""

    def __init__(
        self, max_buffered: int, max_total: int = sys.maxsize, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """`max_buffered` is the limit of bytes per user, `max_total` that of all users together."""
        self.clock = clock
        self._max_buffered = max_buffered
        self._max_total = max_total
        self.total_buffered = 0
        """Bytes buffered for all users, as last reported."""
        self._shares: dict[str | None, UserShare] = {}
        self._queue: dict[str | None, UserShare] = {}
        """Shares with waiting participants."""
        self.sole_user: UserShare | None = None
        """The only recently active user, which is not charged; it only yields to the loop after each slice."""
        self._last: UserShare | None = None
        self._changed = float("-inf")
        """When a user other than `_last` was last active."""
        self._iteration = 1
        self._watching = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._sweep_at = _SWEEP_THRESHOLD

    def unauthenticated(self) -> int:
        """Connections that have not authenticated yet."""
        share = self._shares.get(None)
        return len(share.participants) if share is not None else 0

    def change_limits(self, max_buffered: int, max_total: int) -> None:
        self._max_buffered, self._max_total = max_buffered, max_total

    def add(self, participant: Participant, name: str | None) -> UserShare:
        """A connection or request of this user begins."""
        share = self._shares.get(name)
        if share is None:
            now = self.clock()
            if len(self._shares) >= self._sweep_at:
                self._sweep(now)
            share = self._shares[name] = UserShare(name, now)
        share.participants.add(participant)
        return share

    def remove(self, participant: Participant, share: UserShare) -> None:
        """The participant ended or now belongs to another user."""
        share.participants.discard(participant)

    def _sweep(self, now: float) -> None:
        """Forget users without connections and with full credit. The others stay, or each of their requests would
        start with new credit."""
        for share in [each for each in self._shares.values() if not each.participants and not each.waiting]:
            self._add_credit(share, now)
            if share.credit >= _MAX_CREDIT:
                del self._shares[share.name]
        self._sweep_at = 2 * len(self._shares) + _SWEEP_THRESHOLD

    def may_read(self, share: UserShare) -> bool:
        if share.waiting:
            return False
        return share is self.sole_user or (
            share.credit > 0 and (share.iteration != self._iteration or share.used < _SLICE)
        )

    def charge(self, share: UserShare, seconds: float, now: float) -> bool:
        """Charge a user for time worked; returns whether it may continue in this loop iteration."""
        if share is not self._last:
            self._last, self._changed, self.sole_user = share, now, None
        elif now - self._changed > _RECENT:
            self.sole_user = share
        self._add_credit(share, now)
        share.credit -= seconds
        if share.iteration != self._iteration:
            share.iteration, share.used = self._iteration, 0.0
            self._watch_iteration()
        share.used += seconds
        return share.used < _SLICE and (share.credit > 0 or share is self.sole_user)

    def enqueue(self, participant: Participant, share: UserShare) -> None:
        """Resume a participant when its user may continue."""
        share.waiting.append(participant)
        self._queue[share.name] = share
        self._schedule(share)

    def _schedule(self, share: UserShare) -> None:
        share.in_debt = share is not self.sole_user and share.credit <= 0
        if share.in_debt:
            self._set_timer(self._debt_delay(share))
        else:
            self._watch_iteration()

    def _add_credit(self, share: UserShare, now: float) -> None:
        """Add the credit earned since the last update; waiting users divide it among them."""
        credit = share.credit + (now - share.updated) * _FRACTION / max(1, len(self._queue))
        share.credit, share.updated = (credit if credit < _MAX_CREDIT else _MAX_CREDIT), now

    def _debt_delay(self, share: UserShare) -> float:
        """Seconds until the user has a whole slice, so that its connections resume together."""
        return max(0.0, (_SLICE - share.credit) * max(1, len(self._queue)) / _FRACTION)

    def _watch_iteration(self) -> None:
        """Have `_next_iteration` called when this iteration of the loop is over."""
        if not self._watching:
            self._watching = True
            asyncio.get_running_loop().call_soon(self._next_iteration)

    def _set_timer(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._timer is None or self._timer_at > at:
            if self._timer is not None:
                self._timer.cancel()
            # The due time is kept here because uvloop returns a handle without `when` for a very close deadline.
            self._timer_at, self._timer = at, loop.call_at(at, self._timer_fired)

    def _timer_fired(self) -> None:
        self._timer = None
        self._next_iteration()

    def _next_iteration(self) -> None:
        """Resume the users that waited for this iteration or are out of debt."""
        self._watching = False
        self._iteration += 1
        for name, share in list(self._queue.items()):
            self._add_credit(share, self.clock())
            if share.in_debt and share is not self.sole_user and share.credit < _SLICE:
                self._set_timer(self._debt_delay(share))
                continue
            share.iteration, share.used = self._iteration, 0.0
            while share.waiting and share.used < _SLICE and (share.credit > 0 or share is self.sole_user):
                share.waiting.popleft().resume()
            if share.waiting:
                self._schedule(share)
            else:
                del self._queue[name]

    async def run(self, name: str, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the share of a user; its running time is charged, its waiting time is not."""
        request = _Request()
        share = request.share = self.add(request, name)
        try:
            if not self.may_read(share):
                self.enqueue(request, share)
                await request.resumed
            return await _metered(self, share, work)
        finally:
            work.close()
            self.remove(request, share)

    def add_buffered(self, share: UserShare, more: int) -> None:
        """Change a user's buffered bytes by `more`, which may be negative."""
        share.buffered += more
        self.total_buffered += more
        if more <= 0:
            return
        if share.buffered > self._max_buffered:
            self._abort_heaviest(share, self._max_buffered, "its user has too much buffered data")
        if self.total_buffered > self._max_total:
            most = max(self._shares.values(), key=lambda each: each.buffered)
            self._abort_heaviest(most, 0, "all users together have too much buffered data, and its user the most")

    @staticmethod
    def _abort_heaviest(share: UserShare, most: int, reason: str) -> None:
        """Abort the connection with the most bytes, if the user really has more than `most`."""
        weights = {participant: participant.buffered_bytes() for participant in share.participants}
        if sum(weights.values()) > most:
            heaviest = max(weights, key=lambda participant: weights[participant])
            heaviest.abort(f"{reason}, and this connection the most")


class _Request:
    """A participant for a coroutine; it buffers nothing."""

    share: UserShare

    def __init__(self) -> None:
        self.resumed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def resume(self) -> None:
        # The coroutine starts later; charging a slice now keeps the user from starting more work until then.
        self.share.credit -= _SLICE
        if not self.resumed.done():
            self.resumed.set_result(None)

    def buffered_bytes(self) -> int:
        return 0

    def abort(self, reason: str) -> None:
        raise AssertionError(f"a request buffers nothing: {reason}")


@coroutine
def _metered(fair_share: FairShare, share: UserShare, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await a coroutine and charge the time of each step."""
    value: Any = None
    thrown: BaseException | None = None
    while True:
        began = fair_share.clock()
        try:
            awaited = work.send(value) if thrown is None else work.throw(thrown)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            now = fair_share.clock()
            fair_share.charge(share, now - began, now)
        value = thrown = None
        try:
            value = yield awaited
        except BaseException as error:  # noqa: BLE001 - also a cancellation belongs to the work
            thrown = error
