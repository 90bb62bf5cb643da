"""Whether the hub still speaks while somebody waits for its answer.

Owns one decision, in whatever time it is told: a hub that says nothing for half a request's time is asked for a sign of
life, and one that still says nothing at the end of it is as good as gone. A busy hub answers a ping at once, however
long its calls take.
"""

from __future__ import annotations

LONGEST = 30.0
"""Seconds of silence after which who waits is told; the hub itself ends a call without progress by then."""
PING = b'{"type":"PING","id":"silence"}\n'

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class Silence:
    """The silence of one connection."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._asked = False

    def broken(self) -> None:
        """The hub sent something, or was replaced: its silence is over."""
        self._since, self._asked = None, False

    def look(self, now: float, *, waiting: bool) -> Literal["ask", "gone"] | None:
        """What to do now: ping, treat the hub as disconnected, or nothing."""
        if not waiting:
            self.broken()
            return None
        if self._since is None:
            self._since = now
        if now >= self._since + LONGEST:
            self.broken()
            return "gone"
        if not self._asked and now >= self._since + LONGEST / 2:
            self._asked = True
            return "ask"
        return None

    def deadline(self) -> float | None:
        """When there is something to do."""
        return None if self._since is None else self._since + (LONGEST if self._asked else LONGEST / 2)
