"""Who has the wheel: the agents, or a person who paused them.

Owns whether calls that act are held back. Calls that only read are not
concerned, and those already under way run to their end. Who may pause, and how the pause is kept over a restart, is
known elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tabhub.calls.held_calls import Holding
from tabhub.core.leases import span
from tabhub.core.tools import Tool
from tabhub.errors import Paused

if TYPE_CHECKING:
    from tabhub.calls.engine import Caller

Mode = Literal["wait", "fail"]


@dataclass(frozen=True, slots=True)
class Taken:
    """A person has the wheel."""

    since: float
    """In seconds since 1970: it outlives the hub."""
    by: str
    reason: str
    mode: Mode


class Wheel:
    """Holds calls back while a person has the wheel."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self.taken: Taken | None = None
        self._wall = wall
        self.holding = Holding()

    @property
    def waiting(self) -> int:
        """How many calls wait."""
        return len(self.holding)

    def take(self, by: str, reason: str, mode: Mode) -> Taken:
        """Pause. Who had paused already keeps the time; in mode `fail` the calls that wait fail at once."""
        since = self.taken.since if self.taken is not None else self._wall()
        self.taken = Taken(since, by, reason, mode)
        if mode == "fail":
            self.holding.fail(self.refusal)
        return self.taken

    def give_back(self) -> int:
        """Resume: the calls that wait go on, in the order they came. Gives how many."""
        self.taken = None
        return self.holding.release()

    async def turn(self, caller: Caller, tool: Tool, seconds: float) -> None:
        """Wait until the person gives the wheel back, `seconds` at most."""
        while self.taken is not None:
            if self.taken.mode == "fail":
                raise self.refusal(tool)
            try:
                await self.holding.wait(caller, tool, seconds)
            except TimeoutError:
                raise self.refusal(tool, seconds) from None

    def refusal(self, tool: Tool, waited: float | None = None) -> Paused:
        """The error of a call that was held back."""
        taken = self.taken
        if taken is None:
            return Paused(f"{tool.name} waited for a person to give the wheel back.", hint="Call again.")
        why = f" ({taken.reason})" if taken.reason else ""
        patience = "" if waited is None else f" It waited {span(waited)}."
        return Paused(
            f"{tool.name} was not run: a person has had the wheel for {span(self._wall() - taken.since)}, "
            f"paused by {taken.by}{why}.{patience}",
            hint="Nothing was sent. Tools that only read still work. Call again when the person has resumed "
            "(tabhub resume).",
            data={"paused": self.facts()},
        )

    def facts(self) -> dict[str, Any] | None:
        """The pause for status and panel; None when there is none."""
        taken = self.taken
        if taken is None:
            return None
        return {
            "since": taken.since,
            "by": taken.by,
            "reason": taken.reason,
            "mode": taken.mode,
            "callsWaiting": len(self.holding),
        }
