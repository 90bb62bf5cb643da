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

    def place(self, scope: Scope) -> dict[bytes, bytes]:
        """Check where a request comes from and how large it says it is; its headers are returned, by name."""
        raw = scope["headers"]
        headers: dict[bytes, bytes] = dict(raw)
        if len(headers) != len(raw):
            self._refuse_doubled(raw, headers)
        if not host_allowed(headers.get(b"host"), self._port):
            raise Forbidden(
                "The Host header does not name this hub.",
                hint=f"Use 127.0.0.1:{self._port} or localhost:{self._port}.",
            )
        if b"origin" in headers and not origin_allowed((headers[b"origin"],)):
            raise Forbidden("Requests from web pages and other extensions are refused.")
        length = headers.get(b"content-length")
        if length is not None and length.isdigit() and int(length[:20]) > self._limits.max_body:
            raise TooLarge(f"The request body is larger than {self._limits.max_body} bytes.")
        return headers

    @staticmethod
    def _refuse_doubled(raw: list[tuple[bytes, bytes]], headers: dict[bytes, bytes]) -> None:
        """Readers would disagree on which of two counts: a doubled Host or Origin is as bad as a wrong one."""
        names = [name for name, _ in raw]
        if names.count(b"host") > 1 or names.count(b"origin") > 1:
            raise Forbidden("The Host or Origin header appears more than once.")
        if names.count(b"authorization") > 1:
            headers[b"authorization"] = b""

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
