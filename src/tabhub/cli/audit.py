"""`tabhub audit`: what agents did, where, who approved it, and how it went.

Owns the command's filters and the table; entries come from the running hub, or with --file from the log on disk.
"""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from datetime import UTC, datetime, timedelta
from textwrap import wrap
from typing import Any
from urllib.parse import urlencode

from tabhub.cli.command import JSON, Command, option, positive
from tabhub.cli.hub.client import fetch, unexpected_form
from tabhub.cli.terminal import count, duration, line, paint, print_json, safe, show_warning, width
from tabhub.client_errors import HubDownError, UsageError
from tabhub.trust.sentences.agents import agent_name
from tabhub.trust.sentences.outcomes import approved_by, outcome

_MOST = 500
_OUTCOME = 9
"""Columns of the outcome."""
_MOST_LINES = 3
_NARROW = 60
"""Columns of a terminal below which rows continue near its left edge: beside the outcome, names would be torn."""
_NARROW_INDENT = 4
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def audit(args: Namespace) -> None:
    entries = _from_file(args) if args.file else _from_hub(args)
    if args.json:
        return print_json(entries)
    if not entries:
        filtered = any(value is not None for value in (args.plugin, args.tool, args.since, args.success))
        return print("No matching calls." if filtered else "No calls.")
    day = ""
    for entry in entries:
        if width() is not None and (now := _local(entry, "%A, %d %B %Y")) != day:
            day = now
            print(paint(day, "dim"))
        print(_row(entry))
    calls = [entry for entry in entries if entry.get("event") is not True]
    failed = sum(1 for entry in calls if entry.get("success") is not True)
    print(paint(f"\n{count(len(calls), 'call')}, {failed} failed", "dim"))


def _from_hub(args: Namespace) -> list[dict[str, Any]]:
    limit = min(args.limit, _MOST)
    query = {"limit": _MOST if args.since else limit, "plugin": args.plugin, "tool": args.tool}
    query["success"] = None if args.success is None else str(args.success).lower()
    try:
        entries = fetch(f"/audit?{urlencode({name: value for name, value in query.items() if value is not None})}")
    except HubDownError as down:
        raise UsageError(down.message, "To read the log on disk instead: tabhub audit --file") from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise unexpected_form("list of calls")
    if args.limit > _MOST:
        show_warning(f"The hub keeps the last {_MOST} calls in memory. Use --file to read older ones from the log.")
    if args.since:
        entries = [entry for entry in entries if _time(entry) >= args.since]
    return entries[:limit]


def _from_file(args: Namespace) -> list[dict[str, Any]]:
    from tabhub.store.audit_reader import read_log
    from tabhub.store.home import Home

    path = Home.find().audit
    if not path.exists():
        return []
    since = args.since.timestamp() if args.since else None
    entries, skipped = read_log(
        path, limit=args.limit, plugin=args.plugin, tool=args.tool, since=since, success=args.success
    )
    if skipped:
        show_warning(f"Skipped {count(skipped, 'unreadable line')} of {path} (cut off by a crash).")
    return entries


def _time(entry: dict[str, Any]) -> datetime:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _local(entry: dict[str, Any], shape: str) -> str:
    moment = _time(entry)
    return moment.astimezone().strftime(shape) if moment.year > 1 else "?"


def _row(entry: dict[str, Any]) -> str:
    """A call in one line; on a terminal, without its date, and continued below its outcome if it is longer."""
    columns = width()
    when = _local(entry, "%Y-%m-%d %H:%M:%S" if columns is None else "%H:%M:%S")
    if entry.get("event") is True:
        return _folded(safe(f"{when}  {'page'.ljust(_OUTCOME)}  {_event(entry)}"), columns, len(when))
    how = outcome(entry)
    error = entry.get("error")
    message = line(str(error.get("message", ""))) if isinstance(error, dict) else ""
    parts = [f"{_who(entry)}: {entry.get('what') or entry.get('tool', '?')}", str(entry.get("origin") or "")]
    parts += [approved_by(entry), _waited(entry), _milliseconds(entry.get("durationMs")), message]
    text = f"{when}  {how.ljust(_OUTCOME)}  {', '.join(filter(None, parts))}"
    folded = _folded(safe(text), columns, len(when))
    return folded if how == "done" else paint(folded, "yellow" if how in ("denied", "cancelled") else "red")


def _folded(text: str, columns: int | None, indent: int) -> str:
    if columns is None:
        return text
    more = " " * (_NARROW_INDENT if columns < _NARROW else indent + _OUTCOME + 4)
    room = max(columns, _NARROW // 2)
    return "\n".join(wrap(text, room, subsequent_indent=more, max_lines=_MOST_LINES, placeholder=" …"))


def _who(entry: dict[str, Any]) -> str:
    token = entry.get("tokenName")
    name = agent_name(str(entry.get("client") or ""), token if isinstance(token, str) else None)
    return name if entry.get("client") or token else str(entry.get("session") or "?")


def _waited(entry: dict[str, Any]) -> str:
    waited = entry.get("waitedMs")
    return f"waited {duration(waited / 1000)} for the person" if isinstance(waited, int | float) else ""


def _event(entry: dict[str, Any]) -> str:
    """An entry that is not a call: a page changed its tools, or a person was asked."""
    if entry.get("tool") == "approval":
        asked = str(entry.get("sentence") or entry.get("of", "?"))
        how = str(entry.get("by")) if entry.get("decision") == "none" else approved_by({"approval": entry})
        return f"{asked}: {how}"
    changes = [
        f"{verb} {', '.join(map(str, names))}"
        for verb, names in (("offers", entry.get("added")), ("no longer offers", entry.get("removed")))
        if isinstance(names, list) and names
    ]
    where = f"{entry.get('origin', '?')} (tab {entry.get('tabId', '?')})"
    return f"{where} {'; '.join(changes)}"


def _milliseconds(value: object) -> str:
    if not isinstance(value, int | float):
        return "? ms"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _since(text: str) -> datetime:
    span = re.fullmatch(r"([0-9]{1,6})\s*(s|m|min|h|d|w)", text.strip())
    if span:
        return datetime.now(UTC) - timedelta(seconds=int(span[1]) * _UNITS[span[2]])
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentTypeError(f"invalid time '{text}'. Use 30m, 2h, 3d or 2026-01-31T14:00") from None
    return moment if moment.tzinfo else moment.astimezone()


def _outcome(parser: ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--success", action="store_true", default=None, help="only calls that succeeded")
    which.add_argument("--failed", dest="success", action="store_false", help="only calls that failed")


COMMAND = Command(
    audit,
    option("--limit", metavar="N", type=positive, default=50, help="show at most N calls (default: 50)"),
    option("--plugin", metavar="NAME", help="only the tools of one plugin, e.g. browser"),
    option("--tool", metavar="NAME", help="only one tool"),
    option("--since", metavar="TIME", type=_since, help="only calls since TIME: 30m, 2h, 3d or 2026-01-31T14:00"),
    _outcome,
    option("--file", action="store_true", help="read the log on disk, which has older calls and needs no hub"),
    JSON,
    details="The newest call comes first. The hub keeps the last 500 calls in memory, the log on disk has more.",
    examples=(
        ("tabhub audit --failed --since 1h", "failures of the last hour"),
        ("tabhub audit --tool browser_execute_script --file", "all script calls on record"),
    ),
)
