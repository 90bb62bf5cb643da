"""`tabhub token`: named tokens, one for each client. A running hub applies a change at once."""

from __future__ import annotations

import itertools
import json
import time
from argparse import Namespace

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.terminal import paint, print_json
from tabhub.store import tokens
from tabhub.store.audit_reader import lines_backward
from tabhub.store.home import Home

_READ_LINES = 20_000


def create(args: Namespace) -> None:
    token = tokens.create(Home.find(), args.name, time.time(), "metrics" if args.metrics else "tools")
    if args.json:
        return print_json({"name": args.name, "token": token})
    print(token)
    if args.metrics:
        print(f"\nThis token of {paint(args.name, 'bold')} is shown only once. It opens /metrics and nothing else:")
        print(f"`Authorization: Bearer {token[:8]}…`. It stays valid until you revoke it.")
        return None
    print(f"\nThis token of {paint(args.name, 'bold')} is shown only once. Give it to the agent now:")
    print(f"as `Authorization: Bearer {token[:8]}…` over HTTP or as TABHUB_TOKEN for `tabhub start --stdio`.")
    print(f"To set its permissions: tabhub config set permissions.clients.{args.name}.default ask")


def show(args: Namespace) -> None:
    home = Home.find()
    listed = tokens.listed(home)
    used = last_calls(home)
    if args.json:
        rows = [
            {"name": each.name, "created": each.created, "scope": each.scope, "lastCall": used.get(each.name)}
            for each in listed
        ]
        return print_json(rows)
    if not listed:
        print("No tokens. Create one for a client: tabhub setup CLIENT, or tabhub token create NAME")
    room = max((len(token.name) for token in listed), default=0)
    for token in listed:
        created = time.strftime("%Y-%m-%d %H:%M", time.localtime(token.created))
        last = (
            f"last call {used.get(token.name, 'not in the audit log')}"
            if token.scope == "tools"
            else "opens /metrics only"
        )
        print(f"{paint(token.name, 'bold')}{' ' * (room - len(token.name))}  created {created}  {last}")


def last_calls(home: Home) -> dict[str, str]:
    """When each token made its last call, as far as the newest lines of the audit log say."""
    found: dict[str, str] = {}
    for line in itertools.islice(lines_backward(home.audit), _READ_LINES):
        try:
            call = json.loads(line)
        except ValueError:
            continue  # a torn line, as after a crash
        if isinstance(call, dict) and isinstance(call.get("tokenName"), str):
            found.setdefault(call["tokenName"], str(call.get("timestamp", "")))
    return found


def revoke(args: Namespace) -> None:
    tokens.revoke(Home.find(), args.name)
    print(f"Revoked the token of {args.name}. It stops working at once.")


_NAMED = option("name", metavar="NAME", help="the client it is for: letters, digits, _ and -")
_METRICS = option(
    "--metrics", action="store_true", help="for a program that reads /metrics, such as Prometheus; opens nothing else"
)


COMMAND = Group(
    {
        "create": Command(create, _NAMED, _METRICS, JSON, summary="Create a token; it is shown only once"),
        "list": Command(show, JSON, summary="List the tokens by name"),
        "revoke": Command(revoke, _NAMED, summary="Revoke a token"),
    },
    examples=(
        ("tabhub token create claude", "a token for one agent"),
        ("tabhub token create prometheus --metrics", "a token that opens /metrics only"),
        ("tabhub token list", "all tokens, with when each was used last"),
        ("tabhub token revoke claude", "lock it out"),
    ),
)
