"""A fake browser whose pages offer tools: its messages to the hub, and the answers of its pages."""

from __future__ import annotations

from typing import Any

from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub

SHOP, PAY = "https://shop.example", "https://pay.example"
ADD = "website_tool_shop_example_tab1_add"
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}}}


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"does {name}", "inputSchema": SCHEMA, "via": "webmcp", **more}


def page(tab_id: int = 7, *tools: dict[str, Any], origin: str = SHOP, frame: int = 0, **more: Any) -> dict[str, Any]:
    where = {"tabId": tab_id, "frameId": frame, "documentId": f"doc-{tab_id}-{frame}"}
    return {**where, "origin": origin, "url": f"{origin}/p", "title": "The shop", "tools": list(tools), **more}


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"success": True, "payload": {"content": [{"type": "text", "text": content}], **more}}


class Browser(FakeExtension):
    """A browser with pages."""

    def __init__(self, hub: RunningHub, *tabs: dict[str, Any]) -> None:
        super().__init__(hub, tabs=list(tabs) or [tab(7, f"{SHOP}/p", active=True)])
        self.handlers["browser/executeTool"] = lambda params: text(f"{params['toolName']} in {params['tabId']}")

    async def offer(self, tab_id: int = 7, *tools: dict[str, Any], **more: Any) -> None:
        await self.notify("browser/registerTools", page(tab_id, *tools, **more))
        await self.settle()

    async def change(self, tab_id: int, change: str, **facts: Any) -> None:
        described = {"tab": tab(tab_id, **facts)} if change != "removed" else {}
        await self.notify("tab.stateChanged", {"tabId": tab_id, "change": change, **described})
        await self.settle()

    async def ask(self, ident: str, method: str, params: dict[str, Any]) -> None:
        await self.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})


async def listed(agent: Agent) -> dict[str, dict[str, Any]]:
    tools = (await agent.request("tools/list"))["result"]["tools"]
    return {each["name"]: each for each in tools if each["name"].startswith("website_tool_")}


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["result"]["content"][0]["text"])
