"""Who is admitted: named tokens, and the key that opens what no agent may do.

Owns the verdicts on tokens by name. Host, Origin and the secret are the guard's.
"""

from __future__ import annotations

import os

from tabhub.errors import Forbidden, Unauthorized
from tabhub.http.messages import Request
from tabhub.platform.files import write_atomic
from tabhub.server.settings import Settings
from tabhub.store.home import Home
from tabhub.store.tokens import TokenStore
from tabhub.trust.tokens import same_token

APPROVER_HEADER = b"tabhub-approver"


class Access:
    """Admits clients by their named tokens."""

    def __init__(self, tokens: TokenStore, settings: Settings) -> None:
        self._tokens = tokens
        self._settings = settings

    def admit(self, token: str | None) -> str | None:
        """The name of the token a bridge client shows; Unauthorized if it needs another."""
        if token is None:
            if self._settings.current.require_tokens:
                raise Unauthorized(
                    "Agents need a token of their own here.",
                    hint="The person makes one with `tabhub token create NAME`; give it in TABHUB_TOKEN.",
                )
            return None
        name = self._tokens.name_of(token.encode("utf-8", "replace"))
        if name is None:
            raise Unauthorized("The token is wrong or was revoked.", hint="Make a new one: tabhub token create NAME")
        return name

    def locked_out(self, token: str | None) -> bool:
        """Whether a client that came with a token of that name, or with the secret, would no longer be admitted."""
        return self._settings.current.require_tokens if token is None else not self._tokens.is_valid(token)


class ApproverKey:
    """The key to what only the person may do, new at each start and readable by this user alone.

    The hub's secret, which agents may have, is not enough for that, and an agent's token even less; no tool reads the
    key. A program that runs as the person can read their files: docs/security.md says so.
    """

    def __init__(self, home: Home) -> None:
        self._path = home.root / "run" / "approver.key"
        self._key = os.urandom(32).hex()

    def publish(self) -> None:
        """Write the key where the person's terminal finds it."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(self._path, self._key)

    def withdraw(self) -> None:
        self._path.unlink(missing_ok=True)

    def require(self, request: Request, message: str, hint: str) -> None:
        """Forbidden unless the request carries the key, checked in constant time."""
        given = [value for name, value in request.raw_headers if name == APPROVER_HEADER]
        if len(given) != 1 or not same_token(given[0], self._key.encode()):
            raise Forbidden(message, hint=hint)
