"""A pause by the person: acting calls wait or fail, reading calls continue, and the pause is reported."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from tabhub.core.registry import Entry
from tabhub.core.tools import HUB, CallContext, Tool, ToolResult
from tests.harness.agent import Agent, client, message
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe
from tests.harness.waiting import until


def offer(hub: RunningHub) -> list[int]:
    """Tools that record their number, one of which only reads; returns the records."""
    ran: list[int] = []

    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        ran.append(args["n"])
        return ToolResult.text(str(args["n"]))

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tools = [
        Tool("do_act", HUB, "acts", schema),
        Tool("do_read", HUB, "reads", schema, annotations={"readOnlyHint": True}),
    ]
    hub.hub.tabs.register(HUB, [Entry(tool, run) for tool in tools])
    return ran


async def test_acting_calls_wait_for_the_end_of_a_pause_in_order_and_reading_ones_do_not(hub: RunningHub) -> None:
    ran = offer(hub)
    async with Agent(hub) as agent, client(hub, **{"Tabhub-Client": "the panel"}) as http:
        paused = (await http.post("/pause", json={"reason": "paying"})).json()["paused"]
        assert (paused["by"], paused["reason"], paused["mode"]) == ("the panel", "paying", "wait")
        calls = []
        for n in range(5):
            calls.append(asyncio.create_task(agent.call("do_act", {"n": n})))
            await until(lambda: len(hub.hub.engine.pause.held_calls) == len(calls))
        await agent.call("do_read", {"n": 99})
        assert ran == [99]
        health = (await http.get("/health")).json()
        assert (health["paused"]["callsWaiting"], health["status"]) == (5, "ok")
        resumed = (await http.post("/resume")).json()
        assert resumed == {"ok": True, "wasPaused": True, "callsReleased": 5}
        await asyncio.gather(*calls)
        assert ran == [99, 0, 1, 2, 3, 4]
        assert (await http.get("/health")).json()["paused"] is None
        assert (await http.post("/resume")).json()["wasPaused"] is False


async def test_a_paused_call_fails_at_its_deadline_and_names_who_paused(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"call_timeout": 0.1}) as hub, client(hub) as http:
        ran = offer(hub)
        await http.post("/pause", json={"reason": "paying", "by": "Ada"})
        late = await http.post("/tools/do_act/call", json={"n": 1})
        assert late.status_code == 423
        error = late.json()["error"]
        assert (error["code"], error["outcome"], error["retryable"]) == (-32015, "not_sent", True)
        assert re.search(r"agents have been paused for \d+ s by Ada \(paying\)", error["message"])
        assert "tabhub resume" in error["hint"]
        assert ran == []
        assert hub.hub.engine.audit.recent(1)[0]["error"]["category"] == "paused"


async def test_in_fail_mode_acting_calls_and_waiting_ones_fail_at_once(hub: RunningHub) -> None:
    offer(hub)
    async with client(hub) as http:
        await http.post("/pause", json={})
        waiting = asyncio.create_task(http.post("/tools/do_act/call", json={"n": 1}))
        await until(lambda: len(hub.hub.engine.pause.held_calls) == 1)
        since = (await http.get("/sessions")).json()["paused"]["since"]
        assert (await http.post("/pause", json={"mode": "fail"})).json()["paused"]["since"] == since
        assert (await waiting).status_code == 423
        assert (await http.post("/tools/do_act/call", json={"n": 2})).status_code == 423
        assert (await http.post("/tools/do_read/call", json={"n": 3})).status_code == 200


async def test_a_waiting_call_can_be_cancelled_and_ends_with_its_session(hub: RunningHub) -> None:
    ran = offer(hub)
    async with Agent(hub) as agent, client(hub) as http:
        await http.post("/pause")
        pause = hub.hub.engine.pause
        request = message("tools/call", {"name": "do_act", "arguments": {"n": 1}})
        first = asyncio.create_task(agent.post(request))
        await until(lambda: len(pause.held_calls) == 1)
        await agent.notify("notifications/cancelled", {"requestId": request["id"]})
        assert (await first).text == ""  # a cancelled request has no answer
        gone = asyncio.create_task(http.post("/tools/do_act/call", json={"n": 2}))
        await until(lambda: len(pause.held_calls) == 1)
        gone.cancel()
        await until(lambda: len(pause.held_calls) == 0)
        last = asyncio.create_task(agent.call("do_act", {"n": 3}))
        await until(lambda: len(pause.held_calls) == 1)
        await agent.http.delete("/mcp", headers=agent.headers)
        assert (await last)["result"]["isError"] is True
        await http.post("/resume")
        assert ran == []


async def test_a_queued_call_waits_too(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"concurrent_per_source": 1}) as hub, Agent(hub) as agent:
        probe, pause = Probe(hub), hub.hub.engine.pause
        calls = [asyncio.create_task(agent.call("probe_wait", {"n": 0}))]
        assert await probe.begun() == {"n": 0}
        calls += [asyncio.create_task(agent.call("probe_wait", {"n": n})) for n in (1, 2)]
        await until(lambda: len(hub.hub.engine.calls) == 3)
        pause.begin("Ada", "paying", "wait")
        probe.release.set()
        await calls[0]
        await until(lambda: len(pause.held_calls) == 1)
        assert probe.started.empty()
        pause.end()
        assert [(await call)["result"].get("isError") for call in calls[1:]] == [None, None]


async def test_a_tool_disabled_during_a_pause_is_not_run_after_it(tmp_path: Path) -> None:
    permissions = {"default": "auto", "hub": {"tools": {"do_act": "auto"}}}
    async with running_hub(tmp_path, permissions=permissions) as hub, client(hub) as http:
        ran = offer(hub)
        await http.post("/pause")
        waiting = asyncio.create_task(http.post("/tools/do_act/call", json={"n": 1}))
        await until(lambda: len(hub.hub.engine.pause.held_calls) == 1)
        hub.home.config.write_text('{"permissions": {"hub": {"tools": {"do_act": "off"}}}}')
        await http.post("/reload")
        await http.post("/resume")
        refused = (await waiting).json()["error"]
        assert (refused["code"], refused["outcome"]) == (-32005, "not_sent")
        assert ran == []


async def test_a_batch_stops_between_two_steps_during_a_pause(hub: RunningHub) -> None:
    pause = hub.hub.engine.pause
    went: list[str] = []
    async with FakeExtension(hub) as browser, Agent(hub) as agent:

        def navigate(params: dict[str, Any]) -> dict[str, Any]:
            went.append(params["url"])
            pause.begin("Ada", "paying", "wait")
            return {"tabId": 7, "url": params["url"], "httpStatus": 200}

        browser.handlers["browser_navigate"] = navigate
        steps = [{"action": "navigate", "url": f"https://example.com/{n}"} for n in range(3)]
        acting = asyncio.create_task(agent.call("browser_act", {"actions": steps, "tabId": 7}))
        await until(lambda: len(pause.held_calls) == 1)
        assert len(went) == 1
        pause.begin("Ada", "paying", "fail")
        answer = (await acting)["result"]
        text, facts = answer["content"][0]["text"], answer["_meta"]["tabhub/error"]
        assert "Action 2 of 3 (navigate) was not done: agents have been paused" in text
        assert "Done before: " in text
        assert "Nothing was sent" not in text
        assert (facts["category"], facts["outcome"], len(went)) == ("paused", "failed", 1)


async def test_a_pause_survives_a_restart_and_a_shutdown_cancels_waiting_calls(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, client(hub) as http:
        offer(hub)
        before = (await http.post("/pause", json={"by": "Ada", "mode": "wait"})).json()["paused"]
        waiting = asyncio.create_task(http.post("/tools/do_act/call", json={"n": 1}))
        await until(lambda: len(hub.hub.engine.pause.held_calls) == 1)
        hub.hub.closing()
        assert (await waiting).json()["error"]["category"] == "cancelled"
    async with running_hub(tmp_path) as hub, client(hub) as http:
        assert (await http.get("/health")).json()["paused"] == {**before, "callsWaiting": 0}
        await http.post("/resume")
    async with running_hub(tmp_path) as hub, client(hub) as http:
        assert (await http.get("/health")).json()["paused"] is None
