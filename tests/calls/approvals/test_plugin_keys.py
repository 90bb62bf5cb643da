"""A plugin and an external server of one name: each has its own permissions, and its own pins."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tabhub.core.tools import BROWSER, Source
from tabhub.store import grants
from tests.harness.agent import Agent
from tests.harness.fake_extension import tab
from tests.harness.hub import AGENT, RunningHub, running_hub
from tests.harness.panel import Panel
from tests.plugins.packages import folder, tool
from tests.upstream.servers import python, text

SERVERS = "mcp__github__add"
PLUGINS = "github_add"


def written(hub: RunningHub) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(hub.home.config.read_text())["permissions"]
    return values


async def test_settings_of_a_plugin_do_not_apply_to_a_server_with_its_name(tmp_path: Path) -> None:
    made = folder(tmp_path / "p", "github", tools=[tool("add")])
    permissions = {"default": "ask", "github": {"permission": "auto", "tools": {"add": "auto"}}}
    ran = {"output": {"by": "the plugin"}}
    async with (
        running_hub(tmp_path, permissions=permissions, localPlugins=[str(made)], dataflow="off") as hub,
        Panel(hub, tabs=[tab(7, "https://github.example/")]) as panel,
        Agent(hub) as agent,
    ):
        panel.handlers["tool.dispatch"] = lambda _: ran
        await hub.hub.upstream.add(json.dumps({"github": python("everything")}))
        answer = (await agent.call(PLUGINS, {"tabId": 7}))["result"]
        assert answer["structuredContent"] == ran["output"]
        calling = asyncio.create_task(agent.call(SERVERS, {"a": 1, "b": 2}))
        request = await panel.decide("allow_always")
        assert (request["tool"], request["source"]) == (SERVERS, "upstream:github")
        assert text((await calling)["result"]) == "3"
        (grant,) = grants.listed(hub.home)
        assert grant.text == f"{AGENT} may always use the server tool mcp__github__add"
        assert text((await agent.call(SERVERS, {"a": 2, "b": 2}))["result"]) == "4"
        # Off for the server, and the plugin goes on.
        await panel.get("config.setPluginPermission", {"plugin": "mcp__github", "permission": "off"})
        refused = text((await agent.call(SERVERS, {"a": 2, "b": 2}))["result"])
        assert "switched off" in refused
        assert "permissions.mcp__github.tools.add auto" in refused
        assert not (await agent.call(PLUGINS, {"tabId": 7}))["result"].get("isError")
        state = await panel.get("config.getState")
        assert [each["permission"] for each in (*state["plugins"], *state["upstream"])] == ["auto", "off"]
        assert written(hub)["github"] == permissions["github"]


async def test_removing_a_server_forgets_its_pins_but_not_those_of_a_plugin(tmp_path: Path) -> None:
    made = folder(tmp_path / "p", "github", tools=[tool("add")])
    permissions = {"github": {"permission": "auto"}, "mcp__github": {"permission": "auto"}}
    async with (
        running_hub(tmp_path, permissions=permissions, localPlugins=[str(made)]) as hub,
        Agent(hub) as agent,
    ):
        await hub.hub.upstream.add(json.dumps({"github": python("everything")}))
        assert text((await agent.call(SERVERS, {"a": 1, "b": 2}))["result"]) == "3"
        await agent.call(PLUGINS)
        pins = hub.hub.permission._memory.pins
        servers, plugins = pins.get("mcp__github", "add"), pins.get("github", PLUGINS)
        assert servers is not None
        assert plugins is not None
        assert servers.text != plugins.text
        await hub.hub.upstream.remove("github")
        assert (pins.get("mcp__github", "add"), pins.get("github", PLUGINS)) == (None, plugins)


def test_every_kind_of_source_has_a_name_of_its_own_in_the_settings() -> None:
    sources = [
        Source("plugin", "github"),
        Source("upstream", "github"),
        Source("page", "https://github.example"),
        Source("upstream", "https://github.example"),
        BROWSER,
    ]
    assert len({source.setting for source in sources}) == len(sources)
