"""`tabhub secret`: values that agents may have typed into fields of certain sites and are never shown."""

from __future__ import annotations

import getpass
import sys
import time
from argparse import Namespace

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.terminal import paint, print_json
from tabhub.client_errors import UsageError
from tabhub.store.home import Home
from tabhub.store.named_secrets import LONGEST, SecretKind, SecretStore, site_pattern, system_keyring

_LARGEST = LONGEST * 4


def set_secret(args: Namespace) -> None:
    store = _store()
    sites = tuple(map(site_pattern, args.site)) if args.site else None
    kind: SecretKind = "totp" if args.totp else "secret"
    made = store.set(args.name, _read_value(args.name, totp=args.totp), kind, sites, time.time())
    if args.json:
        return print_json({"name": made.name, "kind": made.kind, "sites": list(made.sites)})
    print(f"Stored {paint(made.name, 'bold')} in {store.place}.")
    print(f"Agents can type it as {{{{{made.kind}:{made.name}}}}} on {', '.join(made.sites)}, and cannot read it.")


def show(args: Namespace) -> None:
    found = [secret for secret in _store().listed() if secret.kind != "plugin"]
    if args.json:
        return print_json([{"name": each.name, "kind": each.kind, "sites": list(each.sites)} for each in found])
    if not found:
        print("No secrets. Store one: tabhub secret set NAME --site login.example.com")
    for secret in found:
        print(f"{paint(f'{{{{{secret.kind}:{secret.name}}}}}', 'bold')}  on {', '.join(secret.sites)}")


def remove(args: Namespace) -> None:
    store = _store()
    known = store.find(args.name)
    if known is not None and known.kind == "plugin":
        raise UsageError(f"{args.name} is a plugin's setting.", "Reset it with: tabhub plugin configure NAME KEY=")
    store.remove(args.name)
    print(f"Removed {args.name}. Agents can no longer use it.")


def _store() -> SecretStore:
    return SecretStore(Home.find(), system_keyring())


def _read_value(name: str, *, totp: bool) -> str:
    """The value, from a prompt that does not show it, or from a pipe."""
    if sys.stdin.isatty():
        what = "Base32 key or otpauth:// address" if totp else "Value"
        return getpass.getpass(f"{what} of {name} (not shown): ")
    return sys.stdin.read(_LARGEST).removesuffix("\n").removesuffix("\r")


_NAMED = option("name", metavar="NAME", help="letters, digits, _, . and -")

COMMAND = Group(
    {
        "set": Command(
            set_secret,
            _NAMED,
            option(
                "--site",
                action="append",
                metavar="PATTERN",
                help="where it may be typed: [https://]host[:port], *.host for subdomains too; may be repeated",
            ),
            option("--totp", action="store_true", help="the value is the key of one-time codes (base32 or otpauth://)"),
            JSON,
            summary="Store a value, or replace it; asks for it, or reads it from a pipe",
            details="Without --site, the sites of an existing secret are kept. A site without a scheme is https only.",
        ),
        "list": Command(show, JSON, summary="List the secrets by name, without their values"),
        "remove": Command(remove, _NAMED, summary="Remove a secret"),
    },
    examples=(
        ("tabhub secret set shop --site shop.example", "a password for one site"),
        ("tabhub secret set shop-code --totp --site shop.example", "its one-time codes"),
    ),
)
