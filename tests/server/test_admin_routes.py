"""The routes besides the tools: the socket's URL, recent calls, metrics, reloading, plugin settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.harness.agent import Agent, client, stateless
from tests.harness.bridge_client import initialized
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe

ADMIN = ("/reload", "/extension/reload", "/plugin-settings")


@pytest.mark.req("S002-ws-info-01", "S002-endpoints-07")
async def test_ws_info_names_the_socket_at_the_requested_host(hub: RunningHub) -> None:
    async with client(hub) as http:
        answer = await http.get("/ws-info")
        named = await http.get("/ws-info", headers={"Host": f"localhost:{hub.port}"})
        stranger = await http.get("/ws-info", headers={"Authorization": ""})
    assert answer.json() == {"wsUrl": f"ws://127.0.0.1:{hub.port}/ws"} == {"wsUrl": hub.ws_url}
    assert named.json() == {"wsUrl": f"ws://localhost:{hub.port}/ws"}
    assert stranger.status_code == 401


async def some_calls(hub: RunningHub) -> None:
    """Three that succeed, one with invalid arguments, one of an unknown tool."""
    Probe(hub)
    async with client(hub) as http:
        for name, body in [
            ("probe_echo", {"value": "1"}),
            ("probe_report", {}),
            ("browser_get_connection_status", {}),
            ("probe_echo", {"value": 5}),
            ("probe_eco", {}),
        ]:
            await http.post(f"/tools/{name}/call", json=body)


async def audit(hub: RunningHub, **params: Any) -> Any:
    async with client(hub) as http:
        return (await http.get("/audit", params=params)).json()


@pytest.mark.req("S002-audit-01", "S002-audit-10", "S002-audit-11", "S002-endpoints-09")
async def test_the_audit_shows_calls_newest_first_with_their_errors(hub: RunningHub) -> None:
    await some_calls(hub)
    lines = await audit(hub)
    assert [line["tool"] for line in lines] == [
        "probe_eco",
        "probe_echo",
        "browser_get_connection_status",
        "probe_report",
        "probe_echo",
    ]
    assert all(set(line) >= {"timestamp", "tool", "plugin", "success", "durationMs"} for line in lines)
    assert [line["timestamp"] for line in lines] == sorted((line["timestamp"] for line in lines), reverse=True)
    failed = [line for line in lines if not line["success"]]
    assert [line["error"]["category"] for line in failed] == ["not_found", "validation"]
    assert all(set(line["error"]) >= {"code", "message"} for line in failed)
    async with client(hub) as http:
        assert (await http.get("/audit", headers={"Authorization": ""})).status_code == 401


async def test_the_audit_has_the_route_of_a_call(hub: RunningHub) -> None:
    Probe(hub)
    within: dict[str, Any] = {"name": "probe_echo", "arguments": {"value": "x"}}
    async with Agent(hub) as agent, client(hub) as http, initialized(hub) as bridge:
        await agent.call(**within)
        for path, params in (("/mcp", within), ("/mcp/gateway", {"name": "tabhub_call", "arguments": within})):
            body, headers = stateless("tools/call", params)
            assert (await http.post(path, json=body, headers=headers)).status_code == 200
        await bridge.call("probe_echo", {"value": "x"})
        for value in ("x", 5):  # failed calls have it too
            for who in ({}, {"Tabhub-Client": "cli"}):
                await http.post("/tools/probe_echo/call", json={"value": value}, headers=who)
    lines = await audit(hub)
    assert [line["via"] for line in reversed(lines)] == ["mcp", "mcp", "gateway", "bridge", *["rest", "cli"] * 2]
    assert [line["success"] for line in lines[:4]] == [False, False, True, True]


@pytest.mark.req("S002-audit-07", "S002-audit-08", "S002-audit-09")
async def test_the_audit_is_filtered_by_plugin_tool_and_success(hub: RunningHub) -> None:
    await some_calls(hub)
    assert [line["tool"] for line in await audit(hub, plugin="browser")] == ["browser_get_connection_status"]
    assert [line["tool"] for line in await audit(hub, plugin="probe")] == ["probe_echo", "probe_report", "probe_echo"]
    assert [line["success"] for line in await audit(hub, tool="probe_echo")] == [False, True]
    assert [line["tool"] for line in await audit(hub, success="false")] == ["probe_eco", "probe_echo"]
    assert len(await audit(hub, success="true")) == 3
    assert await audit(hub, plugin="browser", success="false") == []


@pytest.mark.req("S002-audit-02", "S002-audit-03", "S002-audit-06")
async def test_the_audit_keeps_500_calls_and_lists_50_by_default(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        for number in range(510):
            await http.post("/tools/probe_echo/call", json={"value": str(number)})
    assert len(await audit(hub)) == 50
    assert len(await audit(hub, limit=500)) == 500
    assert len(await audit(hub, limit=1)) == 1
    lines = [json.loads(line) for line in hub.home.audit.read_text().splitlines()]
    assert len(lines) == 510
    assert await audit(hub, limit=500) == lines[:9:-1]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "limit=-1",
        "limit=x",
        "limit=",
        "limit=1e2",
        "limit=999999999999999999999",
        "success=yes",
        "colour=red",
    ],
)
async def test_a_wrong_audit_parameter_is_refused_by_name(hub: RunningHub, query: str) -> None:
    async with client(hub) as http:
        answer = await http.get(f"/audit?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.json()["error"]["message"]


@pytest.mark.req("S002-reload-02")
async def test_reload_applies_a_changed_configuration(hub: RunningHub) -> None:
    hub.home.config.write_text(json.dumps({"permissions": {"browser": {"permission": "off"}}}))
    async with client(hub) as http, Agent(hub) as agent:
        before = (await agent.request("tools/list"))["result"]["tools"]
        answer = await http.post("/reload")
        after = (await agent.request("tools/list"))["result"]["tools"]
        stranger = await http.post("/reload", headers={"Authorization": ""})
    body = answer.json()
    assert (answer.status_code, body["ok"], body["plugins"]) == (200, True, 0)
    assert body["durationMs"] >= 0
    assert {t["name"] for t in before} - {t["name"] for t in after} >= {"browser_list_tabs"}
    assert [t["name"] for t in after] == ["tabhub_read_result"]
    assert stranger.status_code == 401


async def test_reload_names_settings_that_need_a_restart(hub: RunningHub) -> None:
    hub.home.config.write_text(json.dumps({"auditArguments": True, "limits": {"call_timeout": 45}}))
    async with client(hub) as http:
        assert (await http.post("/reload")).json()["needsRestart"] == ["limits"]
        hub.home.config.write_text(json.dumps({"auditArguments": True}))
        assert "needsRestart" not in (await http.post("/reload")).json()


async def test_agents_with_an_open_stream_are_notified_of_a_reload(hub: RunningHub) -> None:
    async with Agent(hub) as agent, client(hub) as http, agent.listening() as events:
        await events.next()
        await http.post("/reload")
        assert (await events.message())["method"] == "notifications/tools/list_changed"


@pytest.mark.req("S002-rate-01", "S002-rate-03", "S002-reload-01", "S002-endpoints-10", "S002-endpoints-11")
async def test_each_admin_route_allows_ten_requests_per_minute(hub: RunningHub) -> None:
    async with client(hub) as http:
        for path in ADMIN:
            for _ in range(10):
                assert (await http.post(path, json={})).status_code != 429
            refused = await http.post(path, json={})
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "60"
            assert path in refused.json()["error"]["message"]
            assert (await http.post(path, headers={"Authorization": ""})).status_code == 401
        assert (await http.get("/health")).status_code == 200


async def test_a_refused_request_does_not_count_towards_the_rate(hub: RunningHub) -> None:
    async with client(hub) as http:
        for _ in range(20):
            assert (await http.post("/reload", headers={"Authorization": "Bearer x"})).status_code == 401
        assert (await http.post("/reload")).status_code == 200


@pytest.mark.req("B22")
async def test_the_rates_are_settings(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"admin_rate": 2, "session_rate": 3, "call_rate": 4}) as hub:
        Probe(hub)
        async with client(hub) as http:
            answers = [await http.post("/reload") for _ in range(3)]
            agents = [await http.post("/mcp", json=_initialize(), headers=_ACCEPT) for _ in range(4)]
            calls = [await http.post("/tools/probe_echo/call", json={"value": "x"}) for _ in range(5)]
    for statuses, last in ((answers, "60"), (agents, None), (calls, None)):
        assert [a.status_code for a in statuses] == [200] * (len(statuses) - 1) + [429]
        assert 1 <= int(statuses[-1].headers["retry-after"]) <= 61
        assert last in (None, statuses[-1].headers["retry-after"])


_ACCEPT = {"Accept": "application/json, text/event-stream"}


def _initialize() -> dict[str, Any]:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


@pytest.mark.req("S002-reload-05")
async def test_reloading_without_a_connected_extension_is_503(hub: RunningHub) -> None:
    async with client(hub) as http:
        answer = await http.post("/extension/reload")
    assert answer.status_code == 503
    assert "No extension is connected" in answer.json()["error"]["message"]
    assert "tabhub doctor" in answer.json()["error"]["hint"]


@pytest.mark.req("S002-ws-server-09")
async def test_every_connected_extension_is_reloaded(hub: RunningHub) -> None:
    async with FakeExtension(hub, "red") as red, FakeExtension(hub, "blue") as blue, client(hub) as http:
        answer = await http.post("/extension/reload")
        for browser in (red, blue):
            assert (await browser.next_notification("extension.reload"))["params"] == {}
    assert answer.json() == {"ok": True, "extensions": 2}


@pytest.mark.req("S002-endpoints-12")
@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        ({"plugin": "slack", "settings": {"a": 1}}, 404, "slack"),
        ({"settings": {}}, 400, "plugin"),
        ({"plugin": "", "settings": {}}, 400, "plugin"),
        ({"plugin": 5, "settings": {}}, 400, "plugin"),
        ({"plugin": "slack"}, 400, "settings"),
        ({"plugin": "slack", "settings": []}, 400, "settings"),
        ({"plugin": "slack", "settings": {}, "colour": 1}, 400, "colour"),
        ([], 400, "JSON object"),
        ("x", 400, "JSON object"),
    ],
    ids=str,
)
async def test_plugin_settings_are_checked_by_name(hub: RunningHub, body: Any, status: int, named: str) -> None:
    async with client(hub) as http:
        answer = await http.post("/plugin-settings", json=body)
        broken = await http.post("/plugin-settings", content=b"{")
    assert answer.status_code == status
    assert named in answer.json()["error"]["message"]
    assert broken.status_code == 400
    assert broken.json()["error"]["code"] == -32700


async def test_metrics_are_prometheus_text_that_follows_what_happens(hub: RunningHub) -> None:
    await some_calls(hub)
    async with FakeExtension(hub) as browser, client(hub) as http, Agent(hub):
        await browser.send({"jsonrpc": "2.0", "id": 999, "result": {}})
        await browser.settle()
        await http.get("/nothing")
        answer = await http.get("/metrics")
        stranger = await http.get("/metrics", headers={"Authorization": ""})
    assert stranger.status_code == 401
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert values["tabhub_calls_total", "ok", "probe"] == 2
    assert values["tabhub_calls_total", "failed", "probe"] == 1
    assert values["tabhub_call_seconds_count", "probe"] == 3
    assert values["tabhub_call_seconds_bucket", "+Inf", "probe"] == 3
    assert values["tabhub_refused_total", "404"] == 1
    assert values["tabhub_browsers",] == 1
    assert values["tabhub_tabs",] == 1
    assert values["tabhub_calls_in_flight",] == 0
    assert values["tabhub_replies_dropped",] == 1
    assert values["tabhub_tools",] == len(hub.hub.registry.tools())
    assert values["tabhub_sessions",] >= 1
    assert values["process_resident_memory_bytes",] > 0
