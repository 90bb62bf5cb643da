"""`tabhub relay`: run a relay node, look at it, and deal with its tokens.

Owns texts and options. Serving is `tabhub.relay.run`'s, tokens are `tabhub.trust.jwt`'s.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import JSON, Command, Group, option, port, whole
from tabhub.cli.terminal import count, duration, paint
from tabhub.client_errors import CliError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from tabhub.trust.jwt import Key

_SPAN = re.compile(r"([0-9]{1,9})(s|m|h|d)?")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_TTL = 366 * 86400


def start(args: Namespace) -> int:
    from tabhub.limits import Limits
    from tabhub.relay.run import RelayOptions, serve

    rates = {"relay_client_rate": args.client_rate, "relay_user_rate": args.user_rate}
    return serve(
        RelayOptions(
            port=args.port,
            host=args.host,
            key_file=args.key_file,
            jwks_url=args.jwks_url,
            revoked_file=args.revoked_file,
            bus=args.bus,
            tls_cert=args.tls_cert,
            tls_key=args.tls_key,
            behind_proxy=args.behind_proxy,
            audience=args.audience,
            issuer=args.issuer,
            public_url=args.public_url,
            auth_servers=tuple(args.auth_server),
            audit_file=args.audit_file,
            limits=Limits.parse({name: value for name, value in rates.items() if value is not None}),
            on_ready=_greet,
        )
    )


def _greet(url: str) -> None:
    print(f"The relay is running on {paint(url, 'cyan')}")
    print(f"  browsers connect to {url}/extension")
    print(f"  agents connect to   {url}/mcp, MCP clients to {url.replace('ws', 'http', 1)}/mcp")
    sys.stdout.flush()


def issue(args: Namespace) -> int:
    import uuid

    from tabhub.trust.jwt import Rules
    from tabhub.trust.jwt import issue as sign

    rules = Rules(args.audience, args.issuer)
    key = _key(args)
    ident = str(uuid.uuid4())
    print(sign(key, args.user, now=time.time(), ttl=args.ttl, token_id=ident, rules=rules, connection_url=args.url))
    return 0


def inspect(args: Namespace) -> int:
    from tabhub.errors import InvalidToken
    from tabhub.relay.keyring import KEY_VARIABLE
    from tabhub.relay.revocations import Revocations
    from tabhub.trust.jwt import Rules, token_id, unverified, verify

    token = _token(args.token)
    said: dict[str, Any] = unverified(token)
    ident = token_id(token, said["claims"])
    verdict = f"not checked (give --key-file, or set {KEY_VARIABLE})"
    valid = True
    if args.key_file is not None or KEY_VARIABLE in os.environ:
        try:
            verify(token, _keys(args.key_file), time.time(), Rules(args.audience, args.issuer))
            verdict = "valid"
        except InvalidToken as error:
            verdict, valid = f"refused: {error.reason}", False
    revoked = Revocations(_revoked_file(args))
    revoked.reload(time.time())
    if valid and ident in revoked:
        verdict, valid = "refused: it was revoked", False
    said = {**said, "tokenId": ident, "verdict": verdict}
    if args.json:
        print(json.dumps(said, indent=2, ensure_ascii=False))
        return 0 if valid else 1
    claims = said["claims"]
    print(f"user      {claims.get('user_id', claims.get('sub'))}")
    print(f"audience  {claims.get('aud')}")
    print(f"expires   {_when(claims.get('exp'))}")
    print(f"token id  {said['tokenId']}")
    print(f"algorithm {said['header'].get('alg')}")
    if claims.get("connection_url"):
        print(f"relay     {claims['connection_url']}")
    print(f"verdict   {verdict}")
    return 0 if valid else 1


def _when(expires: Any) -> str:
    if isinstance(expires, bool) or not isinstance(expires, (int, float)) or not 0 <= expires < 1e11:
        return "never said"
    left = expires - time.time()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(expires))
    return f"{shown} ({f'in {duration(left)}' if left > 0 else f'{duration(-left)} ago'})"


def revoke(args: Namespace) -> int:
    from tabhub.relay.revocations import append
    from tabhub.trust.jwt import token_id, unverified

    if (args.token is None) == (args.id is None):
        raise CliError("No token was given.", "Give the token, or its id with --id: one of the two.", exit_code=2)
    file = _revoked_file(args)
    if file is None:
        raise CliError(
            "No revocation list was given.", "Give --key-file as for `relay start`, or --revoked-file.", exit_code=2
        )
    until = int(time.time()) + _LONGEST_TTL
    ident = args.id
    if args.token is not None:
        token = _token(args.token)
        claims = unverified(token)["claims"]
        ident = token_id(token, claims)
        ends = claims.get("exp")
        if isinstance(ends, int) and not isinstance(ends, bool) and 0 < ends < 1e11:
            until = ends + 60
    if not re.fullmatch(r"\S{1,128}", ident):
        raise CliError("A token id has at most 128 characters and no spaces.", exit_code=2)
    append(file, ident, until)
    print(f"Revoked: {ident}. Relays that read {file} end its connections within a second.")
    return 0


def _revoked_file(args: Namespace) -> Path | None:
    from tabhub.relay.run import revoked_beside

    named: Path | None = args.revoked_file
    return named or (revoked_beside(args.key_file) if args.key_file else None)


def status(args: Namespace) -> int:
    from tabhub.client_errors import HttpError
    from tabhub.net import http_client

    try:
        answer = http_client.request(
            "GET",
            args.host,
            args.port,
            "/status",
            headers={},
            timeout=5,
            connect_timeout=5,
            max_body=1024 * 1024,
            tls=args.tls,
        )
        facts = json.loads(answer.body)
    except (HttpError, ValueError) as error:
        raise CliError(
            f"No relay answers on {args.host}:{args.port}: {error}.",
            f"Start one: tabhub relay start --port {args.port} --key-file FILE",
            exit_code=2,
        ) from None
    if answer.status != 200 or not isinstance(facts, dict) or "counts" not in facts:
        raise CliError(
            f"What listens on {args.host}:{args.port} does not report its status (it answers {answer.status}).",
            "It may not be a relay, or it may need --tls. `tabhub status` shows a hub.",
        )
    if args.json:
        print(json.dumps(facts, indent=2))
        return 0 if facts["ready"] else 1
    ready = "ready" if facts["ready"] else "not ready: " + ", ".join(facts["reasons"])
    print(f"Relay node {facts['node']}, version {facts['version']}, up {duration(facts['uptime'])}: {ready}")
    print(
        f"  {count(facts['browsers'], 'browser')}, {count(facts['agents'], 'agent')}, {count(facts['users'], 'user')}"
    )
    print(f"  {count(facts['connections'], 'connection')}, {count(facts['callsInFlight'], 'call')} in flight")
    if facts.get("engines"):
        print(f"  {count(facts['engines'], 'engine')} for agents over HTTP")
    for name, number in facts["counts"].items():
        if number:
            print(f"  {name.replace('_', ' ')}: {number}")
    return 0 if facts["ready"] else 1


def _key(args: Namespace) -> Key:
    for key in _keys(args.key_file):
        if key.signing is not None:
            return key
    raise CliError("The key file contains no signing key.", "Give the private key, or the shared secret.")


def _keys(file: Path | None) -> tuple[Key, ...]:
    from tabhub.relay.keyring import KEY_VARIABLE, Keyring

    if file is None and KEY_VARIABLE not in os.environ:
        raise CliError("No key was given.", f"Give --key-file FILE, or set {KEY_VARIABLE}.", exit_code=2)
    return Keyring(file=file, env=os.environ, clock=time.monotonic).keys


def _token(given: str) -> str:
    """The token; `-` reads it from standard input, which keeps it out of the process list."""
    return (sys.stdin.read() if given == "-" else given).strip()


def _span(text: str) -> float:
    from argparse import ArgumentTypeError

    found = _SPAN.fullmatch(text)
    seconds = int(found[1]) * _UNITS[found[2] or "s"] if found else 0
    if not 0 < seconds <= _LONGEST_TTL:
        raise ArgumentTypeError(f"'{text}' is not a time span up to 366 days: 900, 15m, 12h, 30d")
    return float(seconds)


def _token_rules(parser: ArgumentParser) -> None:
    from tabhub.trust.jwt import AUDIENCE

    parser.add_argument(
        "--audience", metavar="AUD", default=AUDIENCE, help=f"the tokens' audience (default: {AUDIENCE})"
    )
    parser.add_argument("--issuer", metavar="ISS", help="the tokens' issuer (default: any)")


_KEY_FILE = option(
    "--key-file",
    metavar="FILE",
    type=Path,
    help="PEM, JWK, JWKS, or a secret of at least 32 bytes (or set TABHUB_RELAY_KEY)",
)
_REVOKED_FILE = option(
    "--revoked-file", metavar="FILE", type=Path, help="list of revoked tokens (default: KEY-FILE.revoked)"
)
_HOST = option("--host", metavar="ADDRESS", default="127.0.0.1", help="where it listens (default: 127.0.0.1)")

TOKEN = Group(
    "Issue, inspect and revoke the relay's tokens.",
    {
        "issue": Command(
            "Print a new token for a user",
            issue,
            option("--user", metavar="USER", required=True, help="the user of the token"),
            _KEY_FILE,
            option("--ttl", metavar="SPAN", type=_span, default=_span("30d"), help="how long (default: 30d)"),
            option("--url", metavar="URL", help="the relay's URL, wss://…, stored in the token for clients"),
            _token_rules,
        ),
        "inspect": Command(
            "Show a token's claims and whether it is valid",
            inspect,
            option("token", metavar="TOKEN", help="the token, or - to read it from the standard input"),
            _KEY_FILE,
            _REVOKED_FILE,
            JSON,
            _token_rules,
        ),
        "revoke": Command(
            "Revoke a token before it expires",
            revoke,
            option("token", metavar="TOKEN", nargs="?", help="the token, or - to read it from the standard input"),
            option("--id", metavar="ID", help="its id instead, as `token inspect` shows it"),
            _KEY_FILE,
            _REVOKED_FILE,
        ),
    },
    examples=(("tabhub relay token issue --user ann --key-file relay.key --ttl 12h", "a token for today"),),
)

COMMAND = Group(
    "Run the relay: browsers and agents on different machines, many users.",
    {
        "start": Command(
            "Run a relay node in the foreground",
            start,
            _HOST,
            option("--port", metavar="PORT", type=port, required=True, help="the port; 0 for any free one"),
            _KEY_FILE,
            option("--jwks-url", metavar="URL", help="URL of the published keys (JWKS); reloaded when they change"),
            _REVOKED_FILE,
            option("--bus", metavar="URL", help="nats://… joins this node with others (default: alone)"),
            option("--tls-cert", metavar="FILE", type=Path, help="certificate chain, PEM"),
            option("--tls-key", metavar="FILE", type=Path, help="its private key, PEM"),
            option("--behind-proxy", action="store_true", help="a reverse proxy terminates TLS"),
            option("--public-url", metavar="URL", help="how MCP clients reach it, e.g. https://relay.example.com"),
            option(
                "--auth-server",
                metavar="URL",
                action="append",
                default=[],
                help="an OAuth server that issues tokens, announced to clients; may be repeated",
            ),
            option("--audit-file", metavar="FILE", type=Path, help="audit log of tool calls over HTTP (default: none)"),
            option("--client-rate", metavar="N", type=whole, help="messages per minute and connection (0: no limit)"),
            option("--user-rate", metavar="N", type=whole, help="messages per minute and user (0: no limit)"),
            _token_rules,
            examples=(
                ("tabhub relay start --port 9700 --key-file relay.key", "on this machine"),
                (
                    "tabhub relay start --host 0.0.0.0 --port 443 --key-file relay.key --tls-cert crt --tls-key key",
                    "for others",
                ),
            ),
        ),
        "status": Command(
            "Show the status of a running node",
            status,
            _HOST,
            option("--port", metavar="PORT", type=port, required=True, help="its port"),
            option("--tls", action="store_true", help="connect with TLS"),
            JSON,
        ),
        "token": TOKEN,
    },
    examples=(
        ("openssl rand -hex 32 > relay.key", "a key"),
        ("tabhub relay start --port 9700 --key-file relay.key", "a relay"),
        ("tabhub relay token issue --user ann --key-file relay.key", "a token for a browser or an agent"),
    ),
)
