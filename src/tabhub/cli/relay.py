"""`tabhub relay`: run a relay node, show its status, and issue, inspect and revoke its tokens.

Owns texts and options. Serving is `tabhub.relay.run`'s, tokens are `tabhub.trust.jwt`'s.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import uuid
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from tabhub.cli.command import JSON, Command, Group, option, port, whole
from tabhub.cli.terminal import count, duration, paint, print_json
from tabhub.client_errors import CliError, HttpError, UsageError
from tabhub.errors import InvalidToken
from tabhub.net import http_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tabhub.trust.jwt import Key

_SPAN = re.compile(r"([0-9]{1,9})(s|m|h|d)?")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_TTL = 366 * 86400


def start(args: Namespace) -> int:
    """The options of the command are the fields of RelayOptions, by name; the rates are limits."""
    from tabhub.limits import Limits
    from tabhub.relay.run import RelayOptions, serve

    options = vars(args)
    rates = {f"relay_{name}": options.pop(name) for name in ("client_rate", "user_rate")}
    limits = Limits.parse({name: value for name, value in rates.items() if value is not None})
    return serve(RelayOptions(**options, limits=limits, on_ready=_greet))


def _greet(url: str, admin_url: str | None) -> None:
    print(f"The relay is running on {paint(url, 'cyan')}")
    print(f"  browsers connect to {url}/extension")
    print(f"  agents connect to   {url}/mcp, MCP clients to {url.replace('ws', 'http', 1)}/mcp")
    if admin_url is not None:
        print(f"  status and metrics  {admin_url}/status, {admin_url}/metrics")
    sys.stdout.flush()


def issue(args: Namespace) -> None:
    from tabhub.trust import jwt

    rules = jwt.Rules(args.audience, args.issuer)
    key = next((key for key in _keys(args.key_file) if key.signing is not None), None)
    if key is None:
        raise CliError("The key file contains no signing key.", "Give the private key, or the shared secret.")
    ident = str(uuid.uuid4())
    print(
        jwt.issue(key, args.user, now=time.time(), ttl=args.ttl, token_id=ident, rules=rules, connection_url=args.url)
    )


def inspect(args: Namespace) -> int:
    from tabhub.relay.keyring import KEY_VARIABLE
    from tabhub.relay.revocations import Revocations
    from tabhub.trust import jwt

    token = _token(args.token)
    facts: dict[str, Any] = jwt.unverified(token)
    claims = facts["claims"]
    ident = jwt.token_id(token, claims)
    verdict = f"not checked (give --key-file, or set {KEY_VARIABLE})"
    valid = True
    if args.key_file is not None or KEY_VARIABLE in os.environ:
        try:
            jwt.verify(token, _keys(args.key_file), time.time(), jwt.Rules(args.audience, args.issuer))
            verdict = "valid"
        except InvalidToken as error:
            verdict, valid = f"refused: {error.reason}", False
    revoked = Revocations(_revoked_file(args))
    revoked.reload(time.time())
    if valid and revoked.names_any({ident, *jwt.other_ids(token, claims)}):
        verdict, valid = "refused: it was revoked", False
    if args.json:
        print_json({**facts, "tokenId": ident, "verdict": verdict})
        return 0 if valid else 1
    rows = {
        "user": claims.get("user_id", claims.get("sub")),
        "audience": claims.get("aud"),
        "expires": _when(claims.get("exp")),
        "token id": ident,
        "algorithm": facts["header"].get("alg"),
        "relay": claims.get("connection_url"),
        "verdict": verdict,
    }
    for name, value in rows.items():
        if name != "relay" or value:
            print(f"{name.ljust(9)} {value}")
    return 0 if valid else 1


def _when(expires: Any) -> str:
    if isinstance(expires, bool) or not isinstance(expires, (int, float)) or not 0 <= expires < 1e11:
        return "not stated"
    left = expires - time.time()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(expires))
    return f"{shown} ({f'in {duration(left)}' if left > 0 else f'{duration(-left)} ago'})"


def revoke(args: Namespace) -> None:
    from tabhub.relay.revocations import append
    from tabhub.trust import jwt

    if (args.token is None) == (args.id is None):
        raise UsageError("No token was given.", "Give either the token, or its id with --id.")
    file = _revoked_file(args)
    if file is None:
        raise UsageError("No revocation list was given.", "Give --key-file as for `relay start`, or --revoked-file.")
    until = int(time.time()) + _LONGEST_TTL
    ident = args.id
    if args.token is not None:
        token = _token(args.token)
        claims = jwt.unverified(token)["claims"]
        ident = jwt.token_id(token, claims)
        ends = claims.get("exp")
        if isinstance(ends, (int, float)) and not isinstance(ends, bool) and 0 < ends < 1e11:
            until = int(ends) + 60
    if not re.fullmatch(r"\S{1,128}", ident):
        raise UsageError("A token id has at most 128 characters and no spaces.")
    append(file, ident, until)
    print(f"Revoked: {ident}. Relays that read {file} end its connections within a second.")


def _revoked_file(args: Namespace) -> Path | None:
    from tabhub.relay.revocations import default_file

    named: Path | None = args.revoked_file
    return named or (default_file(args.key_file) if args.key_file else None)


def status(args: Namespace) -> int:
    try:
        answer = http_client.request("GET", args.host, args.port, "/status", headers={}, timeout=5)
        facts = json.loads(answer.body)
    except (HttpError, ValueError) as error:
        raise UsageError(
            f"No relay answers on {args.host}:{args.port}: {error}.",
            f"Start one: tabhub relay start --port PORT --admin-port {args.port} --key-file FILE",
        ) from None
    if answer.status != 200 or not isinstance(facts, dict) or "counts" not in facts:
        raise CliError(
            f"The server on {args.host}:{args.port} does not report the status of a relay (HTTP {answer.status}).",
            "Give the port of `relay start --admin-port`. For a hub, use `tabhub status`.",
        )
    if args.json:
        print_json(facts)
        return 0 if facts["ready"] else 1
    ready = "ready" if facts["ready"] else "not ready: " + ", ".join(facts["reasons"])
    print(f"Relay node {facts['node']}, version {facts['version']}, up {duration(facts['uptime'])}: {ready}")
    nouns = {"browsers": "browser", "agents": "agent", "users": "user", "connections": "connection"}
    nouns |= {"engines": "engine", "callsInFlight": "running call"}
    print("  " + ", ".join(count(facts[name], noun) for name, noun in nouns.items() if facts.get(name) is not None))
    for name, number in facts["counts"].items():
        if number:
            print(f"  {name.replace('_', ' ')}: {number}")
    return 0 if facts["ready"] else 1


def _keys(file: Path | None) -> tuple[Key, ...]:
    from tabhub.relay.keyring import KEY_VARIABLE, Keyring

    if file is None and KEY_VARIABLE not in os.environ:
        raise UsageError("No key was given.", f"Give --key-file FILE, or set {KEY_VARIABLE}.")
    return Keyring(file=file, env=os.environ, clock=time.monotonic).keys


def _token(given: str) -> str:
    """The token; `-` reads it from standard input, which keeps it out of the process list."""
    return (sys.stdin.read() if given == "-" else given).strip()


def _span(text: str) -> float:
    found = _SPAN.fullmatch(text)
    seconds = int(found[1]) * _UNITS[found[2] or "s"] if found else 0
    if not 0 < seconds <= _LONGEST_TTL:
        raise ArgumentTypeError(f"invalid time span '{text}'. Use 900, 15m, 12h or 30d, up to 366d")
    return float(seconds)


def _token_rules(parser: ArgumentParser) -> None:
    from tabhub.trust.jwt import AUDIENCE

    parser.add_argument(
        "--audience", metavar="AUD", default=AUDIENCE, help="the tokens' audience (default: %(default)s)"
    )
    parser.add_argument("--issuer", metavar="ISS", help="the tokens' issuer (default: any)")


_KEYS = "PEM, JWK, JWKS, or a secret of at least 32 bytes (or set TABHUB_RELAY_KEY)"
_KEY_FILE = option("--key-file", metavar="FILE", type=Path, help=_KEYS)
_REVOKED_FILE = option("--revoked-file", metavar="FILE", type=Path, help="revoked tokens (default: KEY-FILE.revoked)")
_HOST = option("--host", metavar="ADDRESS", default="127.0.0.1", help="where it listens (default: 127.0.0.1)")
_PORT = option("--port", metavar="PORT", type=port, required=True, help="its port; `start` takes 0 for any free one")
_GIVEN = "the token, or - to read it from standard input"

TOKEN = Group(
    {
        "issue": Command(
            issue,
            option("--user", metavar="USER", required=True, help="the user of the token"),
            _KEY_FILE,
            option(
                "--ttl", metavar="SPAN", type=_span, default=_span("30d"), help="how long it is valid (default: 30d)"
            ),
            option("--url", metavar="URL", help="the relay's URL, wss://…, stored in the token for clients"),
            _token_rules,
            summary="Print a new token for a user",
        ),
        "inspect": Command(
            inspect,
            option("token", metavar="TOKEN", help=_GIVEN),
            _KEY_FILE,
            _REVOKED_FILE,
            JSON,
            _token_rules,
            summary="Show a token's claims and whether it is valid",
        ),
        "revoke": Command(
            revoke,
            option("token", metavar="TOKEN", nargs="?", help=_GIVEN),
            option("--id", metavar="ID", help="the token's id instead, as `token inspect` shows it"),
            _KEY_FILE,
            _REVOKED_FILE,
            summary="Revoke a token before it expires",
        ),
    },
    summary="Issue, inspect and revoke the relay's tokens",
    examples=(("tabhub relay token issue --user ann --key-file relay.key --ttl 12h", "a token for today"),),
)

COMMAND = Group(
    {
        "start": Command(
            start,
            _HOST,
            _PORT,
            _KEY_FILE,
            option("--jwks-url", metavar="URL", help="URL of the published keys (JWKS); reloaded when they change"),
            _REVOKED_FILE,
            option("--bus", metavar="URL", help="nats://… joins this node with others (default: alone)"),
            option("--tls-cert", metavar="FILE", type=Path, help="certificate chain, PEM"),
            option("--tls-key", metavar="FILE", type=Path, help="its private key, PEM"),
            option("--behind-proxy", action="store_true", help="a reverse proxy terminates TLS"),
            option(
                "--admin-host",
                metavar="ADDRESS",
                default="127.0.0.1",
                help="where status and metrics are served (default: 127.0.0.1); never publish it",
            ),
            option("--admin-port", metavar="PORT", type=port, help="their port (default: they are not served)"),
            option("--public-url", metavar="URL", help="how MCP clients reach it, e.g. https://relay.example.com"),
            option(
                "--auth-server",
                dest="auth_servers",
                metavar="URL",
                action="append",
                default=[],
                help="an OAuth server that issues tokens, announced to clients; may be repeated",
            ),
            option("--audit-file", metavar="FILE", type=Path, help="audit log of tool calls over HTTP (default: none)"),
            option("--client-rate", metavar="N", type=whole, help="messages per minute and connection (0: no limit)"),
            option("--user-rate", metavar="N", type=whole, help="messages per minute and user (0: no limit)"),
            _token_rules,
            summary="Run a relay node in the foreground",
            examples=(
                ("tabhub relay start --port 9700 --key-file relay.key", "on this machine"),
                ("tabhub relay start --host 0.0.0.0 --port 443 --tls-cert crt --tls-key key …", "for others"),
            ),
        ),
        "status": Command(
            status,
            option("--host", metavar="ADDRESS", default="127.0.0.1", help="its --admin-host (default: 127.0.0.1)"),
            option("--port", metavar="PORT", type=port, required=True, help="its --admin-port"),
            JSON,
            summary="Show the status of a running node",
        ),
        "token": TOKEN,
    },
    examples=(
        ("openssl rand -hex 32 > relay.key", "a key"),
        ("tabhub relay start --port 9700 --key-file relay.key", "a relay"),
        ("tabhub relay token issue --user ann --key-file relay.key", "a token for a browser or an agent"),
    ),
)
