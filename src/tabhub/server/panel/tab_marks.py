"""What browsers show of agents' work: the badge in each tab that an agent holds, the outline of the element it works
on, and the state of all work for the toolbar button.

Owns what is sent to the extensions of this machine, and when. How it looks is the extension's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tabhub.calls.call_words import call_phrase
from tabhub.calls.context import Context
from tabhub.calls.engine import Engine
from tabhub.core.agent_colours import COLOURS, AgentColours
from tabhub.core.calls import Area, Call
from tabhub.core.leases import Leases
from tabhub.core.sessions import Session
from tabhub.links.browsers import Browsers
from tabhub.links.extension import ExtensionLink
from tabhub.trust.sentences.sentence import doing

_LABEL = 60
_DOING = 80
_RECENT = 3.0
"""Seconds for which a badge says what was done last, and its agent counts as working."""
_MOST_AGENTS = 20


@dataclass(slots=True, eq=False)
class TabMarks:
    """The marks of one hub."""

    engine: Engine
    browsers: Browsers
    leases: Leases
    colours: AgentColours
    is_headless: Callable[[str], bool] = lambda _: False
    """Whether nobody sees the tabs of a browser: a badge would only be in the way of pictures."""
    _marks: dict[ExtensionLink, list[dict[str, Any]]] = field(default_factory=dict)
    _status: dict[ExtensionLink, dict[str, Any]] = field(default_factory=dict)

    def update(self) -> None:
        """Send what has changed since the last time."""
        marks: dict[str, list[dict[str, Any]]] = {}
        running = {call.tab: call for call in self.engine.calls if call.tab is not None}
        for lease in self.leases:
            tab = self.browsers.book.get(lease.tab)
            if tab is not None:
                holder = lease.holder
                mark = {
                    "tabId": tab.chrome_id,
                    "label": holder.agent[:_LABEL],
                    "color": COLOURS[self.colours.of(holder)],
                    "doing": self._doing(holder, running.get(tab.tab_id), current=holder.tab == tab.tab_id)[:_DOING],
                }
                marks.setdefault(tab.browser_id, []).append(mark)
        links = [link for link in self.browsers.links() if link.local]
        self._marks = {link: sent for link, sent in self._marks.items() if link in links}
        self._status = {link: sent for link, sent in self._status.items() if link in links}
        status = self._work()
        for link in links:
            now = [] if self.is_headless(link.browser_id) else marks.get(link.browser_id, [])
            if now != self._marks.get(link, []):
                link.notify("agents.marks", {"tabs": now})
                self._marks[link] = now
            if status != self._status.get(link):
                link.notify("agents.work", status)
                self._status[link] = status

    def outline(self, call: Context, area: Area) -> None:
        """Outline an element that a call works on, if a person may be looking at its tab."""
        tab = self.browsers.book.get(call.tab) if call.tab is not None else None
        if tab is not None and tab.active:
            self.outline_area(tab.tab_id, area, COLOURS[self.colours.of(call.session)])

    def outline_area(self, tab_id: int, area: Area, color: str, *, long: bool = False) -> None:
        ref = self.browsers.tab(tab_id)
        if ref.link.local:
            x, y, width, height = (round(side) for side in area)
            box = {"x": x, "y": y, "width": width, "height": height}
            ref.link.notify("agents.outline", {"tabId": ref.tab.chrome_id, **box, "color": color, "long": long})

    def _doing(self, holder: Session, call: Call | None, *, current: bool) -> str:
        """What the agent does in the tab, or did a moment ago; empty if it does nothing there."""
        if isinstance(call, Context) and call.session is holder:
            return doing(call_phrase(call.tool, call.arguments, call))
        return doing(holder.did) if current and holder.did and self._is_recent(holder) else ""

    def _is_recent(self, session: Session) -> bool:
        return self.engine.clock() - session.called < _RECENT

    def _work(self) -> dict[str, Any]:
        """Which agents there are, how many of them work now, and whether they are paused."""
        sessions = self.engine.sessions.all()
        working = {call.session for call in self.engine.calls} | {each for each in sessions if self._is_recent(each)}
        agents = sorted(sessions, key=lambda each: -each.called)[:_MOST_AGENTS]
        return {
            "paused": self.engine.pause.paused is not None,
            "working": len(working),
            "agents": [{"session": each.id, "name": each.agent} for each in agents],
        }
