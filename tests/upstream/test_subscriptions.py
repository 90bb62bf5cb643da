"""Subscriptions to resources of external servers: only subscribed agents are notified."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated
from mcp.types import ResourceUpdatedNotification

from tabhub.core.tools import Source
from tests.harness.agent import Agent, client, stateless, streamed
from tests.harness.bridge_client import ENVELOPE, initialized, registered
from tests.harness.hub import RunningHub, running_hub
from tests.harness.ports import free_port
from tests.harness.waiting import becomes, until
from tests.upstream.servers import FIXTURES, python, python_http, state, text

TODAY = "tabhub+mcp://srv/notes://today"
WATCHED = {"command": sys.executable, "args": [str(FIXTURES / "watched.py")]}
UPDATED = "notifications/resources/updated"


async def added(hub: RunningHub, server: dict[str, Any]) -> None:
    """Add a server, and wait until its lists have arrived."""
    await hub.hub.upstream.add(json.dumps({"srv": server}))
    connection = hub.hub.upstream.pool.get("srv")
    assert connection is not None
    await until(lambda: bool(connection.resources.current.prompts))


@asynccontextmanager
async def served(hub: RunningHub, era: str) -> AsyncIterator[None]:
    """A server of either era; the newer one over HTTP."""
    if era == "handshake":
        await added(hub, WATCHED)
        yield
    else:
        async with python_http("library", free_port()) as url:
            await added(hub, {"url": url})
            yield


async def touched(agent: Agent, uri: str = "notes://today") -> None:
    answer = await agent.call("mcp__srv__touch", {"uri": uri})
    assert not answer["result"].get("isError"), answer


async def follow(agent: Agent, uri: str = TODAY) -> None:
    answer = await agent.request("resources/subscribe", {"uri": uri})
    assert answer.get("result") == {}, answer


async def watching(agent: Agent) -> str:
    """The URIs that the server has subscriptions for."""
    return text((await agent.call("mcp__srv__watching"))["result"])


async def asked(agent: Agent, uris: str) -> None:
    """Wait until the server has exactly these subscriptions."""
    await becomes(lambda: watching(agent), uris)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_the_official_client_is_notified_of_changes_in_both_eras(hub: RunningHub, era: str) -> None:
    received: asyncio.Queue[str] = asyncio.Queue()

    async def handle_message(message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            received.put_nowait(message.params.uri)

    async with served(hub, era), Agent(hub) as other, client(hub) as one, client(hub) as two:
        old = Client(
            streamable_http_client(f"{hub.url}/mcp", http_client=one), mode="legacy", message_handler=handle_message
        )
        new = Client(streamable_http_client(f"{hub.url}/mcp", http_client=two), mode="auto")
        async with old, new:
            async with new.listen(resource_subscriptions=[TODAY]) as events:
                assert events.honored.resource_subscriptions == [TODAY]
                await old.subscribe_resource(TODAY)
                async with asyncio.timeout(30):
                    event = asyncio.ensure_future(anext(aiter(events)))
                    while not event.done():
                        # A stateless server is subscribed to with a stream that opens after the answer.
                        await touched(other)
                        await asyncio.wait((event,), timeout=0.2)
                    assert event.result() == ResourceUpdated(uri=TODAY)
                    assert await received.get() == TODAY
            await old.unsubscribe_resource(TODAY)


async def test_a_server_is_subscribed_to_while_agents_are_and_only_those_are_notified(hub: RunningHub) -> None:
    await added(hub, WATCHED)
    async with Agent(hub) as one, Agent(hub) as two, one.listening() as first, two.listening() as second:
        await follow(one)
        await follow(two, "notes://today")  # by the server's own name
        assert "notes://today" in await watching(one)
        await touched(one)
        assert (await first.message())["params"] == {"uri": TODAY}
        assert (await second.message()) == {
            "jsonrpc": "2.0",
            "method": UPDATED,
            "params": {"uri": "notes://today"},
        }
        await one.request("resources/unsubscribe", {"uri": TODAY})
        await touched(one, "notes://today/part")
        assert (await second.message())["params"] == {"uri": "notes://today"}
        await touched(one, "notes://todays")
        assert "notes://today" in await watching(one)
        await two.request("resources/unsubscribe", {"uri": "notes://today"})
        await asked(one, "")


async def test_missed_changes_are_notified_later_and_an_ended_session_is_unsubscribed(
    hub: RunningHub,
) -> None:
    await added(hub, WATCHED)
    async with Agent(hub) as other:
        async with Agent(hub) as agent:
            await follow(agent)
            await touched(other)
            async with agent.listening() as events:
                assert (await events.message())["params"] == {"uri": TODAY}
            await agent.http.delete("/mcp", headers=agent.headers)
        await asked(other, "")


async def test_a_restarted_server_is_subscribed_to_again(tmp_path: Path) -> None:
    quick = {"upstream_backoff": 0.05, "upstream_backoff_max": 0.1, "list_changed_rate": 0}
    async with running_hub(tmp_path, limits=quick) as hub, Agent(hub) as agent, agent.listening() as events:
        await added(hub, WATCHED)
        await follow(agent)
        connection = hub.hub.upstream.pool.get("srv")
        assert connection is not None
        before = connection.connects
        await agent.call("mcp__srv__die")
        await until(lambda: connection.connects > before and state(hub, "srv") == "ready")
        await asked(agent, "notes://today")
        await touched(agent)
        while (message := await events.message())["method"] != UPDATED:
            assert "list_changed" in message["method"]


async def test_invalid_subscriptions_are_refused_with_a_reason(tmp_path: Path) -> None:
    setting = Source("upstream", "srv").setting
    async with running_hub(tmp_path, limits={"followed_resources": 1}) as hub, Agent(hub) as agent:
        await added(hub, WATCHED)
        secret = (await agent.request("resources/subscribe", {"uri": "notes://secret"}))["error"]
        assert "no such thing" in secret["message"]
        await follow(agent)
        await follow(agent)  # a second subscription has no effect
        more = (await agent.request("resources/subscribe", {"uri": "tabhub+mcp://srv/notes://more"}))["error"]
        assert "limits.followed_resources" in more["message"]
        wrong = (await agent.request("resources/subscribe", {"uri": 7}))["error"]
        assert wrong["code"] == -32602
        assert (await agent.request("resources/unsubscribe", {"uri": "never://followed"}))["result"] == {}
        hub.home.config.write_text(json.dumps({"permissions": {setting: {"permission": "off"}}}))
        hub.hub.reload()
        assert (await agent.request("resources/subscribe", {"uri": TODAY}))["error"]["code"] == -32005
        wanted = {"notifications": {"resourceSubscriptions": [TODAY]}}
        body, headers = stateless("subscriptions/listen", wanted)
        async with client(hub) as http, streamed(http, "POST", "/mcp", json=body, headers=headers) as modern:
            assert (await modern.message())["params"]["notifications"] == {}
        body, headers = stateless("subscriptions/listen", {"notifications": {"resourceSubscriptions": [7]}})
        async with client(hub) as http:
            refused = (await http.post("/mcp", json=body, headers=headers)).json()
            assert "list of URIs" in refused["error"]["message"]
        body, headers = stateless("resources/subscribe", {"uri": TODAY})
        async with client(hub) as http:
            assert (await http.post("/mcp", json=body, headers=headers)).json()["error"]["code"] == -32601


async def test_a_server_without_subscriptions_is_reported(hub: RunningHub) -> None:
    await added(hub, {**WATCHED, "args": [*WATCHED["args"], "silent"]})
    async with Agent(hub) as agent:
        refused = (await agent.request("resources/subscribe", {"uri": TODAY}))["error"]
        assert "has no subscriptions" in refused["message"]


async def test_subscriptions_survive_a_restart_of_the_hub(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Agent(hub) as agent:
        await added(hub, WATCHED)
        await follow(agent)
        headers = agent.headers
    async with running_hub(tmp_path) as hub, Agent(hub) as other, client(hub) as http:
        await until(lambda: state(hub, "srv") == "ready")
        async with streamed(http, "GET", "/mcp", headers={**headers, "Accept": "text/event-stream"}) as events:
            await asked(other, "notes://today")
            await touched(other)
            while (message := await events.message())["method"] != UPDATED:
                assert "list_changed" in message["method"]
            assert message["params"] == {"uri": TODAY}


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_bridge_clients_are_notified_too(hub: RunningHub, era: str) -> None:
    await added(hub, python("library") if era == "stateless" else WATCHED)
    opened = initialized(hub) if era == "handshake" else registered(hub)
    async with Agent(hub) as other, opened as bridge:
        if era == "handshake":
            assert (await bridge.request("resources/subscribe", {"uri": TODAY}))["success"]
        else:
            wanted = {"notifications": {"resourceSubscriptions": [TODAY]}, "_meta": ENVELOPE}
            bridge.ask("subscriptions/listen", wanted)
        async with asyncio.timeout(30):
            hearing = asyncio.ensure_future(_updated(bridge))
            while not hearing.done():
                await touched(other)
                await asyncio.wait((hearing,), timeout=0.2)
            assert hearing.result() == TODAY


async def _updated(bridge: Any) -> str:
    while True:
        message = await bridge.receive()
        if message.get("event") == UPDATED:
            return str(message["params"]["uri"])
