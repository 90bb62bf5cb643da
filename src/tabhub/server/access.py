"""Who is admitted: agents by their named tokens, and the person by a key that no agent has.

The guard checks Host, Origin and the secret.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from tabhub.errors import Forbidden, Unauthorized
from tabhub.http.messages import Request
from tabhub.platform.files import write_atomic
from tabhub.server.settings import Settings
from tabhub.store.home import Home
from tabhub.store.tokens import TokenStore
from tabhub.trust.tokens import same_token

APPROVER_HEADER = b"tabhub-approver"


@dataclass(frozen=True, slots=True)
class Access:
    """Admits clients by their named tokens."""

    tokens: TokenStore
    settings: Settings

    def admit(self, token: str | None) -> str | None:
        """The name of a bridge client's token; Unauthorized if it is wrong, or missing where one is required."""
        if token is None:
            if self.settings.current.require_tokens:
                raise Unauthorized(
                    "Agents need their own token here.",
                    hint="The person creates one with `tabhub token create NAME`; pass it in TABHUB_TOKEN.",
                )
            return None
        name = self.tokens.name_of(token.encode("utf-8", "replace"))
        if name is None:
            raise Unauthorized("The token is wrong or was revoked.", hint="Create a new one: tabhub token create NAME")
        return name

    def locked_out(self, token: str | None) -> bool:
        """Whether a client with a token of that name (None: with the secret) would no longer be admitted."""
        return self.settings.current.require_tokens if token is None else not self.tokens.is_valid(token)


class ApproverKey:
    """The key for what only the person may do: new at each start, in a file that only this user can read.

    The hub's secret is not enough, since agents may have it. No tool reads the key; a program that runs as the person
    can (docs/security.md).
    """

    def __init__(self, home: Home) -> None:
        self._path = home.root / "run" / "approver.key"
        self._key = os.urandom(32).hex()

    def publish(self) -> None:
        """Write the key to the file where the command line looks for it."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(self._path, self._key)

    def withdraw(self) -> None:
        self._path.unlink(missing_ok=True)

    def require(self, request: Request, message: str, hint: str) -> None:
        """Forbidden unless the request carries the key, compared in constant time."""
        given = [value for name, value in request.raw_headers if name == APPROVER_HEADER]
        if len(given) != 1 or not same_token(given[0], self._key.encode()):
            raise Forbidden(message, hint=hint)
