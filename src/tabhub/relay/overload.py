"""Refusing new connections early, when there are more than a node can serve before they give up.

Owns the decision. Clients that come back together after another node has ended cost more than a millisecond each: it is
better to send some away at once, with a time to come back, than to let all of them wait until they time out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tabhub.errors import TooManyConnections

_BEAT = 0.05
_BEHIND = 1.0
"""Seconds by which a node must be late to count as overloaded."""
_FRACTION = 10
_RETRY_AFTER = 5


class Overload:
    """How far a node is behind, and how many clients wait to be authenticated."""

    def __init__(self, clock: Callable[[], float], unauthenticated: Callable[[], int]) -> None:
        self._clock = clock
        self._unauthenticated = unauthenticated
        self._beat = clock()

    async def run(self) -> None:
        while True:
            self.beat()
            await asyncio.sleep(_BEAT)

    def beat(self) -> None:
        """To be called regularly: what the loop does between two calls, it does too late."""
        self._beat = self._clock()

    def check(self, most: int) -> None:
        """Refuse a new connection if as many as `most` wait, or a tenth of that while the node is behind."""
        waiting = self._unauthenticated()
        behind = self._clock() - self._beat > _BEHIND
        if waiting >= (most // _FRACTION if behind else most):
            raise TooManyConnections(
                "This relay node has more new connections than it can serve; try again in a moment.",
                retry_after=_RETRY_AFTER,
            )
