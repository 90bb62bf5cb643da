"""The hub's side of the panel: its state, its methods and its notifications."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tabhub.links.extension import ExtensionLink
from tests.harness.agent import Agent, client
from tests.harness.hub import AGENT, RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.probe import Probe
from tests.harness.waiting import until

TOOL = "browser_execute_script"
ARGUMENTS = {"tabId": 7, "code": "return 1"}


def written(hub: RunningHub) -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(hub.home.config.read_text())
    return settings


def find(state: dict[str, Any], name: str) -> dict[str, Any]:
    families = state["browserTools"]["families"]
    found: dict[str, Any] = next(tool for family in families for tool in family["tools"] if tool["name"] == name)
    return found


@pytest.mark.req("S002-ws-extension-07")
async def test_the_state_covers_the_whole_hub(tmp_path: Path) -> None:
    async with running_hub(tmp_path, permissions=None) as hub, Panel(hub) as panel, Agent(hub) as agent:
        await agent.call("browser_get_tab_info", {"tabId": 7})
        state = await panel.get("config.getState")
        assert (state["paused"], state["skipPermissions"], state["permissionDefault"]) == (None, False, None)
        assert [session["client"] for session in state["sessions"]] == ["raw 1"]
        assert state["activity"][0]["tool"] == "browser_get_tab_info"
        assert [browser["connected"] for browser in state["browsers"]] == [True]
        assert (state["approvals"], state["plugins"], state["upstream"], state["pages"]) == ([], [], [], [])
        acts, reads = find(state, TOOL), find(state, "browser_list_tabs")
        assert (acts["effective"], acts["from"], acts["readOnly"]) == ("ask", "what it does", False)
        assert (reads["effective"], reads["permission"], reads["readOnly"]) == ("auto", None, True)
        assert state["settings"]["approvalTimeout"] == 120.0
        assert "permissions" not in state["settings"]


@pytest.mark.req("S002-ws-extension-08", "S002-ws-extension-09")
async def test_permissions_set_in_the_panel_apply_at_once_and_are_saved(tmp_path: Path) -> None:
    async with running_hub(tmp_path, colour="blue") as hub, Panel(hub) as panel, Agent(hub) as agent:
        for level in ("off", "auto"):
            await panel.get("config.setToolPermission", {"plugin": "browser", "tool": TOOL, "permission": level})
            assert bool((await agent.call(TOOL, ARGUMENTS))["result"].get("isError")) is (level == "off")
        assert written(hub)["permissions"]["browser"]["tools"] == {TOOL: "auto"}
        await panel.get("config.setPluginPermission", {"plugin": "browser", "permission": "off"})
        assert not (await agent.call(TOOL, ARGUMENTS))["result"].get("isError")
        await panel.get("config.setToolPermission", {"plugin": "browser", "tool": TOOL, "permission": None})
        assert (await agent.call(TOOL, ARGUMENTS))["result"]["isError"]
        assert (await agent.request("tools/list"))["result"]["tools"][0]["name"].startswith("tabhub_")
        assert (await panel.get("config.getState"))["browserTools"]["permission"] == "off"
        assert written(hub)["colour"] == "blue"  # unknown keys are kept
        wrong = await panel.ask("config.setPluginPermission", {"plugin": "browser", "permission": "maybe"})
        assert "'maybe' - at `$.permission`" in wrong["error"]["message"]


@pytest.mark.req("S002-ws-extension-10")
async def test_settings_and_skipping_are_changed_and_an_unknown_key_is_named_with_the_nearest(hub: RunningHub) -> None:
    async with Panel(hub) as panel:
        await panel.get("config.set", {"key": "approvalTimeout", "value": 30})
        await panel.get("config.set", {"key": "approvals.elicitation", "value": False})
        await panel.get("config.set", {"key": "permissions.default", "value": None})
        state = await panel.get("config.getState")
        assert (state["settings"]["approvalTimeout"], state["permissionDefault"]) == (30.0, None)
        assert state["settings"]["approvals"] == {"elicitation": False}
        wrong = await panel.ask("config.set", {"key": "aprovalTimeout", "value": 1})
        assert "Did you mean 'approvalTimeout'?" in wrong["error"]["message"]
        await panel.get("config.setSkipPermissions", {"skip": True})
        assert (await panel.get("config.getState"))["skipPermissions"] is True
        async with client(hub) as http:
            assert (await http.get("/health")).json()["skipPermissions"] is True
        await panel.get("config.setSkipPermissions", {"skip": False})
        assert (await panel.get("config.getState"))["skipPermissions"] is False


async def test_pause_end_and_release_work_from_the_panel(hub: RunningHub) -> None:
    async with Panel(hub) as panel, Agent(hub) as agent:
        await agent.call(TOOL, ARGUMENTS)
        assert (await panel.get("hub.pause", {"reason": "paying"}))["paused"]["by"] == "the panel"
        assert (await panel.get("config.getState"))["paused"]["reason"] == "paying"
        assert (await panel.get("hub.resume")) == {"callsReleased": 0}
        assert (await panel.get("sessions.release", {"tabId": 7})) == {"ok": True}
        assert "No agent holds tab 7" in (await panel.ask("sessions.release", {"tabId": 7}))["error"]["message"]
        session = agent.headers["Mcp-Session-Id"]
        assert (await panel.get("sessions.end", {"id": session})) == {"ok": True}
        assert hub.hub.sessions.get(session) is None
        assert "error" in await panel.ask("sessions.end", {"id": session})


async def test_the_audit_is_filtered(hub: RunningHub) -> None:
    async with Panel(hub) as panel, Agent(hub) as agent:
        await agent.call("browser_list_tabs")
        await agent.call("browser_get_tab_info", {"tabId": 99})
        entries = (await panel.get("audit.list"))["entries"]
        assert [entry["tool"] for entry in entries] == ["browser_get_tab_info", "browser_list_tabs"]
        for filters, tools in (
            ({"ok": True}, ["browser_list_tabs"]),
            ({"tool": "tab_info"}, ["browser_get_tab_info"]),
            ({"source": "plugin"}, []),
            ({"limit": 1}, ["browser_get_tab_info"]),
            ({"before": entries[0]["timestamp"]}, ["browser_list_tabs"]),
        ):
            found = (await panel.get("audit.list", filters))["entries"]
            shown = [entry["tool"] for entry in found]
            assert shown == tools or ("before" in filters and shown == [])  # two calls may have the same millisecond


@pytest.mark.req("S002-ws-server-06", "S002-ws-server-07")
async def test_only_open_panels_are_notified_of_calls_and_changes(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Panel(hub) as panel, Panel(hub, "other") as other, Agent(hub) as agent:
        await panel.notify("panel.watch", {"open": True})
        await panel.settle()
        calling = asyncio.create_task(agent.call("probe_wait"))
        await probe.begun()
        began = (await panel.next_notification("tool.invocationStart"))["params"]
        assert (began["tool"], began["source"], began["client"]) == ("probe_wait", "plugin:probe", "raw 1")
        probe.release.set()
        await calling
        ended = (await panel.next_notification("tool.invocationEnd"))["params"]
        assert (ended["callId"], ended["ok"]) == (began["callId"], True)
        probe.change()
        assert "plugins" in (await panel.next_notification("panel.changed"))["params"]["what"]
        await panel.notify("panel.watch", {"open": False})
        await panel.settle()
        assert not hub.hub.engine._watchers
        assert all(each["method"] != "tool.invocationStart" for each in _received(other))


def _received(panel: Panel) -> list[dict[str, Any]]:
    received = []
    while not panel.notices.empty():
        received.append(panel.notices.get_nowait())
    return received


async def test_a_tab_held_by_an_agent_has_a_badge_with_its_name(hub: RunningHub) -> None:
    async with Panel(hub) as panel, Agent(hub) as agent:
        await agent.call(TOOL, ARGUMENTS)
        hub.hub.panel.marks.update()
        (mark,) = (await panel.next_notification("agents.marks"))["params"]["tabs"]
        assert (mark["tabId"], mark["label"]) == (7, f"{AGENT} (raw)")
        assert mark["doing"] == "running JavaScript in the page"
        state = await panel.get("config.getState")
        assert mark["color"] == state["sessions"][0]["color"]
        hub.hub.session_control.end(agent.headers["Mcp-Session-Id"], "done")
        hub.hub.panel.marks.update()
        assert (await panel.next_notification("agents.marks"))["params"] == {"tabs": []}


async def test_a_browser_without_a_window_gets_no_badges(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub.hub._marks, "is_headless", lambda browser: browser == "headless")
    async with Panel(hub, "headless") as panel, Agent(hub) as agent:
        await agent.call(TOOL, ARGUMENTS)
        hub.hub._marks.update()
        await panel.settle()
        assert all(each["method"] != "agents.marks" for each in _received(panel))


async def test_a_browser_that_connects_later_gets_pending_approvals(tmp_path: Path) -> None:
    async with running_hub(tmp_path, permissions={"default": "ask"}) as hub, Agent(hub) as agent:
        async with Panel(hub):
            calling = asyncio.create_task(agent.call("browser_list_tabs"))
            await until(lambda: len(hub.hub.approvals) == 1)
        async with Panel(hub, "later") as later:
            await later.decide("allow_once")
            assert not (await calling)["result"].get("isError")


async def test_a_link_over_a_relay_has_no_panel_methods(hub: RunningHub) -> None:
    methods = hub.hub.panel.methods
    assert {"config.getState", "confirmation.response", "plugin.install"} <= methods.keys()
    for local in (True, False):
        link = ExtensionLink("far", lambda _: None, lambda *_: None)
        link.local = local
        hub.hub.browsers.attach(link)
        assert (methods.keys() <= link.handlers.keys()) is local
        assert bool(methods.keys() & link.handlers.keys()) is local
        hub.hub.browsers.detach(link)


@pytest.mark.req("F13")
async def test_an_invalid_config_keeps_the_last_good_one_until_it_is_fixed(
    tmp_path: Path,
) -> None:
    permissions = {"default": "auto", "browser": {"tools": {TOOL: "off"}}}
    async with running_hub(tmp_path, permissions=permissions) as hub, Panel(hub) as panel, client(hub) as http:
        good = hub.home.config.read_text()
        for broken in (good[: len(good) // 2], "", '{"permissions": {"default": "maybe"}}'):
            hub.home.config.write_text(broken)
            hub.hub.reload.check_files()
            assert (await http.post(f"/tools/{TOOL}/call", json=ARGUMENTS)).status_code == 403
            health = (await http.get("/health")).json()
            assert health["status"] == "degraded"
            assert "the last good one is in force" in " ".join(health["problems"])
            assert (await panel.get("config.getState"))["problems"] == health["problems"]
            # the panel's change is refused, and the broken file left for the person to repair
            wrong = await panel.ask("config.set", {"key": "showDisabled", "value": True})
            assert "error" in wrong
            assert hub.home.config.read_text() == broken
        hub.home.config.write_text(json.dumps({"permissions": {"default": "auto"}}))
        hub.hub.reload.check_files()
        assert (await http.post(f"/tools/{TOOL}/call", json=ARGUMENTS)).status_code == 200
        assert (await http.get("/health")).json()["status"] == "ok"
