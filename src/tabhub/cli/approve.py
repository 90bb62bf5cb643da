"""`tabhub approve`: approve or deny pending calls in a terminal.

Input and output must be a terminal, so that an agent with a shell cannot pipe in an answer. The hub requires the
approver's key; agents' tokens and the hub's secret are not enough.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import Command, option
from tabhub.cli.hub.client import Hub, approver_headers, checked, fetch, find_hub, request, unexpected_form
from tabhub.cli.terminal import count, paint, safe
from tabhub.client_errors import CliError

if TYPE_CHECKING:
    from argparse import Namespace

_WORDS = {
    "a": ("allow_once", "[a]llow once"),
    "s": ("allow_session", "for this [s]ession"),
    "w": ("allow_always", "al[w]ays"),
    "d": ("deny", "[d]eny"),
}
_LATER = "[l]ater"
_POLL = 0.5
_GONE = 404


def approve(args: Namespace) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CliError(
            "`tabhub approve` needs a terminal, because a person has to answer.",
            "Run it in a terminal window, or decide in the panel. An answer cannot be piped in.",
            exit_code=2,
        )
    hub = find_hub()
    seen: set[str] = set()
    while True:
        waiting = [each for each in _pending(hub) if each["id"] not in seen]
        for each in waiting:
            seen.add(each["id"])
            _decide(hub, each, len(waiting))
        if not args.watch:
            if not seen:
                print("No pending calls.")
            return 0
        if not waiting:
            time.sleep(_POLL)


def _pending(hub: Hub) -> list[dict[str, Any]]:
    answer = fetch("/approvals", hub=hub, headers=approver_headers(hub))
    found = answer.get("approvals") if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise unexpected_form("list of approvals")
    return found


def _decide(hub: Hub, each: dict[str, Any], many: int) -> None:
    _show(each, many)
    offered = {key: word for key, word in _WORDS.items() if word[0] in each.get("choices", [])}
    prompt = ", ".join([*(word for _, word in offered.values()), _LATER])
    while True:
        try:
            typed = input(f"{prompt}: ").strip().lower()[:1]
        except EOFError:
            raise KeyboardInterrupt from None
        if typed == "l":
            print("Left for later.\n")
            return
        if typed in offered:
            break
        print("Please type one of the letters.")
    decision = offered[typed][0]
    reason = input("Reason for the agent (optional): ").strip()[:500] if decision == "deny" else ""
    body = json.dumps({"decision": decision, "reason": reason}).encode()
    answer = request(hub, "POST", f"/approvals/{each['id']}", body=body, headers=approver_headers(hub))
    if answer.status == _GONE:
        print(paint("Too late: it was answered elsewhere, or has ended.\n", "yellow"))
        return
    checked(hub, answer)
    print(paint("Denied.\n" if decision == "deny" else "Allowed.\n", "red" if decision == "deny" else "green"))


def _show(each: dict[str, Any], many: int) -> None:
    """Everything a person needs to know before deciding."""
    left = max(0, round(float(each.get("expiresAt", 0)) / 1000 - time.time()))
    who = str(each.get("client"))
    if each.get("token"):
        who = f"{each['token']} ({who})"
    print(paint(f"{safe(who)} wants to run {safe(str(each.get('tool')))}", "bold"))
    if many > 1:
        print(f"{count(many, 'call')} in the queue.")
    print(safe(str(each.get("message", ""))))
    if each.get("tabId") is not None:
        print(f"Tab {each['tabId']}: {safe(str(each.get('title', '')))} {safe(str(each.get('url', '')))}")
    elif each.get("origin"):
        print(f"Site: {safe(str(each['origin']))}")
    print("Parameters:")
    for line in json.dumps(each.get("params"), indent=2, ensure_ascii=False).split("\n"):
        print(f"  {safe(line)}")
    if each.get("diff"):
        print("What changed since it was approved:")
        for line in str(each["diff"]).split("\n"):
            style = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            print(f"  {paint(safe(line), style)}")
    print(f"It waits {left} s more.")


COMMAND = Command(
    "Approve or deny pending calls",
    approve,
    option("--watch", action="store_true", help="keep running and ask for every call that needs approval"),
    details="Needs a terminal: an answer cannot be piped in. The extension's panel asks the same, at the same time.",
    examples=(("tabhub approve", "decide on what waits now"), ("tabhub approve --watch", "and on what comes")),
)
