"""The gateway: the whole catalogue behind two tools, for agents whose context is small.

Owns `tabhub_list_tools` and `tabhub_call`; the names of OpenTabs answer as aliases.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson

from tabhub.calls.engine import Caller, Engine
from tabhub.core.listing.catalogue import Catalogue, Catalogues
from tabhub.core.listing.pages import LIST_TTL_MS
from tabhub.core.listing.profiles import EVERYTHING
from tabhub.core.listing.search import ToolIndex
from tabhub.core.results.tokens import estimate_tokens
from tabhub.core.tools import HUB, Tool, ToolResult
from tabhub.errors import InvalidArguments, InvalidParams, UnknownTool

LIST = Tool(
    name="tabhub_list_tools",
    source=HUB,
    title="List tools",
    description=(
        "Find tools for the person's browser and web apps. Search with `query`, or list a plugin's with `plugin`. "
        "`detail`: names, summaries (default) or schemas. Then run one with tabhub_call."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 500, "description": "What you want to do, in a few words."},
            "plugin": {"type": "string", "maxLength": 200, "description": "Only this plugin, e.g. browser or slack."},
            "detail": {"enum": ["names", "summaries", "schemas"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 500},
            "offset": {"type": "integer", "minimum": 0},
        },
        "additionalProperties": False,
    },
    annotations={"readOnlyHint": True, "openWorldHint": False},
)
CALL = Tool(
    name="tabhub_call",
    source=HUB,
    title="Call a tool",
    description="Run a tool found with tabhub_list_tools: its `name` and its `arguments` as that tool's schema says.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 200},
            "arguments": {"type": "object"},
            "session": {"type": "string", "description": "Handle from an earlier result; keeps you on the same tab."},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    annotations={"openWorldHint": True},
)
ALIASES = {"opentabs_list_tools": LIST.name, "opentabs_call": CALL.name}
_PAGE = b'{"tools":[%b,%b]' % (LIST.wire, CALL.wire)


@dataclass(eq=False)
class GatewaySurface:
    """Two tools that reach all."""

    path = "/mcp/gateway"

    engine: Engine
    catalogues: Catalogues

    def page(self, cursor: str | None, *, stateless: bool, tools: str | None = None, agent: str | None = None) -> bytes:
        if cursor is not None:
            raise InvalidParams("The list has one page: there is no cursor to go on from.")
        return _PAGE + (b',"ttlMs":%d,"cacheScope":"private"}' % LIST_TTL_MS if stateless else b"}")

    def takes_session(self, name: str) -> bool:
        return ALIASES.get(name, name) == CALL.name

    async def call(self, caller: Caller, name: str, arguments: dict[str, Any]) -> ToolResult:
        name = ALIASES.get(name, name)
        if name == LIST.name:
            if not LIST.accepts(arguments):
                raise LIST.invalid(arguments)
            return await self._list_tools(arguments, caller.session.token)
        if name != CALL.name:
            raise UnknownTool(
                f"There is no tool named {name[:200]!r} at the gateway.",
                hint=f"It has {LIST.name} and {CALL.name}; run other tools with {CALL.name}.",
            )
        if not CALL.accepts(arguments):
            raise CALL.invalid(arguments)
        wanted, given = arguments["name"], arguments.get("arguments", {})
        if caller.via == "mcp":
            caller.via = "gateway"
        try:
            return await self.engine.call(caller, wanted, given)
        except InvalidArguments as error:
            tool = self.engine.registry.by_name[wanted].tool
            schema = orjson.dumps(dict(tool.listed_schema)).decode()
            error.hint = f"{error.hint or ''} The schema of {tool.name}: {schema}".strip()
            raise

    async def _list_tools(self, arguments: dict[str, Any], agent: str | None) -> ToolResult:
        catalogue = self.catalogues.of(EVERYTHING, agent)
        query, plugin = arguments.get("query"), arguments.get("plugin")
        if query is not None and query.strip():
            found = (await _index(catalogue)).search(query, plugin=plugin)
        else:
            found = [t for t in catalogue.tools() if plugin is None or t.source.key == plugin]
        detail = arguments.get("detail", "summaries")
        offset = arguments.get("offset", 0)
        wanted = found[offset : offset + arguments.get("limit", self.engine.limits.gateway_page)]
        page = self._within_budget([self._entry(t, detail) for t in wanted])
        answer: dict[str, Any] = {"total": len(found), "tools": page}
        if offset + len(page) < len(found):
            answer["nextOffset"] = offset + len(page)
        if not found:
            plugins = sorted({t.source.key for t in catalogue.tools()})
            answer["hint"] = f"Nothing fits. Plugins: {', '.join(plugins[:50])}. Try fewer or other words."
        return ToolResult.text(orjson.dumps(answer).decode())

    def _within_budget(self, entries: list[Any]) -> list[Any]:
        """As many entries as an answer may hold, one at least; `nextOffset` leads to the others."""
        left = self.engine.limits.result_tokens
        for count, entry in enumerate(entries):
            left -= estimate_tokens(orjson.dumps(entry))
            if left < 0 and count:
                return entries[:count]
        return entries

    def _entry(self, tool: Tool, detail: str) -> Any:
        if detail == "names":
            return tool.name
        off = "[Disabled] " if self.catalogues.everything.disabled(tool) else ""
        if detail == "schemas":
            return {**tool.listing(), "description": off + tool.description, "plugin": tool.source.key}
        schema = tool.input_schema
        required = set(schema.get("required", ()))
        names = [n if n in required else f"{n}?" for n in schema.get("properties", {})]
        summary = tool.description.split(". ")[0].split("\n")[0][:160]
        return {"name": f"{tool.name}({', '.join(names)})", "description": off + summary, "plugin": tool.source.key}


async def _index(catalogue: Catalogue) -> ToolIndex:
    while (index := catalogue.index()) is None:  # noqa: ASYNC110 - nothing to wait for
        await asyncio.sleep(0)  # lets other calls run
    return index
