"""The handshake era's streams: when there is one, what it carries, and how it is resumed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.harness.agent import Agent, message
from tests.harness.fake_extension import FakeExtension, Silent
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import QUESTION, Probe


async def test_an_answer_is_a_stream_only_if_notifications_precede_it(hub: RunningHub) -> None:
    Probe(hub)
    async with Agent(hub) as agent:
        quiet = await agent.post(message("tools/call", {"name": "probe_report"}))
        assert quiet.headers["content-type"] == "application/json"
        asked = await agent.post(message("tools/call", {"name": "probe_report", "_meta": {"progressToken": "t"}}))
        assert asked.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize("token", ["tok", 7, 0])
@pytest.mark.req("S002-capabilities-05")
async def test_progress_is_sent_in_order_with_its_token_before_the_answer(hub: RunningHub, token: str | int) -> None:
    Probe(hub)
    async with Agent(hub) as agent:
        params = {"name": "probe_report", "_meta": {"progressToken": token}}
        async with agent.streamed("tools/call", params) as events:
            found = [event.message for event in await events.rest() if event.message is not None]
    *reports, answer = found
    assert [report["params"] for report in reports] == [
        {"progressToken": token, "progress": step, "total": 3, "message": f"step {step}"} for step in (1, 2, 3)
    ]
    assert answer["result"]["content"] == [{"type": "text", "text": "reported"}]


async def test_a_change_of_the_tools_is_notified_on_the_sessions_stream(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as agent, agent.listening() as events:
        first = await events.next()
        assert first is not None
        assert first.message is None  # only an id to resume from
        added = probe.change()
        assert (await events.message())["method"] == "notifications/tools/list_changed"
        names = [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]
        assert added in names


async def test_a_change_without_a_listener_is_notified_when_one_connects(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as agent:
        await agent.request("tools/list")
        probe.change()
        async with agent.listening() as events:
            assert (await events.message())["method"] == "notifications/tools/list_changed"


async def test_many_changes_are_notified_together_and_the_last_one_always(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"list_changed_rate": 20}) as hub:
        probe = Probe(hub)
        async with Agent(hub) as agent, agent.listening() as events:
            await events.next()
            for _ in range(100):
                last = probe.change()
            assert (await events.message())["method"] == "notifications/tools/list_changed"
            assert (await events.message())["method"] == "notifications/tools/list_changed"
            names = [tool["name"] for tool in (await agent.request("tools/list"))["result"]["tools"]]
            assert last in names
            await agent.http.delete("/mcp", headers=agent.headers)
            assert [event for event in await events.rest() if event.message] == []


async def test_a_call_continues_without_its_stream_and_its_answer_is_read_by_get(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as agent:
        params = {"name": "probe_wait", "arguments": {"report": True}, "_meta": {"progressToken": 1}}
        async with agent.streamed("tools/call", params) as events:
            event = await events.next()
            while event is not None and event.message is None:
                event = await events.next()
            assert event is not None
            assert event.id is not None
        probe.release.set()
        async with agent.listening(last=event.id) as resumed:
            rest = await resumed.rest()
        assert [e.message["result"]["structuredContent"] for e in rest if e.message] == [{"report": True}]
        assert probe.stopped.empty()
        async with agent.listening(last=event.id) as again:  # an answer can be read more than once
            assert len([e for e in await again.rest() if e.message]) == 1


@pytest.mark.req("B23")
@pytest.mark.parametrize("last", ["nothing", "0.1", "x.y", "é", ".", "0" * 5000])
async def test_a_dropped_event_cannot_be_resumed_from(hub: RunningHub, last: str) -> None:
    async with Agent(hub) as agent:
        headers: dict[str, str | bytes] = {**agent.headers, "Last-Event-ID": last.encode()}
        answer = await agent.http.get("/mcp", headers=headers)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


async def test_one_session_cannot_read_anothers_stream(hub: RunningHub) -> None:
    Probe(hub)
    async with Agent(hub) as one, Agent(hub) as two:
        params = {"name": "probe_report", "_meta": {"progressToken": 1}}
        async with one.streamed("tools/call", params) as events:
            event = (await events.rest())[-2]
        assert event.id is not None
        answer = await two.http.get("/mcp", headers={**two.headers, "Last-Event-ID": event.id})
        assert answer.status_code == 400


async def test_a_second_reader_replaces_the_first_on_the_sessions_stream(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as agent, agent.listening() as first:
        await first.next()
        async with agent.listening() as second:
            await second.next()
            assert await first.rest() == []
            probe.change()
            assert (await second.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.req("S002-capabilities-04")
async def test_messages_below_the_log_level_are_not_sent(hub: RunningHub) -> None:
    Probe(hub)
    async with Agent(hub) as agent:
        assert (await agent.request("logging/setLevel", {"level": "loud"}))["error"]["code"] == -32602
        for level, wanted in (("debug", ["fine", "coarse"]), ("warning", ["coarse"])):
            assert (await agent.request("logging/setLevel", {"level": level}))["result"] == {}
            async with agent.streamed("tools/call", {"name": "probe_log"}) as events:
                found = [e.message for e in await events.rest() if e.message is not None]
            assert [m["params"]["data"] for m in found if "params" in m] == wanted
        await agent.request("logging/setLevel", {"level": "error"})
        silent = await agent.post(message("tools/call", {"name": "probe_log"}))
        assert silent.headers["content-type"] == "application/json"


@pytest.mark.parametrize("stop", ["cancelled", "left", "deleted"])
async def test_a_call_the_agent_cancels_is_cancelled_in_the_browser(hub: RunningHub, stop: str) -> None:
    async with FakeExtension(hub) as browser, Agent(hub) as agent:
        evaluate = asyncio.Event()

        def hold(params: dict[str, str]) -> object:
            if params["method"] != "Runtime.evaluate":
                return {}
            evaluate.set()
            return Silent

        browser.handlers["forwardCDPCommand"] = hold
        body = message("tools/call", {"name": "browser_execute_script", "arguments": {"tabId": 7, "code": "return 1"}})
        call = asyncio.create_task(agent.post(body))
        await evaluate.wait()
        if stop == "cancelled":
            await agent.notify("notifications/cancelled", {"requestId": body["id"], "reason": "enough"})
        elif stop == "left":
            call.cancel()
        else:
            await agent.http.delete("/mcp", headers=agent.headers)
        requests = [browser.seen.get_nowait() for _ in range(browser.seen.qsize())]
        running = next(r for r in requests if r["params"].get("method") == "Runtime.evaluate")
        assert (await browser.next_notification("cancel"))["params"] == {"id": running["id"]}
        if stop == "cancelled":
            assert not (await call).content
        elif stop == "deleted":
            result = (await call).json()["result"]
            assert result["isError"] is True
            assert result["_meta"]["tabhub/error"]["category"] == "cancelled"
            assert result["_meta"]["tabhub/error"]["outcome"] == "unknown"
        await browser.settle()
        assert len(hub.hub.engine.calls) == 0
        assert [link.pending for link in hub.hub.browsers.links()] == [0]
        assert all(session.busy == 0 for session in hub.hub.sessions.all())


async def test_a_cancel_for_another_agents_call_does_nothing(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as one, Agent(hub) as two:
        body = message("tools/call", {"name": "probe_wait"})
        call = asyncio.create_task(one.post(body))
        await probe.begun()
        for ident in (body["id"], str(body["id"]), None, {"a": 1}, [1]):
            await two.notify("notifications/cancelled", {"requestId": ident})
        await one.notify("notifications/cancelled", {"requestId": str(body["id"])})  # not the same id
        probe.release.set()
        assert "isError" not in (await call).json()["result"]


async def test_a_question_is_asked_on_the_calls_stream_and_answered_by_post(hub: RunningHub) -> None:
    Probe(hub)
    async with (
        Agent(hub, capabilities={"elicitation": {}}) as agent,
        agent.streamed("tools/call", {"name": "probe_ask"}) as events,
    ):
        question = await events.message()
        assert (question["method"], question["params"]) == ("elicitation/create", QUESTION)
        reply = {"action": "accept", "content": {"colour": "red"}}
        forged = {"jsonrpc": "2.0", "id": "tabhub-0000000000000000", "result": {"action": "accept"}}
        assert (await agent.post(forged)).status_code == 202
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": reply}
        assert (await agent.post(answer)).status_code == 202
        assert (await events.message())["result"]["structuredContent"] == {"answer": reply}
    async with Agent(hub) as without:
        error = (await without.call("probe_ask"))["error"]
        assert error["data"]["requiredCapabilities"] == {"elicitation": {}}


async def test_one_agent_cannot_answer_a_question_put_to_another(hub: RunningHub) -> None:
    Probe(hub)
    async with (
        Agent(hub, capabilities={"elicitation": {}}) as one,
        Agent(hub) as two,
        one.streamed("tools/call", {"name": "probe_ask"}) as events,
    ):
        question = await events.message()
        await two.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {}}})
        mine = {"action": "decline"}
        await one.post({"jsonrpc": "2.0", "id": question["id"], "result": mine})
        assert (await events.message())["result"]["structuredContent"] == {"answer": mine}
