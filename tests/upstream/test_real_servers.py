"""The hub as a client of third-party servers: those of the official SDKs, over every transport and in both eras."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent, client, stateless
from tests.harness.hub import RunningHub, running_hub
from tests.harness.ports import free_port
from tests.harness.waiting import eventually, until
from tests.upstream.servers import names, python, python_http, ready, state, text, typescript


async def added(hub: RunningHub, **servers: Any) -> list[dict[str, Any]]:
    facts: list[dict[str, Any]] = await hub.hub.upstream.add(json.dumps(servers))
    return facts


@pytest.mark.req("S001-transport-05", "S001-execution-01")
async def test_tools_of_a_local_command_can_be_called(hub: RunningHub) -> None:
    (facts,) = await added(hub, every=python("everything"))
    assert facts["state"] == "ready"
    assert facts["protocol"] == "2026-07-28"
    assert "mcp__every__add" in names(hub)
    async with Agent(hub) as agent:
        answer = (await agent.call("mcp__every__add", {"a": 2, "b": 3}))["result"]
    assert text(answer) == "5"
    assert answer["structuredContent"] == {"result": 5}
    assert "resultType" not in answer


@pytest.mark.req("S001-execution-03")
@pytest.mark.parametrize("kind", ["json", "sse", "stateless"])
async def test_python_over_http_with_json_and_sse_answers(hub: RunningHub, kind: str) -> None:
    port = free_port()
    async with python_http("everything", port, kind) as url:
        (facts,) = await added(hub, every={"url": url})
        assert facts["state"] == "ready", facts
        async with Agent(hub) as agent:
            assert text((await agent.call("mcp__every__add", {"a": 2, "b": 3}))["result"]) == "5"
            picture = (await agent.call("mcp__every__picture"))["result"]["content"][0]
            assert picture["type"] == "image"
            assert base64.b64decode(picture["data"]).startswith(b"\x89PNG")
            linked = (await agent.call("mcp__every__link"))["result"]["content"]
            assert linked[0]["type"] == "resource_link"
            assert linked[1]["text"] == "see it"
            failed = (await agent.call("mcp__every__fail"))["result"]
            assert failed["isError"] is True
            assert "Error executing tool fail" in text(failed)


@pytest.mark.req("S001-transport-01", "S001-execution-02")
async def test_typescript_with_a_session_and_event_streams(hub: RunningHub) -> None:
    port = free_port()
    async with typescript("simpleStreamableHttp", port) as url:
        (facts,) = await added(hub, ts={"url": url})
        assert facts["state"] == "ready", facts
        assert facts["protocol"] == "2025-11-25"
        async with Agent(hub) as agent:
            assert "Ada" in text((await agent.call("mcp__ts__greet", {"name": "Ada"}))["result"])


async def test_typescript_with_json_answers(hub: RunningHub) -> None:
    port = free_port()
    async with typescript("jsonResponseStreamableHttp", port) as url:
        await added(hub, ts={"url": url})
        async with Agent(hub) as agent:
            assert "Ada" in text((await agent.call("mcp__ts__greet", {"name": "Ada"}))["result"])


async def test_typescript_without_sessions(hub: RunningHub) -> None:
    port = free_port()
    async with typescript("simpleStatelessStreamableHttp", port) as url:
        await added(hub, ts={"url": url})
        assert state(hub, "ts") == "ready", hub.hub.upstream.all()
        assert names(hub)


async def test_changed_tools_of_a_server_are_listed(hub: RunningHub) -> None:
    async with python_http("everything", free_port()) as url, Agent(hub) as agent:
        await added(hub, local=python("everything"), remote={"url": url})
        for name in ("local", "remote"):
            assert text((await agent.call(f"mcp__{name}__grow"))["result"]) == "grew"
            await until(lambda name=name: f"mcp__{name}__grown" in names(hub))  # type: ignore[misc]
            assert text((await agent.call(f"mcp__{name}__grown"))["result"]) == "grown"


async def test_progress_reaches_the_agent(hub: RunningHub) -> None:
    await added(hub, every=python("everything"))
    async with Agent(hub) as agent:
        params = {"name": "mcp__every__slow", "arguments": {"steps": 3}, "_meta": {"progressToken": 7}}
        async with agent.streamed("tools/call", params) as events:
            received = [each.message for each in await events.rest() if each.message]
    steps = [each["params"] for each in received if each.get("method") == "notifications/progress"]
    assert [step["progress"] for step in steps] == [1, 2, 3]
    assert steps[0]["message"] == "step 1"
    assert text(received[-1]["result"]) == "done"


async def test_an_elicitation_reaches_the_agents_client(hub: RunningHub) -> None:
    await added(hub, every=python("everything"))
    call = {"name": "mcp__every__greet", "arguments": {}}
    async with Agent(hub, capabilities={"elicitation": {}}) as agent, agent.streamed("tools/call", call) as events:
        asked = await events.message()
        assert asked["method"] == "elicitation/create"
        assert asked["params"]["message"].endswith(" asks: Who is there?")
        answer = {"action": "accept", "content": {"name": "Ada"}}
        await agent.post({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        assert text((await events.message())["result"]) == "Hello Ada"


async def test_an_elicitation_during_a_call_reaches_the_calling_agent(hub: RunningHub) -> None:
    async with typescript("simpleStreamableHttp", free_port()) as url:
        await added(hub, ts={"url": url})
        call: dict[str, Any] = {"name": "mcp__ts__collect-user-info", "arguments": {"infoType": "contact"}}
        able = Agent(hub, capabilities={"elicitation": {}})
        async with able as agent, Agent(hub) as other, agent.streamed("tools/call", call) as events:
            asked = await events.message()
            assert asked["params"]["message"].endswith(" asks: Please provide your contact information")
            assert "Bob" in text((await other.call("mcp__ts__greet", {"name": "Bob"}))["result"])
            answer = {"action": "accept", "content": {"name": "Ada", "email": "ada@example.com"}}
            await agent.post({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
            assert "ada@example.com" in text((await events.message())["result"])
            unable = (await other.call(call["name"], call["arguments"]))["result"]
            assert "elicitation" in text(unable)


async def test_a_stateless_agent_answers_an_elicitation_during_a_call(hub: RunningHub) -> None:
    capabilities: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    call: dict[str, Any] = {"name": "mcp__ts__collect-user-info", "arguments": {"infoType": "contact"}}
    async with typescript("simpleStreamableHttp", free_port()) as url, client(hub) as http:
        await added(hub, ts={"url": url})
        body, headers = stateless("tools/call", call, **capabilities)
        first = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
        assert first["resultType"] == "input_required"
        content = {"name": "Ada", "email": "ada@example.com"}
        answers = {key: {"action": "accept", "content": content} for key in first["inputRequests"]}
        again = {**call, "inputResponses": answers, "requestState": first.get("requestState")}
        body, headers = stateless("tools/call", again, **capabilities)
        assert "ada@example.com" in text((await http.post("/mcp", json=body, headers=headers)).json()["result"])


async def test_an_elicitation_reaches_a_stateless_agent_as_required_input(hub: RunningHub) -> None:
    await added(hub, every=python("everything"))
    capabilities: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    call = {"name": "mcp__every__greet", "arguments": {}}
    async with client(hub) as http:
        body, headers = stateless("tools/call", call, **capabilities)
        first = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
        assert first["resultType"] == "input_required"
        answers = {key: {"action": "accept", "content": {"name": "Ada"}} for key in first["inputRequests"]}
        more = {**call, "inputResponses": answers} | (
            {"requestState": first["requestState"]} if "requestState" in first else {}
        )
        body, headers = stateless("tools/call", more, **capabilities)
        last = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
    assert text(last) == "Hello Ada"


@pytest.mark.req("S001-discovery-02", "S001-discovery-03", "S001-storage-01", "S001-storage-02")
async def test_tools_are_known_from_the_cache_while_the_server_is_offline(tmp_path: Path) -> None:
    port = free_port()
    async with running_hub(tmp_path) as hub, python_http("everything", port) as url:
        await added(hub, every={"url": url, "headers": {"X-Key": "k"}, "disabledTools": ["fail"]})
    stored = tmp_path / "home/mcp.json"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    (saved,) = json.loads(stored.read_text())["servers"]
    assert saved["name"] == "every"
    assert saved["url"] == url
    assert saved["enabled"] is True
    assert len(saved["id"]) == 16
    assert saved["headers"] == {"X-Key": "k"}
    assert saved["disabledTools"] == ["fail"]
    cached = {tool["name"]: tool for tool in saved["cachedTools"]}
    assert cached["add"]["description"] == "Add two numbers."
    assert cached["add"]["inputSchema"]["required"] == ["a", "b"]
    async with running_hub(tmp_path) as hub:
        await until(lambda: "mcp__every__add" in names(hub))
        assert "mcp__every__fail" not in names(hub)
        await until(lambda: state(hub, "every") == "waiting")
        async with Agent(hub) as agent:
            answer = (await agent.call("mcp__every__add", {"a": 1, "b": 1}))["result"]
        assert answer["isError"] is True
        assert "not connected" in text(answer)
        assert "not_sent" in text(answer)


async def test_a_restarted_server_is_connected_again(tmp_path: Path) -> None:
    port = free_port()
    async with running_hub(tmp_path, limits={"upstream_backoff": 0.1, "upstream_backoff_max": 0.2}) as hub:
        async with typescript("simpleStreamableHttp", port) as url:
            await added(hub, ts={"url": url})
            assert state(hub, "ts") == "ready"
        async with Agent(hub) as agent:
            answer = (await agent.call("mcp__ts__greet", {"name": "Ada"}))["result"]
            assert answer["isError"] is True
            await until(lambda: state(hub, "ts") == "waiting")
            async with typescript("simpleStreamableHttp", port):
                await ready(hub, "ts")
                assert "Ada" in text((await agent.call("mcp__ts__greet", {"name": "Ada"}))["result"])


async def test_an_expired_session_is_replaced_within_the_call(hub: RunningHub) -> None:
    port = free_port()
    async with typescript("simpleStreamableHttp", port) as url:
        await added(hub, ts={"url": url})
    async with typescript("simpleStreamableHttp", port), Agent(hub) as agent:

        async def greeted() -> bool:
            # A hub that has noticed the restart reports for a moment that the server is not connected.
            answer = text((await agent.call("mcp__ts__greet", {"name": "Ada"}))["result"])
            assert "Ada" in answer or "is not connected" in answer, answer
            return "Ada" in answer

        await eventually(greeted)


async def test_cancelling_a_call_reaches_the_server_and_affects_no_other_call(hub: RunningHub) -> None:
    await added(hub, every=python("everything"))
    async with Agent(hub) as agent:
        slow = asyncio.ensure_future(
            agent.post(
                {
                    "jsonrpc": "2.0",
                    "id": 77,
                    "method": "tools/call",
                    "params": {"name": "mcp__every__slow", "arguments": {"steps": 1, "seconds": 20}},
                }
            )
        )
        await until(lambda: len(hub.hub.engine.calls) == 1)
        await agent.notify("notifications/cancelled", {"requestId": 77})
        await until(lambda: len(hub.hub.engine.calls) == 0)
        assert text((await agent.call("mcp__every__add", {"a": 2, "b": 2}))["result"]) == "4"
        slow.cancel()
