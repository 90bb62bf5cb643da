"""`tabhub token`: named tokens, one for each client. A running hub applies a change at once."""

from __future__ import annotations

import time
from argparse import Namespace

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.terminal import paint, print_json
from tabhub.store import tokens
from tabhub.store.home import Home


def create(args: Namespace) -> None:
    token = tokens.create(Home.find(), args.name, time.time())
    if args.json:
        return print_json({"name": args.name, "token": token})
    print(token)
    print(f"\nThis token of {paint(args.name, 'bold')} is shown only once. Give it to the agent now:")
    print(f"as `Authorization: Bearer {token[:8]}…` over HTTP or as TABHUB_TOKEN for `tabhub start --stdio`.")
    print(f"To set its permissions: tabhub config set permissions.clients.{args.name}.default ask")


def show(args: Namespace) -> None:
    listed = tokens.listed(Home.find())
    if args.json:
        return print_json([{"name": token.name, "created": token.created} for token in listed])
    if not listed:
        print("No tokens. Create one for an agent: tabhub token create NAME")
    for token in listed:
        created = time.strftime("%Y-%m-%d %H:%M", time.localtime(token.created))
        print(f"{paint(token.name, 'bold')}  created {created}")


def revoke(args: Namespace) -> None:
    tokens.revoke(Home.find(), args.name)
    print(f"Revoked the token of {args.name}. It stops working at once.")


_NAMED = option("name", metavar="NAME", help="the client it is for: letters, digits, _ and -")


COMMAND = Group(
    {
        "create": Command(create, _NAMED, JSON, summary="Create a token; it is shown only once"),
        "list": Command(show, JSON, summary="List the tokens by name"),
        "revoke": Command(revoke, _NAMED, summary="Revoke a token"),
    },
    examples=(
        ("tabhub token create claude", "a token for one agent"),
        ("tabhub config set requireTokens true", "refuse agents that have only the shared secret"),
        ("tabhub token revoke claude", "lock it out"),
    ),
)
