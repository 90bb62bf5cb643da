"""Site rules in force: which calls are denied, asked about or allowed on a site, whichever tool reaches it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tabhub.core.registry import Entry
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.store import tokens
from tests.harness.agent import Agent, client
from tests.harness.fake_extension import tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.panel import Panel
from tests.plugins.packages import folder
from tests.plugins.packages import tool as plugin_tool

BANK, SHOP = "https://www.bank.example", "https://shop.example"
TABS = [tab(7, f"{BANK}/accounts", active=True), tab(8, f"{SHOP}/")]
SITE = "*.bank.example"


def text(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])


def ruled(tmp_path: Path, level: Any, **settings: Any) -> Any:
    return running_hub(tmp_path, **{"sites": {SITE: level}, **settings})


async def denied(agent: Agent, tool: str, /, **arguments: Any) -> bool:
    answer = await agent.call(tool, arguments)
    return bool(answer["result"].get("isError")) and "the person" in text(answer) and "bank.example" in text(answer)


READING: list[tuple[str, dict[str, Any]]] = [
    ("browser_snapshot", {"tabId": 7}),
    ("browser_screenshot_tab", {"tabId": 7}),
    ("browser_get_storage", {"tabId": 7}),
    ("browser_query_elements", {"tabId": 7, "selector": "input"}),
    ("browser_get_page_html", {"tabId": 7}),
    ("browser_get_cookies", {"url": f"{BANK}/"}),
    ("browser_get_visits", {"url": f"{BANK}/accounts"}),
    ("browser_get_tab_info", {"tabId": 7}),
    ("browser_get_resource_content", {"tabId": 8, "url": f"{BANK}/app.js"}),
]
ACTING: list[tuple[str, dict[str, Any]]] = [
    ("browser_click_element", {"tabId": 7, "text": "Pay"}),
    ("browser_execute_script", {"tabId": 7, "code": "return 1"}),
    ("browser_act", {"tabId": 7, "actions": [{"action": "press", "key": "Enter"}]}),
    ("browser_set_cookie", {"url": f"{BANK}/", "name": "a", "value": "b"}),
    ("browser_clear_site_data", {"origin": BANK}),
    ("browser_download_file", {"url": f"{BANK}/statement.pdf"}),
]
OPENING: list[tuple[str, dict[str, Any]]] = [
    ("browser_navigate_tab", {"tabId": 8, "url": f"{BANK}/"}),
    ("browser_navigate_tab", {"tabId": 8, "url": "HTTPS:\\\\WWW.BANK.example."}),
    ("browser_open_tab", {"url": f"view-source:{BANK}/"}),
    ("browser_create_window", {"url": f"{BANK}/"}),
    ("plugin_analyze_site", {"url": f"{BANK}/"}),
    ("browser_act", {"tabId": 8, "actions": [{"action": "navigate", "url": f"{BANK}/"}]}),
    ("browser_reload_tab", {"tabId": 7}),
    ("browser_focus_tab", {"tabId": 7}),
    ("browser_close_tab", {"tabId": 7}),
    ("browser_create_tab_group", {"tabIds": [8, 7]}),
    ("browser_close_window", {"windowId": 1}),
]


async def test_a_blocked_site_is_denied_to_every_tool_that_reaches_it(tmp_path: Path) -> None:
    async with ruled(tmp_path, "block") as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        for name, arguments in (*READING, *ACTING, *OPENING):
            assert await denied(agent, name, **arguments), (name, arguments)
        assert panel.seen.empty()
        answer = await agent.call("browser_snapshot", {"tabId": 7})
        assert "tabhub site remove '*.bank.example'" in text(answer)
        assert answer["result"]["_meta"]["tabhub/error"]["siteRule"] == "*.bank.example: block"
        assert not await denied(agent, "browser_execute_script", tabId=8, code="return 1")


async def test_a_rule_holds_for_rest_as_for_mcp(tmp_path: Path) -> None:
    async with ruled(tmp_path, "block") as hub, Panel(hub, tabs=list(TABS)), client(hub) as http:
        answer = await http.post("/tools/browser_snapshot/call", json={"tabId": 7})
        assert answer.status_code == 403
        assert "blocks agents on *.bank.example" in answer.text


async def test_reading_is_all_that_a_read_rule_allows(tmp_path: Path) -> None:
    async with ruled(tmp_path, "read") as hub, Panel(hub, tabs=list(TABS)), Agent(hub) as agent:
        for name, arguments in ACTING:
            assert await denied(agent, name, **arguments), name
        for name, arguments in READING:
            assert not await denied(agent, name, **arguments), name
        # A site that cannot be opened cannot be read.
        assert not await denied(agent, "browser_navigate_tab", tabId=8, url=f"{BANK}/")


@pytest.mark.parametrize("managed", [False, True])
async def test_acting_on_an_ask_site_needs_approval_in_any_browser(tmp_path: Path, managed: bool) -> None:
    asks = ruled(tmp_path, "ask", permissions={"default": "auto"})
    async with asks as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        if managed:
            await panel.notify("extension.hello", {"managed": True})
            await panel.settle()
        call = {"tabId": 7, "code": "return 1"}
        calling = asyncio.create_task(agent.call("browser_execute_script", call))
        request = await panel.decide("allow_once")
        assert not (await calling)["result"].get("isError")
        assert (request["reason"], request["origin"]) == ("permission", BANK)
        assert "by your site rule" in request["message"]
        assert not (await agent.call("browser_execute_script", {**call, "tabId": 8}))["result"].get("isError")
        assert not (await agent.call("browser_get_tab_info", {"tabId": 7}))["result"].get("isError")


async def test_acting_on_an_act_site_needs_no_approval_and_only_there(tmp_path: Path) -> None:
    acts = ruled(tmp_path, "act", permissions=None)
    async with acts as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        call = {"tabId": 7, "code": "return 1"}
        assert not (await agent.call("browser_execute_script", call))["result"].get("isError")
        for name, arguments in (
            ("browser_execute_script", {"tabId": 8, "code": "return 1"}),
            ("browser_get_cookies", {"url": BANK}),
            # The batch begins on the site, and one of its steps leaves it.
            ("browser_act", {"tabId": 7, "actions": [{"action": "navigate", "url": SHOP}]}),
        ):
            calling = asyncio.create_task(agent.call(name, arguments))
            await panel.decide("deny")
            assert (await calling)["result"]["isError"]


async def test_a_tools_own_setting_counts_before_an_act_rule(tmp_path: Path) -> None:
    own = {"browser": {"tools": {"browser_execute_script": "ask", "browser_press_key": "off"}}}
    acts = ruled(tmp_path, "act", permissions=own)
    async with acts as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        calling = asyncio.create_task(agent.call("browser_execute_script", {"tabId": 7, "code": "return 1"}))
        await panel.decide("deny")
        assert (await calling)["result"]["isError"]
        assert "switched off" in text(await agent.call("browser_press_key", {"tabId": 7, "key": "Enter"}))


async def test_a_rule_for_one_agent_leaves_the_others_alone(tmp_path: Path) -> None:
    async with ruled(tmp_path, {"ci": "block"}) as hub, Panel(hub, tabs=list(TABS)), client(hub) as anyone:
        named = {"Authorization": f"Bearer {tokens.create(hub.home, 'ci', 0.0)}"}
        refused = await anyone.post("/tools/browser_get_tab_info/call", json={"tabId": 7}, headers=named)
        assert refused.status_code == 403
        assert "--agent ci" in refused.text
        assert (await anyone.post("/tools/browser_get_tab_info/call", json={"tabId": 7})).status_code == 200


async def test_an_agent_gets_out_of_its_tab_when_that_arrives_at_a_blocked_site(tmp_path: Path) -> None:
    async with ruled(tmp_path, "block") as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        assert not (await agent.call("browser_execute_script", {"tabId": 8, "code": "return 1"}))["result"].get(
            "isError"
        )
        panel.tabs = [tab(7, f"{BANK}/accounts"), tab(8, f"{BANK}/phishing")]
        await panel.sync()
        assert await denied(agent, "browser_snapshot")
        assert await denied(agent, "browser_reload_tab")
        assert not await denied(agent, "browser_navigate_tab", url=SHOP)
        assert not await denied(agent, "browser_release_tab", tabId=8)


async def test_a_rule_set_while_a_call_waits_for_approval_still_holds(tmp_path: Path) -> None:
    async with ruled(tmp_path, "ask") as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        calling = asyncio.create_task(agent.call("browser_execute_script", {"tabId": 7, "code": "return 1"}))
        request = await panel.request()
        await panel.get("sites.set", {"pattern": SITE, "level": "block"})
        await panel.answer(request["id"], "allow_once")
        assert "blocks agents on" in text(await calling)


async def test_tools_of_pages_belong_to_their_site(tmp_path: Path) -> None:
    look = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}
    where = {"tabId": 7, "frameId": 0, "documentId": "d", "origin": BANK, "url": f"{BANK}/", "title": "Bank"}
    async with ruled(tmp_path, "block") as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        await panel.notify("browser/registerTools", {**where, "tools": [look]})
        await panel.settle()
        for name in ("website_tool_www_bank_example_tab1_look", "website_tool_www_bank_example_look"):
            assert await denied(agent, name), name


async def test_a_tool_of_an_embedded_page_does_not_open_a_blocked_one(tmp_path: Path) -> None:
    """The tool's own site is not blocked, but the only page that offers it is."""
    look = {"name": "look", "description": "Looks.", "inputSchema": {"type": "object"}}
    where = {"tabId": 7, "frameId": 3, "documentId": "d", "origin": SHOP, "url": f"{SHOP}/frame", "title": "Bank"}
    async with ruled(tmp_path, "block") as hub, Panel(hub, tabs=list(TABS)) as panel, Agent(hub) as agent:
        await panel.notify("browser/registerTools", {**where, "tools": [look]})
        await panel.settle()
        name = next(tool.name for tool in hub.hub.registry.tools() if tool.source.kind == "page")
        assert (await agent.call(name))["result"]["isError"]
        assert "browser/executeTool" not in [message["method"] for message in _seen(panel)]


def _seen(panel: Panel) -> list[dict[str, Any]]:
    found = []
    while not panel.seen.empty():
        found.append(panel.seen.get_nowait())
    return found


async def test_a_plugin_runs_in_a_tab_of_its_site_that_is_not_blocked(tmp_path: Path) -> None:
    made = folder(tmp_path / "p", "github", tools=[plugin_tool("add")])
    tabs = [tab(7, "https://github.example/"), tab(8, "https://github.example:8443/")]
    settings = {"sites": {"github.example:443": "block"}, "localPlugins": [str(made)]}
    ran: list[int] = []

    def dispatched(params: dict[str, Any]) -> dict[str, Any]:
        ran.append(params["tabId"])
        return {"output": {"by": "the plugin"}}

    async with running_hub(tmp_path, **settings) as hub, Panel(hub, tabs=tabs) as panel, Agent(hub) as agent:
        panel.handlers["tool.dispatch"] = dispatched
        refused = await agent.call("github_add", {"tabId": 7})
        assert "blocks agents on github.example:443" in text(refused)
        answer = await agent.call("github_add")
        assert not answer["result"].get("isError"), text(answer)
        assert ran == [8]


async def test_a_url_that_is_passed_to_an_external_server_counts(tmp_path: Path) -> None:
    async with ruled(tmp_path, "block") as hub, Agent(hub) as agent:
        ran = offer(hub, "upstream", "mcp__web__fetch", "web")
        assert await denied(agent, "mcp__web__fetch", url=f"{BANK}/")
        assert not (await agent.call("mcp__web__fetch", {"url": SHOP}))["result"].get("isError")
        assert ran == [{"url": SHOP}]


def offer(hub: RunningHub, kind: Any, name: str, source: str) -> list[dict[str, Any]]:
    ran: list[dict[str, Any]] = []

    async def run(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        ran.append(args)
        return ToolResult.text("done")

    made = Tool(name, Source(kind, source), "Does.", {"type": "object", "properties": {"url": {"type": "string"}}})
    hub.hub.tabs.register(made.source, [Entry(made, run)])
    return ran
