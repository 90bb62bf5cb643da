"""The guard: what every request passes before anything reads it. Order: Host, Origin, size, token, rate.

Owns the order, and what a token opens: the secret is the person's and opens everything, a named token is one agent's
and opens what agents use. The verdicts are trust/'s. The size of a body is checked here where it is announced,
otherwise while it is read.
"""

from __future__ import annotations

from hmac import compare_digest
from typing import Protocol

from tabhub.config.settings import Config
from tabhub.errors import Forbidden, RateLimited, TooLarge, Unauthorized
from tabhub.http.messages import Request
from tabhub.limits import Limits
from tabhub.trust.guard import allowed_hosts, origin_allowed
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.trust.tokens import bearer, challenge_proof, same_token


class Tokens(Protocol):
    """The named tokens (store.tokens.TokenStore)."""

    def name_of(self, token: bytes) -> str | None:
        """The name of a valid token."""
        ...


class Guard:
    """The checks of one hub."""

    def __init__(
        self, port: int, secret: bytes, limits: Limits, tokens: Tokens | None = None, *, tokens_required: bool = False
    ) -> None:
        """`tokens_required` says whether agents need a token of their own."""
        self._port = port
        self._hosts = allowed_hosts(port)
        self._limits = limits
        self._failures = SlidingWindow(limits.auth_failure_rate)
        self._secret = secret
        self._usual = b"Bearer " + secret
        self._tokens = tokens
        self._tokens_required = tokens_required

    def apply_settings(self, config: Config) -> None:
        self._tokens_required = config.require_tokens

    def replace_secret(self, secret: bytes) -> None:
        self._secret = secret
        self._usual = b"Bearer " + secret

    def check_place(self, request: Request) -> None:
        """Check where a request comes from and how large it says it is."""
        headers = request.headers
        if len(headers) != len(request.raw_headers):
            self._check_repeats(request)
        if headers.get(b"host", b"").lower() not in self._hosts:
            raise Forbidden(
                "The Host header does not name this hub.",
                hint=f"Use 127.0.0.1:{self._port} or localhost:{self._port}.",
            )
        if b"origin" in headers and not origin_allowed((headers[b"origin"],)):
            raise Forbidden("Requests from web pages and other extensions are refused.")
        length = headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length[:20]) > self._limits.max_body:
            raise TooLarge(f"The request body is larger than {self._limits.max_body} bytes.")

    @staticmethod
    def _check_repeats(request: Request) -> None:
        """Readers would disagree on which of two counts: a repeated Host or Origin is as bad as a wrong one."""
        names = [name for name, _ in request.raw_headers]
        if names.count(b"host") > 1 or names.count(b"origin") > 1:
            raise Forbidden("The Host or Origin header appears more than once.")
        if names.count(b"authorization") > 1:
            request.headers[b"authorization"] = b""

    def authenticated(self, authorization: bytes | None) -> bool:
        """Whether an Authorization header carries the secret."""
        if authorization is None:
            return False
        if compare_digest(authorization, self._usual):
            return True
        token = bearer(authorization)
        return token is not None and same_token(token, self._secret)

    def prove(self, challenge: str) -> str | None:
        """Proof for a browser or command, before it sends the secret, that this hub knows it."""
        return challenge_proof(self._secret, self._port, challenge)

    def named(self, authorization: bytes | None) -> str | None:
        """The name of the token an Authorization header carries."""
        token = bearer(authorization) if self._tokens is not None else None
        return self._tokens.name_of(token) if token is not None and self._tokens is not None else None

    def require(self, authorization: bytes | None, now: float, *, agents: bool = True) -> str | None:
        """Refuse a request without the secret or a token; returns the token's name. Many wrong ones are rate-limited.

        `agents` says whether the address is one for agents.
        """
        if self.authenticated(authorization):
            if agents and self._tokens_required:
                raise Unauthorized(
                    "The hub's secret is not taken from agents here: each needs a token of its own.",
                    hint="The person makes one with `tabhub token create NAME`.",
                )
            return None
        if (name := self.named(authorization)) is not None:
            if not agents:
                raise Forbidden(
                    "This address is for the person; an agent's token does not open it.",
                    hint="An agent's token opens /mcp, /mcp/gateway and /tools.",
                )
            return name
        retry_after = self._failures.hit("all", now)
        if retry_after is not None:
            raise RateLimited("Too many requests with a wrong token.", retry_after=int(retry_after) + 1)
        what = "missing" if authorization is None else "wrong"
        raise Unauthorized(
            f"The token is {what}.",
            hint="Send `Authorization: Bearer <secret>`; `tabhub config show --show-secret` shows the secret.",
        )
