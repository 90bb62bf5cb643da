"""Detects a hub that hangs while a request is pending.

Owns one decision, with the time passed in: after half of MAX_SILENCE without data the hub is pinged, after all of it
the connection counts as dead. A busy hub answers a ping at once, however long its calls take.
"""

from __future__ import annotations

MAX_SILENCE = 30.0
"""Seconds; the hub itself ends a call without progress by then."""
PING = b'{"type":"PING","id":"silence"}\n'

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal


class LivenessCheck:
    """The silence of one connection."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._pinged = False

    def received(self) -> None:
        """The hub sent data, or was replaced."""
        self._since, self._pinged = None, False

    def check(self, now: float, *, waiting: bool) -> Literal["ping", "dead"] | None:
        if not waiting:
            self.received()
            return None
        if self._since is None:
            self._since = now
        if now >= self._since + MAX_SILENCE:
            self.received()
            return "dead"
        if not self._pinged and now >= self._since + MAX_SILENCE / 2:
            self._pinged = True
            return "ping"
        return None

    def deadline(self) -> float | None:
        """When to call `check` again."""
        return None if self._since is None else self._since + (MAX_SILENCE if self._pinged else MAX_SILENCE / 2)
