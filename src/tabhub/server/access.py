"""Who sends a request: the person by a key that no agent has, agents and readers of metrics by their named tokens.

The guard checks Host and Origin, and what each may reach. The extension's key is extension_socket's.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from tabhub.config.settings import Config
from tabhub.errors import Unauthorized
from tabhub.http.guard import Identity
from tabhub.platform.files import stamp, write_atomic
from tabhub.store.home import Home
from tabhub.store.old_secret import OldSecret
from tabhub.store.tokens import TokenStore
from tabhub.trust.tokens import CLI, UNNAMED, bearer, same_token

_CREATE = "The person creates one: tabhub setup CLIENT, or tabhub token create NAME."
_MOST_KNOWN = 1000


class PersonKey:
    """The person's key: new at each start, in a file that only this user can read. The command line uses it.

    No client's settings can contain it, since it changes. No tool reads it; a program that runs as the person can
    (docs/security.md).
    """

    def __init__(self, home: Home) -> None:
        self._path = home.person_key
        self.value = os.urandom(32).hex()

    def publish(self) -> None:
        """Write the key to the file where the command line looks for it."""
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomic(self._path, self.value)

    def withdraw(self) -> None:
        self._path.unlink(missing_ok=True)


class Access:
    """Admits the person, and agents by their tokens."""

    def __init__(
        self, person: PersonKey, tokens: TokenStore, old_secret: OldSecret, config: Callable[[], Config]
    ) -> None:
        self._person = person
        self._tokens = tokens
        self._old_secret = old_secret
        self._config = config
        self._known: dict[bytes, Identity] = {}
        """The agents that have called, by their Authorization header, as long as the file of tokens does not change."""
        self._state = stamp(tokens.path)
        self._looked = False
        """Whether the file was looked at since the event loop last read its sockets."""

    def identify(self, authorization: bytes) -> Identity | None:
        """Who sends this Authorization header; None for an unknown token.

        A change of the file of tokens is noticed once for all requests that the event loop reads together: a request
        that begins after a token was revoked is refused.
        """
        if not self._looked:  # since the event loop last read its sockets; all it read then had begun to arrive by now
            self._looked = True
            asyncio.get_running_loop().call_soon(setattr, self, "_looked", False)
            if (state := stamp(self._tokens.path)) != self._state or len(self._known) > _MOST_KNOWN:
                self._known.clear()
                self._state = state
        if (known := self._known.get(authorization)) is not None:
            return known
        token = bearer(authorization)
        identity = self._identify(token) if token is not None else None
        if identity is not None and not identity.person and identity.name != UNNAMED:
            self._known[authorization] = identity
        return identity

    def _identify(self, token: bytes) -> Identity | None:
        if (found := self._tokens.find(token)) is not None:
            return Identity(found.name, metrics=found.scope == "metrics")
        if same_token(token, self._person.value.encode()):
            return Identity(CLI, person=True)
        if self._old_secret.matches(token):
            return Identity(UNNAMED, admitted=not self._config().require_tokens)
        return None

    def admit(self, token: str | None) -> str:
        """The name of a bridge client; Unauthorized if its token is wrong, or missing where one is required."""
        if token is None:
            if self._config().require_tokens:
                raise Unauthorized(
                    "Agents need their own token here.",
                    hint=f"{_CREATE} For a stdio server: tabhub start --stdio --as NAME, or TABHUB_TOKEN.",
                )
            return UNNAMED
        name = self._tokens.agent_of(token.encode("utf-8", "replace"))
        if name is None:
            raise Unauthorized("The token is wrong or was revoked.", hint=_CREATE)
        return name

    def locked_out(self, name: str | None) -> bool:
        """Whether an agent of that name is no longer admitted."""
        if name == UNNAMED:
            return self._config().require_tokens
        return name is None or (name != CLI and not self._tokens.is_valid(name))
