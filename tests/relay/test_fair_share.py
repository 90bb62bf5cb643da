"""A user's share of a node's time and memory, without sockets and with a manual clock."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
import uvloop

from tabhub.relay.fair_share import FairShare, UserShare
from tests.harness.waiting import until

MOST = 1000


class Clock:
    """A clock set by the test."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def active(fair_share: FairShare) -> list[UserShare]:
    """The shares of users with a connection or request."""
    return [share for share in fair_share._shares.values() if share.participants]


class Piece:
    """A connection with `pieces` of work that take `each` seconds."""

    def __init__(
        self, fair_share: FairShare, clock: Clock, user: str | None, pieces: int = 0, each: float = 0.001
    ) -> None:
        self._fair_share, self._clock, self._each = fair_share, clock, each
        self.share: UserShare = fair_share.add(self, user)
        self.pieces = pieces
        self.kept = 0
        self.reason: str | None = None
        self.done: list[float] = []
        self.resumed = asyncio.Event()

    def arrive(self) -> None:
        if self._fair_share.may_read(self.share):
            self.resume()
        else:
            self._fair_share.enqueue(self, self.share)

    def resume(self) -> None:
        self.resumed.set()
        while self.pieces:
            self.pieces -= 1
            self._clock.now += self._each
            self.done.append(self._clock.now)
            if not self._fair_share.charge(self.share, self._each, self._clock.now) and self.pieces:
                self._fair_share.enqueue(self, self.share)
                return

    def keep(self, size: int) -> None:
        self.kept += size
        self._fair_share.add_buffered(self.share, size)

    def buffered_bytes(self) -> int:
        return self.kept

    def abort(self, reason: str) -> None:
        self.reason = reason
        self._fair_share.add_buffered(self.share, -self.kept)
        self.kept = 0


async def iterations(clock: Clock, count: int, each: float = 0.0001) -> None:
    """Run `count` iterations of the loop; the clock advances by `each` seconds in every one."""
    for _ in range(count):
        clock.now += each
        await asyncio.sleep(0)


async def test_only_active_user_waits_for_at_most_one_loop_iteration() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    only = Piece(fair_share, clock, "ann", pieces=1)
    only.arrive()
    clock.now += 5
    only.pieces = 400
    only.arrive()
    assert 0 < only.pieces < 400  # the loop runs other work in between
    await iterations(clock, 450, each=0)
    assert only.pieces == 0
    assert only.done[-1] - only.done[1] < 0.401


async def test_user_gets_about_half_of_the_time_while_another_is_active() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    flood, other = Piece(fair_share, clock, "bad", pieces=1_000_000), Piece(fair_share, clock, "good")
    began = clock.now
    flood.arrive()
    for _ in range(100):
        other.pieces = 1
        other.arrive()
        assert other.pieces == 0  # its few messages are read as they arrive
        await iterations(clock, 5, each=0.01)
        await asyncio.wait_for(flood.resumed.wait(), 30)  # by the loop's own clock
        flood.resumed.clear()
    spent = len(flood.done) * 0.001
    assert 0.05 < spent / (clock.now - began) < 0.6


async def test_connections_of_one_user_share_one_time_slice() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    many = [Piece(fair_share, clock, "bad", pieces=3) for _ in range(20)]
    began = clock.now
    for one in many:
        one.arrive()
    assert clock.now - began < 0.01  # not twenty times two pieces
    clock.now += 5
    await iterations(clock, 200, each=0)
    assert all(one.pieces == 0 for one in many)


async def test_user_waits_after_exceeding_its_share() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    slow, other = Piece(fair_share, clock, "bad", pieces=10, each=0.1), Piece(fair_share, clock, "good", pieces=1)
    slow.arrive()
    other.arrive()
    assert len(slow.done) == 1
    await iterations(clock, 5)
    assert len(slow.done) == 1
    assert not fair_share.may_read(slow.share)
    assert fair_share.may_read(other.share)


async def test_debt_of_one_user_does_not_delay_another() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    slow = Piece(fair_share, clock, "bad", pieces=10, each=60.0)
    busy = Piece(fair_share, clock, "busy", pieces=1)
    busy.arrive()
    slow.arrive()
    await iterations(clock, 3)  # the next turn of the user that took long is minutes away
    busy.pieces = 6
    busy.arrive()
    assert busy.pieces > 0
    clock.now += 1
    async with asyncio.timeout(30):
        while busy.pieces:
            clock.now += 0.01
            await asyncio.sleep(0)
    assert len(slow.done) == 1


async def test_largest_connection_of_a_user_over_its_memory_limit_is_aborted() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    light, heavy, other = (Piece(fair_share, clock, user) for user in ("bad", "bad", "good"))
    light.keep(300)
    heavy.keep(700)
    other.keep(900)
    assert aborted(light, heavy, other) == [False, False, False]
    light.keep(1)
    assert aborted(light, heavy, other) == [False, True, False]
    light.keep(600)
    assert aborted(light, heavy, other) == [False, True, False]


async def test_beyond_the_memory_limit_of_all_users_the_user_with_the_most_loses_a_connection() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, 3 * MOST, clock=clock)
    readers = [Piece(fair_share, clock, user) for user in ("a", "b", "b", "c", "d")]
    for reader, size in zip(readers, (700, 400, 450, 800, 0), strict=True):
        reader.keep(size)
    assert fair_share.total_buffered == 2350
    readers[4].keep(600)
    assert aborted(*readers) == [False] * 5
    readers[4].keep(51)
    assert aborted(*readers) == [False, False, True, False, False]
    readers[4].keep(100)
    assert aborted(*readers) == [False, False, True, False, False]
    assert fair_share.total_buffered == 2651


def aborted(*readers: Piece) -> list[bool]:
    return [reader.reason is not None for reader in readers]


async def test_work_waits_for_its_share_and_only_its_running_time_is_charged() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    Piece(fair_share, clock, "good", pieces=1).arrive()
    done, released = list[str](), asyncio.Event()

    async def work(name: str) -> None:
        clock.now += 0.05
        await released.wait()
        done.append(name)

    first = asyncio.create_task(fair_share.run("bad", work("first")))
    await iterations(clock, 3, each=0)
    second = asyncio.create_task(fair_share.run("bad", work("second")))
    await iterations(clock, 3, each=0)
    assert clock.now == 100.001 + 0.05  # the second has not begun: the first took long
    clock.now += 60
    released.set()
    await asyncio.wait_for(asyncio.gather(first, second), 30)
    assert done == ["first", "second"]


async def test_failure_and_cancellation_of_work_propagate() -> None:
    fair_share, cleaned = FairShare(MOST), list[str]()

    async def fails() -> None:
        await asyncio.sleep(0)
        raise LookupError("no")

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("waits")

    with pytest.raises(LookupError):
        await fair_share.run("ann", fails())
    task = asyncio.create_task(fair_share.run("ann", waits()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cleaned == ["waits"]
    assert not active(fair_share)


async def test_share_is_removed_with_the_last_connection() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    chance = random.Random(7)
    for _ in range(50):
        some = [Piece(fair_share, clock, chance.choice(["ann", "bob", None]), pieces=5) for _ in range(5)]
        for one in some:
            one.arrive()
        for one in some:
            fair_share.remove(one, one.share)
        clock.now += 1
        await iterations(clock, 20, each=0.01)

    def ended() -> bool:
        clock.now += 1
        return not active(fair_share)

    await until(ended)


async def test_used_time_is_kept_between_requests_of_a_user() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    other = Piece(fair_share, clock, "other", pieces=1)
    other.arrive()
    first = fair_share.add(other, "ann")
    fair_share.charge(first, 0.5, clock.now)
    fair_share.remove(other, first)
    again = fair_share.add(other, "ann")
    assert again is first
    assert not fair_share.may_read(again)


async def test_users_without_connections_are_forgotten_once_their_credit_is_full() -> None:
    clock = Clock()
    fair_share = FairShare(MOST, clock=clock)
    piece = Piece(fair_share, clock, "here")
    for number in range(1000):
        fair_share.remove(piece, fair_share.add(piece, f"user-{number}"))
        clock.now += 1.0
    assert len(fair_share._shares) < 200


def test_timers_due_immediately_work_on_uvloop() -> None:
    """uvloop returns a handle without `when` for a deadline less than half a millisecond away."""
    errors = list[dict[str, Any]]()

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
        clock = Clock()
        fair_share = FairShare(MOST, clock=clock)
        slow = [Piece(fair_share, clock, user, pieces=2, each=0.1) for user in ("ann", "bob")]
        for one in slow:
            one.arrive()
        for one in slow:
            one.share.credit, one.share.updated = 0.002 - 1e-7, clock.now
        Piece(fair_share, clock, "eve", pieces=1, each=0.0).arrive()
        for _ in range(5):
            await asyncio.sleep(0)

    uvloop.run(main())
    assert errors == []
