"""A site that agents are kept off, on every surface: lists of tools, tabs at a relay, logs, errors and stored results.

What a page shows, and every single tool, is tried in a real browser (tests/e2e/test_blocked_site.py).
"""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tabhub.core.registry import Entry
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.store import tokens
from tests.e2e.surfaces import SURFACES
from tests.harness.agent import Agent, client, stateless
from tests.harness.bridge_client import initialized
from tests.harness.fake_extension import tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.waiting import until
from tests.links.test_relay_link import FarBrowser, hub_at, tabs_reported
from tests.plugins.packages import folder
from tests.plugins.packages import tool as plugin_tool
from tests.relay.world import running_relay, token

SECRET = "xq7secret"
BANK, SHOP = f"https://{SECRET}.example", "https://shop.example"
SITES = {f"*.{SECRET}.example": "block"}
TABS = [
    tab(7, f"{BANK}/{SECRET}", title=f"{SECRET} account", active=True),
    tab(8, f"{SHOP}/", title="Shop"),
    tab(9, "about:blank", title=f"{SECRET} popup", openerTabId=7),
]
TAB_LISTS = (
    "browser_list_tabs",
    "browser_list_windows",
    "browser_list_tab_groups",
    "browser_list_sessions",
    "browser_get_connection_status",
    "extension_get_state",
    "extension_get_logs",
    "extension_get_side_panel",
    "plugin_list_tabs",
)
ANSWERS: dict[str, Any] = {
    "getWindows": {"windows": [{"windowId": 1, "tabIds": [7, 8, 9], "activeTabId": 7}]},
    "getGroups": {"groups": [{"groupId": 3, "tabIds": [7, 8], "title": "mine"}]},
    "getState": {"lastError": f"failed at {BANK}/x", "debugger": {"attached": [7, 8]}},
    "getLogs": {"entries": [{"time": "1", "message": f"attached to {BANK}/x"}, {"time": "2", "message": "fine"}]},
    "getPanels": {"open": [{"kind": "page", "tabId": 7}], "shows": {"lastError": f"failed at {BANK}/x"}},
}


def registered(tab_id: int, origin: str, name: str, frame: int = 0) -> dict[str, Any]:
    tools = [{"name": name, "description": name, "inputSchema": {"type": "object"}}]
    where = {"tabId": tab_id, "frameId": frame, "documentId": f"d{frame}", "origin": origin, "url": f"{origin}/"}
    return {**where, "title": name, "tools": tools}


def _answer(name: str, params: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = ANSWERS[name]
    return answer


async def answers_of(hub: RunningHub, panel: Panel, agent: Agent) -> list[str]:
    """Everything the surfaces list."""
    async with Agent(hub, "/mcp/gateway") as gateway, client(hub) as http:
        body, headers = stateless("tools/list")
        found = [
            await agent.request("tools/list"),
            (await http.post("/mcp", json=body, headers=headers)).json(),
            await gateway.call("tabhub_list_tools", {"limit": 500}),
            await gateway.call("tabhub_list_tools", {"query": SECRET, "detail": "schemas"}),
            (await http.get("/tools")).json(),
            await agent.request("resources/list"),
            await agent.request("resources/templates/list"),
            await agent.request("prompts/list"),
            await agent.call("website_tool_loo", {}),
            await agent.call("browser_get_tab_info", {"tabId": 4242}),
            *[await agent.call(name, {}) for name in TAB_LISTS],
            *[(await http.post(f"/tools/{name}/call", json={})).json() for name in TAB_LISTS],
        ]
    return [json.dumps(each) for each in found]


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    made = folder(tmp_path / "p", SECRET, tools=[plugin_tool("pay")], patterns=[f"*://*.{SECRET}.example/*"])
    return str(made)


@pytest.mark.req("B25")
async def test_no_list_on_any_surface_tells_of_a_blocked_site(tmp_path: Path, plugin: str) -> None:
    async with (
        running_hub(tmp_path, sites=SITES, localPlugins=[plugin]) as hub,
        Panel(hub, tabs=list(TABS)) as panel,
        Agent(hub) as agent,
    ):
        for name in ANSWERS:
            panel.handlers[name] = partial(_answer, name)
        await panel.notify("browser/registerTools", registered(7, BANK, f"look_{SECRET}"))
        await panel.notify("browser/registerTools", registered(7, SHOP, f"framed_{SECRET}", frame=3))
        await panel.notify("browser/registerTools", registered(8, SHOP, "price"))
        await panel.settle()
        assert any(SECRET in tool.name for tool in hub.hub.registry.tools() if tool.source.kind == "plugin")
        for text in await answers_of(hub, panel, agent):
            assert SECRET not in text, text[:3000]
        listed = json.dumps(await agent.request("tools/list"))
        assert "website_tool_shop_example" in listed
        tabs = (await agent.call("browser_list_tabs", {}))["result"]["structuredContent"]
        assert [each["tabId"] for each in tabs["tabs"]] == [8]
        assert tabs["note"] == "2 tabs are on a site that the person keeps agents off, and left out."
        windows = (await agent.call("browser_list_windows", {}))["result"]["structuredContent"]["windows"]
        assert windows[0]["tabIds"] == [8]
        assert "activeTabId" not in windows[0]


@pytest.mark.req("B25")
async def test_tools_that_a_blocked_site_or_its_plugin_offers_run_on_no_surface(tmp_path: Path, plugin: str) -> None:
    http = {name: surface for name, surface in SURFACES.items() if "stdio" not in name}
    async with running_hub(tmp_path, sites=SITES, localPlugins=[plugin]) as hub, Panel(hub, tabs=list(TABS)) as panel:
        await panel.notify("browser/registerTools", registered(7, BANK, f"look_{SECRET}"))
        await panel.settle()
        names = [tool.name for tool in hub.hub.registry.tools() if SECRET in f"{tool.name} {tool.source.key}"]
        assert {hub.hub.registry.by_name[name].tool.source.kind for name in names} == {"page", "plugin"}
        answers = []
        for surface in http.values():
            async with surface(hub) as call:
                answers += [await call(name, {}) for name in names]
        async with initialized(hub) as bridge:
            for name in names:
                answers.append((await bridge.request("tools/call", {"name": name, "arguments": {}}))["data"])
        assert len(answers) == len(names) * (len(http) + 1)
        for answer in answers:
            assert answer["isError"], answer
            assert "the person blocks agents on" in json.dumps(answer), answer
        asked = {panel.seen.get_nowait()["method"] for _ in range(panel.seen.qsize())}
        assert not asked & {"tool.dispatch", "browser/executeTool", "forwardCDPCommand"}


@pytest.mark.req("B25")
async def test_a_rule_for_one_agent_hides_nothing_from_the_others(tmp_path: Path, plugin: str) -> None:
    sites = {f"*.{SECRET}.example": {"ci": "block"}}
    async with (
        running_hub(tmp_path, sites=sites, localPlugins=[plugin]) as hub,
        Panel(hub, tabs=list(TABS)) as panel,
        client(hub) as http,
    ):
        await panel.notify("browser/registerTools", registered(7, BANK, f"look_{SECRET}"))
        await panel.settle()
        named = {"Authorization": f"Bearer {tokens.create(hub.home, 'ci', 0.0)}"}
        for path in ("/tools", "/tools/browser_list_tabs/call"):
            ask = http.get if path == "/tools" else http.post
            assert SECRET in (await ask(path)).text, path
            assert SECRET not in (await ask(path, headers=named)).text, path


@pytest.mark.req("B25")
async def test_tabs_of_browsers_at_a_relay_are_hidden_by_the_hubs_rules(tmp_path: Path) -> None:
    async with (
        running_relay() as relay,
        hub_at(tmp_path, relay, token(), sites=SITES) as hub,
        FarBrowser(relay.url, token()) as far,
        Agent(hub) as agent,
    ):
        await until(lambda: tabs_reported(hub))
        await far.notify("tab.stateChanged", {"tabId": 8, "change": "created", "tab": tab(8, f"{BANK}/", title=SECRET)})
        await until(lambda: len(hub.hub.browsers.book) == 2)
        there = next(each.tab_id for each in hub.hub.browsers.book if each.chrome_id == 8)
        listed = await agent.call("browser_list_tabs", {})
        assert SECRET not in json.dumps(listed)
        assert "1 tab is on a site" in listed["result"]["structuredContent"]["note"]
        refused = await agent.call("browser_snapshot", {"tabId": there})
        assert refused["result"]["isError"]
        assert not far.asked("forwardCDPCommand")


@pytest.mark.req("B25")
async def test_results_stored_before_the_rule_cannot_be_read_under_it(tmp_path: Path) -> None:
    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        return ToolResult.text(f"{SECRET} " * 40_000)

    made = Tool("probe_big", Source("plugin", "probe"), "Big.", annotations={"readOnlyHint": True})
    async with running_hub(tmp_path) as hub, Panel(hub) as panel, Agent(hub) as agent:
        hub.hub.tabs.register(made.source, [Entry(made, run)])
        cut = (await agent.call("probe_big", {}))["result"]["content"][-1]["text"]
        handle = next(word.strip("\"'.,()[]") for word in cut.replace("=", " ").split() if "r_" in word)
        handle = handle[handle.index("r_") :][:22]
        assert SECRET in json.dumps(await agent.call("tabhub_read_result", {"handle": handle}))
        await panel.get("sites.set", {"pattern": f"*.{SECRET}.example", "level": "block"})
        later = await agent.call("tabhub_read_result", {"handle": handle})
        assert later["result"]["isError"]
        assert SECRET not in json.dumps(later)


@pytest.mark.req("B25")
async def test_log_entries_of_a_plugin_on_a_blocked_site_reach_no_agent(tmp_path: Path, plugin: str) -> None:
    async with (
        running_hub(tmp_path, sites=SITES, localPlugins=[plugin]) as hub,
        Panel(hub, tabs=list(TABS)) as panel,
        Agent(hub) as agent,
        agent.listening() as stream,
    ):
        entries = [{"plugin": SECRET, "level": "error", "message": f"{SECRET} line", "ts": 1}]
        await panel.notify("plugin.log", {"entries": entries})
        await panel.settle()
        await panel.get("sites.set", {"pattern": f"*.{SECRET}.example", "level": "act"})
        await panel.notify("plugin.log", {"entries": [{**entries[0], "message": "second"}]})
        async with asyncio.timeout(30):
            while "second" not in (text := json.dumps(await stream.message())):
                assert f"{SECRET} line" not in text
