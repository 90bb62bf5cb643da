"""The promises of every bus, for the in-memory bus and for NATS with a real server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tabhub.errors import BusUnavailable
from tabhub.limits import MB
from tabhub.relay.bus import nats, presence
from tabhub.relay.bus.interface import Bus, Presence
from tabhub.relay.bus.nats import NatsBus
from tabhub.relay.bus.nats_connection import connect
from tabhub.relay.bus.presence import PREFIX
from tabhub.relay.bus.rosters import subject_of
from tabhub.relay.revocations import Revocations
from tabhub.wire.nodes import Beat, BrowsersChanged, Query, encode
from tests.harness.waiting import LONG, becomes, until
from tests.relay.memory_bus import MemoryBus, MemoryNetwork
from tests.relay.natsd import NatsServer, nats_server
from tests.relay.process import certificate


@pytest.fixture(autouse=True)
def unlimited_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of a user's browsers is complete when all nodes have answered, never because one was too slow."""
    monkeypatch.setattr(presence, "QUERY_TIMEOUT", LONG)
    monkeypatch.setattr(nats, "_RETURN", LONG)


class Listening:
    """Records the events of the bus."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []
        self.messages: list[tuple[str, bytes]] = []

    def message_received(self, node: str, message: bytes) -> None:
        self.messages.append((node, message))

    def node_lost(self, node: str) -> None:
        self.events.append(("lost", node))

    def browsers_changed(self, user: str) -> None:
        self.events.append(("changed", user))

    def usage_reported(self, user: str, count: int) -> None:
        self.events.append(("counted", user, count))

    def tokens_revoked(self, entries: Sequence[str]) -> None:
        self.events.append(("revoked", *entries))

    def revoked_entries(self) -> Sequence[str]:
        return [entry for what, *more in self.events if what == "revoked" for entry in more]

    def revoked_digest(self, minute: int) -> tuple[int, int]:
        known = Revocations(None)
        known.add(self.revoked_entries(), 0)
        return known.digest(minute)

    def bus_changed(self, healthy: bool) -> None:
        self.events.append(("bus", healthy))


class BusFactory:
    """Makes connected buses of one kind."""

    def __init__(self, server: NatsServer | None) -> None:
        self.server = server
        self._network = MemoryNetwork()
        self._open: list[Bus] = []

    async def bus(self, node: str) -> tuple[Bus, Listening]:
        made: Bus = NatsBus(self.server.url, node) if self.server is not None else MemoryBus(node, self._network)
        listener = Listening()
        await made.start(listener)
        self._open.append(made)
        return made, listener

    async def close(self) -> None:
        for bus in self._open:
            await bus.close()


@asynccontextmanager
async def over_nats() -> AsyncIterator[BusFactory]:
    async with nats_server() as server:
        factory = BusFactory(server)
        try:
            yield factory
        finally:
            await factory.close()


@pytest.fixture(params=["memory", "nats"])
async def factory(request: pytest.FixtureRequest) -> AsyncIterator[BusFactory]:
    if request.param == "nats":
        async with over_nats() as made:
            yield made
    else:
        yield BusFactory(None)


def browser(user: str, ident: str, node: str, name: str = "Chrome") -> Presence:
    return Presence(user, ident, name, node)


def several(*browsers: Presence) -> tuple[Presence, ...]:
    return browsers


async def known(bus: Bus, other: Bus) -> None:
    """Wait until a bus knows another node."""
    await until(lambda: bus.send(other.node, b"hello"))


async def test_a_node_that_joins_a_user_finds_the_browsers_of_all_other_nodes(factory: BusFactory) -> None:
    (a, _), (b, _), (c, _) = [await factory.bus(name) for name in "abc"]
    for bus, ident in ((a, "e1"), (b, "e2"), (c, "e3")):
        bus.join("ann")
        bus.announce(browser("ann", ident, bus.node))
        b.announce(browser("bob", "e9", "b"))
    # Nodes that join at the same time may miss each other; each is notified of the others a moment later.
    found: tuple[tuple[Bus, str, tuple[Presence, ...]], ...] = (
        (c, "ann", (browser("ann", "e1", "a"), browser("ann", "e2", "b"))),
        (b, "ann", (browser("ann", "e1", "a"), browser("ann", "e3", "c"))),
        (a, "bob", (browser("bob", "e9", "b"),)),
    )
    for bus, user, browsers in found:
        await becomes(partial(bus.browsers, user), browsers)
    assert await a.browsers("cat") == ()
    late, _ = await factory.bus("d")
    late.join("ann")
    assert [found.node for found in await late.browsers("ann")] == ["a", "b", "c"]


async def test_only_nodes_that_joined_a_user_are_notified_of_changes(factory: BusFactory) -> None:
    (a, _), (b, listener), (_, others) = [await factory.bus(name) for name in "abc"]
    b.join("ann")
    assert await b.browsers("ann") == ()
    a.join("ann")
    a.announce(browser("ann", "e1", "a"))
    await until(lambda: ("changed", "ann") in listener.events)
    assert await b.browsers("ann") == (browser("ann", "e1", "a"),)
    listener.events.clear()
    a.announce(browser("ann", "e1", "a", "Edge"))
    await until(lambda: ("changed", "ann") in listener.events)
    assert await b.browsers("ann") == (browser("ann", "e1", "a", "Edge"),)
    listener.events.clear()
    a.withdraw(browser("ann", "e1", "a"))
    await until(lambda: ("changed", "ann") in listener.events)
    assert await b.browsers("ann") == ()
    assert others.events == []


async def test_messages_of_any_size_arrive_complete_once_and_in_order(factory: BusFactory) -> None:
    (a, _), (b, listener), (_, others) = [await factory.bus(name) for name in "abc"]
    await known(a, b)
    sizes = [0, 10, 600_000, 512 * 1024, 512 * 1024 + 1, 10 * 1024 * 1024, 3]
    messages = [b"%d:" % number + bytes([number]) * size for number, size in enumerate(sizes)]
    assert all(a.send("b", message) for message in messages)
    await until(lambda: any(message == messages[-1] for _, message in listener.messages))
    assert [message for _, message in listener.messages if message != b"hello"] == messages
    assert {node for node, _ in listener.messages} == {"a"}
    assert others.messages == []
    assert listener.events == []
    assert not a.send("unknown", b"x")


async def test_usage_reaches_joined_nodes_and_revocations_reach_all(factory: BusFactory) -> None:
    (a, own), (b, listener), (c, others) = [await factory.bus(name) for name in "abc"]
    a.join("ann")
    b.join("ann")
    await a.browsers("ann")
    await b.browsers("ann")
    await known(a, c)
    a.report_usage("ann", 7)
    entries = [f"t{n} 99999999999" for n in range(2500)]
    a.revoke(entries)

    def revoked(listening: Listening) -> list[str]:
        return [entry for what, *more in listening.events if what == "revoked" for entry in more]

    await until(lambda: revoked(listener) == entries and revoked(others) == entries)
    await until(lambda: ("counted", "ann", 7) in listener.events)
    assert "counted" not in [what for what, *_ in others.events]
    assert own.events == []


async def test_a_node_that_closes_is_lost_at_once_after_its_last_message(
    factory: BusFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats, "_LOST_AFTER", 10_000)  # its silence alone would be detected only after an hour
    (a, _), (b, listener) = [await factory.bus(name) for name in "ab"]
    b.join("ann")
    a.join("ann")
    a.announce(browser("ann", "e1", "a"))
    await until(lambda: ("changed", "ann") in listener.events)
    await known(a, b)
    assert a.send("b", b"last")
    await a.close()
    await until(lambda: ("lost", "a") in listener.events)
    assert listener.messages[-1] == ("a", b"last")
    assert await b.browsers("ann") == ()
    assert not b.send("a", b"x")


async def test_without_its_server_nothing_is_sent_and_afterwards_everything_is_joined_again() -> None:
    async with over_nats() as factory:
        assert factory.server is not None
        (a, listener_a), (b, listener_b) = [await factory.bus(name) for name in "ab"]
        a.join("ann")
        a.announce(browser("ann", "e1", "a"))
        b.join("ann")
        assert await b.browsers("ann") == (browser("ann", "e1", "a"),)
        await factory.server.kill()
        await until(lambda: ("bus", False) in listener_a.events and ("bus", False) in listener_b.events)
        assert not a.healthy
        assert not a.send("b", b"never")
        with pytest.raises(BusUnavailable, match="bus is unavailable"):
            await b.browsers("ann")
        a.announce(browser("ann", "e2", "a"))
        b.join("bob")
        listener_b.events.clear()
        await factory.server.start()
        await until(lambda: ("bus", True) in listener_a.events and ("bus", True) in listener_b.events)
        assert [found.extension_id for found in await b.browsers("ann")] == ["e1", "e2"]
        assert ("changed", "ann") in listener_b.events
        await known(a, b)
        assert a.send("b", b"now")
        await until(lambda: ("a", b"now") in listener_b.messages)
        assert ("a", b"never") not in listener_b.messages


async def test_a_frozen_server_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats, "_TICK", 0.1)
    async with over_nats() as factory:
        assert factory.server is not None
        _, listener = await factory.bus("a")
        factory.server.freeze(True)
        try:
            await until(lambda: ("bus", False) in listener.events)
        finally:
            factory.server.freeze(False)
        await until(lambda: ("bus", True) in listener.events)


@pytest.mark.req("F25")
async def test_a_node_starts_while_its_bus_is_unreachable_and_connects_later(caplog: pytest.LogCaptureFixture) -> None:
    server = NatsServer()
    bus, listener = NatsBus(f"nats://ann:hidden@127.0.0.1:{server.port}", "a"), Listening()
    await bus.start(listener)
    assert not bus.healthy
    with pytest.raises(BusUnavailable, match="bus is unavailable"):
        await bus.browsers("ann")
    bus.join("ann")
    bus.announce(browser("ann", "e1", "a"))
    assert not bus.send("b", b"x")
    await until(lambda: listener.events == [("bus", False)])
    assert f"127.0.0.1:{server.port}" in str([getattr(record, "facts", "") for record in caplog.records])
    assert "hidden" not in str([getattr(record, "facts", "") for record in caplog.records])
    try:
        await server.start()
        await until(lambda: listener.events == [("bus", False), ("bus", True)])
        other = NatsBus(server.url, "b")
        await other.start(Listening())
        await becomes(partial(other.browsers, "ann"), several(browser("ann", "e1", "a")))
        await other.close()
        await bus.close()
    finally:
        await server.kill()


async def test_the_servers_token_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with nats_server("--auth", "s3cret-of-nats") as server:
        with pytest.raises(BusUnavailable, match="Authorization"):
            await NatsBus(server.url, "a").start(Listening())
        with pytest.raises(BusUnavailable, match="TLS"):
            await NatsBus(f"tls://s3cret-of-nats@127.0.0.1:{server.port}", "a").start(Listening())
        monkeypatch.setenv("TABHUB_RELAY_BUS_TOKEN", "s3cret-of-nats")
        await _reached(f"nats://127.0.0.1:9, {server.url}")
    async with nats_server("--user", "ann", "--pass", "p@ss") as server:
        await _reached(f"nats://ann:p%40ss@127.0.0.1:{server.port}")


async def _reached(url: str) -> None:
    bus = NatsBus(url, "a")
    await bus.start(Listening())
    assert bus.healthy
    await bus.close()
    assert not bus.healthy


async def test_the_connection_to_the_server_may_use_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = certificate(tmp_path)
    async with nats_server("--tls", "--tlscert", str(cert), "--tlskey", str(key)) as server:
        with pytest.raises(BusUnavailable, match="certificate verify failed"):
            await NatsBus(f"tls://127.0.0.1:{server.port}", "a").start(Listening())
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        await _reached(f"tls://127.0.0.1:{server.port}")


async def test_invalid_messages_are_refused_without_effect() -> None:
    async with over_nats() as factory:
        assert factory.server is not None
        (a, listener), (b, _) = [await factory.bus(name) for name in "ab"]
        a.join("ann")
        await known(b, a)
        stranger = await connect(factory.server.url, "stranger", max_queue=1000)
        for subject in ("node.a", "all", f"user.{subject_of('ann')}", "reply.a.x"):
            stranger.publish(f"{PREFIX}.{subject}", b"\xc1 nonsense")
            stranger.publish(f"{PREFIX}.{subject}", encode(Beat("no such.name >")))
        assert not stranger.publish_bounded(f"{PREFIX}.node.a", b"x" * 1000)
        await stranger.close()
        assert b.send("a", b"last")
        await until(lambda: ("b", b"last") in listener.messages)
        assert listener.events == []
        assert a.healthy


@pytest.mark.req("L10")
async def test_a_change_is_announced_without_the_users_other_browsers() -> None:
    """A user with 900 browsers with long names, of which one comes and goes."""
    async with over_nats() as factory:
        assert factory.server is not None
        (a, _), (b, listener) = [await factory.bus(name) for name in "ab"]
        b.join("ann")
        sizes: list[int] = []
        watch = await connect(factory.server.url, "watch", max_queue=MB)
        watch.subscribe(f"{PREFIX}.>", lambda message: sizes.append(len(message.payload)))
        await until(lambda: bool(sizes))  # a heartbeat: it is subscribed
        name = "\U0001f600" * 50
        for number in range(900):
            a.announce(browser("ann", f"ext-{number:036}", "a", name))
        for number in range(100):
            a.withdraw(browser("ann", f"ext-{number:036}", "a", name))
            a.announce(browser("ann", f"ext-{number:036}", "a", name))
        everything = tuple(browser("ann", f"ext-{number:036}", "a", name) for number in range(900))
        await becomes(partial(b.browsers, "ann"), everything)
        await until(lambda: len(sizes) >= 1100)
        assert max(sizes) < 1000
        late, _ = await factory.bus("c")  # a node that joins gets the list
        assert await late.browsers("ann") == everything
        await watch.close()
        assert ("bus", False) not in listener.events


async def test_lists_that_exceed_one_message_arrive_whole() -> None:
    async with over_nats() as factory:
        (a, _), (b, _) = [await factory.bus(name) for name in "ab"]
        name = "\U0001f600" * 50
        everything = tuple(browser("ann", f"ext-{number:036}", "a", name) for number in range(4500))
        for each in everything:
            a.announce(each)
        await becomes(partial(b.browsers, "ann"), everything)
        assert a.healthy
        assert factory.server is not None
        await factory.server.kill()
        await until(lambda: not a.healthy and not b.healthy)
        await factory.server.start()
        await until(lambda: a.healthy and b.healthy)
        await becomes(partial(b.browsers, "ann"), everything)


async def test_a_missed_change_is_made_up_for_by_the_list() -> None:
    async with over_nats() as factory:
        assert factory.server is not None
        (a, _), (b, _) = [await factory.bus(name) for name in "ab"]
        a.join("ann")
        b.join("ann")
        a.announce(browser("ann", "e1", "a"))
        await becomes(partial(b.browsers, "ann"), several(browser("ann", "e1", "a")))
        stranger = await connect(factory.server.url, "stranger", max_queue=MB)
        skipped = BrowsersChanged("a", 70, 71, (("e9", "Ghost", 1),), ())
        stranger.publish(f"{PREFIX}.user.{subject_of('ann')}", encode(skipped))
        await stranger.close()
        a.announce(browser("ann", "e2", "a"))
        await becomes(partial(b.browsers, "ann"), several(browser("ann", "e1", "a"), browser("ann", "e2", "a")))


async def test_a_node_that_returns_is_asked_about_its_own_users_and_those_joined_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with over_nats() as factory:
        assert factory.server is not None
        (a, _), (b, _) = [await factory.bus(name) for name in "ab"]
        for user in ("ann", "bob"):
            a.join(user)
        b.join("ann")
        b.announce(browser("ann", "e1", "b"))
        await becomes(partial(a.browsers, "ann"), several(browser("ann", "e1", "b")))
        assert await a.browsers("bob") == ()
        assert isinstance(a, NatsBus)
        a._presence.node_lost("b")
        a.join("cat")
        assert await a.browsers("cat") == ()
        asked: list[str] = []
        publish = a._current.publish

        def record(subject: str, message: msgspec.Struct, reply: str = "") -> None:
            if isinstance(message, Query):
                asked.append(subject.rpartition(".")[2])
            publish(subject, message, reply)

        monkeypatch.setattr(a._current, "publish", record)
        a._presence.node_back("b")
        await becomes(partial(a.browsers, "ann"), several(browser("ann", "e1", "b")))
        assert sorted(asked) == sorted([subject_of("ann"), subject_of("cat")])


async def test_a_node_has_the_list_of_revoked_tokens_when_it_has_started(factory: BusFactory) -> None:
    _, first = await factory.bus("a")
    entries = [f"t{number} 99999999999" for number in range(2500)]
    first.tokens_revoked(entries)
    _, late = await factory.bus("b")
    assert late.revoked_entries() == entries


async def test_nodes_whose_lists_differ_exchange_them_and_others_are_left_alone() -> None:
    async with over_nats() as factory:
        (_, one), (_, two), (_, three) = [await factory.bus(name) for name in "abc"]
        # each was revoked while the node was cut off from the others
        one.tokens_revoked([f"one{number} 99999999999" for number in range(1500)])
        two.tokens_revoked([f"two{number} 99999999999" for number in range(1500)])
        await until(lambda: all(each.revoked_digest(0) == one.revoked_digest(0) for each in (two, three)))
        assert one.revoked_digest(0)[0] == 3000
        assert factory.server is not None
        sizes: list[int] = []
        watch = await connect(factory.server.url, "watch", max_queue=MB)
        watch.subscribe(f"{PREFIX}.>", lambda message: sizes.append(len(message.payload)))
        await until(lambda: len(sizes) >= 6)  # nodes with equal lists send nothing but heartbeats
        assert max(sizes) < 100
        await watch.close()
