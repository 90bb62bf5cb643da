"""The order of lines and answers in one turn of the event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.http.write_batch import Turn


class Noting:
    """Stands in for the log, a transport and what is done after a write; notes what happened, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.closing = False

    def hold(self) -> None:
        self.seen.append("hold")

    def release(self) -> None:
        self.seen.append("release")

    def write(self, data: bytes) -> None:
        self.seen.append(data.decode())

    def is_closing(self) -> bool:
        return self.closing


def put(turn: Turn, transport: Any, seen: list[str], what: str) -> None:
    turn.write(asyncio.get_running_loop(), transport, what.encode(), lambda: seen.append(f"{what} done"))


async def test_the_first_answer_leaves_at_once_and_the_others_after_the_lines_at_the_end() -> None:
    noting = Noting()
    turn = Turn(noting)
    for what in ("one", "two", "three"):
        put(turn, noting, noting.seen, what)
        assert turn.open
    assert noting.seen == ["hold", "one", "one done"]
    await asyncio.sleep(0)
    assert noting.seen[3:] == ["release", "two", "three", "two done", "three done"]
    assert not turn.open


async def test_each_turn_begins_anew() -> None:
    noting = Noting()
    turn = Turn(noting)
    for what in ("one", "two"):
        put(turn, noting, noting.seen, what)
        await asyncio.sleep(0)
    assert noting.seen == ["hold", "one", "one done", "release", "hold", "two", "two done", "release"]


async def test_a_connection_that_closed_meanwhile_is_not_written_to_and_the_others_are() -> None:
    noting, gone = Noting(), Noting()
    turn = Turn(noting)
    put(turn, noting, noting.seen, "one")
    put(turn, gone, noting.seen, "two")
    put(turn, noting, noting.seen, "three")
    gone.closing = True
    await asyncio.sleep(0)
    assert gone.seen == []
    assert noting.seen[-3:] == ["three", "two done", "three done"]
