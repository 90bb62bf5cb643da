"""The pause: a person has stopped the agents until they resume them.

Owns whether calls that act are held. Calls that only read are not affected, and calls already under way run to their
end. Who may pause, and how a pause survives a restart, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import asdict

from tabhub.calls.held_calls import HeldCalls
from tabhub.core.leases import duration
from tabhub.core.tools import Tool
from tabhub.errors import Paused
from tabhub.store.sessions import SavedPause

if TYPE_CHECKING:
    from tabhub.calls.protocols import Caller

Mode = Literal["wait", "fail"]


class Pause:
    """Holds calls that act while the agents are paused."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self.paused: SavedPause | None = None
        self._wall = wall
        self.held_calls = HeldCalls()

    def begin(self, by: str, reason: str, mode: Mode) -> None:
        """Pause. A pause that is extended keeps its start; in mode `fail` the calls that wait fail at once."""
        since = self.paused.since if self.paused is not None else self._wall()
        self.paused = SavedPause(since, by, reason, mode)
        if mode == "fail":
            self.held_calls.fail(self._error)

    def restore(self, state: SavedPause) -> None:
        self.paused = state

    def end(self) -> int:
        """Resume: held calls continue in the order they came. Returns how many."""
        self.paused = None
        return self.held_calls.release()

    async def wait(self, caller: Caller, tool: Tool, seconds: float) -> None:
        """Wait up to `seconds` for the pause to end, else raise Paused."""
        while self.paused is not None:
            if self.paused.mode == "fail":
                raise self._error(tool)
            try:
                await self.held_calls.wait(caller, tool, seconds)
            except TimeoutError:
                raise self._error(tool, seconds) from None

    def _error(self, tool: Tool, waited: float | None = None) -> Paused:
        state = self.paused
        if state is None:
            return Paused(f"{tool.name} waited for a pause to end, which it now has.", hint="Call again.")
        reason = f" ({state.reason})" if state.reason else ""
        time_waited = "" if waited is None else f" The call waited {duration(waited)}."
        return Paused(
            f"{tool.name} was not run: agents have been paused for {duration(self._wall() - state.since)} "
            f"by {state.by}{reason}.{time_waited}",
            hint="Nothing was sent. Tools that only read still work. Call again when the person has resumed "
            "(tabhub resume).",
            data={"paused": self.status()},
        )

    def status(self) -> dict[str, Any] | None:
        """The pause for status and panel; None when there is none."""
        return None if self.paused is None else {**asdict(self.paused), "callsWaiting": len(self.held_calls)}
