"""`tabhub tool`: list tools, show a schema, call a tool.

Owns how tools, their arguments and results are written on the command line: text as text, images and other bytes as
files whose path is printed. It must start fast: no import here that a call can do without.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace

from tabhub.cli.command import Command, Group, option, seconds, whole
from tabhub.cli.hub.client import decode, fetch, find_hub, is_json, request, response_error, unexpected_form
from tabhub.cli.terminal import count, nearest, paint, print_json, print_row, safe, width
from tabhub.client_errors import CliError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MIN_DESCRIPTION = 20
"""Columns that a description needs to the right of the name; with fewer it gets its own row."""
_TIMEOUT = 450.0  # the longest call plus the time a person may take to confirm it
_EXTENSIONS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "image/svg+xml": ".svg",
    "audio/wav": ".wav",
    "audio/mpeg": ".mp3",
    "application/pdf": ".pdf",
}


def _session(name: str | None = None) -> dict[str, str]:
    return {"Tabhub-Client": "cli", "Tabhub-Session": name or os.environ.get("TABHUB_SESSION") or "cli"}


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def _fetch(plugin: str | None = None) -> list[dict[str, Any]]:
    tools = fetch(f"/tools?plugin={_quoted(plugin)}" if plugin else "/tools", headers=_session(), timeout=30.0)
    if not isinstance(tools, list) or not all(isinstance(t, dict) and isinstance(t.get("name"), str) for t in tools):
        raise unexpected_form("list of tools")
    return tools


def list_tools(args: Namespace) -> None:
    tools = _fetch(args.plugin)
    if args.json:
        return print_json(tools)
    if not tools and args.plugin:
        near = nearest(args.plugin, sorted({str(tool["plugin"]) for tool in _fetch() if tool.get("plugin")}))
        raise CliError(
            f"There are no tools of a plugin named '{args.plugin}'.",
            f"Did you mean '{near}'?" if near else "`tabhub tool list` lists all tools.",
        )
    if not tools:
        return print(
            "No tools. Connect a browser: load the extension (`tabhub extension open`), or let the hub start one: "
            "`tabhub stop`, then `tabhub start --launch`."
        )
    groups: dict[str, list[dict[str, Any]]] = {}
    for tool in tools:
        groups.setdefault(str(tool.get("plugin") or "other"), []).append(tool)
    name_width = min(max(len(tool["name"]) for tool in tools), 48)
    columns = width()
    for plugin, members in groups.items():
        print(paint(f"{safe(plugin)} ({count(len(members), 'tool')})", "bold"))
        for tool in members:
            left = f"  {safe(tool['name']).ljust(name_width)}  "
            if columns and columns - len(left) < _MIN_DESCRIPTION:
                print(f"  {safe(tool['name'])}")
                left = "    "
            print_row(left, str(tool.get("description") or ""))
        print()
    print(paint("A tool's parameters: tabhub tool schema NAME", "dim"))


def show_schema(args: Namespace) -> None:
    tools = {tool["name"]: tool for tool in _fetch()}
    tool = tools.get(args.name)
    if tool is None:
        near = nearest(args.name, list(tools))
        hint = f"Did you mean '{near}'?" if near else "`tabhub tool list` lists all tools."
        raise CliError(f"There is no tool named '{args.name}'.", hint)
    if sys.stdout.isatty():
        print(f"{paint(safe(tool['name']), 'bold')}\n{safe(str(tool.get('description') or ''))}\n")
    print(safe(json.dumps(tool.get("inputSchema", {}), indent=2, ensure_ascii=False)))


def call(args: Namespace) -> int:
    hub = find_hub()
    body = b'{"arguments":' + _arguments(args.arguments, args.tab_id) + b"}"
    plain = args.name.isascii() and args.name.replace("-", "_").isidentifier()  # then urllib need not be imported
    path = f"/tools/{args.name if plain else _quoted(args.name)}/call"
    headers = _session(args.session) | ({} if args.json else {"Tabhub-Answer": "text"})
    answer = request(hub, "POST", path, body=body, headers=headers, timeout=args.timeout)
    if answer.status not in (200, 422):
        if args.json and is_json(answer):
            print(answer.body.decode("utf-8", "replace"))
        raise response_error(hub, answer)
    result = decode(answer)
    if not isinstance(result, dict):
        raise unexpected_form("tool result")
    failed = answer.status != 200 or result.get("isError") is True
    if args.json:
        print_json(result)
    elif failed:
        raise response_error(hub, answer)
    else:
        _show_result(result)
    return 1 if failed else 0


def _show_result(result: dict[str, Any]) -> None:
    content = result.get("content")
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    for block in blocks:
        print(safe(_block_text(block)))
    if not blocks and result.get("structuredContent") is not None:
        print(safe(json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)))


def _block_text(block: dict[str, Any]) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind in ("image", "audio"):
        return save_content(block.get("data"), block.get("mimeType"))
    if kind == "resource" and isinstance(resource := block.get("resource"), dict):
        if "blob" in resource:
            return save_content(resource["blob"], resource.get("mimeType"))
        return str(resource.get("text", resource.get("uri", "")))
    if kind == "resource_link":
        return str(block.get("uri", ""))
    return json.dumps(block, indent=2, ensure_ascii=False)


def save_content(data: object, mime: object) -> str:
    """Write base64 data to a file only this user can read, and return its path."""
    import base64
    import tempfile

    try:
        raw = base64.b64decode(data if isinstance(data, str) else "", validate=True)
    except ValueError:
        raise CliError("The tool's result contains invalid base64.", "`--json` prints it as it is.") from None
    ending = _EXTENSIONS.get(str(mime), ".bin")
    with tempfile.NamedTemporaryFile(prefix="tabhub-", suffix=ending, delete=False) as file:
        file.write(raw)
    return file.name


def _arguments(given: str | None, tab_id: int | None) -> bytes:
    """The arguments as JSON: given in place, with @file, or with - on standard input."""
    source = "The text of the arguments"
    if given is None:
        raw = b"{}"
    elif given == "-":
        source, raw = "Standard input", sys.stdin.buffer.read()
    elif given.startswith("@"):
        source = given[1:]
        try:
            with open(source, "rb") as file:  # noqa: PTH123 - pathlib costs more than the call
                raw = file.read()
        except OSError as error:
            hint = "@FILE names a file that contains the arguments."
            raise UsageError(f"Cannot read {source}: {error.strerror}.", hint) from None
    else:
        raw = os.fsencode(given)
    try:
        value = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise UsageError(f"{source} is not UTF-8 text.") from None
    except json.JSONDecodeError as error:
        raise _bad_json(source, error) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{source} cannot be used: {error}.") from None
    if not isinstance(value, dict):
        kinds = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}
        raise UsageError(
            f"{source} must be a JSON object, not {kinds.get(type(value), 'a number')}.",
            """Write for example: tabhub tool call browser_open_tab '{"url": "https://example.com"}'""",
        )
    if tab_id is None:
        return raw  # unchanged: the hub decides about duplicate keys and long numbers
    return json.dumps({**value, "tabId": tab_id}).encode()


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _bad_json(source: str, error: json.JSONDecodeError) -> CliError:
    row = error.doc.split("\n")[error.lineno - 1] if error.doc else ""
    start = max(error.colno - 61, 0)
    detail = f"  {row[start : start + 100]}\n  {' ' * (error.colno - 1 - start)}^" if row else None
    return CliError(
        f"{source} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
        """Use double quotes for keys and strings, and single quotes around it all: '{"key": "value"}'""",
        exit_code=2,
        detail=detail,
    )


_NAME = option("name", metavar="NAME", help="the tool's name")
COMMAND = Group(
    {
        "list": Command(
            list_tools,
            option("--plugin", metavar="NAME", help="only the tools of one plugin, e.g. browser"),
            option("--json", action="store_true", help="print the full definitions as JSON"),
            summary="List the tools an agent can use",
            examples=(
                ("tabhub tool list", "all tools, by plugin"),
                ("tabhub tool list --plugin browser", "the built-in browser tools"),
                ("tabhub tool list --json | jq -r '.[].name'", "names only"),
            ),
        ),
        "schema": Command(
            show_schema,
            _NAME,
            summary="Show the parameters of a tool as JSON Schema",
            examples=(("tabhub tool schema browser_open_tab", "the parameters of browser_open_tab"),),
        ),
        "call": Command(
            call,
            _NAME,
            option("arguments", metavar="JSON", nargs="?", help="its arguments; @FILE reads a file, - standard input"),
            option("--tab-id", metavar="N", type=whole, help="the tab to use (adds tabId to the arguments)"),
            option("--session", metavar="NAME", help="whose tab to use (default: $TABHUB_SESSION, else cli)"),
            option(
                "--timeout", metavar="SECONDS", type=seconds, default=_TIMEOUT, help="how long to wait (default: 450)"
            ),
            option("--json", action="store_true", help="print the whole result as JSON"),
            summary="Call a tool and print its result",
            details=(
                "Text is printed as it is; an image is saved to a temporary file, whose path is printed.\n"
                "Calls of the same session share one tab. The exit code is 1 if the call failed."
            ),
            examples=(
                ("""tabhub tool call browser_open_tab '{"url": "https://example.com"}'""", "with arguments"),
                ("tabhub tool call browser_screenshot_tab --tab-id 7", "prints the image's path"),
                ("tabhub tool call browser_execute_script @script.json", "arguments from a file"),
            ),
        ),
    }
)
