"""`tabhub tool`: list tools, show a schema, call a tool.

Owns how tools and their arguments are written on the command line. It must start fast: no import here that a call
can do without.
"""

from __future__ import annotations

import json
import os
import sys

from tabhub.cli.command import Command, Group, option, seconds, whole
from tabhub.cli.hub.client import decode, fetch, find_hub, request, response_error, unexpected_form
from tabhub.cli.terminal import count, cut, json_text, line, nearest, paint, print_json, safe, width
from tabhub.client_errors import CliError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

_LEAST_WORDS = 20
"""Columns that a description needs beside the name; with fewer it gets a row of its own."""
CALL_TIMEOUT = 450.0  # the longest call plus the time a person may take to confirm it


def _session(name: str | None = None) -> dict[str, str]:
    return {"Tabhub-Client": "cli", "Tabhub-Session": name or os.environ.get("TABHUB_SESSION") or "cli"}


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")


def _fetch(plugin: str | None = None) -> list[dict[str, Any]]:
    path = f"/tools?plugin={_quoted(plugin)}" if plugin else "/tools"
    tools = fetch(path, headers=_session(), timeout=30.0)
    if not isinstance(tools, list) or not all(isinstance(t, dict) and isinstance(t.get("name"), str) for t in tools):
        raise unexpected_form("list of tools")
    return tools


def list_tools(args: Namespace) -> int:
    tools = _fetch(args.plugin)
    if args.json:
        return print_json(tools)
    if not tools:
        if args.plugin:
            near = nearest(args.plugin, sorted({str(tool["plugin"]) for tool in _fetch() if tool.get("plugin")}))
            raise CliError(
                f"There are no tools of a plugin called '{args.plugin}'.",
                f"Did you mean '{near}'?" if near else "`tabhub tool list` shows all there are.",
            )
        print(
            "No tools. Connect a browser: load the extension (`tabhub extension open`), or let the hub start one: "
            "`tabhub stop`, then `tabhub start --launch`."
        )
        return 0
    groups: dict[str, list[dict[str, Any]]] = {}
    for tool in tools:
        groups.setdefault(str(tool.get("plugin") or "other"), []).append(tool)
    room = min(max(len(t["name"]) for t in tools), 48)
    for name, members in groups.items():
        print(paint(f"{safe(name)} ({count(len(members), 'tool')})", "bold"))
        for tool in members:
            left = f"  {safe(tool['name']).ljust(room)}  "
            columns = width()
            if columns and columns - len(left) < _LEAST_WORDS:
                left = f"  {safe(tool['name'])}\n    "
            print(left + cut(safe(line(str(tool.get("description") or ""))), columns and columns - _last_row(left)))
        print()
    print(paint("A tool's parameters: tabhub tool schema NAME", "dim"))
    return 0


def _last_row(text: str) -> int:
    return len(text) - text.rfind("\n") - 1


def show_schema(args: Namespace) -> int:
    tools = {tool["name"]: tool for tool in _fetch()}
    tool = tools.get(args.name)
    if tool is None:
        near = nearest(args.name, list(tools))
        raise CliError(
            f"No tool is called '{args.name}'.",
            f"Did you mean '{near}'?" if near else "`tabhub tool list` shows what there is.",
        )
    if sys.stdout.isatty():
        print(f"{paint(safe(tool['name']), 'bold')}\n{safe(str(tool.get('description') or ''))}\n")
    print(safe(json.dumps(tool.get("inputSchema", {}), indent=2, ensure_ascii=False)))
    return 0


def call(args: Namespace) -> int:
    hub = find_hub()
    body = b'{"arguments":' + _arguments(args.arguments, args.tab_id) + b"}"
    plain = args.name.isascii() and args.name.replace("-", "_").isidentifier()  # then urllib need not be imported
    path = f"/tools/{args.name if plain else _quoted(args.name)}/call"
    answer = request(hub, "POST", path, body=body, headers=_session(args.session), timeout=args.timeout)
    if answer.status not in (200, 422):
        if args.json and answer.headers.get("content-type", "").startswith("application/json"):
            print(answer.body.decode("utf-8", "replace"))
        raise response_error(hub, answer)
    result = decode(answer)
    if not isinstance(result, dict):
        raise unexpected_form("tool result")
    failed = answer.status != 200 or result.get("isError") is True
    if args.json:
        print(json_text(result))
        return 1 if failed else 0
    if failed:
        raise response_error(hub, answer)
    from tabhub.cli.result import show_result

    show_result(result)
    return 0


def _arguments(given: str | None, tab_id: int | None) -> bytes:
    """The arguments as JSON: given in place, with @file, or with - on standard input."""
    source = "The text of the arguments"
    if given is None:
        raw = b"{}"
    elif given == "-":
        source, raw = "What came on standard input", sys.stdin.buffer.read()
    elif given.startswith("@"):
        source = given[1:]
        try:
            with open(source, "rb") as file:  # noqa: PTH123 - pathlib costs more than the call
                raw = file.read()
        except OSError as error:
            raise CliError(
                f"Cannot read {source}: {error.strerror}.", "@FILE names a file that holds the arguments.", exit_code=2
            ) from None
    else:
        raw = os.fsencode(given)
    try:
        text = raw.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise CliError(f"{source} is not UTF-8 text.", exit_code=2) from None
    except json.JSONDecodeError as error:
        raise _bad_json(source, error) from None
    except (ValueError, RecursionError) as error:
        raise CliError(f"{source} cannot be used: {error}.", exit_code=2) from None
    if not isinstance(value, dict):
        raise CliError(
            f"{source} must be a JSON object, not {_kind(value)}.",
            """Write for example: tabhub tool call browser_open_tab '{"url": "https://example.com"}'""",
            exit_code=2,
        )
    if tab_id is None:
        return raw  # as it was written: the hub is the judge of doubled keys and long numbers
    return json.dumps({**value, "tabId": tab_id}).encode()


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    return {list: "an array", str: "a string", bool: "true or false"}.get(type(value), "a number")


def _bad_json(source: str, error: json.JSONDecodeError) -> CliError:
    row = error.doc.split("\n")[error.lineno - 1] if error.doc else ""
    start = max(error.colno - 61, 0)
    detail = f"  {row[start : start + 100]}\n  {' ' * (error.colno - 1 - start)}^" if row else None
    return CliError(
        f"{source} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
        """Keys and strings need double quotes, and the whole single ones: '{"key": "value"}'""",
        exit_code=2,
        detail=detail,
    )


COMMAND = Group(
    "List tools, show their schemas, call them.",
    {
        "list": Command(
            "List the tools an agent can use",
            list_tools,
            option("--plugin", metavar="NAME", help="only the tools of one plugin, e.g. browser"),
            option("--json", action="store_true", help="print the full definitions as JSON"),
            examples=(
                ("tabhub tool list", "all tools, by plugin"),
                ("tabhub tool list --plugin browser", "the built-in browser tools"),
                ("tabhub tool list --json | jq -r '.[].name'", "names only"),
            ),
        ),
        "schema": Command(
            "Show the parameters of a tool as JSON Schema",
            show_schema,
            option("name", metavar="NAME", help="the tool's name"),
            examples=(("tabhub tool schema browser_open_tab", "what browser_open_tab takes"),),
        ),
        "call": Command(
            "Call a tool and print its result",
            call,
            option("name", metavar="NAME", help="the tool's name"),
            option(
                "arguments",
                metavar="JSON",
                nargs="?",
                help="the arguments as a JSON object; @FILE reads a file, - reads standard input",
            ),
            option("--tab-id", metavar="N", type=whole, help="the tab to use (puts tabId into the arguments)"),
            option("--session", metavar="NAME", help="whose tab to use (default: $TABHUB_SESSION, else cli)"),
            option(
                "--timeout",
                metavar="SECONDS",
                type=seconds,
                default=CALL_TIMEOUT,
                help="seconds to wait for the result",
            ),
            option("--json", action="store_true", help="print the whole result as JSON"),
            details=(
                "Text is printed as it is; an image is saved to a temporary file, whose path is printed.\n"
                "Calls of the same session share one tab. The exit code is 1 when the call failed."
            ),
            examples=(
                ("tabhub tool call browser_list_tabs", ""),
                ("""tabhub tool call browser_open_tab '{"url": "https://example.com"}'""", ""),
                ("tabhub tool call browser_screenshot_tab --tab-id 7", "prints the image's path"),
                ("tabhub tool call browser_execute_script @script.json", "arguments from a file"),
            ),
        ),
    },
    examples=(
        ("tabhub tool list", "what there is"),
        ("tabhub tool schema browser_open_tab", "what it takes"),
        ("""tabhub tool call browser_open_tab '{"url": "https://example.com"}'""", "use it"),
    ),
)
