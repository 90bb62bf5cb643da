"""`tabhub audit`: which tools were called, by whom, and how it went.

Owns the command's filters and the table; entries come from the running hub, or with --file from the log on disk.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from tabhub.cli.command import JSON, Command, option, positive
from tabhub.cli.hub.client import fetch, unexpected_form
from tabhub.cli.terminal import count, cut, line, paint, print_json, safe, show_warning, width
from tabhub.client_errors import CliError, HubDownError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

_MOST = 500
_NARROW = 72
"""Columns below which date and duration would take the place of the tool's name."""
_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def audit(args: Namespace) -> int:
    entries = _from_file(args) if args.file else _from_hub(args)
    if args.json:
        return print_json(entries)
    if not entries:
        print("No calls." if _unfiltered(args) else "No calls that fit.")
        return 0
    for entry in entries:
        print(_row(entry))
    calls = [entry for entry in entries if entry.get("event") is not True]
    failed = sum(1 for entry in calls if entry.get("success") is not True)
    print(paint(f"\n{count(len(calls), 'call')}, {failed} failed", "dim"))
    return 0


def _unfiltered(args: Namespace) -> bool:
    return args.plugin is None and args.tool is None and args.since is None and args.success is None


def _from_hub(args: Namespace) -> list[dict[str, Any]]:
    limit = min(args.limit, _MOST)
    query = {"limit": str(_MOST if args.since else limit)}
    if args.plugin:
        query["plugin"] = args.plugin
    if args.tool:
        query["tool"] = args.tool
    if args.success is not None:
        query["success"] = "true" if args.success else "false"
    try:
        entries = fetch(f"/audit?{urlencode(query)}")
    except HubDownError as down:
        raise CliError(
            down.message, "The log on disk can be read without it: tabhub audit --file", exit_code=2
        ) from None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise unexpected_form("list of calls")
    if args.limit > _MOST:
        show_warning(f"The hub keeps the last {_MOST} calls at hand; --file reads all there are.")
    if args.since:
        entries = [entry for entry in entries if _time(entry) >= args.since]
    return entries[:limit]


def _from_file(args: Namespace) -> list[dict[str, Any]]:
    from tabhub.store.audit import read_log
    from tabhub.store.home import Home

    path = Home.find().audit
    if not path.exists():
        return []
    since = args.since.timestamp() if args.since else None
    entries, skipped = read_log(
        path, limit=args.limit, plugin=args.plugin, tool=args.tool, since=since, success=args.success
    )
    if skipped:
        show_warning(f"{count(skipped, 'line')} of {path} could not be read (torn by a crash) and left out.")
    return entries


def _time(entry: dict[str, Any]) -> datetime:
    try:
        return datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)


def _row(entry: dict[str, Any]) -> str:
    moment = _time(entry)
    columns = width()
    narrow = columns is not None and columns < _NARROW
    shape = "%H:%M:%S" if narrow else "%Y-%m-%d %H:%M:%S"
    when = moment.astimezone().strftime(shape) if moment.year > 1 else "?".ljust(8 if narrow else 19)
    if entry.get("event") is True:
        return cut(safe(f"{when}  {_event(entry, narrow=narrow)}"), columns)
    good = entry.get("success") is True
    took = "" if narrow else f"{_milliseconds(entry.get('durationMs')).rjust(9)}  "
    who = str(entry.get("session") or entry.get("client") or "")
    way = f"{entry['via']} " if isinstance(entry.get("via"), str) else ""
    error = entry.get("error")
    what = str(error.get("message", "")) if isinstance(error, dict) else ""
    text = f"{when}  {'ok    ' if good else 'failed'}  {took}{entry.get('tool', '?')}"
    text += f"  [{way}{who}]" if who else ""
    text = cut(safe(f"{text}  {line(what)}".rstrip()), columns)
    return text if good else paint(text, "red")


def _event(entry: dict[str, Any], *, narrow: bool) -> str:
    """An entry that is not a call: a page changed its tools."""
    said = [
        f"{words} {', '.join(map(str, names))}"
        for words, names in (("offers", entry.get("added")), ("no longer offers", entry.get("removed")))
        if isinstance(names, list) and names
    ]
    where = f"{entry.get('origin', '?')} (tab {entry.get('tabId', '?')})"
    return f"{'page'.ljust(6 if narrow else 17)}  {where} {'; '.join(said)}"


def _milliseconds(value: object) -> str:
    if not isinstance(value, int | float):
        return "? ms"
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _since(text: str) -> datetime:
    """`30m`, `2h`, `3d`, or a date and time."""
    from argparse import ArgumentTypeError

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
    which.add_argument("--success", action="store_true", default=None, help="only calls that worked")
    which.add_argument("--failed", dest="success", action="store_false", help="only calls that failed")


COMMAND = Command(
    "Show which tools were called, by whom, and the results",
    audit,
    option("--limit", metavar="N", type=positive, default=50, help="maximum number of calls (default: 50)"),
    option("--plugin", metavar="NAME", help="only the tools of one plugin, e.g. browser"),
    option("--tool", metavar="NAME", help="only one tool"),
    option("--since", metavar="TIME", type=_since, help="only calls since: 30m, 2h, 3d, 2026-01-31T14:00"),
    _outcome,
    option("--file", action="store_true", help="read the log on disk: older calls, and without a hub"),
    JSON,
    details="The newest come first. The hub keeps the last 500 calls at hand, the log on disk more.",
    examples=(
        ("tabhub audit --failed --since 1h", "what went wrong in the last hour"),
        ("tabhub audit --tool browser_execute_script --file", "who ran scripts, ever"),
    ),
)
