"""The bridge socket: who may connect, the effect of each message, and messages out of order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tabhub.errors import TabhubError
from tests.harness.bridge_client import ENVELOPE, connected, initialized, registered
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe
from tests.harness.waiting import until


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


# status


@pytest.mark.req("S004-status-01", "S004-status-02", "S004-goals-05")
async def test_status_says_whether_an_extension_is_connected_now(hub: RunningHub) -> None:
    async with connected(hub) as client:
        client.send("STATUS", id="status_1")
        reply = await client.receive()
        assert (reply["type"], reply["id"]) == ("STATUS_OK", "status_1")
        assert (reply["extensionConnected"], reply["activeSessions"], reply["browsers"]) == (False, 0, [])
        await client.register()
        async with FakeExtension(hub):
            client.send("STATUS", id="status_2")
            reply = await client.receive()
            assert (reply["id"], reply["extensionConnected"], reply["activeSessions"]) == ("status_2", True, 1)
            assert [browser["browserId"] for browser in reply["browsers"]] == ["fake-browser"]
        await until(lambda: not hub.hub.browsers.links())
        client.send("STATUS", id="status_3")
        assert (await client.receive())["extensionConnected"] is False


async def test_a_ping_is_answered_with_or_without_an_id(hub: RunningHub) -> None:
    async with connected(hub) as client:
        client.send("PING")
        assert await client.receive() == {"type": "PONG"}
        client.send("PING", id="p")
        assert await client.receive() == {"type": "PONG", "id": "p"}


# sessions and requests


@pytest.mark.req("S004-flow-01", "S004-verification-01")
async def test_each_registered_client_gets_its_own_session(hub: RunningHub) -> None:
    async with registered(hub, client="one", version="1.0") as one, registered(hub) as two:
        assert one.session != two.session
        assert len(one.session) >= 32
        kept = hub.hub.sessions.require(one.session, "bridge")
        assert kept.client == "one 1.0"
        assert len(hub.hub.sessions) == 2


@pytest.mark.req("S004-flow-02", "S004-flow-03", "S004-flow-07", "S004-architecture-04")
@pytest.mark.parametrize("modern", [False, True])
async def test_a_wrapped_call_goes_to_the_extension_and_back(hub: RunningHub, modern: bool) -> None:
    async with FakeExtension(hub) as browser, registered(hub) as client:
        if not modern:
            assert (await client.initialize())["serverInfo"]["name"] == "tabhub"
        params = call("browser_execute_script", tabId=7, code="return 1")
        reply = await client.request("tools/call", {**params, "_meta": ENVELOPE} if modern else params)
        assert reply["success"] is True
        assert reply["data"]["content"] == [{"type": "text", "text": '{"value":"fake"}'}]
        assert reply["data"].get("resultType") == ("complete" if modern else None)
        assert (await browser.next_request("forwardCDPCommand"))["params"]["tabId"] == 7
        (line,) = hub.hub.engine.audit.recent(1)
        assert (line["tool"], line["client"]) == ("browser_execute_script", "raw 1")
        assert hub.hub.sessions.require(client.session, "bridge").tab == 7


async def test_both_revisions_answer_their_own_methods(hub: RunningHub) -> None:
    async with registered(hub) as client:
        found = (await client.request("server/discover", {"_meta": ENVELOPE}))["data"]
        assert found["supportedVersions"][-1] == "2026-07-28"
        assert (await client.request("tools/list", {"_meta": ENVELOPE}))["data"]["ttlMs"] >= 0
        assert (await client.request("ping"))["data"] == {}
        refused = await client.request("tools/list")
        assert (refused["success"], refused["error"]["code"]) == (False, -32600)
        assert "initialize" in refused["error"]["message"]
        await client.initialize("2025-03-26")
        assert (await client.request("tools/list"))["data"]["tools"]
        assert (await client.request("logging/setLevel", {"level": "error"}))["data"] == {}
        assert (await client.request("resources/forget"))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": 7, "_meta": ENVELOPE}, -32602),
        ("tools/call", {"name": "nope", "_meta": ENVELOPE}, -32602),
        ("nöpe ✓", {"_meta": ENVELOPE}, -32601),
        ("tools/list", {"_meta": {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": 7}}, -32602),
        ("tools/list", {"_meta": {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}}, -32022),
        ("tools/list", {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}, -32602),
        ("subscriptions/listen", {"_meta": ENVELOPE}, -32602),
        ("initialize", {}, -32602),
        ("initialize", {"protocolVersion": "2025-11-25", "capabilities": 1}, -32602),
    ],
)
async def test_a_bad_request_fails_alone(hub: RunningHub, method: str, params: dict[str, Any], code: int) -> None:
    async with registered(hub) as client:
        assert (await client.request(method, params))["error"]["code"] == code
        client.send("PING")
        assert (await client.receive())["type"] == "PONG"


async def test_gateway_clients_list_only_the_gateway_tools(hub: RunningHub) -> None:
    async with registered(hub, surface="gateway") as client:
        tools = (await client.request("tools/list", {"_meta": ENVELOPE}))["data"]["tools"]
        assert [tool["name"] for tool in tools] == ["tabhub_list_tools", "tabhub_call"]


@pytest.mark.parametrize("modern", [False, True])
async def test_a_client_may_choose_the_tools_it_is_shown(hub: RunningHub, modern: bool) -> None:
    everything = {tool.name for tool in hub.hub.registry.tools()}
    async with connected(hub) as client:
        client.send("REGISTER", tools="core,nonsense")
        assert (await client.receive())["error"]["code"] == -32602
        await client.register(tools="core")
        if not modern:
            await client.initialize()
        listed = (await client.request("tools/list", {"_meta": ENVELOPE} if modern else None))["data"]["tools"]
        assert {tool["name"] for tool in listed} < everything


async def test_a_client_may_initialize_again(hub: RunningHub) -> None:
    async with initialized(hub) as client:
        assert (await client.initialize("2025-06-18"))["protocolVersion"] == "2025-06-18"
        assert (await client.request("ping"))["success"] is True


@pytest.mark.req("S004-ids-01", "S004-goals-06")
async def test_request_ids_are_unique_across_sessions(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with initialized(hub) as one, initialized(hub) as two:
        ident = one.ask("tools/call", call("probe_wait", who="one"))
        assert ident == f"{one.session}:2"
        await probe.begun()
        for client in (one, two):
            client.ask("tools/call", call("probe_echo", value="x"), id=ident)
            reply = await client.receive()
            assert (reply["type"], reply["id"], reply["error"]["code"]) == ("ERROR", ident, -32600)
        two.ask("tools/call", call("probe_wait", who="two"))
        await probe.begun()
        probe.release.set()
        assert (await one.receive())["data"]["structuredContent"] == {"who": "one"}
        assert (await two.receive())["data"]["structuredContent"] == {"who": "two"}


@pytest.mark.req("S004-ids-02")
@pytest.mark.parametrize("ident", ["1", "another-session:1", 'quote " and \\', "ünïcödé ✓", ":", " "])
async def test_request_ids_are_opaque(hub: RunningHub, ident: str) -> None:
    Probe(hub)
    async with initialized(hub) as client:
        reply = await client.request("tools/call", call("probe_echo", value="x"), id=ident)
        assert reply["data"]["structuredContent"] == {"value": "x"}


async def test_requests_and_ids_of_another_session_are_not_revealed(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with initialized(hub) as one, initialized(hub) as two:
        ident = one.ask("tools/call", call("probe_wait"))
        await probe.begun()
        reply = []
        for session, running in ((one.session, ident), ("f" * 32, "nobody:1")):
            two.ask("ping", id="x", sessionId=session)
            two.send("EVENT", sessionId=session, event="notifications/initialized")
            two.send("CANCEL", id=running)
            reply.append([{**(await two.receive()), "id": None} for _ in range(3)])
        assert reply[0] == reply[1]
        assert {line["error"]["code"] for line in reply[0]} == {-32012}
        probe.release.set()
        assert (await one.receive())["success"] is True


async def test_messages_out_of_order_are_refused(hub: RunningHub) -> None:
    async with connected(hub) as client:
        client.ask("ping", sessionId="s", id="1")
        reply = await client.receive()
        assert (reply["type"], reply["id"]) == ("ERROR", "1")
        assert "REGISTER" in reply["error"]["message"]
        client.send("CANCEL", id="1")
        assert (await client.receive())["type"] == "ERROR"
        await client.register()
        client.send("REGISTER")
        assert "already" in (await client.receive())["error"]["message"]
        assert (await client.request("ping"))["success"] is True


async def test_concurrent_requests_of_a_session_are_limited(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"bridge_requests": 2}) as hub, initialized(hub) as client:
        probe = Probe(hub)
        for _ in range(2):
            client.ask("tools/call", call("probe_wait"))
            await probe.begun()
        client.ask("tools/call", call("probe_wait"))
        reply = await client.receive()
        assert (reply["type"], reply["error"]["code"], reply["error"]["data"]["outcome"]) == (
            "ERROR",
            -32011,
            "not_sent",
        )
        probe.release.set()
        assert [(await client.receive())["success"] for _ in range(2)] == [True, True]


async def test_the_rate_of_new_sessions_is_limited(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"session_rate": 1}) as hub, registered(hub) as one, connected(hub) as two:
        two.send("REGISTER")
        reply = await two.receive()
        assert (reply["type"], reply["error"]["code"]) == ("ERROR", -32004)
        two.send("REGISTER", sessionId=one.session)  # reconnecting is not a new session
        assert (await two.receive())["resumed"] is True


# messages during a call


@pytest.mark.parametrize("modern", [False, True])
async def test_progress_and_log_messages_come_as_events_of_their_request(hub: RunningHub, modern: bool) -> None:
    Probe(hub)
    meta: dict[str, Any] = {"progressToken": "t"}
    if modern:
        meta |= {**ENVELOPE, "io.modelcontextprotocol/logLevel": "warning"}
    async with registered(hub) as client:
        if not modern:
            await client.initialize()
            await client.request("logging/setLevel", {"level": "warning"})
        ident = client.ask("tools/call", {**call("probe_report"), "_meta": meta})
        received = [await client.receive() for _ in range(4)]
        assert [line.get("event") for line in received] == ["notifications/progress"] * 3 + [None]
        assert all(line["id"] == ident for line in received)
        assert received[0]["params"] == {"progressToken": "t", "progress": 1, "total": 3, "message": "step 1"}
        client.ask("tools/call", {**call("probe_log"), "_meta": meta})
        received = [await client.receive() for _ in range(2)]
        assert (received[0]["event"], received[0]["params"]["data"]) == ("notifications/message", "coarse")
        assert received[1]["success"] is True


async def test_a_question_to_the_client_is_answered_by_an_event(hub: RunningHub) -> None:
    Probe(hub)
    async with initialized(hub, elicitation={}) as client:
        client.ask("tools/call", call("probe_ask"))
        question = await client.receive()
        assert (question["type"], question["event"]) == ("EVENT", "elicitation/create")
        for broken in ({}, {"id": question["ask"]}, {"id": 1.5, "result": {}}, {"method": "x", "id": "1"}):
            client.send("EVENT", sessionId=client.session, event="answer", params=broken)
            assert (await client.receive())["type"] == "ERROR"
        answer = {"action": "accept", "content": {"colour": "green"}}
        client.send("EVENT", sessionId=client.session, event="answer", params={"id": question["ask"], "result": answer})
        assert (await client.receive())["data"]["structuredContent"] == {"answer": answer}


async def test_a_connected_client_can_be_asked_outside_of_its_calls(hub: RunningHub) -> None:
    async with initialized(hub) as mute:
        await mute.request("ping")
        assert hub.hub.sessions.require(mute.session, "bridge").asker is None
    async with initialized(hub, elicitation={}) as client:
        await client.request("ping")
        session = hub.hub.sessions.require(client.session, "bridge")
        assert session.asker is not None
        first = asyncio.ensure_future(session.asker("elicitation/create", {"message": "May I?"}))
        question = await client.receive()
        assert (question["event"], "id" in question) == ("elicitation/create", False)
        params = {"id": question["ask"], "result": {"action": "accept"}}
        client.send("EVENT", sessionId=client.session, event="answer", params=params)
        assert await first == {"action": "accept"}
        second = asyncio.ensure_future(session.asker("elicitation/create", {"message": "And now?"}))
        await client.receive()
    with pytest.raises(TabhubError, match="disconnected before it answered"):
        await second
    assert session.asker is None


async def test_a_stateless_question_ends_the_round(hub: RunningHub) -> None:
    Probe(hub)
    meta = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    async with registered(hub) as client:
        question = (await client.request("tools/call", {**call("probe_ask"), "_meta": meta}))["data"]
        assert question["resultType"] == "input_required"
        answers = {key: {"action": "accept", "content": {"colour": "red"}} for key in question["inputRequests"]}
        again = {
            **call("probe_ask"),
            "inputResponses": answers,
            "requestState": question["requestState"],
            "_meta": meta,
        }
        assert (await client.request("tools/call", again))["data"]["resultType"] == "complete"


async def test_list_changes_reach_clients_that_initialized_or_listen(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with initialized(hub) as notified, registered(hub) as listening, registered(hub) as other:
        wanted = {"notifications": {"toolsListChanged": True}, "_meta": ENVELOPE}
        ident = listening.ask("subscriptions/listen", wanted)
        reply = await listening.receive()
        assert (reply["event"], reply["id"]) == ("notifications/subscriptions/acknowledged", ident)
        await notified.request("ping")
        probe.change()
        assert (await notified.receive())["event"] == "notifications/tools/list_changed"
        reply = await listening.receive()
        assert (reply["event"], reply["id"]) == ("notifications/tools/list_changed", ident)
        listening.send("CANCEL", id=ident)
        reply = await listening.receive()
        assert (reply["type"], reply["id"], reply["success"]) == ("RESPONSE", ident, False)
        assert (await other.request("ping"))["success"] is True  # and it received nothing before


@pytest.mark.parametrize("modern", [False, True])
async def test_a_cancel_reaches_the_tool_and_the_request_is_still_answered(hub: RunningHub, modern: bool) -> None:
    probe = Probe(hub)
    async with registered(hub) as client:
        if not modern:
            await client.initialize()
        params = call("probe_wait", who="me")
        ident = client.ask("tools/call", {**params, "_meta": ENVELOPE} if modern else params)
        await probe.begun()
        client.send("CANCEL", id=ident)
        assert await probe.cancelled() == {"who": "me"}
        reply = await client.receive()
        assert (reply["id"], reply["data"]["isError"]) == (ident, True)
        assert len(hub.hub.engine.calls) == 0
