"""The order of log lines and writes in one iteration of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from tabhub.http.write_batch import WriteBatch


class Transport(asyncio.Transport):
    """Records what is written to it, in a list it may share with others."""

    def __init__(self, seen: list[Any]) -> None:
        super().__init__()
        self.seen = seen
        self.closing = False

    def write(self, data: Any) -> None:
        self.seen.append(bytes(data))

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.seen.append([bytes(data) for data in list_of_data])

    def is_closing(self) -> bool:
        return self.closing


def batch_with_log(seen: list[Any]) -> WriteBatch:
    batch = WriteBatch()
    batch.before_write(lambda: seen.append("log"))
    return batch


async def test_the_first_write_leaves_at_once_and_the_others_together_after_the_log() -> None:
    seen: list[Any] = []
    batch, one, other = batch_with_log(seen), Transport(seen), Transport(seen)
    for transport, data in ((one, b"1"), (one, b"2"), (other, b"a"), (one, b"3")):
        batch.write(transport, data)
        assert batch.open
    assert seen == ["log", b"1"]
    await asyncio.sleep(0)
    assert seen[2:] == ["log", [b"2", b"3"], [b"a"]]
    assert not batch.open


async def test_each_iteration_begins_with_a_write_at_once() -> None:
    seen: list[Any] = []
    batch, transport = batch_with_log(seen), Transport(seen)
    for data in (b"1", b"2"):
        batch.write(transport, data)
        await asyncio.sleep(0)
    assert [each for each in seen if each != "log"] == [b"1", b"2"]


async def test_after_many_writes_that_were_alone_no_more_are_awaited_until_the_next_look() -> None:
    seen: list[Any] = []
    batch, transport = batch_with_log(seen), Transport(seen)
    awaited = []
    for number in range(200):
        batch.write(transport, b"%d" % number)
        awaited.append(batch.open)
        await asyncio.sleep(0)
    assert all(awaited[:16])
    assert 16 <= awaited[16:].count(True) < 100
    assert seen == [each for number in range(200) for each in ("log", b"%d" % number)]


async def test_writes_that_follow_each_other_are_held_also_after_many_that_were_alone() -> None:
    seen: list[Any] = []
    batch, transport = WriteBatch(), Transport(seen)
    for _ in range(30):
        batch.write(transport, b"alone")
        await asyncio.sleep(0)
    for _ in range(100):
        batch.write(transport, b"1")
        batch.write(transport, b"2")
        batch.write(transport, b"3")
        await asyncio.sleep(0)
    assert seen[-2:] == [b"1", [b"2", b"3"]]


async def test_a_closed_connection_is_skipped_and_the_others_are_written() -> None:
    seen: list[Any] = []
    batch, open_one, closed = WriteBatch(), Transport(seen), Transport([])
    batch.write(open_one, b"1")
    batch.write(closed, b"2")
    batch.write(open_one, b"3")
    closed.closing = True
    await asyncio.sleep(0)
    assert closed.seen == []
    assert seen == [b"1", [b"3"]]


async def test_held_data_can_be_flushed_before_its_connection_closes() -> None:
    seen: list[Any] = []
    batch, transport = batch_with_log(seen), Transport(seen)
    batch.write(transport, b"1")
    batch.write(transport, b"2")
    batch.flush(transport)
    assert seen == ["log", b"1", "log", [b"2"]]


async def test_large_writes_are_not_held() -> None:
    seen: list[Any] = []
    batch, transport = WriteBatch(), Transport(seen)
    for _ in range(3):
        batch.write(transport, b"x" * 700_000)
    assert [len(each) for each in seen] == [700_000, 2]
