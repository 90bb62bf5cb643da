"""The finder: two tools that reach all others, listed or not, and what they answer.

Owns their definitions and the form of what was found. Searching is search's; who may know of a tool is the catalogue's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from tabhub.core.results.tokens import estimate_tokens
from tabhub.core.tools import HUB, Tool
from tabhub.limits import Limits

LIST = Tool(
    name="tabhub_list_tools",
    source=HUB,
    title="List tools",
    description=(
        "Finds more tools for the person's browser and web apps: search with `query`, or list a plugin's. Run one with "
        "tabhub_call."
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "maxLength": 500, "description": "What to do, in a few words."},
            "plugin": {"type": "string", "maxLength": 200, "description": "Only its tools."},
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
    description="Runs any tool by `name`, with `arguments` as its schema says.",
    input_schema={
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 200},
            "arguments": {"type": "object"},
        },
        "required": ["name"],
        "additionalProperties": False,
    },
    annotations={"openWorldHint": True},
)
ALIASES = {"opentabs_list_tools": LIST.name, "opentabs_call": CALL.name}
NAMES = frozenset({LIST.name, CALL.name, *ALIASES})
_SUMMARY = 160
_SOURCES_NAMED = 8
_SOURCES_LISTED = 50


def finder_tool(unlisted: int, sources: Sequence[str]) -> Tool:
    """The search tool of a listing that leaves tools out; it says how many, and of which sources."""
    if not unlisted:
        return LIST
    named = ", ".join(sources[:_SOURCES_NAMED])
    more = f" and {len(sources) - _SOURCES_NAMED} more" if len(sources) > _SOURCES_NAMED else ""
    return LIST.changed(description=f"{LIST.description} Not listed: {unlisted} tools of {named}{more}.")


def describe_found(
    arguments: dict[str, Any],
    found: Sequence[Tool],
    sources: Callable[[], Iterable[str]],
    is_off: Callable[[Tool], bool],
    limits: Limits,
) -> dict[str, Any]:
    """One page of what was found, in the wanted detail; without one, the best tools of a search have their schema."""
    searched = bool((arguments.get("query") or "").strip())
    offset, detail = arguments.get("offset", 0), arguments.get("detail")
    usual = limits.finder_found if searched and detail is None else limits.gateway_page
    wanted = found[offset : offset + arguments.get("limit", usual)]
    entries = [_entry(tool, detail or "summaries", off=is_off(tool)) for tool in wanted]
    if searched and detail is None and not offset:
        _add_schemas(entries, wanted, limits.finder_tokens)
    page = _within_budget(entries, limits.result_tokens)
    answer: dict[str, Any] = {"total": len(found), "tools": page}
    if offset + len(page) < len(found):
        answer["nextOffset"] = offset + len(page)
    if not found:
        plugins = sorted(set(sources()))[:_SOURCES_LISTED]
        answer["hint"] = f"Nothing fits. Plugins: {', '.join(plugins)}. Try fewer or other words."
    return answer


def _add_schemas(entries: list[Any], tools: Sequence[Tool], budget: int) -> None:
    """Add the schemas of the best tools, as far as they fit."""
    for entry, tool in zip(entries, tools, strict=True):
        budget -= estimate_tokens(tool.schema.listed)
        if budget < 0:
            return
        entry["inputSchema"] = orjson.Fragment(tool.schema.listed)


def _within_budget(entries: list[Any], budget: int) -> list[Any]:
    """As many entries as an answer may hold, one at least; `nextOffset` leads to the others."""
    for count, entry in enumerate(entries):
        budget -= estimate_tokens(orjson.dumps(entry))
        if budget < 0 and count:
            return entries[:count]
    return entries


def _entry(tool: Tool, detail: str, *, off: bool) -> Any:
    if detail == "names":
        return tool.name
    mark = "[Disabled] " if off else ""
    if detail == "schemas":
        listing = orjson.loads(tool.wire)
        return {**listing, "description": mark + listing["description"], "plugin": tool.source.key}
    schema = tool.input_schema
    required = set(schema.get("required", ()))
    names = [name if name in required else f"{name}?" for name in schema.get("properties", {})]
    summary = tool.description.split(". ")[0].split("\n")[0][:_SUMMARY]
    return {"name": f"{tool.name}({', '.join(names)})", "description": mark + summary, "plugin": tool.source.key}
