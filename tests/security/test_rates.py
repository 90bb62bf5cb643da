"""Beyond the rate limits: 429 with Retry-After; each limit is a setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.agent import ACCEPT, Agent, client, message, stateless
from tests.harness.hub import running_hub
from tests.harness.probe import Probe


def limited(answer: httpx2.Response) -> bool:
    if answer.status_code != 429:
        return False
    assert 1 <= int(answer.headers["retry-after"]) <= 60
    error = answer.json()["error"]
    facts = error.get("data", error)
    assert facts["category"] == "rate_limit"
    assert facts["retryable"] is True
    return True


@pytest.mark.req("B22", "S002-rate-03")
@pytest.mark.parametrize("route", ["/reload", "/extension/reload", "/plugin-settings"])
async def test_each_admin_route_has_its_own_rate_limit(tmp_path: Path, route: str) -> None:
    async with running_hub(tmp_path, limits={"admin_rate": 3}) as hub, client(hub) as http:
        answers = [await http.post(route, json={}) for _ in range(5)]
        assert [limited(answer) for answer in answers] == [False] * 3 + [True] * 2
        others = {"/reload", "/extension/reload", "/plugin-settings"} - {route}
        for other in others:
            assert not limited(await http.post(other, json={}))


@pytest.mark.req("B22")
async def test_session_creation_is_rate_limited_across_endpoints_and_existing_sessions_continue(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"session_rate": 4}) as hub, Agent(hub) as agent:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw"}}
        answers = [
            await agent.http.post(path, json=message("initialize", params), headers=ACCEPT)
            for path in ("/mcp", "/mcp/gateway") * 3
        ]
        assert [limited(answer) for answer in answers] == [False] * 3 + [True] * 3
        assert answers[-1].json()["error"]["code"] == -32004
        assert (await agent.request("ping"))["result"] == {}


@pytest.mark.req("B22")
async def test_wrong_tokens_are_rate_limited_and_the_right_one_always_passes(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"auth_failure_rate": 3}) as hub, client(hub) as http:
        answers = [await http.get("/tools", headers={"Authorization": "Bearer x"}) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
        assert limited(answers[-1])
        assert (await http.get("/tools")).status_code == 200


@pytest.mark.req("B22")
async def test_calls_are_rate_limited_per_session_on_every_surface(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"call_rate": 2}) as hub:
        probe = Probe(hub)
        async with Agent(hub) as one, Agent(hub) as two, client(hub) as http:

            async def call(agent: Agent) -> dict[str, Any]:
                return await agent.call("probe_echo", {"value": "x"})

            assert ["isError" in (await call(one))["result"] for _ in range(3)] == [False, False, True]
            refused = (await call(one))["result"]["_meta"]["tabhub/error"]
            assert refused["category"] == "rate_limit"
            assert 1 <= refused["retryAfter"] <= 60
            assert "isError" not in (await call(two))["result"]
            answers = [await http.post("/tools/probe_echo/call", json={"value": "x"}) for _ in range(3)]
            assert [limited(answer) for answer in answers] == [False, False, True]
            body, headers = stateless("tools/call", {"name": "probe_echo", "arguments": {"value": "x"}})
            results = [(await http.post("/mcp", json=body, headers=headers)).json()["result"] for _ in range(3)]
            assert ["isError" in result for result in results] == [False, False, True]
        assert probe.started.empty()
