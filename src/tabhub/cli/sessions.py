"""`tabhub sessions`, `tabhub pause` and `tabhub resume`: show, end and pause agents' sessions, which the hub does."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import Any
from urllib.parse import quote

from tabhub.cli.command import JSON, Command, option
from tabhub.cli.hub.client import fetch
from tabhub.cli.terminal import count, duration, paint, print_json, print_row, safe
from tabhub.client_errors import CliError, UsageError

_SHORT = 8
_CLIENT = {"Tabhub-Client": "the command line"}


def sessions(args: Namespace) -> None:
    if args.action == "list":
        if args.target is not None:
            raise UsageError("`tabhub sessions list` takes no argument.")
        return _list(as_json=args.json)
    if args.target is None:
        what = "the ID of a session" if args.action == "end" else "the number of a TAB"
        raise UsageError(f"`tabhub sessions {args.action}` needs {what}.", "`tabhub sessions` shows them.")
    if args.action == "end":
        _end(args.target, as_json=args.json)
    else:
        _release(args.target, as_json=args.json)


def _fetch(path: str = "/sessions", body: dict[str, Any] | None = None) -> dict[str, Any]:
    answer: dict[str, Any] = fetch(path, body, headers=_CLIENT)
    return answer


def _list(*, as_json: bool) -> None:
    facts = _fetch()
    if as_json:
        return print_json(facts)
    if facts.get("paused"):
        print(paint(f"Paused {pause_summary(facts['paused'])}\n", "yellow"))
    if not facts["sessions"]:
        print("No sessions. A session begins when an agent connects.")
    for session in facts["sessions"]:
        ident = str(session.get("id"))
        shown = ident if session.get("kind") == "rest" else ident[:_SHORT]
        running = session.get("callsInFlight", 0)
        state = count(running, "running call") if running else f"idle {duration(session.get('idleSeconds', 0))}"
        if session.get("gone"):
            state += ", disconnected"
        agent = f"{session['token']} ({session.get('client')})" if session.get("token") else str(session.get("client"))
        print(f"{paint(safe(shown), 'bold')}  {safe(agent)}, {session.get('kind')}, {state}")
        for lease in session.get("leases", []):
            mark = "→" if lease.get("tabId") == session.get("tabId") else " "
            own = " (opened by it)" if lease.get("tabId") in session.get("ownTabs", []) else ""
            left = f"  {mark} tab {lease.get('tabId')}{own}, held {duration(lease.get('heldSeconds', 0))}: "
            print_row(left, str(lease.get("title") or lease.get("url") or "currently unreachable"))


def _end(name: str, *, as_json: bool) -> None:
    session = _named(name)
    answer = _fetch(f"/sessions/{quote(session['id'], safe=':')}/end", {})
    if as_json:
        return print_json(answer)
    closing = answer.get("closing") or []
    tabs = f" {count(len(closing), 'tab')} that it opened will be closed." if closing else ""
    print(f"Ended the session of {safe(str(session.get('client')))}.{tabs}")


def _named(name: str) -> dict[str, Any]:
    """The one session whose id is, or begins with, the argument."""
    known: list[dict[str, Any]] = _fetch()["sessions"]
    exact = [s for s in known if s.get("id") in (name, f"rest:{name}")]
    found = exact or [s for s in known if str(s.get("id")).startswith(name.rstrip("…"))]
    if len(found) == 1:
        return found[0]
    if found:
        raise CliError(f"{len(found)} sessions begin with '{name}'.", "Type more of the id: `tabhub sessions --json`.")
    raise CliError(f"There is no session '{name}'.", "`tabhub sessions` lists them.")


def _release(tab: str, *, as_json: bool) -> None:
    tab_id = _tab_number(tab)
    for session in _fetch()["sessions"]:
        if any(lease.get("tabId") == tab_id for lease in session.get("leases", [])):
            answer = _fetch(f"/sessions/{quote(session['id'], safe=':')}/release", {"tabId": tab_id})
            if as_json:
                return print_json(answer)
            return print(f"Released tab {tab_id}, which {safe(str(session.get('client')))} held.")
    raise CliError(f"No session holds tab {tab_id}.", "`tabhub sessions` shows which tabs are held.")


def _tab_number(tab: str) -> int:
    if not tab.isdecimal() or not tab.isascii():
        raise UsageError(f"A tab is a number, not '{tab}'.", "`tabhub sessions` shows the tabs.")
    return int(tab)


def pause(args: Namespace) -> None:
    answer = _fetch("/pause", {"reason": " ".join(args.reason), "mode": "fail" if args.fail else "wait"})
    if args.json:
        return print_json(answer)
    effect = "fail at once" if args.fail else "wait"
    print(f"Paused: calls that act {effect} until `tabhub resume`. Read-only calls continue.")


def resume(args: Namespace) -> None:
    if args.tab is not None:
        answer = _fetch("/resume", {"tabId": _tab_number(args.tab)})
        return print_json(answer) if args.json else print(f"Agents may use tab {answer['tabId']} again.")
    answer = _fetch("/resume", {})
    if args.json:
        return print_json(answer)
    if not answer.get("wasPaused"):
        return print("Agents were not paused.")
    released = answer.get("callsReleased", 0)
    print(f"Resumed: {count(released, 'waiting call')} released." if released else "Resumed.")


def pause_summary(paused: dict[str, Any]) -> str:
    since = paused.get("since")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(since)) if since else "some time"
    why = f" ({paused['reason']})" if paused.get("reason") else ""
    waiting = f"; {count(paused['callsWaiting'], 'call')} waiting" if paused.get("callsWaiting") else ""
    return f"since {when} by {paused.get('by')}{why}{waiting}. Resume with: tabhub resume"


COMMAND = Command(
    sessions,
    option("action", nargs="?", choices=("list", "end", "release"), default="list", help="default: list"),
    option("target", nargs="?", metavar="ID|TAB", help="the session to end, or the tab to release"),
    JSON,
    details="The id of a session may be shortened. Ending a session closes the tabs it opened, and no others.",
    examples=(
        ("tabhub sessions", "list sessions and the tabs they hold"),
        ("tabhub sessions end 3f9a0c12", "end a session"),
        ("tabhub sessions release 7", "free tab 7 for other agents"),
    ),
)
PAUSE = Command(
    pause,
    option("reason", nargs="*", metavar="REASON", help="reason shown to agents"),
    option("--fail", action="store_true", help="fail calls at once instead of letting them wait"),
    JSON,
    details="Read-only calls continue. Calls already running finish; a batch stops after its current step.\n"
    "The pause survives a restart of the hub.",
    examples=(("tabhub pause --fail paying a bill", "agents see the reason"),),
)
RESUME = Command(
    resume,
    option(
        "tab", nargs="?", metavar="TAB", help="only return this tab, which you took with the browser's Cancel button"
    ),
    JSON,
    examples=(("tabhub resume", "end the pause"), ("tabhub resume 7", "let agents use tab 7 again")),
)
