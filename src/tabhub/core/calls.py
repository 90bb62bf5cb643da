"""Calls in flight: each dispatched at most once, answered exactly once, before its deadline.

Owns the table of open calls and every decision about them: may it run now or must it wait, when is it late, which are
affected when a session, tab or browser disconnects. Pure: the time is passed in, and `carrier` is whatever the caller
runs it with. The rule that keeps promise 1 is `close`: the first to close a call answers it, every later close gets
None and is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tabhub.core.tools import Source, Tool
from tabhub.errors import Busy, CallTimeout, TabhubError
from tabhub.limits import Limits

_LANES_KEPT = 1000


class Call(msgspec.Struct, eq=False):
    """One invocation of one tool by one session."""

    id: int
    session: str
    tool: Tool
    lane: _Lane
    opened: float
    deadline: float
    latest: float
    waiting: bool = False
    sent: bool = False
    tab: int | None = None
    browser: str | None = None
    origin: str | None = None
    failure: TabhubError | None = None
    carrier: Any = None


@dataclass(slots=True)
class _Lane:
    """The running and waiting calls of one source."""

    limit: int
    running: int = 0
    queue: deque[Call] = field(default_factory=deque)


class Calls:
    """The open calls of the hub."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[int, Call] = {}
        self._lanes: dict[Source, _Lane] = {}
        self._next = 1
        self.late = 0
        """Answers that came for a call already answered; dropped."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Call]:
        return iter(list(self._open.values()))

    def timeout_of(self, tool: Tool) -> float:
        """Seconds a call of this tool may take without progress."""
        if tool.timeout is not None:
            return tool.timeout
        return self._limits.page_call_timeout if tool.source.kind == "page" else self._limits.call_timeout

    def open(self, session: str, tool: Tool, now: float) -> Call:
        """Add a call. It may run at once unless `waiting`; a full queue raises Busy."""
        lane = self._lanes.get(tool.source)
        if lane is None:
            self._drop_idle_lanes()
            lane = self._lanes[tool.source] = _Lane(self._lane_limit(tool.source))
        call = Call(
            self._next, session, tool, lane, now, now + self.timeout_of(tool), now + self._limits.call_timeout_max
        )
        if lane.running < lane.limit:
            lane.running += 1
        else:
            if len(lane.queue) >= self._limits.queue_per_source:
                raise Busy(
                    f"{tool.source} already runs {lane.limit} calls and {len(lane.queue)} more are waiting.",
                    hint="Wait for calls in flight to end, then call again.",
                )
            call.waiting = True
            lane.queue.append(call)
        self._next += 1
        self._open[call.id] = call
        return call

    def _lane_limit(self, source: Source) -> int:
        own = source.kind in ("browser", "hub")
        return self._limits.concurrent_browser if own else self._limits.concurrent_per_source

    def close(self, call: Call, now: float) -> list[Call] | None:
        """Answer a call: returns the calls that may start now, or None if it was answered already."""
        if self._open.pop(call.id, None) is None:
            self.late += 1
            return None
        lane = call.lane
        if call.waiting:
            lane.queue.remove(call)
            return []
        lane.running -= 1
        started: list[Call] = []
        while lane.queue and lane.running < lane.limit:
            nxt = lane.queue.popleft()
            nxt.waiting = False
            nxt.deadline = min(now + self.timeout_of(nxt.tool), nxt.latest)
            lane.running += 1
            started.append(nxt)
        return started

    def _drop_idle_lanes(self) -> None:
        """Sources come and go; idle lanes are dropped once there are very many."""
        if len(self._lanes) > _LANES_KEPT:
            self._lanes = {source: lane for source, lane in self._lanes.items() if lane.running or lane.queue}

    def progress(self, call: Call, now: float) -> bool:
        """Extend the deadline, up to the latest end. False if the call is over."""
        if call.id not in self._open:
            return False
        call.deadline = min(now + self.timeout_of(call.tool), call.latest)
        return True

    def fail(self, call: Call, error: TabhubError) -> bool:
        """Decide that an open call fails; the first reason stands. True if the carrier must be interrupted."""
        if call.id not in self._open or call.failure is not None:
            return False
        if error.outcome == "unknown" and not call.sent:
            error.outcome = "not_sent"
        call.failure = error
        return True

    def due(self, now: float) -> list[Call]:
        """The calls whose deadline has passed, each given its timeout error."""
        due = [call for call in self._open.values() if call.deadline <= now and call.failure is None]
        for call in due:
            seconds = round(call.deadline - call.opened, 1)
            if call.waiting:
                why = f"waited {seconds} s for its turn at {call.tool.source}"
            else:
                why = f"gave no answer within {seconds} s"
            hint = _late(call)
            self.fail(call, CallTimeout(f"{call.tool.name} {why}.", hint=hint))
        return due

    def of_session(self, session: str) -> list[Call]:
        return [c for c in self._open.values() if c.session == session]

    def running(self) -> dict[str, int]:
        """Open calls by source, for status."""
        return {str(s): lane.running + len(lane.queue) for s, lane in self._lanes.items() if lane.running}


def _late(call: Call) -> str:
    if call.waiting:
        return "Nothing was sent. Call again when fewer calls are under way."
    if call.tool.source.kind != "browser" or call.tab is None:
        return "It may still have had an effect: look before you call it again." if call.sent else "Nothing was sent."
    done = "It may still have had an effect: look before you call it again." if call.sent else "Nothing was changed."
    return (
        f"{done} A script of its own may keep the page of tab {call.tab} busy, or the browser's dialog for printing: "
        "browser_navigate_tab sends the tab to another site, browser_close_tab closes it."
    )
