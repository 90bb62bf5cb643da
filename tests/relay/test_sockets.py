"""When bytes leave a relay: the first message to a client in a turn of the loop at once, the others together."""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.http.websocket import text_frame
from tabhub.relay.sockets import RelaySocket, Turn


class Transport:
    """Keeps what is written, write by write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.aborted = False
        self.waiting = 0

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


def socket(turn: Turn) -> tuple[RelaySocket, Transport]:
    """An accepted socket, as far as sending needs it."""
    made = RelaySocket.__new__(RelaySocket)
    transport, writable = Transport(), asyncio.Event()
    writable.set()
    given: dict[str, Any] = {
        "loop": asyncio.get_running_loop(),
        "transport": transport,
        "writable": writable,
        "turn": turn,
        "close_sent": False,
        "disconnected": False,
        "_held": [],
    }
    for name, value in given.items():
        setattr(made, name, value)
    return made, transport


async def turn_over() -> None:
    """Wait for the end of the turn."""
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(over.set_result, None)
    await over


async def test_the_first_message_of_a_turn_leaves_at_once_and_the_others_together_in_order() -> None:
    turn = Turn()
    browser, to_browser = socket(turn)
    agent, to_agent = socket(turn)
    for data in (b"1", b"2", b"3"):
        browser.send_text(data)
    agent.send_text(b"a")
    assert to_browser.writes == [text_frame(b"1")]
    assert to_agent.writes == [text_frame(b"a")]
    await turn_over()
    assert to_browser.writes[1:] == [text_frame(b"2") + text_frame(b"3")]
    assert len(to_agent.writes) == 1
    browser.send_text(b"4")
    assert to_browser.writes[2:] == [text_frame(b"4")]


async def test_a_turn_that_sent_nothing_twice_leaves_nothing_behind() -> None:
    turn = Turn()
    agent, to_agent = socket(turn)
    for number in range(3):
        agent.send_text(b"%d" % number)
        assert len(to_agent.writes) == number + 1
        await turn_over()


async def test_who_has_gone_in_the_meantime_is_sent_nothing() -> None:
    turn = Turn()
    agent, to_agent = socket(turn)
    agent.send_text(b"1")
    agent.send_text(b"2")
    agent.disconnected = True
    await turn_over()
    assert to_agent.writes == [text_frame(b"1")]
    agent.send_text(b"3")
    assert len(to_agent.writes) == 1
