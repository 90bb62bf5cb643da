"""Idle connections: when they are looked at, pinged and given up."""

from __future__ import annotations

from collections import Counter

from websockets.asyncio.client import connect
from websockets.frames import Opcode

from tabhub.relay.ping_wheel import PingWheel
from tests.harness.waiting import until
from tests.relay.independent import IndependentExtension
from tests.relay.world import running_relay, token


class Connection:
    """Counts how often it is looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def check_alive(self) -> None:
        self.looks += 1


def test_every_connection_is_looked_at_once_per_turn_of_the_wheel() -> None:
    wheel = PingWheel(20.0)
    connections, slots = [], Counter[int]()
    for _ in range(40):
        connections.append(Connection())
        slots[wheel.add(connections[-1])] += 1
        wheel.turn()
    assert set(slots.values()) == {2}  # spread over the wheel
    for each in connections:
        each.looks = 0
    for _ in range(20):
        wheel.turn()
    assert {each.looks for each in connections} == {1}
    late = Connection()
    slot = wheel.add(late)
    for _ in range(19):
        wheel.turn()
    assert late.looks == 0
    wheel.remove(late, slot)
    wheel.turn()
    assert late.looks == 0


async def test_only_silent_connections_are_pinged_and_those_that_do_not_answer_are_closed() -> None:
    async with running_relay(relay_ping=3600.0) as relay, connect(f"{relay.url}/extension") as ws:
        pings: list[bytes] = []
        receive = ws.protocol.recv_frame

        def record(frame: object) -> None:
            if getattr(frame, "opcode", None) is Opcode.PING:
                pings.append(b"ping")
            receive(frame)  # type: ignore[arg-type]

        ws.protocol.recv_frame = record  # type: ignore[method-assign]
        (socket,) = relay.node.sockets.values()

        def turn() -> None:
            for _ in range(20):
                relay.node.wheel.turn()

        turn()
        assert getattr(socket, "_silent") == 1  # noqa: B009
        turn()
        await until(lambda: pings == [b"ping"] and getattr(socket, "_silent") == 0)  # noqa: B009 - it has answered
        turn()
        turn()
        await until(lambda: len(pings) == 2 and getattr(socket, "_silent") == 0)  # noqa: B009
        ws.transport.pause_reading()
        for _ in range(3):
            turn()
        await until(lambda: relay.node.sockets == {})
        ws.transport.abort()


async def test_pings_of_the_extension_are_answered_in_either_encoding() -> None:
    async with running_relay() as relay, IndependentExtension(relay.url, token()) as browser:
        await browser.ws.send('{"jsonrpc":"2.0","method":"ping","params":{}}')
        assert await browser.notified("pong") == {}
        await browser.ws.send('{"jsonrpc": "2.0", "method": "ping"}')
        assert await browser.notified("pong") == {}
    async with running_relay(relay_client_rate=2) as relay, IndependentExtension(relay.url, token()) as browser:
        for _ in range(5):
            await browser.ws.send('{"jsonrpc":"2.0","method":"ping","params":{}}')
        await until(lambda: relay.node.state.tables.counts.rate_limited == 3)
