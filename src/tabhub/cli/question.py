"""Elicitation requests of the hub, answered at the terminal without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from tabhub.cli.terminal import paint, safe

_LINE = 4096


async def ask_person(params: dict[str, Any]) -> dict[str, Any]:
    """Show the question and read the answer: a choice, a yes or no, or the fields of a form."""
    _say(f"\n{paint('The hub asks:', 'yellow', sys.stderr)} {safe(str(params.get('message', '')), sys.stderr)}\n")
    schema = params.get("requestedSchema")
    fields = schema.get("properties") if isinstance(schema, dict) else None
    required = schema.get("required", []) if isinstance(schema, dict) else []
    content: dict[str, Any] = {}
    if not isinstance(fields, dict) or not fields:
        return {"action": "accept", "content": {}} if await _yes("Confirm?") else {"action": "decline"}
    for name, spec in fields.items():
        if not isinstance(spec, dict) or (content.get("decision", "deny") != "deny" and name == "reason"):
            continue
        value = await _field(name, spec, needed=name in required)
        if value is None and name in required:
            return {"action": "decline"}
        if value is not None:
            content[name] = value
    return {"action": "accept", "content": content}


async def _field(name: str, spec: dict[str, Any], *, needed: bool) -> Any:
    """The value of one field; None if the person enters nothing."""
    title = safe(str(spec.get("title") or spec.get("description") or name), sys.stderr)
    choices = spec.get("enum")
    if isinstance(choices, list) and choices:
        return await _choice(title, choices, spec.get("enumNames"))
    if spec.get("type") == "boolean":
        return await _yes(f"{title}?")
    while True:
        _say(f"{title}{'' if needed else ' (empty for none)'}: ")
        typed = (await read_line()).strip()
        if not typed or spec.get("type") not in ("integer", "number"):
            return typed or None
        try:
            return int(typed) if spec["type"] == "integer" else float(typed)
        except ValueError:
            _say("Type a number.\n")


async def _choice(title: str, choices: list[Any], names: Any) -> Any:
    shown = names if isinstance(names, list) and len(names) == len(choices) else choices
    listed = ", ".join(f"[{number}] {safe(str(name), sys.stderr)}" for number, name in enumerate(shown, 1))
    while True:
        _say(f"{title}: {listed}: ")
        line = await read_line()
        if not line:
            return None
        typed = line.strip()
        if typed.isascii() and typed.isdigit() and 1 <= int(typed) <= len(choices):
            return choices[int(typed) - 1]
        _say("Type one of the numbers.\n")


async def _yes(question: str) -> bool:
    _say(f"{question} [y/N] ")
    return (await read_line()).strip().lower() in ("y", "yes")


def _say(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


async def read_line() -> str:
    """The next line of standard input; empty at its end."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Future[bytes] = loop.create_future()
    fd = sys.stdin.fileno()

    def ready() -> None:
        if not typed.done():
            typed.set_result(os.read(fd, _LINE))  # a terminal gives a line at a time

    try:
        loop.add_reader(fd, ready)
    except PermissionError:  # a regular file or /dev/null, which is always ready
        return os.read(fd, _LINE).decode("utf-8", "replace")
    try:
        return (await typed).decode("utf-8", "replace")
    finally:
        loop.remove_reader(fd)
