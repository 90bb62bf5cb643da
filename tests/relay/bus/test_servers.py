"""Which NATS server a node connects to next."""

from __future__ import annotations

from collections import Counter

import pytest

from tabhub.relay.bus.nats import NatsBus
from tabhub.relay.bus.servers import NatsServers
from tests.harness.ports import free_port
from tests.harness.waiting import until
from tests.relay.bus.test_interface import Listening
from tests.relay.natsd import nats_server

URLS = "nats://a:1, nats://b:2,nats://c:3"


def in_order(_: list[str]) -> None:
    """A shuffle for tests that leaves the order as it is."""


def test_nodes_spread_over_the_servers() -> None:
    first = Counter(NatsServers(URLS).next() for _ in range(300))
    assert set(first) == {"nats://a:1", "nats://b:2", "nats://c:3"}
    assert min(first.values()) > 50  # 100 on average


def test_all_servers_are_tried_in_turn() -> None:
    servers = NatsServers(URLS, in_order)
    assert len(servers) == 3
    assert [servers.next() for _ in range(4)] == ["nats://a:1", "nats://b:2", "nats://c:3", "nats://a:1"]


def test_after_a_lost_connection_the_others_are_tried_first() -> None:
    servers = NatsServers(URLS, in_order)
    servers.lost(servers.next())
    assert [servers.next() for _ in range(3)] == ["nats://b:2", "nats://c:3", "nats://a:1"]
    assert servers.next() == "nats://a:1"


def test_servers_named_by_another_are_tried_after_those_given_with_its_credentials() -> None:
    servers = NatsServers("tls://ann:p%40ss@a:1", in_order)
    servers.named("tls://ann:p%40ss@a:1", ["a:1", "b:2", "b:2", "[::1]:4", "evil@c:3", "c", "c:3/x", 7, "d:99999999"])
    assert [servers.next() for _ in range(3)] == [
        "tls://ann:p%40ss@a:1",
        "tls://ann:p%40ss@b:2",
        "tls://ann:p%40ss@[::1]:4",
    ]
    servers.named("tls://ann:p%40ss@a:1", [])
    assert len(servers) == 1


@pytest.mark.req("F21")
async def test_a_node_that_knows_one_server_of_a_cluster_moves_to_the_others() -> None:
    routes = [free_port(), free_port()]
    url = f"nats://127.0.0.1:{routes[0]}"

    def words(own: int) -> tuple[str, ...]:
        return ("--cluster_name", "c", "--cluster", f"nats://127.0.0.1:{routes[own]}", "--routes", url)

    async with nats_server(*words(0)) as first, nats_server(*words(1)) as second:
        bus, listener = NatsBus(first.url, "a"), Listening()
        other = NatsBus(second.url, "b")
        await bus.start(listener)
        await other.start(Listening())
        await until(lambda: len(bus._servers) == 2)
        await until(lambda: bus.send("b", b"before"))
        await first.kill()
        await until(lambda: listener.events.count(("bus", True)) == 1)
        await until(lambda: bus.send("b", b"after"))
        await bus.close()
        await other.close()


async def test_a_server_that_announces_its_shutdown_is_avoided() -> None:
    async with nats_server() as server:
        bus = NatsBus(server.url, "a")
        await bus.start(Listening())
        server.announce_shutdown()
        await until(lambda: f"127.0.0.1:{server.port}" in bus._servers._avoided)
        assert bus.healthy
        await bus.close()
