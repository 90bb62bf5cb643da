"""Tools as a server lists them, turned into tools of the hub.

Owns which fields of a listing are kept and their bounds: a listing is untrusted data. A tool that cannot be used is
skipped with a problem; the server's other tools stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tabhub.core.definitions import (
    checked_name,
    shown_annotations,
    shown_output_schema,
    shown_schema,
    shown_text,
)
from tabhub.core.schemas import bounds as schemas
from tabhub.core.schemas.references import resolved
from tabhub.core.schemas.validators import compile_schema
from tabhub.core.tools import Source, Tool
from tabhub.core.upstream_names import upstream_name
from tabhub.errors import BadInput

_KEPT = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta")
_MAX_TEXT = 20_000
_TITLE = 200
_LONGEST_NAME = 500
_LARGEST = 400_000


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The usable tools of a listing, and the problems of the others."""

    tools: tuple[dict[str, Any], ...]
    problems: tuple[str, ...]


def read_listing(listing: Iterable[Any], max_tools: int) -> ToolListing:
    """The usable tools, in the form in which they are cached; of two with the same name the first is kept."""
    kept: dict[str, dict[str, Any]] = {}
    problems: list[str] = []
    for raw in listing:
        name = raw.get("name") if isinstance(raw, Mapping) else None
        if not isinstance(raw, Mapping) or not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
            problems.append(f"A tool without a usable name was skipped: {str(name)[:60]!r}.")
        elif name in kept:
            problems.append(f"{name!r} is listed twice; the first is used.")
        elif len(kept) >= max_tools:
            problems.append(f"More than {max_tools} tools are listed; the rest is ignored.")
            break
        else:
            tool = {key: raw[key] for key in _KEPT if raw.get(key) is not None}
            try:
                make_tool("check", tool)
            except BadInput as error:
                problems.append(f"{name[:100]!r} was skipped: {error.message}")
            else:
                kept[name] = tool
    return ToolListing(tuple(kept.values()), tuple(problems[:20]))


def make_tool(server: str, raw: Mapping[str, Any]) -> Tool:
    """A cached tool as a tool of the hub; BadInput if it cannot be one."""
    schema, output = raw.get("inputSchema", {}), raw.get("outputSchema")
    annotations, meta, title = raw.get("annotations", {}), raw.get("_meta"), raw.get("title")
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise BadInput("its inputSchema is not the schema of an object.")
    if output is not None and not isinstance(output, Mapping):
        raise BadInput("its outputSchema is not an object.")
    if not isinstance(annotations, Mapping) or (meta is not None and not isinstance(meta, Mapping)):
        raise BadInput("its annotations or _meta are not objects.")
    if len(_encoded(raw)) > _LARGEST:
        raise BadInput(f"its definition is larger than {_LARGEST} bytes.")
    try:
        schema = resolved(schema)
    except BadInput as error:
        raise BadInput(f"its inputSchema cannot be used: {error.message}.") from None
    if (why := schemas.find_problem(schema)) is not None:
        raise BadInput(f"its inputSchema cannot be used: {why}.")
    description = raw.get("description")
    try:
        compile_schema(schema)
        return Tool(
            upstream_name(server, checked_name(raw["name"])),
            Source("upstream", server),
            shown_text(description, _MAX_TEXT) if isinstance(description, str) else "",
            {"type": "object", **shown_schema(schema)},
            title=shown_text(title, _TITLE) if isinstance(title, str) else None,
            # Clients refuse a listing in which a result is no object.
            output_schema=shown_output_schema(output) if output and output.get("type") == "object" else None,
            annotations=shown_annotations(annotations),
            meta=shown_annotations(meta) if meta is not None else None,
        )
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"its definition cannot be used: {error}") from None


def _encoded(raw: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(raw)
    except (TypeError, ValueError) as error:  # numbers that JSON parsers do not accept
        raise BadInput(f"its definition cannot be encoded: {error}") from None
