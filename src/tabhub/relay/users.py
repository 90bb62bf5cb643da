"""The users with clients on a relay node: their records, rate limits and token checks.

Owns what agents and browsers have in common as clients of one user.
"""

from __future__ import annotations

from tabhub.errors import Busy, InvalidToken, RateLimited, TabhubError
from tabhub.relay.records import Client, Log, Membership, ReportUsage, Tables, User, VerifyToken
from tabhub.trust.jwt import Claims
from tabhub.trust.leaky_bucket import LeakyBucket
from tabhub.wire.relay import NOT_AUTHENTICATED, TRY_AGAIN_LATER


class Users:
    """All users of one node."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._out = tables.out
        self._joins: dict[str, LeakyBucket] = {}
        """Recent connections by user, also of users who have none now."""

    def check_joins(self, name: str, now: float) -> None:
        """Count a new connection; raises RateLimited if the user has opened too many in a short time.

        Each is announced to other nodes, so that one user could keep the bus busy.
        """
        bucket = self._joins.get(name)
        if bucket is None:
            bucket = self._joins[name] = LeakyBucket(self._tables.limits.relay_user_joins)
        if (wait := bucket.hit(now)) is not None:
            self._tables.counts.rate_limited += 1
            raise RateLimited("Too many new connections of this user.", retry_after=int(wait) + 1)

    def forget_joins(self, now: float) -> None:
        self._joins = {name: bucket for name, bucket in self._joins.items() if not bucket.empty(now)}

    def admit(self, name: str) -> User:
        """The record of a user, created if needed; raises Busy if the user has too many connections."""
        if self._tables.draining:
            raise Busy("Authentication failed: this node is about to restart.")
        user = self._tables.users.get(name)
        if user is None:
            user = self._tables.users[name] = User(name, LeakyBucket(self._tables.limits.relay_user_rate))
            self._out.append(Membership(name, here=True))
        elif len(user.agents) + len(user.browsers) >= self._tables.limits.relay_user_clients:
            raise Busy("Authentication failed: this user has too many connections.")
        return user

    def release(self, user: User) -> None:
        """Forget a user whose last client disconnected."""
        if not user.agents and not user.browsers and self._tables.users.pop(user.name, None) is not None:
            self._report_usage(user)
            self._out.append(Membership(user.name, here=False))

    def check_rate(self, client: Client, now: float) -> float | None:
        """Count one message; the seconds to wait if it exceeds the limit of its connection or its user."""
        wait = client.bucket.hit(now)
        user = client.user
        if wait is None and user is not None:
            wait = user.bucket.hit(now)
            user.unreported += wait is None
        return wait

    def add_usage(self, name: str, messages: int, now: float) -> None:
        """Count messages that another node accepted."""
        user = self._tables.users.get(name)
        if user is not None:
            user.bucket.add(messages, now)

    def report_usage(self) -> None:
        for user in self._tables.users.values():
            self._report_usage(user)

    def _report_usage(self, user: User) -> None:
        if user.unreported:
            self._out.append(ReportUsage(user.name, user.unreported))
            user.unreported = 0

    def verify_token(self, client: Client, token: str) -> None:
        client.verifying = True
        self._out.append(VerifyToken(client.client, token))

    def accept_token(
        self, client: Client, verdict: Claims | InvalidToken, role: str, now: float, remaining: float
    ) -> Claims:
        """Apply the result of `verify_token`; raises InvalidToken if it is not a token of this client's user."""
        client.verifying = False
        if isinstance(verdict, InvalidToken):
            raise verdict
        verdict.for_role(role)
        if client.user is not None and client.user.name != verdict.user:
            raise InvalidToken("of another user")
        client.deadline, client.claims = now + remaining, verdict
        return verdict

    def refused(self, role: str, error: TabhubError) -> int:
        """Log why a client was not admitted; returns the close code for it."""
        if isinstance(error, RateLimited | Busy):
            self._out.append(Log("client_refused", {"role": role, "reason": error.message}))
            return TRY_AGAIN_LATER
        self._tables.counts.auth_failed += 1
        reason = error.reason if isinstance(error, InvalidToken) else error.message
        self._out.append(Log("authentication_failed", {"role": role, "reason": reason}))
        return NOT_AUTHENTICATED
