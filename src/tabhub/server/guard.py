"""The guard: what every request passes before anything reads it. Order: Host, Origin, size, token, rate.

Owns the order; the verdicts are trust/'s. The body's size is checked here where it is announced, and while reading
where it is not.
"""

from __future__ import annotations

from hmac import compare_digest

from tabhub.errors import Forbidden, RateLimited, TooLarge, Unauthorized
from tabhub.limits import Limits
from tabhub.server.http import Scope
from tabhub.trust.guard import host_allowed, origin_allowed
from tabhub.trust.rates import Rate
from tabhub.trust.tokens import bearer, same


class Guard:
    """The checks of one hub."""

    def __init__(self, port: int, secret: bytes, limits: Limits) -> None:
        self._port = port
        self._limits = limits
        self._failures = Rate(limits.auth_failure_rate)
        self._secret = secret
        self._usual = b"Bearer " + secret

    def replace_secret(self, secret: bytes) -> None:
        """The secret was rotated."""
        self._secret = secret
        self._usual = b"Bearer " + secret

    def place(self, scope: Scope) -> tuple[bytes | None, bytes | None]:
        """Check where a request comes from and how large it says it is; its token and length are returned."""
        host: bytes | None = None
        hosts = 0
        origins: list[bytes] = []
        tokens: list[bytes] = []
        length: bytes | None = None
        for name, value in scope["headers"]:
            if name == b"host":
                host, hosts = value, hosts + 1
            elif name == b"origin":
                origins.append(value)
            elif name == b"authorization":
                tokens.append(value)
            elif name == b"content-length":
                length = value
        if hosts != 1 or not host_allowed(host, self._port):
            raise Forbidden(
                "The Host header does not name this hub.",
                hint=f"Use 127.0.0.1:{self._port} or localhost:{self._port}.",
            )
        if not origin_allowed(origins):
            raise Forbidden("Requests from web pages and other extensions are refused.")
        if length is not None and length.isdigit() and int(length[:20]) > self._limits.max_body:
            raise TooLarge(f"The request body is larger than {self._limits.max_body} bytes.")
        # Readers would disagree on which of two tokens counts, so two are as bad as a wrong one.
        return (tokens[0] if len(tokens) == 1 else b"" if tokens else None), length

    def authenticated(self, authorization: bytes | None) -> bool:
        """Whether an Authorization header carries the secret."""
        if authorization is None:
            return False
        if compare_digest(authorization, self._usual):
            return True
        token = bearer(authorization)
        return token is not None and same(token, self._secret)

    def require(self, authorization: bytes | None, now: float) -> None:
        """Refuse a request without the secret; many wrong ones are slowed."""
        if self.authenticated(authorization):
            return
        retry_after = self._failures.hit("all", now)
        if retry_after is not None:
            raise RateLimited("Too many requests with a wrong token.", retry_after=int(retry_after) + 1)
        what = "missing" if authorization is None else "wrong"
        raise Unauthorized(
            f"The token is {what}.",
            hint="Send `Authorization: Bearer <secret>`; `tabhub config show --show-secret` shows the secret.",
        )
