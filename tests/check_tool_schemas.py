"""Holds the built-in tools to what every model API and client accepts: OpenAI, Azure, VS Code, Gemini, Anthropic.

Owns the rules, each with who refuses what breaks it. Each API refuses a whole request because of one tool, so the
strictest rule counts. `problems` judges a listed tool, also of pages, plugins and servers in other tests:

    python tests/check_tool_schemas.py    print the findings; exit code 1 with findings

What a listing repairs by itself (core.portable_schema) must not be needed here where it would lose something: an array
of a built-in tool says what its items are, and an argument says what it takes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from tabhub.browser.families import SPECS
from tabhub.calls.results import TOOL as READ_RESULT
from tabhub.core.listing.finder import CALL, LIST
from tabhub.core.schemas.portable import ALLOWED, FORMATS, MAX_DEPTH, PROPERTY_NAME, TYPES
from tabhub.core.tools import Tool

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""OpenAI and Anthropic; clients put a prefix such as mcp__tabhub__ before it."""
PREFIX = len("mcp__tabhub__")
LONGEST_DESCRIPTION = 1024
"""OpenAI and Azure, for the description of a function."""


def built_in() -> list[Tool]:
    return [*(spec.tool for spec in SPECS), READ_RESULT, LIST, CALL]


def problems(listing: Mapping[str, Any]) -> Iterator[str]:
    """What an API would refuse in one entry of tools/list."""
    if not NAME.fullmatch(listing["name"]):
        yield f"the name {listing['name']!r}: only letters, digits, _ and -, at most 64 (all)"
    schema = listing["inputSchema"]
    if schema.get("type") != "object" or not isinstance(schema.get("properties"), Mapping):
        yield "inputSchema: must be an object with properties (all)"
    if "anyOf" in schema:
        yield "inputSchema: no anyOf at the top (OpenAI, Anthropic)"
    yield from _schema_problems("inputSchema", schema, 0)


def _schema_problems(where: str, schema: Any, depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        yield f"{where}: must be an object (Gemini)"
        return
    if depth > MAX_DEPTH:
        yield f"{where}: nested deeper than {MAX_DEPTH} levels (OpenAI)"
        return
    if "anyOf" in schema:
        allowed = ALLOWED["any"] - {"type"} | {"anyOf"}
        if not schema["anyOf"]:
            yield f"{where}: an empty anyOf (all)"
        for number, branch in enumerate(schema["anyOf"]):
            yield from _schema_problems(f"{where}/anyOf/{number}", branch, depth)
    else:
        kind = schema.get("type")
        if not isinstance(kind, str) or kind not in TYPES:
            yield f"{where}: must have one type, not {kind!r} (Gemini, VS Code)"
            return
        allowed = ALLOWED["any"] | ALLOWED[kind]
    yield from (f"{where}: {word} is not understood everywhere" for word in schema if word not in allowed)
    if "format" in schema and schema["format"] not in FORMATS:
        yield f"{where}: the format {schema['format']!r} (Gemini)"
    if "enum" in schema and not all(isinstance(value, str) and value for value in schema["enum"]):
        yield f"{where}: an enum of other values than texts, or with an empty text (Gemini)"
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{where}: an array without items (OpenAI, Azure, VS Code, Gemini)"
    for name in schema.get("required", ()):
        if name not in schema.get("properties", ()):
            yield f"{where}: {name!r} is required but not a property (Gemini)"
    for name, part in schema.get("properties", {}).items():
        if not PROPERTY_NAME.fullmatch(name):
            yield f"{where}: the property {name!r} (Anthropic)"
        yield from _schema_problems(f"{where}.{name}", part, depth + 1)
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield from _schema_problems(f"{where}/{keyword}", schema[keyword], depth + 1)


def own_problems(tool: Tool) -> Iterator[str]:
    """What is wrong with the definition of a built-in tool, as it is written and as it is listed."""
    if len(tool.name) > 64 - PREFIX:
        yield "the name is too long with the prefix of a client"
    if len(tool.description) > LONGEST_DESCRIPTION:
        yield f"the description has more than {LONGEST_DESCRIPTION} characters (OpenAI, Azure)"
    yield from problems(tool.listing())
    yield from _vague("inputSchema", tool.input_schema)


def _vague(where: str, schema: Mapping[str, Any]) -> Iterator[str]:
    kinds = schema.get("type", ())
    if not kinds and not {"enum", "const", "anyOf", "oneOf"} & set(schema):
        yield f"{where}: says nothing of what it takes"
    if "array" in ([kinds] if isinstance(kinds, str) else kinds) and "items" not in schema:
        yield f"{where}: an array that does not say what its items are"
    for name, part in schema.get("properties", {}).items():
        yield from _vague(f"{where}.{name}", part)
    for keyword in ("anyOf", "oneOf"):
        for number, part in enumerate(schema.get(keyword, ())):
            yield from _vague(f"{where}/{keyword}/{number}", part)
    if "items" in schema:
        yield from _vague(f"{where}/items", schema["items"])


def main() -> int:
    found = [f"{tool.name}: {problem}" for tool in built_in() for problem in own_problems(tool)]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
