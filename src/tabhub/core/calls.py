"""Calls in flight: each dispatched at most once, answered exactly once, before its deadline.

Owns the table of open calls and every decision about them: may it run now or must it wait, when is it late, how does
it fail. Pure: the time is passed in. The rule that keeps promise 1 is `close`: the first to close a call answers it,
every later close gets None and is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from tabhub.core.sessions import Session
from tabhub.core.shown_elements import NOTHING_SHOWN, ShownElements, TargetKey
from tabhub.core.tools import Source, Tool
from tabhub.errors import Busy, CallTimeout, TabhubError
from tabhub.limits import Limits

_LANES_KEPT = 1000
_SITES_NOTED = 200
_LABELS_NOTED = 100


Area = tuple[float, float, float, float]
"""Left, top, width and height in CSS pixels of a tab's viewport."""


class Call(msgspec.Struct, eq=False):
    """One invocation of one tool by one session."""

    session: Session
    tool: Tool
    id: int = 0
    """Set, as the times are, when the call is opened."""
    opened: float = 0.0
    timeout: float = 0.0
    """Seconds it may take without progress."""
    deadline: float = 0.0
    latest: float = 0.0
    """The last time to which progress can extend the deadline."""
    waiting: bool = False
    """Whether it waits until its source has room for it."""
    sent: bool = False
    """Whether something has left for the browser: from then on it is not repeated."""
    tab: int | None = None
    origin: str | None = None
    """The site it works on, where it works on one."""
    sites: list[str] = []
    """All sites that it worked on or read something of, in order."""
    failure: TabhubError | None = None
    lane: _Lane[Any] | None = None
    """The calls of its source, set when the call is opened."""
    shown: ShownElements = NOTHING_SHOWN
    """The elements that a person was shown when they approved the call: it may act on these only."""
    labels: dict[TargetKey, str] = {}
    """The elements that it worked on, as tools call them, for the audit log."""
    waited: float = 0.0
    """Seconds that it waited for a person."""

    def visit(self, tab: int | None, site: str | None) -> None:
        """Note the tab and site that the call works on from now on."""
        self.tab, self.origin = tab, site
        if site is not None and site not in self.sites and len(self.sites) < _SITES_NOTED:
            self.sites.append(site)

    def note_target(self, target: TargetKey, label: str, area: Area | None = None) -> None:
        if len(self.labels) < _LABELS_NOTED:
            self.labels[target] = label

    def note_site(self, site: str | None) -> None:
        """Note a site of which the call reads something."""
        if site is not None and site not in self.sites and len(self.sites) < _SITES_NOTED:
            self.sites.append(site)


C = TypeVar("C", bound=Call)


@dataclass(slots=True)
class _Lane(Generic[C]):
    """The running and waiting calls of one source."""

    limit: int
    running: int = 0
    queue: deque[C] = field(default_factory=deque)


class Calls(Generic[C]):
    """The open calls of the hub."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._open: dict[int, C] = {}
        self._lanes: dict[str, _Lane[C]] = {}
        """By the label of their source."""
        self._next = 1
        self.late = 0
        """Answers that came for a call already answered; dropped."""

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[C]:
        return iter(list(self._open.values()))

    def open(self, call: C, now: float) -> None:
        """Add a call. It may run at once unless it is then `waiting`; a full queue raises Busy."""
        tool, limits = call.tool, self._limits
        lane = call.lane = self._lanes.get(tool.source.label) or self._add_lane(tool.source)
        if lane.running < lane.limit:
            lane.running += 1
        elif len(lane.queue) < limits.queue_per_source:
            call.waiting = True
            lane.queue.append(call)
        else:
            raise Busy(
                f"{tool.source} already runs {lane.limit} calls and {len(lane.queue)} more are waiting.",
                hint="Wait for calls in flight to end, then call again.",
            )
        call.opened = now
        call.timeout = timeout = tool.timeout or limits.call_timeout
        call.deadline = now + timeout
        call.latest = now + limits.call_timeout_max
        call.id = number = self._next
        self._next = number + 1
        self._open[number] = call

    def _add_lane(self, source: Source) -> _Lane[C]:
        if len(self._lanes) > _LANES_KEPT:  # sources come and go
            self._lanes = {known: lane for known, lane in self._lanes.items() if lane.running or lane.queue}
        own = source.kind in ("browser", "hub")
        lane = _Lane[C](self._limits.concurrent_browser if own else self._limits.concurrent_per_source)
        self._lanes[source.label] = lane
        return lane

    def close(self, call: C, now: float) -> Sequence[C] | None:
        """Answer a call: returns the calls that may start now, or None if it was answered already."""
        lane = call.lane
        if self._open.pop(call.id, None) is None or lane is None:
            self.late += 1
            return None
        if call.waiting:
            lane.queue.remove(call)
            return ()
        lane.running -= 1
        if not lane.queue:
            return ()
        started: list[C] = []
        while lane.queue and lane.running < lane.limit:
            nxt = lane.queue.popleft()
            nxt.waiting = False
            nxt.deadline = min(now + nxt.timeout, nxt.latest)
            lane.running += 1
            started.append(nxt)
        return started

    def progress(self, call: Call, now: float) -> bool:
        """Extend the deadline, up to the latest end. False if the call is over."""
        if call.id not in self._open:
            return False
        call.deadline = min(now + call.timeout, call.latest)
        return True

    def fail(self, call: Call, error: TabhubError) -> bool:
        """Decide that an open call fails; the first reason stands. True if it must be interrupted."""
        if call.id not in self._open or call.failure is not None:
            return False
        if error.outcome == "unknown" and not call.sent:
            error.outcome = "not_sent"
        call.failure = error
        return True

    def due(self, now: float) -> list[C]:
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

    def of_session(self, session: str) -> list[C]:
        return [call for call in self._open.values() if call.session.id == session]

    def running(self) -> dict[str, int]:
        """Open calls by source, for status."""
        return {source: lane.running + len(lane.queue) for source, lane in self._lanes.items() if lane.running}


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
