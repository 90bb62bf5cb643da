"""Which tools of pages, plugins and servers an agent is listed, where not all fit its budget.

Owns the order: the tools of the session's tab, of other open tabs, then the rest; within each, those that the agent
used recently come first. Where a source's tools are is passed in, as is what one tool costs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from tabhub.core.registry import sort_key
from tabhub.core.tools import Source, Tool

Nearness = tuple[int, float]
"""How near the tools of a source and tab are to what the agent does: lower is nearer."""
SESSION_TAB, OPEN_TAB, ELSEWHERE = 0, 1, 2
_SKIPPED = 20
"""Tools that did not fit after which no further ones are tried."""
_USES_KEPT = 50
_AGENTS_KEPT = 100


@dataclass(frozen=True, slots=True)
class Situation:
    """Where an agent is: what the choice depends on."""

    key: tuple[object, ...] = ()
    """Equal for equal situations."""
    nearness: Callable[[Source, int | None], Nearness] = lambda _source, _tab: (ELSEWHERE, 0.0)
    """Of the tools of a source; those of pages are in a tab."""

    def is_near(self, source: Source, tab_id: int | None) -> bool:
        """Whether the tools of a source belong to the session's tab."""
        return self.nearness(source, tab_id)[0] == SESSION_TAB


NOWHERE = Situation()


class RecentUses:
    """The tools that each agent used last."""

    def __init__(self) -> None:
        self._agents: OrderedDict[str | None, OrderedDict[str, None]] = OrderedDict()

    def note(self, agent: str | None, tool: str) -> None:
        used = self._agents.setdefault(agent, OrderedDict())
        self._agents.move_to_end(agent)
        used[tool] = None
        used.move_to_end(tool)
        if len(used) > _USES_KEPT:
            used.popitem(last=False)
        if len(self._agents) > _AGENTS_KEPT:
            self._agents.popitem(last=False)

    def of(self, agent: str | None) -> Mapping[str, None]:
        return self._agents.get(agent, {})


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen tools, and what is left out."""

    chosen: tuple[Tool, ...]
    left_out: int
    sources: tuple[str, ...]
    """Whose tools are left out, those with most first."""


def choose(
    candidates: Sequence[Tool],
    situation: Situation,
    used: Mapping[str, None],
    hidden: Callable[[Tool], bool] | None,
    cost: Callable[[Tool], int],
    budget: int,
) -> Choice:
    """Choose the most useful tools within the budget. A tool too long for what is left does not exclude shorter ones.

    Candidates come in the order of the listing, in which the chosen ones stay. Whether a tool is `hidden`, which is the
    same for all of one source and tab, and what it costs is asked only where it matters: there may be thousands.
    """
    groups: dict[tuple[str, int | None], list[Tool]] = {}
    for tool in candidates:
        groups.setdefault((tool.source.label, tool.tab_id), []).append(tool)
    visible = [tools for tools in groups.values() if hidden is None or not hidden(tools[0])]
    near: dict[int, list[list[Tool]]] = {}
    for nearness, _, tools in sorted(
        (situation.nearness(tools[0].source, tools[0].tab_id), place, tools) for place, tools in enumerate(visible)
    ):
        near.setdefault(nearness[0], []).append(tools)
    chosen: dict[str, Tool] = {}
    for level in sorted(near):
        budget = _fill(chosen, chain.from_iterable(near[level]), used, cost, budget)
    counts: dict[str, int] = {}
    for tools in visible:
        name = tools[0].source.key.partition("://")[2] or tools[0].source.key
        counts[name] = counts.get(name, 0) + sum(tool.name not in chosen for tool in tools)
    most = sorted((name for name, count in counts.items() if count), key=lambda name: (-counts[name], name))
    return Choice(tuple(sorted(chosen.values(), key=sort_key)), sum(counts.values()), tuple(most))


def _fill(
    chosen: dict[str, Tool], tools: Iterable[Tool], used: Mapping[str, None], cost: Callable[[Tool], int], budget: int
) -> int:
    """Choose tools, those used recently first; returns what is left of the budget."""
    every = list(tools) if used else tools
    first = [tool for tool in every if tool.name in used] if used else []
    skipped = 0
    for tool in chain(first, every):
        if skipped >= _SKIPPED or budget <= 0:
            return 0
        if tool.name in chosen:
            continue
        price = cost(tool)
        if price <= budget:
            budget -= price
            chosen[tool.name] = tool
        else:
            skipped += 1
    return budget
