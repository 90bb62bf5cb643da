"""Plugins in a running hub: their tools, messages to browsers, tab states, logs, settings and health."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import ACCEPT, Agent, client, stateless
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until
from tests.plugins.packages import folder, tool

_SITES = {"site": {"type": "url", "label": "Site"}, "token": {"type": "string", "label": "Token", "secret": True}}


@asynccontextmanager
async def hub_with(tmp_path: Path, *folders: Path, **settings: Any) -> AsyncIterator[RunningHub]:
    async with running_hub(tmp_path, localPlugins=[str(each) for each in folders], **settings) as hub:
        yield hub


def with_plugins(hub: RunningHub, *folders: Path) -> None:
    """Change the plugins of the config file, and nothing else in it."""
    values = json.loads(hub.home.config.read_text())
    hub.home.config.write_text(json.dumps({**values, "localPlugins": [str(each) for each in folders]}))


async def tools_of(hub: RunningHub, plugin: str) -> dict[str, dict[str, Any]]:
    async with client(hub) as http:
        return {each["name"]: each for each in (await http.get(f"/tools?plugin={plugin}")).json()}


async def health(hub: RunningHub) -> dict[str, Any]:
    async with client(hub) as http:
        facts: dict[str, Any] = (await http.get("/health")).json()
        return facts


@pytest.mark.req("S002-capabilities-02", "S002-injected-01")
async def test_tools_have_the_plugins_prefix_and_the_hubs_parameters(tmp_path: Path) -> None:
    made = folder(tmp_path / "my-app", "my-app", tools=[tool("list_things"), tool("get-thing")])
    async with hub_with(tmp_path, made) as hub:
        listed = await tools_of(hub, "my-app")
        assert set(listed) == {"my-app_list_things", "my-app_get-thing"}
        for each in listed.values():
            assert each["inputSchema"]["properties"]["tabId"]["minimum"] == 1
        assert listed["my-app_list_things"]["description"] == "[My-App] Does list_things."


@pytest.mark.req("S002-injected-03", "S002-injected-05", "S002-instance-02")
async def test_the_same_schema_holds_on_every_surface(tmp_path: Path) -> None:
    made = folder(tmp_path / "p", "jira", configSchema=_SITES)
    settings = {"jira": {"site": {"work": "https://a.example", "home": "https://b.example"}}}
    async with (
        hub_with(tmp_path, made, settings=settings) as hub,
        client(hub) as http,
        Agent(hub) as agent,
        Agent(hub, "/mcp/gateway") as gateway,
    ):
        listing = (await agent.request("tools/list"))["result"]["tools"]
        full = next(each["inputSchema"] for each in listing if each["name"] == "jira_read")
        assert full["properties"]["instance"]["enum"] == ["work", "home"]
        assert full["required"] == ["instance"]
        assert (await tools_of(hub, "jira"))["jira_read"]["inputSchema"] == full
        arguments = {"text": "x"}
        for answer in (
            (await agent.call("jira_read", arguments))["result"],
            (await gateway.call("tabhub_call", {"name": "jira_read", "arguments": arguments}))["result"],
            (await http.post("/tools/jira_read/call", json={"arguments": arguments})).json(),
        ):
            assert answer["isError"] is True
            assert "instance" in answer["content"][0]["text"]
        body, headers = stateless("tools/call", {"name": "jira_read", "arguments": arguments})
        answer = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
        assert answer["isError"] is True


@pytest.mark.req("S002-ws-server-01")
async def test_a_browser_gets_all_plugins_when_it_connects_and_after_a_reload(tmp_path: Path) -> None:
    made = folder(tmp_path / "p", configSchema=_SITES, homepage="https://demo.example/")
    settings = {"demo": {"site": {"a": "https://a.example", "b": "https://b.example"}}}
    async with hub_with(tmp_path, made, settings=settings) as hub, FakeExtension(hub) as browser, client(hub) as http:
        (plugin,) = (await browser.next_notification("sync.full"))["params"]["plugins"]
        assert plugin["name"] == "demo"
        assert plugin["urlPatterns"] == ["https://demo.example/*", "*://a.example/*", "*://b.example/*"]
        assert plugin["instances"] == [
            {"name": "a", "urlPatterns": ["*://a.example/*"]},
            {"name": "b", "urlPatterns": ["*://b.example/*"]},
        ]
        assert plugin["tools"] == ["read", "act"]
        assert plugin["adapterFile"] == f"adapters/demo-{plugin['adapterHash'][:12]}.js"
        assert "preScriptFile" not in plugin
        folder(tmp_path / "p2", "second")
        with_plugins(hub, made, tmp_path / "p2")
        answer = (await http.post("/reload")).json()
        assert (answer["ok"], answer["plugins"]) == (True, 2)
        assert [p["name"] for p in (await browser.next_notification("sync.full"))["params"]["plugins"]] == [
            "demo",
            "second",
        ]
        await browser.next_notification("plugins.changed")


@pytest.mark.req("S002-ws-server-02")
async def test_a_plugin_that_changed_on_disk_is_sent_alone_within_a_second(tmp_path: Path) -> None:
    made = folder(tmp_path / "p", "demo")
    async with hub_with(tmp_path, made) as hub, FakeExtension(hub) as browser:
        before = (await browser.next_notification("sync.full"))["params"]["plugins"][0]["adapterHash"]
        await until(lambda: hub.hub.plugins.watcher.status()["watchedPlugins"] == 1)
        hub.hub.plugins.watcher.poll()
        folder(made, "demo", adapter="globalThis.changed = 1;", tools=[tool("fresh")])
        update = (await browser.next_notification("plugin.update"))["params"]["plugin"]
        assert update["name"] == "demo"
        assert update["adapterHash"] != before
        assert set(await tools_of(hub, "demo")) == {"demo_fresh"}


@pytest.mark.req("S002-ws-server-03", "S002-ws-server-04", "S002-reload-03")
async def test_a_removed_plugin_is_removed_from_browsers_and_lists(tmp_path: Path) -> None:
    made = folder(tmp_path / "p")
    async with hub_with(tmp_path, made) as hub, FakeExtension(hub) as browser, client(hub) as http, Agent(hub) as agent:
        async with agent.listening() as events:
            assert await tools_of(hub, "demo")
            with_plugins(hub)
            assert (await http.post("/reload")).json()["plugins"] == 0
            assert (await browser.next_request("plugin.uninstall"))["params"] == {"name": "demo"}
            await browser.next_notification("plugins.changed")
            assert (await events.message())["method"] == "notifications/tools/list_changed"
        assert await tools_of(hub, "demo") == {}
        answer = await agent.call("demo_read")
        assert "There is no tool named 'demo_read'" in json.dumps(answer)


@pytest.mark.req("S002-health-09", "S002-health-10", "S002-health-11", "S002-ws-extension-02", "S002-ws-extension-04")
async def test_health_lists_each_plugin_and_its_tabs(tmp_path: Path) -> None:
    svg = "<svg><path d='M0 0'/></svg>"
    one = folder(tmp_path / "one", "one", extra={"iconSvg": svg})
    two = folder(tmp_path / "two", "two")
    (two / "dist/tools.json").write_text(json.dumps([tool("read")]))
    async with hub_with(tmp_path, one, two) as hub:
        tabs = [tab(1, "https://one.example/a"), tab(2, "https://one.example/b"), tab(3, "https://other.example/")]
        async with FakeExtension(hub, tabs=tabs) as browser:
            facts = await health(hub)
            assert (facts["plugins"], facts["pluginToolCount"]) == (2, 3)
            first, second = facts["pluginDetails"]
            assert (first["name"], first["displayName"], first["toolCount"]) == ("one", "One", 2)
            assert first["tools"] == ["one_read", "one_act"]
            assert (first["tabState"], second["tabState"]) == ("unavailable", "closed")
            assert (first["iconSvg"], first["source"], first["sdkVersion"]) == (svg, "local", "0.0.115")
            assert ("iconSvg" in second, second["sdkVersion"], second["logBufferSize"]) == (False, None, 0)
            state = {"state": "ready", "tabs": [{"tabId": 2, "ready": True}, {"tabId": 1, "ready": False}]}
            await browser.notify("tab.syncAll", {"tabs": tabs, "plugins": {"one": state, "nobody": state}})
            await browser.settle()
            first = (await health(hub))["pluginDetails"][0]
            assert first["tabState"] == "ready"
            assert first["tabs"] == [
                {"tabId": 1, "url": "https://one.example/a", "title": "Tab 1", "ready": False},
                {"tabId": 2, "url": "https://one.example/b", "title": "Tab 2", "ready": True},
            ]
            gone = {"plugin": "one", "state": "unavailable", "tabs": [{"tabId": 2, "ready": False}]}
            await browser.notify("tab.stateChanged", gone)
            await browser.settle()
            assert (await health(hub))["pluginDetails"][0]["tabState"] == "unavailable"
            for wrong in ({"plugin": "one", "state": "odd"}, {"plugin": ["one"], "state": "ready"}):
                await browser.notify("tab.stateChanged", wrong)
            await browser.settle()
        assert (await health(hub))["pluginDetails"][0]["tabState"] == "closed"


@pytest.mark.req("S002-health-08", "S002-health-12", "S002-health-21", "S002-health-22")
async def test_health_lists_failed_plugins_and_watched_folders(tmp_path: Path) -> None:
    good = folder(tmp_path / "good", "good", iconSvg="<svg><script/></svg>")
    bad = folder(tmp_path / "bad", "bad", urlPatterns=["x"])
    async with hub_with(tmp_path, good, bad, tmp_path / "gone") as hub:
        facts = await health(hub)
        assert facts["plugins"] == 1
        assert {Path(each["path"]).name for each in facts["failedPlugins"]} == {"bad", "gone"}
        assert all(each["error"] for each in facts["failedPlugins"])
        assert facts["discoveryErrors"] == ["good: the icon is left out: it contains <script>"]
        assert set(facts["fileWatcher"]) == {"watchedPlugins", "pendingPlugins", "lastPollAt", "pollDetections"}
        assert facts["fileWatcher"]["watchedPlugins"] == 1
        assert facts["fileWatcher"]["pendingPlugins"] == 2


@pytest.mark.req("S002-tabid-03", "S002-instance-05")
async def test_plugin_list_tabs_reports_readiness_and_instance(tmp_path: Path) -> None:
    made = folder(tmp_path / "p", "jira", configSchema=_SITES)
    settings = {"jira": {"site": {"work": "https://a.example", "home": "https://b.example"}}}
    async with hub_with(tmp_path, made, settings=settings) as hub:
        tabs = [tab(1, "https://a.example/x"), tab(2, "https://b.example/x"), tab(3, "https://jira.example/")]
        async with FakeExtension(hub, tabs=tabs) as browser, Agent(hub) as agent:
            state = {"plugin": "jira", "state": "ready", "tabs": [{"tabId": 2, "ready": True}]}
            await browser.notify("tab.stateChanged", state)
            await browser.settle()
            answer = await agent.call("plugin_list_tabs", {"plugin": "jira"})
            listed = answer["result"]["structuredContent"]["plugins"][0]["tabs"]
            assert [(t["tabId"], t["ready"], t.get("instance")) for t in listed] == [
                (1, False, "work"),
                (2, True, "home"),
                (3, False, None),
            ]


@pytest.mark.req("S002-endpoints-13")
async def test_settings_are_checked_stored_and_in_force_at_once(tmp_path: Path) -> None:
    made = folder(tmp_path / "p", configSchema=_SITES)
    async with hub_with(tmp_path, made) as hub, FakeExtension(hub) as browser, client(hub) as http:
        await browser.next_notification("sync.full")
        sites = {"work": "https://a.example", "home": "https://b.example"}
        body = {"plugin": "demo", "settings": {"site": sites, "token": "s3cret"}}
        answer = (await http.post("/plugin-settings", json=body)).json()
        assert answer == {"ok": True, "settings": {"site": sites, "token": "••••••••"}}
        assert json.loads(hub.home.config.read_text())["settings"]["demo"] == {"site": sites, "token": "••••••••"}
        plugin = (await browser.next_notification("sync.full"))["params"]["plugins"][0]
        assert [each["name"] for each in plugin["instances"]] == ["work", "home"]
        assert "instance" in (await tools_of(hub, "demo"))["demo_read"]["inputSchema"]["properties"]
        for settings, status in (({"site": "nonsense"}, 422), ({"nobody": 1}, 422)):
            wrong = await http.post("/plugin-settings", json={"plugin": "demo", "settings": settings})
            assert wrong.status_code == status
            assert "Nothing was changed" in wrong.text
        missing = await http.post("/plugin-settings", json={"plugin": "nobody", "settings": {}})
        assert (missing.status_code, "Plugins: demo" in missing.text) == (404, True)
        assert json.loads(hub.home.config.read_text())["settings"]["demo"] == {"site": sites, "token": "••••••••"}


@pytest.mark.req("S002-capabilities-03", "S002-ws-extension-06")
async def test_plugin_logs_are_kept_and_sent_to_agents(tmp_path: Path) -> None:
    made = folder(tmp_path / "p")
    async with hub_with(tmp_path, made) as hub, FakeExtension(hub) as browser, Agent(hub) as agent:
        async with agent.listening() as events:
            await until(lambda: any(mcp.listener for mcp in hub.hub.mcp.handshake.sessions.values()))
            entries = [
                {"plugin": "demo", "level": "warn", "message": "two\r\nlines", "ts": 1, "data": [{"a": 1}]},
                {"plugin": "demo", "level": "debug", "message": "quiet", "ts": 2},
                {"plugin": "nobody", "level": "error", "message": "x", "ts": 3},
                {"plugin": "demo", "message": 5},
                "junk",
                {"plugin": "demo", "level": "odd", "message": "token=abcdef123456", "ts": 4},
            ]
            await browser.notify("plugin.log", {"entries": entries})
            first, second = await events.message(), await events.message()
            assert first["params"] == {
                "level": "warning",
                "logger": "demo",
                "data": {"message": "two\\r\\nlines", "data": [{"a": 1}]},
            }
            assert second["params"]["data"] == {"message": "token=[redacted]"}
        assert (await health(hub))["pluginDetails"][0]["logBufferSize"] == 3


async def test_a_save_that_breaks_a_plugin_leaves_the_last_good_one_in_use(tmp_path: Path) -> None:
    made = folder(tmp_path / "p")
    async with hub_with(tmp_path, made) as hub, client(hub) as http:
        (made / "dist/tools.json").write_text("{")
        hub.hub.plugins.load(watched=True)
        assert set(await tools_of(hub, "demo")) == {"demo_read", "demo_act"}
        assert "not valid JSON" in (await health(hub))["failedPlugins"][0]["error"]
        (made / "dist/tools.json").write_text(json.dumps([tool("mended")]))
        hub.hub.plugins.load(watched=True)
        assert set(await tools_of(hub, "demo")) == {"demo_mended"}
        (made / "dist/tools.json").write_text("{")
        assert (await http.post("/reload")).json()["plugins"] == 0


async def test_a_name_of_another_source_is_refused_and_the_other_tools_stay(tmp_path: Path) -> None:
    taken = folder(tmp_path / "p", "browser")
    fine = folder(tmp_path / "q", "fine")
    async with hub_with(tmp_path, taken, fine) as hub, client(hub) as http:
        assert set(await tools_of(hub, "fine")) == {"fine_read", "fine_act"}
        failed = (await health(hub))["failedPlugins"]
        assert "reserved" in failed[0]["error"]
        answer = await http.post("/mcp", json={}, headers=ACCEPT)
        assert answer.status_code == 400
