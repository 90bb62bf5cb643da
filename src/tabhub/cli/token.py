"""`tabhub token`: named tokens, one for each client.

The tokens are in `tabhub.store.tokens`. A running hub applies a change at once.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.terminal import paint, print_json
from tabhub.store import tokens
from tabhub.store.home import Home

if TYPE_CHECKING:
    from argparse import Namespace


def create(args: Namespace) -> int:
    token = tokens.create(Home.find(), args.name, time.time())
    if args.json:
        print(json.dumps({"name": args.name, "token": token}))
        return 0
    print(token)
    print(f"\nThis is the token of {paint(args.name, 'bold')}. It is shown once: give it to that agent now,")
    print(f"as `Authorization: Bearer {token[:8]}…` over HTTP or as TABHUB_TOKEN for `tabhub start --stdio`.")
    print(f"Its own permissions: tabhub config set permissions.clients.{args.name}.default ask")
    return 0


def show(args: Namespace) -> int:
    listed = tokens.listed(Home.find())
    if args.json:
        return print_json([{"name": each.name, "created": each.created} for each in listed])
    if not listed:
        print("No tokens. Make one for an agent: tabhub token create NAME")
    for each in listed:
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.created))
        print(f"{paint(each.name, 'bold')}  made {made}")
    return 0


def revoke(args: Namespace) -> int:
    tokens.revoke(Home.find(), args.name)
    print(f"Revoked. Whoever holds the token of {args.name} is refused from now on.")
    return 0


_NAMED = option("name", metavar="NAME", help="the client it is for: letters, digits, _ and -")


COMMAND = Group(
    "Create, list and revoke tokens: one for each agent, with its own name in panel and audit and its own permissions.",
    {
        "create": Command("Create a token; it is shown once", create, _NAMED, JSON),
        "list": Command("List the tokens by name", show, JSON),
        "revoke": Command("Revoke a token", revoke, _NAMED),
    },
    examples=(
        ("tabhub token create claude", "a token for one agent"),
        ("tabhub config set requireTokens true", "refuse agents that have only the shared secret"),
        ("tabhub token revoke claude", "lock it out"),
    ),
)
