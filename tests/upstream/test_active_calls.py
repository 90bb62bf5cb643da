"""Elicitations of a server during a call, for agents that can be asked only between two requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2

from tests.harness.agent import client, stateless
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until
from tests.upstream.servers import python, text

CAN: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
NAME = "mcp__asks__ask"


async def asking(hub: RunningHub, log: Path) -> None:
    (facts,) = await hub.hub.upstream.add({"asks": python("asking", str(log))})
    assert facts["state"] == "ready", facts
    assert facts["protocol"] == "2025-06-18"


async def call(http: httpx2.AsyncClient, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"name": NAME, "arguments": arguments, **more}
    body, headers = stateless("tools/call", params, **CAN)
    answer: dict[str, Any] = (await http.post("/mcp", json=body, headers=headers)).json()
    return answer


def answered(asked: dict[str, Any], word: str) -> dict[str, Any]:
    responses = {key: {"action": "accept", "content": {"word": word}} for key in asked["inputRequests"]}
    return {"inputResponses": responses, "requestState": asked["requestState"]}


async def test_a_call_waits_at_the_server_and_is_sent_once(hub: RunningHub, tmp_path: Path) -> None:
    log = tmp_path / "seen"
    async with client(hub) as http:
        await asking(hub, log)
        first = (await call(http, {"questions": 2}))["result"]
        assert first["resultType"] == "input_required"
        (asked,) = first["inputRequests"].values()
        # The message names the server: the agent's client knows only the hub.
        assert asked["params"]["message"] == "The external server asks asks: Question 1?"
        second = (await call(http, {"questions": 2}, **answered(first, "blue")))["result"]
        (asked,) = second["inputRequests"].values()
        assert asked["params"]["message"] == "The external server asks asks: Question 2?"
        last = (await call(http, {"questions": 2}, **answered(second, "green")))["result"]
        assert text(last) == "blue green"
    assert log.read_text().split("\n") == ["call", "answer blue", "answer green", ""]


async def test_an_answer_to_another_call_or_from_another_agent_is_refused(hub: RunningHub, tmp_path: Path) -> None:
    log = tmp_path / "seen"
    async with client(hub) as http:
        await asking(hub, log)
        first = (await call(http, {"questions": 1}))["result"]
        other = (await call(http, {"questions": 3}, **answered(first, "blue")))["result"]
        assert other["isError"] is True
        assert "no longer in progress" in text(other)
        assert "outcome: unknown" in text(other)
        made_up = {"upstream-" + "0" * 32 + "-1": {"action": "accept", "content": {"word": "red"}}}
        strange = (await call(http, {"questions": 1}, inputResponses=made_up))["result"]
        assert "no longer in progress" in text(strange)
        last = (await call(http, {"questions": 1}, **answered(first, "green")))["result"]
        assert text(last) == "green"
        again = (await call(http, {"questions": 1}, **answered(first, "green")))["result"]
        assert "no longer in progress" in text(again)
    assert log.read_text().split("\n") == ["call", "answer green", ""]


async def test_a_call_is_cancelled_when_its_agent_does_not_return(tmp_path: Path) -> None:
    log = tmp_path / "seen"
    async with running_hub(tmp_path, limits={"upstream_question": 0.2}) as hub, client(hub) as http:
        await asking(hub, log)
        first = (await call(http, {"questions": 1}))["result"]
        await until(lambda: "nothing" in log.read_text())
        late = (await call(http, {"questions": 1}, **answered(first, "blue")))["result"]
        assert late["isError"] is True
        assert "0.2 s" in text(late)
        assert "Check before you call again" in text(late)
    # The server receives both the cancellation of the call and an error for its elicitation.
    assert log.read_text().split("\n") == ["call", "cancelled", "answer nothing", ""]
