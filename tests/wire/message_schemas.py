"""The published descriptions of the messages: a JSON Schema per surface, and TypeScript types for the extension.

Both are generated from the structs in src/tabhub/wire, and from frame_messages.py. `scripts/schemas` writes the files;
test_schemas.py compares them with the generated ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import inspect

from tabhub.wire import bridge, browser_commands, extension_link, nodes, page_tools, relay
from tests.wire.frame_messages import FROM_FRAME, TO_FRAME

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "docs" / "schemas"
TYPES = ROOT / "extension" / "link" / "messages.d.ts"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PAGE_TOOLS = ("browser/registerTools", "browser/updateTools", "browser/disconnected", "tool.progress")
_ELICIT = "browser/elicitConfirmation"
_REQUEST = "plugin.request"
_EXECUTE = "browser/executeTool"


def surfaces() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each surface, by file name."""
    from_extension = {
        name: kinds for name, kinds in extension_link.FROM_EXTENSION.items() if name not in (*_PAGE_TOOLS, _ELICIT)
    }
    from_hub = {name: (kind,) for name, kind in extension_link.FROM_HUB.items() if kind is not None}
    commands = {name: command for name, command in browser_commands.COMMANDS.items() if name != _EXECUTE}
    execute = browser_commands.COMMANDS[_EXECUTE]
    return {
        "extension-link": _surface(
            "Tabhub extension link: JSON-RPC 2.0 params and results",
            {
                "fromExtension": {
                    **{name: {"params": kinds} for name, kinds in from_extension.items()},
                    _REQUEST: {"params": from_extension[_REQUEST], "result": (page_tools.PluginAnswer,)},
                },
                "fromHub": {name: {"params": kinds} for name, kinds in from_hub.items()},
                "commands": {
                    name: {"params": (command.params,), "result": (command.result,)}
                    for name, command in commands.items()
                },
                "error": {"error": (extension_link.ErrorReply,), "tool.dispatch": (extension_link.DispatchError,)},
            },
            extension_link.PluginLogEntry,
        ),
        "page-tools": _surface(
            "Tabhub page tools: JSON-RPC 2.0 params and results on the extension link, and messages of a frame's port",
            {
                "fromExtension": {
                    **{name: {"params": extension_link.FROM_EXTENSION[name]} for name in _PAGE_TOOLS},
                    _ELICIT: {
                        "params": extension_link.FROM_EXTENSION[_ELICIT],
                        "result": (page_tools.ConfirmationAnswer,),
                    },
                },
                "commands": {_EXECUTE: {"params": (execute.params,), "result": (execute.result,)}},
                "fromFrame": {"message": FROM_FRAME},
                "toFrame": {"message": TO_FRAME},
            },
            page_tools.PageTool,
        ),
        "bridge": _surface(
            "Tabhub bridge socket: one JSON object per line",
            {"fromClient": {"line": get_args(bridge.Message)}, "fromHub": {"line": bridge.FROM_HUB}},
        ),
        "relay": _surface(
            "Tabhub relay: JSON-RPC 2.0 params and results of agents and browsers; MessagePack between nodes",
            {
                "fromAgent": {
                    name: {"params": (params,), "result": (result,)} for name, (params, result) in relay.CONTROL.items()
                },
                "toBrowser": {"authenticate": {"params": (relay.NoParams,), "result": (relay.Login,)}},
                "notifications": {name: {"params": (kind,)} for name, kind in relay.NOTIFICATIONS.items()},
                "nodes": {"message": get_args(nodes.NodeMessage)},
                "bus": {"message": (*get_args(nodes.ToAll | nodes.ToUser), nodes.QueryReply, nodes.Piece)},
            },
        ),
    }


def _surface(title: str, groups: dict[str, dict[str, Any]], *more: type[msgspec.Struct]) -> dict[str, Any]:
    """A schema document: the messages by direction and method, each a reference into `$defs`."""
    kinds = list(dict.fromkeys([*_structs(groups), *more]))
    _, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    return {
        "$schema": _DIALECT,
        "title": title,
        "messages": _references(groups),
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }


def _structs(value: Any) -> list[type[msgspec.Struct]]:
    if isinstance(value, dict):
        return [kind for each in value.values() for kind in _structs(each)]
    if isinstance(value, tuple):
        return [kind for kind in value if kind is not Any]
    return []


def _references(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _references(each) for name, each in value.items()}
    references = [{} if kind is Any else {"$ref": f"#/$defs/{kind.__name__}"} for kind in value]
    return references[0] if len(references) == 1 else {"anyOf": references}


# TypeScript


def typescript() -> str:
    """Declarations of the extension link and of page tools, which the extension's JSDoc imports."""
    from_extension = extension_link.FROM_EXTENSION
    from_hub = {name: kind for name, kind in extension_link.FROM_HUB.items() if kind is not None}
    commands = browser_commands.COMMANDS
    results = [command.result for command in commands.values() if command.result is not Any]
    found: dict[str, type[msgspec.Struct]] = {}
    for kinds in from_extension.values():
        _collect(kinds, found)
    _collect(from_hub.values(), found)
    _collect([command.params for command in commands.values()], found)
    _collect(results, found)
    _collect([page_tools.ConfirmationAnswer, page_tools.PageTool, *FROM_FRAME, *TO_FRAME], found)
    lines = [
        "// Generated from src/tabhub/wire by scripts/schemas. Do not edit.",
        "",
        *(line for name in sorted(found) for line in _interface(found[name])),
        "/** What a page's frame sends to the worker. */",
        f"export type FromFrame = {' | '.join(kind.__name__ for kind in FROM_FRAME)};",
        "",
        "/** What the worker sends to a page's frame. */",
        f"export type ToFrame = {' | '.join(kind.__name__ for kind in TO_FRAME)};",
        "",
        "/** What the extension reports, by method. */",
        "export interface FromExtension {",
        *(f"  {_key(name)}: {' | '.join(kind.__name__ for kind in kinds)};" for name, kinds in from_extension.items()),
        "}",
        "",
        "/** The hub's notifications, by method. */",
        "export interface FromHub {",
        *(f"  {_key(name)}: {kind.__name__};" for name, kind in from_hub.items()),
        "}",
        "",
        "/** The hub's requests, by method. */",
        "export interface Commands {",
        *(
            f"  {_key(name)}: {{ params: {command.params.__name__}; result: {_result(command.result)} }};"
            for name, command in commands.items()
        ),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _result(kind: Any) -> str:
    return "unknown" if kind is Any else str(kind.__name__)


def _key(name: str) -> str:
    return name if name.isidentifier() else f'"{name}"'


def _collect(kinds: Iterable[Any], found: dict[str, type[msgspec.Struct]]) -> None:
    """Add the structs among these types, and those of their fields."""
    for kind in kinds:
        if kind.__name__ not in found:
            found[kind.__name__] = kind
            info = inspect.type_info(kind)
            assert isinstance(info, inspect.StructType)
            for field in info.fields:
                _collect(_inner(field.type), found)


def _inner(info: inspect.Type) -> list[Any]:
    if isinstance(info, inspect.StructType):
        return [info.cls]
    if isinstance(info, inspect.Metadata):
        return [info.extra["item"]] if info.extra and "item" in info.extra else _inner(info.type)
    if isinstance(info, inspect.UnionType):
        return [kind for each in info.types for kind in _inner(each)]
    if isinstance(info, inspect.ListType):
        return _inner(info.item_type)
    return _inner(info.value_type) if isinstance(info, inspect.DictType) else []


def _interface(kind: type[msgspec.Struct]) -> list[str]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    # A type alias, unlike an interface, may be passed where any record is expected.
    summary = (kind.__doc__ or "").strip().splitlines()[0]
    if not info.fields:
        return [f"/** {summary} */", f"export type {kind.__name__} = Record<string, never>;", ""]
    fields = [
        f"  {_key(field.encode_name)}{'' if field.required else '?'}: {_type(field.type, field)};"
        for field in info.fields
    ]
    return [f"/** {summary} */", f"export type {kind.__name__} = {{", *fields, "};", ""]


def _type(info: inspect.Type, field: inspect.Field | None = None) -> str:
    if isinstance(info, inspect.StructType):
        return info.cls.__name__
    if isinstance(info, inspect.Metadata):
        item = (info.extra or {}).get("item")
        return f"{item.__name__}[]" if item is not None else _type(info.type)
    if isinstance(info, inspect.UnionType):
        # The extension omits a field that may be null because it may be missing.
        optional = field is not None and not field.required
        members = [_type(each) for each in info.types if not (optional and isinstance(each, inspect.NoneType))]
        return " | ".join(dict.fromkeys(members))
    if isinstance(info, inspect.ListType):
        inner = _type(info.item_type)
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if isinstance(info, inspect.DictType):
        return f"Record<string, {_type(info.value_type)}>"
    if isinstance(info, inspect.LiteralType):
        return " | ".join(f'"{value}"' for value in info.values)
    return _SIMPLE.get(type(info), "unknown")


_SIMPLE: dict[type, str] = {
    inspect.StrType: "string",
    inspect.IntType: "number",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
}


if __name__ == "__main__":
    for name, schema in surfaces().items():
        (SCHEMAS / f"{name}.json").write_text(json.dumps(schema, indent=2) + "\n")
    TYPES.write_text(typescript())
