"""The table of built-in tools in docs/tools.md is generated: `python tests/docs/test_tools_doc.py --write`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tabhub.browser.families import CORE, FAMILIES, SPECS
from tabhub.calls.results import TOOL as READ_RESULT
from tabhub.core.tools import Tool

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tools.md"
BEGIN, END = "<!-- tools: begin -->", "<!-- tools: end -->"
HINTS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
TITLES = {
    "tabs": "Tabs",
    "groups": "Tab groups",
    "windows": "Windows",
    "seeing": "Seeing",
    "acting": "Acting",
    "waiting": "Waiting",
    "scripts": "Scripts",
    "console": "Console and resources",
    "network": "Network",
    "storage": "Storage and cookies",
    "history": "History, bookmarks, downloads",
    "emulation": "Emulation, CSS, performance",
    "sessions": "Sessions",
    "person": "The person",
    "extension": "The extension",
    "plugins": "Plugins",
    "hub": "The hub",
}


def built_in() -> dict[str, Tool]:
    """Every built-in tool by name."""
    tools = [spec.tool for spec in SPECS]
    return {tool.name: tool for tool in (*tools, READ_RESULT)}


def kind(schema: Mapping[str, Any]) -> str:
    """A parameter's type in a few words."""
    if "enum" in schema:
        return " / ".join(f"`{value}`" for value in schema["enum"])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(dict.fromkeys(kind(one) for one in schema[several]))
    named = schema.get("type", "any")
    if isinstance(named, list):
        return " or ".join(named)
    if named == "array":
        return f"list of {kind(schema.get('items', {}))}"
    return str(named)


def cell(text: str) -> str:
    """Text escaped for a table cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def entry(tool: Tool) -> Iterator[str]:
    """The lines of one tool."""
    hints = tool.annotations
    effect = "reads" if hints["readOnlyHint"] else "acts, may be destructive" if hints["destructiveHint"] else "acts"
    again = ", idempotent" if hints["idempotentHint"] and not hints["readOnlyHint"] else ""
    core = " · core" if tool.name in CORE else ""
    yield f"### `{tool.name}`"
    yield ""
    yield f"{tool.description}"
    yield ""
    yield f"*{tool.title} · {effect}{again}{core}*"
    properties: Mapping[str, Any] = tool.input_schema.get("properties", {})
    if properties:
        required = tool.input_schema.get("required", ())
        yield ""
        yield "| argument | type | meaning |"
        yield "|---|---|---|"
        for name, schema in properties.items():
            shown = f"`{name}`" if name in required else f"`{name}`?"
            yield f"| {shown} | {cell(kind(schema))} | {cell(schema.get('description', ''))} |"
    yield ""


def table() -> str:
    """All tools by family."""
    tools = built_in()
    lines: list[str] = []
    for family, names in FAMILIES.items():
        lines += [f"## {TITLES[family]}", "", f"Family `{family}`.", ""]
        for name in names:
            lines += entry(tools[name])
    return "\n".join(lines).strip() + "\n"


def page() -> str:
    """The page with its tools regenerated."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}{END}{after}"


def test_the_page_of_tools_equals_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/docs/test_tools_doc.py --write"


def test_every_built_in_tool_has_a_family_and_every_family_its_tools() -> None:
    named = [name for names in FAMILIES.values() for name in names]
    assert len(named) == len(set(named))
    assert set(named) == set(built_in())
    assert set(CORE) <= set(named)


def test_every_tool_documents_its_result_its_effects_and_its_arguments() -> None:
    for tool in built_in().values():
        assert tool.title, tool.name
        assert tool.description, tool.name
        assert tool.output_schema is not None, tool.name
        assert set(tool.annotations) == {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}, (
            tool.name
        )
        assert tool.input_schema["additionalProperties"] is False, tool.name


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(page(), encoding="utf-8")
