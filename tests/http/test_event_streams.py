"""Event streams: order, resuming, replacing a reader, and readers that do not keep up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.registry import Entry
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.http.event_streams import EventStream, serve
from tabhub.http.messages import Request
from tabhub.limits import MB, Limits
from tests.harness.agent import Agent
from tests.harness.hub import RunningHub
from tests.harness.virtual_time import VirtualLoop


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    for task in asyncio.all_tasks(made):
        task.cancel()
    made.run_for()
    made.close()


class Reader:
    """One reader of a stream; it reads what is written unless it is stuck."""

    def __init__(
        self, loop: VirtualLoop, stream: EventStream, after: int | None = None, *, prime: bool = False
    ) -> None:
        self.blocks: list[bytes] = []
        self.ended = False
        self.free = asyncio.Event()
        self.free.set()
        self.disconnected = False
        self.aborted = False
        self.task = loop.create_task(self._read(stream, after, prime))
        loop.run_for()

    async def _read(self, stream: EventStream, after: int | None, prime: bool) -> None:
        await stream.deliver(self, after, prime=prime)
        self.ended = True

    async def write(self, data: bytes) -> None:
        await self.free.wait()
        self.blocks.append(data)

    def abort(self) -> None:
        self.aborted = True

    @property
    def data(self) -> list[bytes]:
        lines = [line for block in self.blocks for line in block.split(b"\n")]
        return [line.removeprefix(b"data: ") for line in lines if line.startswith(b"data: ") and line != b"data: "]

    @property
    def ids(self) -> list[str]:
        lines = [line for block in self.blocks for line in block.split(b"\n")]
        return [line.removeprefix(b"id: ").decode() for line in lines if line.startswith(b"id: ")]


def stream(loop: VirtualLoop, limits: Limits | None = None, *, resumable: bool = True) -> EventStream:
    return loop.act(lambda: EventStream("s", limits or Limits(), resumable=resumable))


def put(loop: VirtualLoop, to: EventStream, *data: bytes) -> None:
    def append() -> None:
        for each in data:
            to.append(each)

    loop.act(append)


def test_messages_arrive_in_order_with_ids_and_then_the_end(loop: VirtualLoop) -> None:
    one = stream(loop)
    put(loop, one, b"1", b"2")
    reader = Reader(loop, one, prime=True)
    put(loop, one, b"3")
    assert (reader.data, reader.ids) == ([b"1", b"2", b"3"], ["s.0", "s.1", "s.2", "s.3"])
    ended_before = reader.ended
    loop.act(one.finish)
    assert (ended_before, reader.ended) == (False, True)
    put(loop, one, b"4")
    assert reader.data == [b"1", b"2", b"3"]


def test_a_stream_that_cannot_be_resumed_gives_no_ids(loop: VirtualLoop) -> None:
    one = stream(loop, resumable=False)
    reader = Reader(loop, one, prime=True)
    put(loop, one, b"1")
    assert (reader.data, reader.ids) == ([b"1"], [])


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 12))
def test_a_reader_that_reconnects_gets_every_missed_message_once(steps: list[int], cut_at: int) -> None:
    loop = VirtualLoop()
    one = stream(loop)
    sent: list[bytes] = []
    first = Reader(loop, one)
    for step, count in enumerate(steps):
        if step == cut_at:
            first.task.cancel()
            loop.run_for()
        more = [b"%d" % (len(sent) + i) for i in range(count)]
        sent += more
        put(loop, one, *more)
    seen = int(first.ids[-1].partition(".")[2]) if first.ids else 0
    assert one.knows(seen)
    second = Reader(loop, one, seen)
    loop.act(one.finish)
    assert first.data + second.data == sent
    loop.run_for()
    loop.close()


def test_a_new_reader_takes_over_and_the_old_one_ends(loop: VirtualLoop) -> None:
    one = stream(loop)
    old = Reader(loop, one)
    put(loop, one, b"1")
    new = Reader(loop, one)
    put(loop, one, b"2")
    assert (old.data, old.ended) == ([b"1"], True)
    assert (new.data, new.ended) == ([b"2"], False)


def test_a_quiet_stream_is_kept_alive(loop: VirtualLoop) -> None:
    one = stream(loop)
    reader = Reader(loop, one)
    loop.run_for(46)
    assert reader.blocks == [b": keep-alive\n\n"] * 3
    put(loop, one, b"1")
    assert reader.data == [b"1"]


def test_delivered_messages_are_dropped_beyond_the_limits(loop: VirtualLoop) -> None:
    one = stream(loop, Limits(stream_events=3))
    reader = Reader(loop, one)
    for number in range(10):
        put(loop, one, b"%d" % number)
    assert len(reader.data) == 10
    assert not one.overrun
    assert [one.knows(seq) for seq in (6, 7, 10)] == [False, True, True]
    by_size = stream(loop, Limits(stream_bytes=100))
    Reader(loop, by_size)
    for _ in range(10):
        put(loop, by_size, b"x" * 60)
    assert len(by_size._events) <= 3
    assert by_size._bytes <= 180


@pytest.mark.parametrize("limits", [Limits(stream_events=5), Limits(stream_bytes=50)], ids=["events", "bytes"])
def test_a_reader_that_does_not_read_ends_the_stream_instead_of_filling_memory(
    loop: VirtualLoop, limits: Limits
) -> None:
    one = stream(loop, limits)
    reader = Reader(loop, one)
    reader.free.clear()
    for number in range(1000):
        put(loop, one, b"%09d\n" % number)
    assert one.overrun
    assert one.done
    assert len(one._events) <= 8
    reader.free.set()
    loop.run_for()
    assert reader.ended


def test_one_large_message_behind_unread_small_ones_is_not_an_overrun(loop: VirtualLoop) -> None:
    one = stream(loop, Limits(stream_bytes=100))
    reader = Reader(loop, one)
    put(loop, one, b"small", b"x" * 5000)
    assert not one.overrun
    assert [len(each) for each in reader.data] == [5, 5000]


class Connection:
    """A connection with one streamed response."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.written: list[bytes] = []
        self.disconnected = False

    def start_stream(self, request: Request, headers: Sequence[tuple[bytes, bytes]]) -> Connection:
        self.headers += headers
        return self

    async def write(self, data: bytes) -> None:
        self.written.append(data)

    def abort(self) -> None:
        raise AssertionError("it reads everything")


def test_serving_ends_when_the_client_disconnects(loop: VirtualLoop) -> None:
    one, connection = stream(loop), Connection()
    request = Request(connection, "GET", "/mcp", b"", [], {})
    serving = loop.create_task(serve(one, request, [(b"x", b"y")]))
    put(loop, one, b"1")
    assert (b"x", b"y") in connection.headers
    assert b"data: 1" in connection.written[0]

    def disconnect() -> None:
        connection.disconnected = request.disconnected = True
        for callback in request.on_disconnect:
            callback()

    loop.act(disconnect)
    assert serving.done()
    assert asyncio.all_tasks(loop) == set()


async def test_a_large_answer_right_after_progress_arrives(hub: RunningHub) -> None:
    source = Source("plugin", "art")
    image = {"type": "image", "data": "A" * (6 * MB), "mimeType": "image/png"}

    async def paint(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
        ctx.progress(1, 3)
        ctx.progress(2, 3)
        return ToolResult.of([image])

    hub.hub.tabs.register(source, [Entry(Tool("art_paint", source, ""), paint)])
    async with Agent(hub) as agent:
        params = {"name": "art_paint", "arguments": {}, "_meta": {"progressToken": 1}}
        async with agent.streamed("tools/call", params) as events:
            messages = [event.message for event in await events.rest() if event.message]
    assert [m["params"]["progress"] for m in messages[:-1]] == [1, 2]
    assert len(messages[-1]["result"]["content"][0]["data"]) == 6 * MB
