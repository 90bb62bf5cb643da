"""Clients of the bridge socket that connect, disconnect and reconnect; and a hub that stops."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent
from tests.harness.agent import client as http_client
from tests.harness.bridge_client import ENVELOPE, connected, initialized
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import AGENT, RunningHub, running_hub
from tests.harness.probe import Probe
from tests.harness.tenants import act, refused
from tests.harness.waiting import until


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


async def test_disconnect_ends_the_session_and_what_it_runs(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with initialized(hub) as client:
        client.ask("tools/call", call("probe_wait"))
        await probe.begun()
        client.send("DISCONNECT")
        await client.closed()
        await probe.cancelled()
        assert len(hub.hub.sessions) == 0
    async with connected(hub) as client:
        assert (await client.register(sessionId="0" * 32))["resumed"] is False


async def test_a_broken_connection_cancels_its_calls_and_the_session_waits_for_its_client(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        probe = Probe(hub)
        async with FakeExtension(hub):
            async with initialized(hub) as client:
                await client.call("browser_execute_script", {"tabId": 7, "code": "1"})
                client.ask("tools/call", call("probe_wait"))
                await probe.begun()
                session = client.session
            await probe.cancelled()
            await until(lambda: len(hub.hub.engine.calls) == 0)
            probe.change()
            async with connected(hub) as client:
                reply = await client.register(sessionId=session)
                assert (reply["sessionId"], reply["resumed"], reply["initialized"]) == (session, True, True)
                probe.change()
                assert (await client.receive())["event"] == "notifications/tools/list_changed"
                assert hub.hub.sessions.require(session, "bridge").tab == 7
                assert (await client.request("ping"))["success"] is True


@pytest.mark.parametrize("word", ["DISCONNECT", None])
async def test_clients_that_connect_and_disconnect_leave_nothing_behind(tmp_path: Path, word: str | None) -> None:
    async with running_hub(tmp_path, limits={"bridge_grace": 0, "session_rate": 0}) as hub:
        Probe(hub)

        async def come_and_go() -> None:
            async with initialized(hub) as client:
                await client.call("probe_echo", {"value": "x"})
                client.ask("subscriptions/listen", {"notifications": {}, "_meta": ENVELOPE})
                await client.receive()
                if word is not None:
                    client.send(word)
                    await client.closed()

        await come_and_go()
        await until(lambda: len(hub.hub.sessions) == 0)
        tasks, files = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))  # noqa: PTH208
        for _ in range(5):
            await asyncio.gather(*(come_and_go() for _ in range(20)))
        await until(lambda: len(hub.hub.sessions) == 0 and len(asyncio.all_tasks()) <= tasks)
        await until(lambda: len(os.listdir("/proc/self/fd")) <= files)  # noqa: PTH208
        assert (len(hub.hub.bridge.sessions), len(hub.hub.bridge.in_flight)) == (0, 0)


async def test_changes_while_the_client_was_disconnected_are_notified(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with initialized(hub) as client:
        await client.request("tools/list")
        session = client.session
    await until(lambda: hub.hub.sessions.require(session, "bridge").busy == 0)
    probe.change()
    async with connected(hub) as client:
        await client.register(sessionId=session)
        assert (await client.receive())["event"] == "notifications/tools/list_changed"


async def test_a_session_whose_client_does_not_return_ends(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"bridge_grace": 0.05}) as hub:
        async with initialized(hub) as client:
            session = client.session
        await until(lambda: len(hub.hub.sessions) == 0)
        async with connected(hub) as client:
            reply = await client.register(sessionId=session)
            assert (reply["resumed"], reply["initialized"]) == (False, False)
            assert reply["sessionId"] != session


async def test_the_tab_of_a_disconnected_client_is_soon_free_and_others_learn_when(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, FakeExtension(hub), Agent(hub) as other:
        async with initialized(hub) as client:
            await client.call("browser_execute_script", {"tabId": 7, "code": "1"})
            held = refused(await act(other, tabId=7))
            assert ("has disconnected" in held["text"], held["freeInSeconds"] > 500) == (False, True)
            ident = client.session
        session = hub.hub.sessions.require(ident, "bridge")
        await until(lambda: session.is_disconnected)
        held = refused(await act(other, tabId=7))
        assert "its client has disconnected" in held["text"]
        async with http_client(hub) as http:
            assert (await http.get("/health")).json()["mcpClients"] == 1, "the other one"
            seen = {each["id"]: each["gone"] for each in (await http.get("/sessions")).json()["sessions"]}
            assert seen[ident] is True
        assert held["freeInSeconds"] <= hub.hub.engine.limits.bridge_grace / 2
        async with connected(hub) as client:
            await client.register(sessionId=ident)
            assert not session.is_disconnected
            assert refused(await act(other, tabId=7))["freeInSeconds"] > 500


async def test_a_request_for_the_tab_of_a_disconnected_client_waits_and_gets_it(tmp_path: Path) -> None:
    limits = {"bridge_grace": 20, "lease_orphan": 0.3, "call_timeout": 3}
    async with running_hub(tmp_path, limits=limits) as hub, FakeExtension(hub), Agent(hub) as other:
        async with initialized(hub) as client:
            await client.call("browser_execute_script", {"tabId": 7, "code": "1"})
            session = hub.hub.sessions.require(client.session, "bridge")
        await until(lambda: session.is_disconnected)
        answer = await other.call("browser_request_tab", {"tabId": 7, "reason": "to go on"})
        assert answer["result"]["structuredContent"]["by"] == "free"


async def test_a_client_that_reconnects_replaces_its_old_connection(hub: RunningHub) -> None:
    async with initialized(hub) as old, connected(hub) as new:
        assert (await new.register(sessionId=old.session))["resumed"] is True
        assert (await old.receive())["type"] == "ERROR"
        assert await old.closed() == b""
        assert (await new.request("ping"))["success"] is True
        assert hub.hub.sessions.require(new.session, "bridge").busy == 1


async def test_the_next_request_of_a_session_ended_elsewhere_is_refused(hub: RunningHub) -> None:
    async with initialized(hub) as client:
        await client.request("ping")
        hub.hub.engine.end_session(client.session, "the person ended it")
        ident = client.ask("ping")
        reply = await client.receive()
        assert (reply["type"], reply["id"], reply["error"]["code"]) == ("ERROR", ident, -32012)
        assert await client.closed() == b""


async def test_sessions_of_an_earlier_hub_wait_for_their_clients(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        hub.hub.bridge.closing()
        now = hub.hub.engine.clock()
        hub.hub.sessions.open("a" * 32, "bridge", "earlier", now, AGENT)
        await hub.hub.bridge.start()
        async with connected(hub) as client:
            reply = await client.register(sessionId="a" * 32)
            assert (reply["resumed"], reply["initialized"]) == (True, False)


async def test_shutdown_answers_running_requests_and_removes_the_socket(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, initialized(hub) as client:
        probe = Probe(hub)
        client.ask("tools/call", call("probe_wait"))
        await probe.begun()
        hub.hub.closing()
        reply = await client.receive()
        assert "shutting down" in reply["data"]["content"][0]["text"]
        assert not (hub.home.root / "run" / "bridge.sock").exists()
