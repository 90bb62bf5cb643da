"""`/health`: a public status, and all details with the token."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tabhub import __version__
from tabhub.store.audit_record import CallRecord
from tests.harness.agent import Agent, client
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe
from tests.plugins.packages import folder


async def health(hub: RunningHub) -> dict[str, Any]:
    async with client(hub) as http:
        answer = await http.get("/health")
    assert answer.status_code == 200
    facts: dict[str, Any] = answer.json()
    return facts


@pytest.mark.req("S002-health-01", "S002-endpoints-08")
async def test_health_without_a_token_is_only_the_status(hub: RunningHub) -> None:
    async with client(hub) as http:
        for wrong in ({"Authorization": ""}, {"Authorization": "Bearer no"}, hub.bearer):
            answer = await http.get("/health", headers=wrong)
            assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert len((await http.get("/health")).json()) > 10


@pytest.mark.req(
    "S002-health-02",
    "S002-health-03",
    "S002-health-18",
    "S002-health-20",
)
async def test_health_with_the_token_has_all_details(hub: RunningHub) -> None:
    facts = await health(hub)
    assert set(facts) >= {
        "status",
        "version",
        "sdkVersion",
        "mode",
        "extensionConnected",
        "extensionConnections",
        "mcpClients",
        "plugins",
        "pluginDetails",
        "failedPlugins",
        "toolCount",
        "browserToolCount",
        "pluginToolCount",
        "browserToolNames",
        "disabledBrowserTools",
        "skipPermissions",
        "uptime",
        "reloadCount",
        "lastReloadTimestamp",
        "lastReloadDurationMs",
        "stateSchemaVersion",
        "discoveryErrors",
        "auditSummary",
    }
    assert (facts["status"], facts["version"], facts["sdkVersion"]) == ("ok", __version__, __version__)
    assert facts["mode"] == "production"
    assert (facts["plugins"], facts["pluginDetails"], facts["failedPlugins"]) == (0, [], [])
    assert facts["skipPermissions"] is False
    assert 0 <= facts["uptime"] < 60
    assert type(facts["stateSchemaVersion"]) is int
    assert facts["discoveryErrors"] == []
    hub.hub.health.started -= 1000
    assert 1000 <= (await health(hub))["uptime"] < 1060


@pytest.mark.req("S002-health-04")
async def test_the_mode_is_dev_while_local_plugins_are_watched(tmp_path: Path) -> None:
    made = folder(tmp_path / "mine", "mine")
    async with running_hub(tmp_path, localPlugins=[str(made)]) as hub, client(hub) as http:
        assert (await health(hub))["mode"] == "dev"
        hub.home.config.write_text("{}")
        assert (await http.post("/reload")).status_code == 200
        assert (await health(hub))["mode"] == "production"


@pytest.mark.req("S002-health-05", "S002-health-06", "S004-goals-05", "S004-status-01")
async def test_extensions_are_counted_while_they_are_connected(hub: RunningHub) -> None:
    before = await health(hub)
    async with FakeExtension(hub, "red"):
        one = await health(hub)
        async with FakeExtension(hub, "blue") as blue:
            two = await health(hub)
            blue.cut()
            await blue.ended()
            while len(hub.hub.browsers.links()) == 2:
                await health(hub)
            after_cut = await health(hub)
    seen = [(f["extensionConnected"], f["extensionConnections"]) for f in (before, one, two, after_cut)]
    assert seen == [(False, 0), (True, 1), (True, 2), (True, 1)]
    assert [leg["connected"] for leg in after_cut["legs"]["browsers"]] == [True, False]
    assert before["legs"]["extension"]["ok"] is False
    assert before["legs"]["hub"]["ok"] is True


@pytest.mark.req("S002-health-07")
async def test_mcp_clients_are_counted_until_they_end(hub: RunningHub) -> None:
    async with Agent(hub) as one, Agent(hub, "/mcp/gateway"):
        assert (await health(hub))["mcpClients"] == 2
        await one.http.delete("/mcp", headers=one.headers)
        assert (await health(hub))["mcpClients"] == 1


@pytest.mark.req("S002-health-13", "S002-health-14", "S002-health-15", "S002-health-16")
async def test_tools_are_counted_and_named_disabled_ones_too(tmp_path: Path) -> None:
    off = {"browser": {"tools": {"browser_close_tab": "off"}}}
    async with running_hub(tmp_path, permissions=off) as hub:
        Probe(hub)
        facts = await health(hub)
        probes = [t for t in hub.hub.registry.tools() if t.source.key == "probe"]
        own = [t.name for t in hub.hub.registry.tools() if t.source.kind in ("browser", "hub")]
    assert facts["browserToolNames"] == own
    assert facts["browserToolCount"] == len(own)
    assert "browser_close_tab" in own
    assert facts["disabledBrowserTools"] == ["browser_close_tab"]
    assert facts["pluginToolCount"] == len(probes)
    assert facts["toolCount"] == len(own) + len(probes)


@pytest.mark.req("S002-health-19")
async def test_health_reports_reloads(hub: RunningHub) -> None:
    before = await health(hub)
    assert (before["reloadCount"], before["lastReloadTimestamp"]) == (0, 0)
    began = time.time() * 1000
    async with client(hub) as http:
        for _ in range(2):
            assert (await http.post("/reload")).status_code == 200
    after = await health(hub)
    assert after["reloadCount"] == 2
    assert began - 1000 <= after["lastReloadTimestamp"] <= time.time() * 1000
    assert after["lastReloadDurationMs"] >= 0


@pytest.mark.req("S002-health-23", "S002-health-24")
async def test_the_audit_summary_counts_calls(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        for value in ("a", "b", 5):
            await http.post("/tools/probe_echo/call", json={"value": value})
    summary = (await health(hub))["auditSummary"]
    assert (summary["totalInvocations"], summary["successCount"], summary["failureCount"]) == (3, 2, 1)
    assert summary["last24h"] == {"total": 3, "success": 2, "failure": 1}
    async with client(hub) as http:
        lines = (await http.get("/audit")).json()
    hub.hub.engine.audit.write(msgspec.convert({**lines[0], "durationMs": 9000.0}, CallRecord))
    took = [*(line["durationMs"] for line in lines), 9000]
    assert (await health(hub))["auditSummary"]["avgDurationMs"] == pytest.approx(sum(took) / 4, abs=1)


@pytest.mark.req("S002-health-17")
async def test_health_reports_enabled_settings(tmp_path: Path) -> None:
    async with running_hub(tmp_path, skipPermissions=True, colour="blue") as hub:
        facts = await health(hub)
    assert facts["skipPermissions"] is True
    assert any("colour" in problem for problem in facts["discoveryErrors"])


async def test_a_broken_configuration_makes_the_hub_degraded_for_everyone(hub: RunningHub) -> None:
    hub.home.config.write_text("{broken")
    async with client(hub) as http:
        assert (await http.post("/reload")).status_code == 422
        minimal = await http.get("/health", headers={"Authorization": ""})
    assert minimal.json() == {"status": "degraded"}
    facts = await health(hub)
    assert facts["status"] == "degraded"
    assert "configuration" in facts["problems"][0]
