"""Rules for every message of the relay's protocol, checked on conversations with all kinds of messages."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from tests.harness.agent import Agent
from tests.harness.hub import running_hub
from tests.harness.waiting import until
from tests.relay.engines.httpworld import http_relay
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.world import RunningRelay, running_relay, token

IDS: list[int | str] = [
    1,
    0,
    -3,
    2**53 - 1,
    "550e8400-e29b-41d4-a716-446655440000",
    "1",
    "a b",
    "é",
]


@pytest.fixture
async def relay() -> AsyncIterator[RunningRelay]:
    async with running_relay() as running:
        yield running


def kind(message: Any) -> str:
    """The kind of a JSON-RPC 2.0 message; fails for anything else."""
    assert type(message) is dict, message
    assert message.pop("jsonrpc") == "2.0", message
    if "method" in message:
        assert type(message["method"]) is str, message
        assert type(message.get("params", {})) is dict, message
        # The relay tells a browser which agent sent a notification; in a request the id says so.
        assert set(message) <= ({"id", "method", "params"} if "id" in message else {"connectionId", "method", "params"})
        assert "id" not in message or type(message["id"]) in (int, str), message
        return "request" if "id" in message else "notification"
    assert set(message) in ({"id", "result"}, {"id", "error"}), message
    if "result" in message:
        assert type(message["id"]) in (int, str), message
        return "result"
    assert type(message["id"]) in (int, str, type(None)), message
    error = message["error"]
    assert set(error) <= {"code", "message", "data"}, message
    assert (type(error["code"]), type(error["message"])) == (int, str), message
    return "error"


async def conversation(relay: RunningRelay, agent: IndependentAgent, browser: IndependentExtension) -> None:
    """All kinds of messages, valid and invalid, until the browser has disconnected."""

    def handle(method: str, params: dict[str, Any]) -> Any:
        if method == "fail":
            raise LookupError("Tab creation failed")
        return None if method == "silent" else {"did": method}

    browser.handle = handle
    await agent.error("getTabs")
    await agent.handshake()
    await agent.error("mcp_handshake", {"accessToken": "again"})
    await agent.error("connect", {"extension_id": "ext-none"})
    await agent.error("connect", {"extension_id": 7})
    await agent.join((await agent.browsers())[0]["id"])
    await agent.result("createTab", {"url": "about:blank"})
    await agent.error("fail")
    await agent.error("createTab", id="proxy:1")
    await agent.error("authenticate")
    await agent.send({"method": "seen", "params": {}})
    await browser.notified("seen")
    for text in ("{", "[]", "7", '{"id":1,"method":"x"}', '{"jsonrpc":"1.0","id":1,"method":"x"}'):
        await agent.ws.send(text)
        await agent.stray()
    spoilt = [await agent.begin("silent") for _ in range(2)]
    await until(lambda: [request["method"] for request in browser.requests].count("silent") == 2)
    mapped = [request["id"] for request in browser.requests if request["method"] == "silent"]
    await browser.send({"id": mapped[0]})
    assert "Invalid response" in (await spoilt[0])["error"]["message"]
    await browser.ws.send(json.dumps({"jsonrpc": "1.0", "id": mapped[1], "result": {}}))
    assert "Invalid response" in (await spoilt[1])["error"]["message"]
    await browser.send({"id": "ext:1", "method": "whoAreYou", "params": {}})
    await until(lambda: any("error" in message for message in browser.received))
    await browser.notify("tab.stateChanged", {"tabId": 3})
    await agent.notified("tab.stateChanged")
    await agent.result("disconnect")
    await agent.join((await agent.browsers())[0]["id"])
    lost = await agent.begin("silent")
    await until(lambda: [request["method"] for request in browser.requests].count("silent") == 3)
    await browser.ws.close()
    assert (await lost)["error"]["data"]["outcome"] == "unknown"
    await agent.notified("disconnected")


@pytest.mark.req("S003-principles-01")
async def test_every_message_is_json_rpc_2_0_and_others_are_refused(relay: RunningRelay) -> None:
    async with (
        IndependentExtension(relay.url, token()) as browser,
        IndependentAgent(relay.url, token()) as agent,
    ):
        await conversation(relay, agent, browser)
        kinds = (
            {kind(dict(message)) for message in agent.received},
            {kind(dict(message)) for message in browser.received},
        )
        assert not [message for message in agent.received if "connectionId" in message]
        assert kinds == ({"notification", "result", "error"}, {"request", "notification", "error"})
        assert relay.node.state.tables.counts.malformed >= 8  # and each of them was answered above
        assert [request["method"] for request in browser.requests].count("x") == 0


@pytest.mark.req("S003-principles-03")
async def test_agents_start_every_exchange_and_receive_no_requests(relay: RunningRelay) -> None:
    async with (
        IndependentExtension(relay.url, token()) as browser,
        IndependentAgent(relay.url, token()) as agent,
    ):
        await conversation(relay, agent, browser)
        assert agent.received[0]["id"] == 1  # the first message it receives is the reply to its first request
        assert not [message for message in agent.received if "method" in message and "id" in message]
        asked = [message for message in browser.received if "method" in message and "id" in message]
        assert asked[0]["method"] == "authenticate"
        assert asked[1:] == browser.requests
        assert {request["method"] for request in browser.requests} == {"createTab", "fail", "silent"}
        refusal = next(message for message in browser.received if "error" in message)
        assert (refusal["id"], refusal["error"]["code"]) == ("ext:1", -32601)  # requests of a browser are refused


@pytest.mark.req("S003-ids-01")
async def test_ids_of_an_agent_are_the_same_directly_and_over_a_relay(tmp_path: Path) -> None:
    async with (
        http_relay() as relay,
        running_hub(tmp_path) as hub,
        IndependentExtension(relay.ws, token()),
        IndependentAgent(relay.ws, token()) as far,
        Agent(hub) as direct,
        relay.agent() as over_http,
    ):
        await far.ready()
        for ident in IDS:
            answers = [(await far.ask("getTabs", id=ident))["id"]]
            for agent in (direct, over_http):
                listed = await agent.post({"jsonrpc": "2.0", "id": ident, "method": "tools/list", "params": {}})
                answers.append(listed.json()["id"])
            assert [(type(answer), answer) for answer in answers] == [(type(ident), ident)] * 3


@pytest.mark.req("S003-handshake-01")
async def test_the_token_is_required_and_names_the_user_and_the_url(relay: RunningRelay) -> None:
    for params in ({}, {"accessToken": None}, {"accessToken": 7}, {"accessToken": ""}, {"accessToken": ["a"]}):
        async with connect(f"{relay.url}/mcp") as ws:
            given = {"jsonrpc": "2.0", "id": 1, "method": "mcp_handshake", "params": params}
            await ws.send(json.dumps(given))
            answer = json.loads(await ws.recv())
            assert (answer["id"], answer["error"]["code"]) == (1, -32602), params
            assert "accessToken" in answer["error"]["message"]
    access = token("ann", connection_url=relay.url)
    head, payload, signature = access.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert (claims["user_id"], claims["connection_url"]) == ("ann", relay.url)
    # the token is enough: it names the relay and the user
    async with IndependentAgent(claims["connection_url"], access) as agent:
        assert (await agent.handshake())["user_id"] == "ann"
    forged = base64.urlsafe_b64encode(json.dumps({**claims, "user_id": "bob", "sub": "bob"}).encode()).rstrip(b"=")
    for wrong in (f"{head}.{forged.decode()}.{signature}", access.rpartition(".")[0], "ann"):
        async with IndependentAgent(relay.url, wrong) as agent:
            refused = await agent.error("mcp_handshake", {"accessToken": wrong})
            assert (refused["code"], refused["message"]) == (-32000, "Authentication failed: Invalid token")
