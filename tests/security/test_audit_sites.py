"""Every call that used a tab has the tab's site in the audit log, also where the document has no origin of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent
from tests.harness.fake_extension import Refuses, tab
from tests.harness.hub import running_hub
from tests.harness.panel import Panel

BANK = "https://bank.example"


def least(schema: dict[str, Any], name: str = "") -> Any:
    """The smallest value that fits the schema of a parameter."""
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "string")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        return {key: least(schema["properties"][key], key) for key in schema.get("required", ())}
    if kind == "array":
        return [least(schema.get("items", {}), name)] * max(1, schema.get("minItems", 0))
    if kind in ("integer", "number"):
        return schema.get("minimum", 1)
    if kind == "boolean":
        return True
    return f"{BANK}/" if name == "url" else "x" * max(1, schema.get("minLength", 0))


def refuse(_: dict[str, Any]) -> Any:
    raise Refuses(-32000, "This browser does nothing.")


async def test_no_tool_that_uses_a_tab_leaves_the_site_of_its_audit_line_empty(tmp_path: Path) -> None:
    limits = {"call_rate": 0}
    async with running_hub(tmp_path, limits=limits) as hub, Panel(hub, tabs=[]) as browser, Agent(hub) as agent:
        browser.handlers |= dict.fromkeys(("forwardCDPCommand", "subscribeCDPEvents", "createTab"), refuse)
        tools = [tool for tool in hub.hub.registry.tools() if "tabId" in tool.input_schema["properties"]]
        used = set()
        for number, tool in enumerate(tools):
            browser.tabs[:] = [tab(100 + number, "data:text/html,x")]
            await browser.sync()
            arguments = least(dict(tool.input_schema)) | {"tabId": 100 + number}
            if tool.name == "browser_act":
                arguments["actions"] = [{"action": "press", "key": "a"}]
            await agent.call(tool.name, arguments)
            line = hub.hub.engine.audit.recent(1)[0]
            assert line["tool"] == tool.name
            if "tabId" in line:
                used.add(tool.name)
                assert line["origin"] == "unknown (data:)", line
        assert len(used) > 0.8 * len(tools), sorted({tool.name for tool in tools} - used)


@pytest.mark.parametrize(
    ("url", "opener", "site"),
    [
        ("about:blank", 7, BANK),
        (f"blob:{BANK}/6f1", None, BANK),
        ("about:blank", None, "unknown (about:)"),
        ("chrome://newtab/", None, "chrome://newtab"),
    ],
)
async def test_audit_line_names_the_creator_of_a_document(
    tmp_path: Path, url: str, opener: int | None, site: str
) -> None:
    tabs = [tab(7, f"{BANK}/in"), tab(8, url, **({} if opener is None else {"openerTabId": opener}))]
    async with running_hub(tmp_path) as hub, Panel(hub, tabs=tabs), Agent(hub) as agent:
        assert not (await agent.call("browser_get_tab_info", {"tabId": 8}))["result"].get("isError")
        assert hub.hub.engine.audit.recent(1)[0]["origin"] == site
