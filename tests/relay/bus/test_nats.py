"""Relay nodes in their own processes on a real nats-server, killed while calls are running."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tabhub.limits import DEFAULTS
from tabhub.net import http_client
from tabhub.relay.bus import nats
from tests.harness.process import environment, tabhub
from tests.harness.waiting import eventually, until
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.natsd import NatsServer, nats_server
from tests.relay.world import SECRET, token

_URL = re.compile(rb"is running on (ws://127\.0\.0\.1:\d+)")


class RelayProcess:
    """A node in its own process, whose log is read continuously."""

    def __init__(self, url: str, process: asyncio.subprocess.Process) -> None:
        self.url = url
        self.process = process
        self.events: list[dict[str, Any]] = []
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.events.append(json.loads(line))

    async def logged(self, event: str) -> None:
        """Wait until it has logged this event."""
        await until(lambda: any(line["event"] == event for line in self.events))

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reader


@asynccontextmanager
async def node(home: Path, bus: str, tick: float, patience: int = nats._LOST_AFTER) -> AsyncIterator[RelayProcess]:
    """A node that checks its bus every `tick` seconds; by default a relay does so every half second."""
    start = (
        "from tabhub import cli\nfrom tabhub.relay.bus import nats\n"
        f"nats._TICK, nats._LOST_AFTER = {tick}, {patience}\ncli.main()"
    )
    # Calls follow each other as fast as they are answered, which on a fast machine exceeds the usual rate.
    words = ("relay", "start", "--port", "0", "--key-file", str(home / "relay.key"), "--bus", bus, "--client-rate", "0")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", start, *words),
        env=environment(home),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(30):
            first = await process.stdout.readline()
        found = _URL.search(first)
        assert found is not None, await process.stderr.read()
    except BaseException:
        process.kill()
        await process.communicate()
        raise
    running = RelayProcess(found[1].decode(), process)
    try:
        yield running
    finally:
        await running.kill()


@dataclass(frozen=True, slots=True)
class World:
    """Two nodes and their server."""

    nats: NatsServer
    here: RelayProcess
    there: RelayProcess


@asynccontextmanager
async def two_nodes(home: Path, tick: float) -> AsyncIterator[World]:
    (home / "relay.key").write_text(SECRET)
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(nats_server())
        here = await stack.enter_async_context(node(home, nats.url, tick))
        there = await stack.enter_async_context(node(home, nats.url, tick))
        yield World(nats, here, there)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with two_nodes(tmp_path, 0.5) as made:
        yield made


@pytest.fixture
async def alert_world(tmp_path: Path) -> AsyncIterator[World]:
    """Nodes that detect sooner that another is silent."""
    async with two_nodes(tmp_path, 0.2) as made:
        yield made


async def test_every_flow_works_across_nodes_and_users_are_isolated(world: World) -> None:
    async with (
        IndependentExtension(world.there.url, token("ann"), "Far") as far,
        IndependentExtension(world.here.url, token("bob"), "Bob's") as bobs,
        IndependentAgent(world.here.url, token("ann")) as agent,
        IndependentAgent(world.there.url, token("ann")) as second,
        IndependentAgent(world.there.url, token("bob")) as bob,
    ):
        await agent.handshake()
        assert [(b["id"], b["name"]) for b in await agent.browsers()] == [(far.extension_id, "Far")]
        assert (await agent.join(far.extension_id))["extension_name"] == "Far"
        await second.ready()
        await bob.ready()
        large = "x" * 3_000_000
        far.handle = lambda method, params: {"who": "far", **params, "large": large}
        bobs.handle = lambda method, params: {"who": "bob", **params}
        answers = await asyncio.gather(
            *(agent.result("echo", {"n": n}) for n in range(3)),
            *(second.result("echo", {"n": n}) for n in range(3)),
            *(bob.result("echo", {"n": n}) for n in range(3)),
        )
        assert [a["n"] for a in answers] == [0, 1, 2] * 3
        assert [a["who"] for a in answers] == ["far"] * 6 + ["bob"] * 3
        assert all(a.get("large") == large for a in answers[:6])
        assert await agent.result("echo", {"big": large})
        assert (await agent.ask("echo", id="1"))["id"] == "1"
        await far.notify("tab.stateChanged", {"tabId": 3})
        assert await agent.notified("tab.stateChanged") == {"tabId": 3}
        assert await second.notified("tab.stateChanged") == {"tabId": 3}
        assert not [n for n in _drained(bob) if n["method"] == "tab.stateChanged"]
        assert await bob.result("disconnect") == {"disconnected": True}
        stolen = await bob.error("connect", {"extension_id": far.extension_id})
        assert stolen == await bob.error("connect", {"extension_id": "ext-nothing"})
        assert await agent.result("disconnect") == {"disconnected": True}
        assert (await agent.error("echo"))["code"] == -32000
        assert len(far.requests) == 8
        assert len(bobs.requests) == 3


def _drained(agent: IndependentAgent) -> list[dict[str, Any]]:
    found = []
    with contextlib.suppress(asyncio.QueueEmpty):
        while True:
            found.append(agent.notifications.get_nowait())
    return found


def test_a_silent_node_is_lost_within_five_seconds() -> None:
    # A heartbeat may just have arrived, and a check may just be over.
    assert (nats._LOST_AFTER + 2) * nats._TICK <= 5


async def test_a_killed_node_is_detected_and_others_continue(alert_world: World) -> None:
    world = alert_world
    assert DEFAULTS.call_timeout_max >= 300  # so that the call does not end by its deadline
    async with AsyncExitStack() as stack:
        far = await stack.enter_async_context(IndependentExtension(world.there.url, token("ann"), "Far"))
        near = await stack.enter_async_context(IndependentExtension(world.here.url, token("bob"), "Near"))
        agent = await stack.enter_async_context(IndependentAgent(world.here.url, token("ann")))
        bob = await stack.enter_async_context(IndependentAgent(world.here.url, token("bob")))
        far.handle = lambda method, params: None
        await agent.ready()
        await bob.ready()
        call = await agent.begin("click")
        await until(lambda: bool(far.requests))
        await world.there.kill()
        lost = (await call)["error"]
        assert "The relay node of the other side is unreachable" in lost["message"]
        assert lost["data"]["outcome"] == "unknown"
        assert (await agent.notified("disconnected"))["connection_id"] == agent.connection_id
        assert await agent.browsers() == []
        assert await bob.result("getTabs") == {"method": "getTabs", "params": {}}
        assert [r["method"] for r in far.requests] == ["click"]
        async with IndependentExtension(world.here.url, token("ann"), "Far") as back:  # it connects to another node
            await agent.join(back.extension_id)
            assert await agent.result("getTabs") == {"method": "getTabs", "params": {}}
        assert near.requests == [r for r in near.requests if r["method"] == "getTabs"]


async def test_a_frozen_node_is_lost_and_accepted_again(alert_world: World) -> None:
    world = alert_world
    async with (
        IndependentExtension(world.there.url, token("ann")) as far,
        IndependentAgent(world.here.url, token("ann")) as agent,
    ):
        await agent.ready()
        world.there.process.send_signal(signal.SIGSTOP)
        try:
            lost = await agent.error("click")
        finally:
            world.there.process.send_signal(signal.SIGCONT)
        assert lost["data"]["outcome"] == "unknown"
        await world.here.logged("node_back")
        (found,) = await agent.listed(1)
        await agent.join(found["id"])
        assert await agent.result("getTabs") == {"method": "getTabs", "params": {}}
        assert [r["method"] for r in far.requests].count("click") <= 1


@pytest.mark.req("F21")
async def test_while_nats_is_down_local_pairs_continue_others_fail_and_all_recover(
    alert_world: World,
) -> None:
    world = alert_world
    async with (
        IndependentExtension(world.here.url, token("ann"), "Near") as near,
        IndependentExtension(world.there.url, token("ann"), "Far") as far,
        IndependentAgent(world.here.url, token("ann")) as local,
        IndependentAgent(world.here.url, token("ann")) as remote,
    ):
        await local.handshake()
        await local.join(near.extension_id)
        await remote.handshake()
        await remote.join(far.extension_id)
        far.handle = lambda method, params: None
        call = await remote.begin("click")
        await until(lambda: bool(far.requests))
        await world.nats.kill()
        assert (await call)["error"]["data"]["outcome"] == "unknown"
        assert "bus" in (await remote.notified("disconnected"))["reason"]
        assert [(await far.notified("status"))["peer_count"] for _ in range(2)] == [1, 0]
        assert await local.result("getTabs") == {"method": "getTabs", "params": {}}
        assert [b["name"] for b in await remote.browsers()] == ["Near"]
        error = await remote.error("connect", {"extension_id": far.extension_id})
        assert (error["code"], "bus unavailable" in error["message"]) == (-32000, True)
        far.handle = lambda method, params: {"back": True}
        await far.send({"id": far.requests[0]["id"], "result": {"late": True}})
        await world.nats.start()
        await asyncio.gather(world.here.logged("bus_back"), world.there.logged("bus_back"))
        await remote.join(far.extension_id)
        assert await remote.result("getTabs") == {"back": True}
        assert await local.result("getTabs") == {"method": "getTabs", "params": {}}
        assert [r["method"] for r in far.requests] == ["click", "getTabs"]
        assert [n for n in _drained(remote) if "method" not in n] == []
        await world.there.kill()  # and a killed node is still detected
        assert (await remote.notified("disconnected"))["connection_id"] == remote.connection_id
        assert await local.result("getTabs") == {"method": "getTabs", "params": {}}


async def test_a_revocation_applies_on_all_nodes(world: World, tmp_path: Path) -> None:
    stolen = token("ann", ident="stolen")
    async with IndependentAgent(world.here.url, stolen) as one, IndependentAgent(world.there.url, stolen) as two:
        await one.handshake()
        await two.handshake()
        (tmp_path / "relay.key.revoked").write_text("stolen 99999999999\n")
        assert await one.closed() == (4001, "the token was revoked")
        assert await two.closed() == (4001, "the token was revoked")


@pytest.mark.req("F25")
async def test_a_node_starts_without_its_bus_serves_its_own_clients_and_joins_the_others_later(tmp_path: Path) -> None:
    (tmp_path / "relay.key").write_text(SECRET)
    nats = NatsServer()
    async with (
        node(tmp_path, nats.url, 0.5) as here,
        IndependentExtension(here.url, token("ann"), "Near") as near,
        IndependentAgent(here.url, token("ann")) as agent,
    ):
        await agent.handshake()
        await agent.join(near.extension_id)
        assert await agent.result("getTabs") == {"method": "getTabs", "params": {}}
        ready = await asyncio.to_thread(
            http_client.request, "GET", *address(here.url), "/readyz", headers={}, timeout=30
        )
        facts = json.loads(ready.body)
        assert (ready.status, facts["ready"], facts["reasons"]) == (200, True, [])
        assert "the bus is unavailable" in facts["degraded"][0]
        try:
            await nats.start()
            await here.logged("bus_back")
            async with (
                node(tmp_path, nats.url, 0.5) as there,
                IndependentAgent(there.url, token("ann")) as remote,
            ):
                await remote.handshake()
                await remote.listed(1)
                await remote.join(near.extension_id)
                assert await remote.result("getTabs") == {"method": "getTabs", "params": {}}
                assert await agent.result("getTabs") == {"method": "getTabs", "params": {}}
        finally:
            await nats.kill()


def address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


async def test_a_node_that_its_bus_refuses_exits_with_an_error(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(SECRET)
    async with nats_server("--auth", "another") as nats:
        url = nats.url.replace("//", "//u:hidden@")
        process = await tabhub(
            tmp_path, "relay", "start", "--port", "0", "--key-file", str(tmp_path / "key"), "--bus", url
        )
        out, errors = await process.communicate()
    assert process.returncode not in (0, None)
    assert b"is running" not in out
    assert f"bus refuses this node at {nats.url}".encode() in errors
    assert b"Traceback" not in errors
    assert b"hidden" not in errors


async def test_no_reply_is_duplicated_or_crossed_while_the_server_restarts(world: World) -> None:
    async with (
        IndependentExtension(world.there.url, token("ann")) as far,
        IndependentExtension(world.here.url, token("bob")) as other,
        IndependentAgent(world.here.url, token("ann")) as agent,
        IndependentAgent(world.there.url, token("bob")) as bob,
    ):
        far.handle = lambda method, params: {"of": "ann", **params}
        other.handle = lambda method, params: {"of": "bob", **params}
        done, unknown = await _rounds(world, {"ann": (agent, far), "bob": (bob, other)})
        assert done["ann"] > 50
        assert done["bob"] > 50
        for name, extension in (("ann", far), ("bob", other)):
            numbers = [r["params"]["n"] for r in extension.requests]
            assert len(numbers) == len(set(numbers))
            assert done[name] <= len(numbers) <= done[name] + unknown[name]
        assert [n for who in (agent, bob) for n in _drained(who) if "method" not in n] == []


async def _rounds(
    world: World, pairs: dict[str, tuple[IndependentAgent, IndependentExtension]]
) -> tuple[dict[str, int], dict[str, int]]:
    """All agents call continuously while the server is killed and restarted; counts results and unknown outcomes."""
    done, unknown = dict.fromkeys(pairs, 0), dict.fromkeys(pairs, 0)
    stop = asyncio.Event()

    async def connects(agent: IndependentAgent, extension: IndependentExtension) -> bool:
        return "result" in await agent.ask("connect", {"extension_id": extension.extension_id})

    async def work(name: str, agent: IndependentAgent, extension: IndependentExtension) -> None:
        await agent.handshake()
        number, joined = 0, False
        while not stop.is_set() or not joined:
            if not joined:
                await eventually(lambda: connects(agent, extension))
                joined = True
                continue
            number += 1
            answer = await agent.ask("act", {"n": number})
            if "result" in answer:
                assert answer["result"] == {"of": name, "n": number}
                done[name] += 1
            else:
                unknown[name] += answer["error"].get("data", {}).get("outcome") == "unknown"
                joined = False

    tasks = [asyncio.create_task(work(name, *pair)) for name, pair in pairs.items()]
    for round_ in range(3):
        goal = {name: count + 30 for name, count in done.items()}
        await until(lambda goal=goal: all(done[n] >= goal[n] for n in goal))  # type: ignore[misc]
        if round_ < 2:
            await world.nats.kill()
            await world.nats.start()
    stop.set()
    await asyncio.gather(*tasks)
    return done, unknown


class Rolling:
    """A browser and an agent that go on at any node, while nodes are replaced one by one."""

    def __init__(self, user: str, nodes: list[RelayProcess]) -> None:
        self.user = user
        self.nodes = nodes
        self.number = 0
        self.stop = asyncio.Event()
        """Ends the agent, after the call that it makes."""
        self.closed = asyncio.Event()
        """Ends the browser."""
        self.done: list[int] = []
        self.executed: list[int] = []
        self.outcomes: list[str] = []

    async def browser(self) -> None:
        while not self.closed.is_set():
            with contextlib.suppress(OSError, InvalidStatus, TimeoutError):
                async with IndependentExtension(self.nodes[0].url, token(self.user), instanceId="p") as extension:
                    extension.handle = self._handle
                    ended = asyncio.create_task(extension.ws.wait_closed())
                    await asyncio.wait([ended, asyncio.create_task(self.closed.wait())], return_when=_FIRST)

    def _handle(self, method: str, params: dict[str, Any]) -> Any:
        self.executed.append(params["n"])
        return params

    async def agent(self) -> None:
        while not self.stop.is_set():
            try:
                async with IndependentAgent(self.nodes[-1].url, token(self.user)) as agent:
                    await self._use(agent)
            except (OSError, InvalidStatus, ConnectionClosed):
                continue
            except asyncio.CancelledError:  # of a reply, whose connection was closed
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise

    async def _use(self, agent: IndependentAgent) -> None:
        if "error" in await agent.ask("mcp_handshake", {"accessToken": token(self.user)}):
            return
        while not self.stop.is_set() and agent.ws.close_code is None:
            listed = (await agent.ask("list_extensions")).get("result", {}).get("extensions", [])
            joined = listed and "result" in await agent.ask("connect", {"extension_id": listed[0]["id"]})
            while joined and not self.stop.is_set():
                self.number += 1
                joined = await self._call(agent, self.number)

    async def _call(self, agent: IndependentAgent, number: int) -> bool:
        try:
            answer = await agent.ask("act", {"n": number})
        except asyncio.CancelledError:
            self.outcomes.append("cut off")
            raise
        except ConnectionClosed:
            return False  # it was not sent
        if "error" in answer:
            outcome = answer["error"].get("data", {}).get("outcome", "not_sent")
            self.outcomes.append(outcome if outcome == "not_sent" else answer["error"]["message"])
        else:
            assert answer["result"] == {"n": number}
            self.done.append(number)
        return "result" in answer


_FIRST = asyncio.FIRST_COMPLETED


@pytest.mark.req("F24")
async def test_three_nodes_are_replaced_one_by_one_without_a_call_whose_outcome_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "relay.key").write_text(SECRET)
    patient = 10_000  # a starved process is not lost
    async with nats_server() as server, AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(node(tmp_path, server.url, 0.5, patient)) for _ in range(3)]
        users = [Rolling(name, nodes) for name in ("ann", "bob")]
        browsers = [asyncio.create_task(user.browser()) for user in users]
        agents = [asyncio.create_task(user.agent()) for user in users]

        async def progress() -> None:
            goals = {user.user: len(user.done) + 5 for user in users}
            await until(lambda: all(len(user.done) >= goals[user.user] for user in users))

        await progress()
        for old in list(nodes):
            nodes.append(await stack.enter_async_context(node(tmp_path, server.url, 0.5, patient)))
            nodes.remove(old)
            old.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(30):
                assert await old.process.wait() == 0
            await progress()
        for user in users:
            user.stop.set()
        await asyncio.gather(*agents)
        for user in users:
            user.closed.set()
        await asyncio.gather(*browsers)
    for user in users:
        # A request that crosses the node's close frame has no answer, and is not executed either, see below.
        assert set(user.outcomes) <= {"not_sent", "cut off"}
        assert len(user.executed) == len(set(user.executed))
        assert set(user.done) == set(user.executed)
