"""The running hub as the agent's toolbox: its tools as the agent lists them, over one MCP session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tabhub.agent.prompt import EXTERNAL
from tabhub.core.tools import BROWSER, Source, Tool
from tabhub.mcp.client import McpClient


class HubTools:
    """The tools of one hub session. A tool whose listing has not changed keeps its object, and its compiled schema."""

    def __init__(self, client: McpClient) -> None:
        self.client = client
        self._tools: dict[str, tuple[dict[str, Any], Tool]] = {}

    async def list_tools(self) -> Sequence[Tool]:
        known, self._tools = self._tools, {}
        for listing in await self.client.list_tools():
            before = known.get(str(listing.get("name")))
            tool = before[1] if before and before[0] == listing else _tool(listing)
            self._tools[tool.name] = (listing, tool)
        return [tool for _, tool in self._tools.values()]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return await self.client.call_tool(name, arguments)


def _tool(listing: dict[str, Any]) -> Tool:
    name, schema = str(listing.get("name")), listing.get("inputSchema")
    source = Source("upstream", name.split("__")[1]) if name.startswith(EXTERNAL) and name.count("__") > 1 else BROWSER
    return Tool(
        name,
        source,
        str(listing.get("description") or ""),
        schema if isinstance(schema, dict) else {"type": "object"},
        title=listing.get("title"),
        annotations=listing.get("annotations") or {},
    )
