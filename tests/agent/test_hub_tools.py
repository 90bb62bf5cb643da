"""The hub as a toolbox: all pages of the tool list, disabled tools marked, definitions reused."""

from __future__ import annotations

from pathlib import Path

from tabhub.agent.hub_tools import HubTools
from tabhub.mcp.client import McpClient
from tests.harness.hub import running_hub
from tests.harness.waiting import until

DISABLED = "browser_execute_script"


async def test_all_pages_are_listed_and_disabled_tools_are_marked(tmp_path: Path) -> None:
    settings = {
        "showDisabled": True,
        "permissions": {"browser": {"tools": {DISABLED: "off"}}},
        "limits": {"list_page": 20},
    }
    async with running_hub(tmp_path, **settings) as hub:
        tools = HubTools(McpClient(f"127.0.0.1:{hub.port}", lambda: hub.token, "test"))
        await tools.client.open()
        offers = {tool.name: tool for tool in await tools.list_tools()}
        assert len(offers) > 60
        assert [name for name, tool in offers.items() if tool.description.startswith("[Disabled] ")] == [DISABLED]
        again = {tool.name: tool for tool in await tools.list_tools()}
        assert again["browser_list_tabs"] is offers["browser_list_tabs"], "read and compiled once"
        await tools.client.close()
        await until(lambda: len(hub.hub.sessions) == 0)
