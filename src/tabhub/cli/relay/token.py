"""`tabhub relay token`: issue, inspect and revoke the relay's tokens. Their form is `tabhub.trust.jwt`'s."""

from __future__ import annotations

import os
import re
import sys
import time
import uuid
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.terminal import duration, print_json
from tabhub.client_errors import CliError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tabhub.trust.jwt import Key

_SPAN = re.compile(r"([0-9]{1,9})(s|m|h|d)?")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_TTL = 366 * 86400


def issue(args: Namespace) -> None:
    from tabhub.trust import jwt

    rules = jwt.Rules(args.audience, args.issuer)
    key = next((key for key in _keys(args.key_file) if key.signing is not None), None)
    if key is None:
        raise CliError("The key file contains no signing key.", "Give the private key, or the shared secret.")
    ident = str(uuid.uuid4())
    print(
        jwt.issue(
            key,
            args.user,
            now=time.time(),
            ttl=args.ttl,
            token_id=ident,
            rules=rules,
            connection_url=args.url,
            role=args.role,
        )
    )


def inspect(args: Namespace) -> int:
    from tabhub.errors import InvalidToken
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
    user, issued = claims.get("user_id", claims.get("sub")), claims.get("iat")
    known = jwt.Claims(
        user if isinstance(user, str) else "",
        0.0,
        ident,
        other_ids=jwt.other_ids(token, claims),
        issued=issued if isinstance(issued, (int, float)) else None,
    )
    if valid and revoked.revokes(known):
        verdict, valid = "refused: it was revoked", False
    if args.json:
        print_json({**facts, "tokenId": ident, "verdict": verdict})
        return 0 if valid else 1
    rows = {
        "user": user,
        "role": claims.get(jwt.ROLE),
        "audience": claims.get("aud"),
        "expires": _when(claims.get("exp")),
        "token id": ident,
        "algorithm": facts["header"].get("alg"),
        "relay": claims.get("connection_url"),
        "verdict": verdict,
    }
    for name, value in rows.items():
        if name not in ("relay", "role") or value:
            print(f"{name.ljust(9)} {value}")
    return 0 if valid else 1


def _when(expires: Any) -> str:
    if isinstance(expires, bool) or not isinstance(expires, (int, float)) or not 0 <= expires < 1e11:
        return "not stated"
    left = expires - time.time()
    shown = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(expires))
    return f"{shown} ({f'in {duration(left)}' if left > 0 else f'{duration(-left)} ago'})"


def revoke(args: Namespace) -> None:
    from tabhub.relay.revocations import NEVER, append, user_key
    from tabhub.trust import jwt

    if sum(each is not None for each in (args.token, args.id, args.user)) != 1:
        raise UsageError("No token was given.", "Give either the token, its id with --id, or a user with --user.")
    file = _revoked_file(args)
    if file is None:
        raise UsageError("No revocation list was given.", "Give --key-file as for `relay start`, or --revoked-file.")
    ident, until = args.id, NEVER
    if args.token is not None:
        token = _token(args.token)
        claims = jwt.unverified(token)["claims"]
        ident = jwt.token_id(token, claims)
        ends = claims.get("exp")
        if isinstance(ends, (int, float)) and not isinstance(ends, bool) and 0 < ends < 1e11:
            until = int(ends) + 60
    named = ident
    if args.user is not None:
        now = int(time.time())
        ident, until = f"{user_key(args.user)}@{now}", now + _LONGEST_TTL
        named = f"all tokens of {args.user} issued until now"
    if not re.fullmatch(r"\S{1,128}", ident):
        raise UsageError("A token id has at most 128 characters and no spaces.")
    _check_room(file)
    append(file, ident, until)
    print(f"Revoked: {named}. Relays that read {file} end its connections within a second.")


def _check_room(file: Path) -> None:
    """Refuse to add to a list that no node would read to its end."""
    from tabhub.relay.revocations import Revocations
    from tabhub.store import config_file
    from tabhub.store.home import Home

    most = config_file.load(Home.find()).limits.relay_revoked
    known = Revocations(file, most)
    known.reload(time.time())
    if len(known) >= most:
        raise CliError(
            f"The list {file} is full: it has {most} entries that have not ended.",
            "Raise limits.relay_revoked in config.json of all nodes, revoke by user, or change the key.",
        )


def _revoked_file(args: Namespace) -> Path | None:
    from tabhub.relay.revocations import default_file

    named: Path | None = args.revoked_file
    return named or (default_file(args.key_file) if args.key_file else None)


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


def token_rules(parser: ArgumentParser) -> None:
    from tabhub.trust.jwt import AUDIENCE

    parser.add_argument(
        "--audience", metavar="AUD", default=AUDIENCE, help="the tokens' audience (default: %(default)s)"
    )
    parser.add_argument("--issuer", metavar="ISS", help="the tokens' issuer (default: any)")


_KEYS = "PEM, JWK, JWKS, or a secret of at least 32 bytes (or set TABHUB_RELAY_KEY)"
KEY_FILE = option("--key-file", metavar="FILE", type=Path, help=_KEYS)
REVOKED_FILE = option("--revoked-file", metavar="FILE", type=Path, help="revoked tokens (default: KEY-FILE.revoked)")
_GIVEN = "the token, or - to read it from standard input"

COMMAND = Group(
    {
        "issue": Command(
            issue,
            option("--user", metavar="USER", required=True, help="the user of the token"),
            KEY_FILE,
            option(
                "--ttl", metavar="SPAN", type=_span, default=_span("30d"), help="how long it is valid (default: 30d)"
            ),
            option("--role", choices=("browser", "agent"), help="the only kind of client that may use it"),
            option("--url", metavar="URL", help="the relay's URL, wss://…, stored in the token for clients"),
            token_rules,
            summary="Print a new token for a user",
        ),
        "inspect": Command(
            inspect,
            option("token", metavar="TOKEN", help=_GIVEN),
            KEY_FILE,
            REVOKED_FILE,
            JSON,
            token_rules,
            summary="Show a token's claims and whether it is valid",
        ),
        "revoke": Command(
            revoke,
            option("token", metavar="TOKEN", nargs="?", help=_GIVEN),
            option("--id", metavar="ID", help="the token's id instead, as `token inspect` shows it"),
            option("--user", metavar="USER", help="all tokens of this user that were issued until now"),
            KEY_FILE,
            REVOKED_FILE,
            summary="Revoke a token before it expires",
        ),
    },
    examples=(("tabhub relay token issue --user ann --key-file relay.key --ttl 12h", "a token for today"),),
)
