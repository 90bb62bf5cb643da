"""`tabhub approve`: approve or deny pending calls in a terminal.

Input and output must be a terminal, so that an agent with a shell cannot pipe in an answer. The hub requires the
person's key; agents' tokens are not enough.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import Namespace
from typing import Any

from tabhub.cli.command import Command, option
from tabhub.cli.hub.client import Hub, checked, fetch, find_hub, request
from tabhub.cli.terminal import count, paint, safe
from tabhub.client_errors import UsageError

_CHOICES = {
    "y": ("allow_once", "[y]es, once"),
    "s": ("allow_session", "for this [s]ession"),
    "w": ("allow_always", "al[w]ays"),
    "n": ("deny", "[n]o"),
}
_ALSO = {"a": "y", "d": "n"}
"""Other letters for some of them: allow, deny."""
_WIDER = {"every_site": "every site", "every_agent": "every agent"}
_LATER = "[l]ater"
_POLL = 0.5
_NOT_PENDING = 404


def approve(args: Namespace) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(
            "`tabhub approve` needs an interactive terminal, because a person has to answer.",
            "Run it in a terminal window, or decide in the panel. An answer cannot be piped in.",
        )
    hub = find_hub()
    seen: set[str] = set()
    while True:
        pending = fetch("/approvals", hub=hub)["approvals"]
        waiting = [call for call in pending if call["id"] not in seen]
        for call in waiting:
            seen.add(call["id"])
            _decide(hub, call, len(waiting))
        if not args.watch:
            if not seen:
                print("No pending calls.")
            return
        if not waiting:
            time.sleep(_POLL)


def _decide(hub: Hub, call: dict[str, Any], pending: int) -> None:
    _show(call, pending)
    offered = {key: (name, label) for key, (name, label) in _CHOICES.items() if name in call.get("choices", [])}
    prompt = ", ".join([*(label for _, label in offered.values()), _LATER])
    while True:
        typed = _typed(f"{prompt}: ").strip().lower()[:1]
        typed = _ALSO.get(typed, typed)
        if typed == "l":
            print("Left for later.\n")
            return
        if typed in offered:
            break
        print(f"Type one of the letters in brackets: {', '.join([*offered, 'l'])}.")
    decision = offered[typed][0]
    reason = _typed("Reason for the agent (optional): ").strip()[:500] if decision == "deny" else ""
    wider = _widen(call) if decision == "allow_always" else []
    body = json.dumps({"decision": decision, "reason": reason, "wider": wider}).encode()
    answer = request(hub, "POST", f"/approvals/{call['id']}", body=body)
    if answer.status == _NOT_PENDING:
        print(paint("Too late: the call was answered elsewhere or has ended.\n", "yellow"))
        return
    checked(hub, answer)
    print(paint("Denied.\n", "red") if decision == "deny" else paint("Allowed.\n", "green"))


def _typed(prompt: str) -> str:
    """A line; Ctrl+D ends the command like Ctrl+C, and nothing is decided."""
    try:
        return input(prompt)
    except EOFError:
        raise KeyboardInterrupt from None


def _widen(call: dict[str, Any]) -> list[str]:
    """How far "always" goes: as shown, unless the person types a wider scope."""
    offered = {name: label for name, label in _WIDER.items() if name in call.get("wider", [])}
    if not offered:
        return []
    print(f"This means: {safe(str(call.get('scope')))}.")
    choices = " or ".join(offered.values())
    typed = _typed(f"Enter to confirm, or type {choices} for a wider scope: ").lower()
    return [name for name, label in offered.items() if label in typed]


def _show(call: dict[str, Any], pending: int) -> None:
    left = max(0, round(float(call.get("expiresAt", 0)) / 1000 - time.time()))
    print(paint(safe(str(call.get("sentence") or f"{call.get('client')} wants to run {call.get('tool')}")), "bold"))
    for number, step in enumerate(call.get("steps", ()), 1):
        print(f"  {number}. {safe(str(step))}")
    where = [call.get("title"), call.get("url") or call.get("origin")]
    tab = f" (tab {call['tabId']})" if call.get("tabId") is not None else ""
    if any(where):
        print(f"{safe(', '.join(str(each) for each in where if each))}{tab}")
    if call.get("changed"):
        print(paint(f"The page has changed. Before, this was: {safe(str(call['changed']))}", "yellow"))
    if call.get("reason") != "permission" or not call.get("sentence"):
        print(paint(safe(str(call.get("message", ""))), "yellow"))
    if call.get("diff"):
        print("What changed since it was approved:")
        for line in str(call["diff"]).split("\n"):
            style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            print(f"  {paint(safe(line), style)}")
    print(paint(f"Details: {safe(str(call.get('tool')))}", "dim"))
    for line in json.dumps(call.get("params"), indent=2, ensure_ascii=False).split("\n"):
        print(paint(f"  {safe(line)}", "dim"))
    if call.get("sessionScope"):
        print(f"For this session would mean: {safe(str(call['sessionScope']))}.")
    if call.get("scope"):
        print(f"Always would mean: {safe(str(call['scope']))}.")
    waiting = f"{count(pending, 'pending call')}. " if pending > 1 else ""
    print(f"{waiting}The request expires in {left} s.")


COMMAND = Command(
    approve,
    option("--watch", action="store_true", help="keep running and ask for every call that needs approval"),
    details="Needs an interactive terminal: an answer cannot be piped in. The panel asks at the same time.",
    examples=(("tabhub approve", "decide on pending calls"), ("tabhub approve --watch", "and on those to come")),
)
