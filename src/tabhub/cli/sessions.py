"""`tabhub sessions`, `tabhub pause` and `tabhub resume`: show, end and pause agents' sessions.

Owns how sessions are shown and named on the command line; the hub ends and pauses them.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import JSON, Command, option
from tabhub.cli.hub.client import fetch, unexpected_form
from tabhub.cli.terminal import count, cut, duration, line, paint, print_json, safe, width
from tabhub.client_errors import CliError

if TYPE_CHECKING:
    from argparse import Namespace

_SHORT = 8
_ME = {"Tabhub-Client": "the command line"}


def sessions(args: Namespace) -> int:
    if args.action == "list":
        if args.target is not None:
            raise CliError("`tabhub sessions list` takes no name.", exit_code=2)
        return _list(args.json)
    if args.target is None:
        what = "the ID of a session" if args.action == "end" else "the number of a TAB"
        raise CliError(f"`tabhub sessions {args.action}` needs {what}.", "`tabhub sessions` shows them.", exit_code=2)
    return _end(args.target, args.json) if args.action == "end" else _release(args.target, args.json)


def _fetch() -> dict[str, Any]:
    answer = fetch("/sessions", headers=_ME)
    if not isinstance(answer, dict) or not isinstance(answer.get("sessions"), list):
        raise unexpected_form("list of sessions")
    return answer


def _post(path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = fetch(path, body, headers=_ME)
    return answer if isinstance(answer, dict) else {}


def _list(as_json: bool) -> int:
    facts = _fetch()
    if as_json:
        return print_json(facts)
    if facts.get("paused"):
        print(paint(f"{paused_words(facts['paused'])}\n", "yellow"))
    if not facts["sessions"]:
        print("No sessions. An agent that connects begins one.")
        return 0
    for session in facts["sessions"]:
        running = session.get("callsInFlight", 0)
        busy = f"{count(running, 'call')} running" if running else f"idle {duration(session.get('idleSeconds', 0))}"
        if session.get("gone"):
            busy += ", its client has disconnected"
        shown = _shortened(session)
        print(f"{paint(safe(shown), 'bold')}  {safe(str(session.get('client')))}, {session.get('kind')}, {busy}")
        for lease in session.get("leases", []):
            mark = "→" if lease.get("tabId") == session.get("tabId") else " "
            own = " (opened by it)" if lease.get("tabId") in session.get("ownTabs", []) else ""
            what = line(str(lease.get("title") or lease.get("url") or "not reachable now"))
            left = f"  {mark} tab {lease.get('tabId')}{own}, held {duration(lease.get('heldSeconds', 0))}: "
            columns = width()
            print(left + cut(safe(what), columns and columns - len(left)))
    return 0


def _shortened(session: dict[str, Any]) -> str:
    ident = str(session.get("id"))
    return ident if session.get("kind") == "rest" else ident[:_SHORT]


def _end(name: str, as_json: bool) -> int:
    session = _named(name)
    answer = _post(f"/sessions/{_quoted(session['id'])}/end", {})
    if as_json:
        return print_json(answer)
    closing = answer.get("closing") or []
    tabs = f" {count(len(closing), 'tab')} that it opened will be closed." if closing else ""
    print(f"Ended the session of {safe(str(session.get('client')))}.{tabs}")
    return 0


def _named(name: str) -> dict[str, Any]:
    """The one session whose id is, or begins with, the argument."""
    there: list[dict[str, Any]] = _fetch()["sessions"]
    wanted = name.rstrip("…")
    exact = [s for s in there if s.get("id") in (name, f"rest:{name}")]
    found = exact or [s for s in there if str(s.get("id")).startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise CliError(f"{len(found)} sessions begin with '{name}'.", "Type more of the id: `tabhub sessions --json`.")
    raise CliError(f"There is no session '{name}'.", "`tabhub sessions` lists them.")


def _release(tab: str, as_json: bool) -> int:
    if not tab.isdecimal() or not tab.isascii():
        raise CliError(f"A tab is a number, not '{tab}'.", "`tabhub sessions` shows the tabs.", exit_code=2)
    tab_id = int(tab)
    holder = next(
        (s for s in _fetch()["sessions"] if tab_id in [held.get("tabId") for held in s.get("leases", [])]), None
    )
    if holder is None:
        raise CliError(f"No session holds tab {tab_id}.", "`tabhub sessions` shows what is held.")
    answer = _post(f"/sessions/{_quoted(holder['id'])}/release", {"tabId": tab_id})
    freed = f"Tab {tab_id} is free; {safe(str(holder.get('client')))} held it."
    print(json.dumps(answer, indent=2) if as_json else freed)
    return 0


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe=":")


def pause(args: Namespace) -> int:
    reason = " ".join(args.reason)
    answer = _post("/pause", {"reason": reason, "mode": "fail" if args.fail else "wait"})
    if args.json:
        return print_json(answer)
    how = "fail at once" if args.fail else "wait"
    print(f"Paused: calls that change something {how} until `tabhub resume`. What only reads goes on.")
    return 0


def resume(args: Namespace) -> int:
    answer = _post("/resume", {})
    if args.json:
        return print_json(answer)
    if not answer.get("wasPaused"):
        print("Agents were not paused.")
        return 0
    released = answer.get("callsReleased", 0)
    print(f"Resumed: {count(released, 'waiting call')} on the way." if released else "Resumed.")
    return 0


def paused_words(paused: dict[str, Any]) -> str:
    """The pause as text: since when, by whom, why."""
    since = paused.get("since")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(since)) if isinstance(since, (int, float)) else "some time"
    why = f" ({paused['reason']})" if paused.get("reason") else ""
    waiting = paused.get("callsWaiting") or 0
    held = f"; {count(waiting, 'call')} waiting" if waiting else ""
    return f"paused since {when} by {paused.get('by')}{why}{held}; `tabhub resume` lets agents go on"


COMMAND = Command(
    "Show agents' sessions and their tabs; end a session or release a tab",
    sessions,
    option("action", nargs="?", choices=("list", "end", "release"), default="list", help="default: list"),
    option("target", nargs="?", metavar="ID|TAB", help="the session to end, or the tab to free"),
    JSON,
    details="An id may be shortened. Ending a session closes the tabs it opened, and no other.",
    examples=(
        ("tabhub sessions", "who is there, and which tabs they hold"),
        ("tabhub sessions end 3f9a0c12", "end a session"),
        ("tabhub sessions release 7", "free tab 7 for other agents"),
    ),
)
PAUSE = Command(
    "Pause agents: calls that change something wait until `tabhub resume`",
    pause,
    option("reason", nargs="*", metavar="REASON", help="reason shown to agents"),
    option("--fail", action="store_true", help="fail calls at once instead of letting them wait"),
    JSON,
    details="Calls that only read go on, and calls under way run to their end, batches to that of a step. "
    "It outlives a restart of the hub.",
    examples=(("tabhub pause", ""), ("tabhub pause --fail paying a bill", "agents see the reason")),
)
RESUME = Command("Resume agents: waiting calls continue", resume, JSON)
