"""Named tokens: one per agent, so that each has its own name in panel and audit, and its own permissions; and those
with which a program reads `/metrics`, and nothing else.

Owns `tokens.json`, readable by this user only. It contains the SHA-256 of each token and never the token, whose 32
random bytes cannot be derived from it. The time of a lookup by hash reveals nothing about other tokens. Owns also
`client-tokens/`: the tokens of the MCP clients that `tabhub setup` configured, for their stdio servers and for the next
`tabhub setup`.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from pathlib import Path
from typing import Literal

import msgspec

from tabhub.errors import SetupError
from tabhub.platform.files import make_private_folder, read_trusted, stamp, write_atomic
from tabhub.platform.locks import locked
from tabhub.store.home import Home
from tabhub.trust.tokens import CLI, PANEL, UNNAMED

Scope = Literal["tools", "metrics"]
"""What a token opens."""
PREFIX = "thb_"
_RESERVED = {PANEL: "the agent in the panel", CLI: "your command line", UNNAMED: "agents without a token"}
"""Names that no token may have."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_TOKEN = re.compile(rb"thb_[0-9a-f]{64}")
_MOST = 1000
_LARGEST = 4 * 1024 * 1024
_LARGEST_TOKEN = 1024


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """One stored token."""

    name: str
    hash: str
    created: float
    scope: Scope = "tools"


class TokenStore:
    """The tokens of one home, as the running hub uses them: a change on disk applies with the next lookup."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self.path = str(home.tokens)
        """Changes with the stored tokens."""
        self._stamp: tuple[int, int, int] | None = None
        self._stored: dict[str, Token] = {}
        """By hash."""
        self._temporary: dict[str, Token] = {}
        self.error: str | None = None
        """Why the file cannot be read, while that is so: then no token is valid."""

    def find(self, token: bytes) -> Token | None:
        """A valid token."""
        if not _TOKEN.fullmatch(token):
            return None
        digest = hashlib.sha256(token).hexdigest()
        if digest in self._temporary:
            return self._temporary[digest]
        if stamp(self._home.tokens) != self._stamp:
            self._load()
        return self._stored.get(digest)

    def agent_of(self, token: bytes) -> str | None:
        """The agent that a valid token admits."""
        found = self.find(token)
        return found.name if found is not None and found.scope == "tools" else None

    def is_valid(self, name: str) -> bool:
        """Whether a token of that name is valid; while the file cannot be read, none is reported as revoked."""
        if stamp(self._home.tokens) != self._stamp:
            self._load()
        known = (*self._temporary.values(), *self._stored.values())
        return self.error is not None or any(each.name == name and each.scope == "tools" for each in known)

    def create_temporary(self, name: str) -> str:
        """A token for the hub's own agent: valid until this process ends, and stored nowhere."""
        token = _new_token()
        self._temporary[_hash(token)] = Token(name, _hash(token), 0.0)
        return token

    def _load(self) -> None:
        self._stamp = stamp(self._home.tokens)  # before reading: a later change is noticed
        try:
            self._stored = {token.hash: token for token in listed(self._home)}
            self.error = None
        except SetupError as error:
            self._stored, self.error = {}, error.message


def create(home: Home, name: str, now: float, scope: Scope = "tools") -> str:
    """Create a token; it is returned only here and not stored."""
    if not NAME.fullmatch(name):
        raise SetupError(
            f"{name[:80]!r} is not a valid name for a token.",
            hint="Use 1 to 64 letters, digits, _ and -, beginning with a letter or digit.",
        )
    if name in _RESERVED:
        raise SetupError(f"{name!r} is the name of {_RESERVED[name]}.", hint="Choose another.")
    home.ensure()
    with locked(home.root / "tokens.lock"):
        tokens = listed(home)
        if any(each.name == name for each in tokens):
            raise SetupError(
                f"There is a token named {name!r} already.", hint=f"Revoke it first: tabhub token revoke {name}"
            )
        return _add(home, tokens, name, now, scope)


def client_token(home: Home, client: str, now: float) -> tuple[str, Literal["kept", "created", "replaced"]]:
    """The token of an MCP client, and whether it is new; a token of this name that is kept nowhere is replaced."""
    home.ensure()
    make_private_folder(home.client_tokens)
    with locked(home.root / "tokens.lock"):
        tokens = listed(home)
        known = next((each for each in tokens if each.name == client), None)
        token = read_client_token(home, client)
        if known is not None and token is not None and known.hash == _hash(token):
            return token, "kept"
        token = _add(home, [each for each in tokens if each is not known], client, now)
        write_atomic(_client_file(home, client), token + "\n")
    return token, "created" if known is None else "replaced"


def read_client_token(home: Home, client: str) -> str | None:
    raw = read_trusted(_client_file(home, client), _LARGEST_TOKEN, writable_by=stat.S_IWGRP | stat.S_IWOTH)
    return raw.decode("ascii", "replace").strip() if raw is not None else None


def _client_file(home: Home, client: str) -> Path:
    return home.client_tokens / client


def _add(home: Home, tokens: list[Token], name: str, now: float, scope: Scope = "tools") -> str:
    if len(tokens) >= _MOST:
        raise SetupError(f"There are {_MOST} tokens, which is the maximum.", hint="Revoke some that are not needed.")
    token = _new_token()
    write_atomic(home.tokens, msgspec.json.encode([*tokens, Token(name, _hash(token), now, scope)]))
    return token


def revoke(home: Home, name: str) -> None:
    """Revoke a token; it is invalid at once."""
    home.ensure()
    with locked(home.root / "tokens.lock"):
        tokens = listed(home)
        others = [each for each in tokens if each.name != name]
        if len(others) == len(tokens):
            known = ", ".join(each.name for each in tokens[:10]) or "none"
            raise SetupError(f"There is no token named {name[:80]!r}.", hint=f"Tokens: {known}.")
        write_atomic(home.tokens, msgspec.json.encode(others))
        _client_file(home, name).unlink(missing_ok=True)


def listed(home: Home) -> list[Token]:
    """All tokens, oldest first."""
    raw = read_trusted(home.tokens, _LARGEST, writable_by=stat.S_IWGRP | stat.S_IWOTH)
    if raw is None:
        return []
    try:
        return msgspec.json.decode(raw, type=list[Token])
    except ValueError as error:
        raise SetupError(
            f"{home.tokens} is broken: {error}.", hint="Remove it and create the tokens again: tabhub token create NAME"
        ) from None


def _new_token() -> str:
    return PREFIX + os.urandom(32).hex()


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
