"""The users of a relay node: who is here, how much they may say, and whose tokens are judged.

Owns the users' records and limits, the same for agents and browsers.
"""

from __future__ import annotations

from tabhub.errors import Busy, InvalidToken, TabhubError
from tabhub.relay.records import Agent, Browser, Client, Log, Membership, ReportUsage, Tables, User, VerifyToken
from tabhub.trust.leaky_bucket import LeakyBucket


class Users:
    """All users with someone on this node."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._out = tables.out

    def user(self, name: str) -> User:
        """The user, known from now on; refuses one with too many connections."""
        user = self._tables.users.get(name)
        if user is None:
            user = self._tables.users[name] = User(name, LeakyBucket(self._tables.limits.relay_user_rate))
            self._out.append(Membership(name, here=True))
        elif len(user.agents) + len(user.browsers) >= self._tables.limits.relay_user_clients:
            raise Busy("Authentication failed: this user has too many connections.")
        return user

    def left(self, user: User) -> None:
        """Someone of this user has gone."""
        if not user.agents and not user.browsers and self._tables.users.pop(user.name, None) is not None:
            self._tell(user)
            self._out.append(Membership(user.name, here=False))

    def over_limit(self, client: Client, now: float) -> float | None:
        """ReportUsage one message; seconds to wait if it is too many, for its connection or for its user."""
        wait = client.pace.hit(now)
        user = client.user
        if wait is None and user is not None:
            wait = user.pace.hit(now)
            user.taken += wait is None
        return wait

    def counted(self, name: str, count: int, now: float) -> None:
        """So many were taken on another node."""
        user = self._tables.users.get(name)
        if user is not None:
            user.pace.add(count, now)

    def tell(self) -> None:
        """Let the other nodes know what was taken here."""
        for user in self._tables.users.values():
            self._tell(user)

    def _tell(self, user: User) -> None:
        if user.taken:
            self._out.append(ReportUsage(user.name, user.taken))
            user.taken = 0

    def verify(self, client: Client, token: str) -> None:
        """Have a token judged."""
        self._out.append(VerifyToken(client.client, token))

    def auth_failed(self, role: str, error: TabhubError) -> None:
        """A token was refused."""
        self._tables.counts.auth_failed += 1
        reason = error.reason if isinstance(error, InvalidToken) else error.message
        self._out.append(Log("authentication_failed", {"role": role, "reason": reason}))

    def clients(self) -> list[Agent | Browser]:
        """Everyone connected."""
        return [*self._tables.agents.values(), *self._tables.browsers.values()]
