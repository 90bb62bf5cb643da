"""The elements that a call which waits for approval would act on: found in the page before the person is asked.

Owns looking them up without acting, in bounded time. How the person is shown them is the sentence's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tabhub.browser.driver.cdp_values import parse_object
from tabhub.browser.driver.page import Page
from tabhub.browser.elements.element import Element, find_element
from tabhub.browser.elements.focus import focused_target
from tabhub.browser.tool_spec import Toolbox
from tabhub.core.sessions import Session
from tabhub.core.shown_elements import NOTHING_SHOWN, ShownElement, ShownElements, TargetKey, target_key
from tabhub.core.tools import Tool
from tabhub.errors import ElementMissing, TabhubError
from tabhub.trust.sentences.elements import Elements, NamedElement, Problem, targets

Act = tuple[Tool, Mapping[str, Any]]
"""A tool and its arguments."""
_MOST_TARGETS = 30


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found of a call's elements."""

    elements: Elements = field(default_factory=dict)
    """By the place of their target in the arguments."""
    shown: ShownElements = field(default_factory=lambda: NOTHING_SHOWN)
    first: Element | None = None
    """The first one that was found."""

    def same_as(self, before: Seen) -> bool:
        """Whether a later look found the same; a page that could not be checked in time has not changed by that."""
        return all(
            now == (known := before.elements.get(place)) or "unchecked" in (now.problem, known.problem if known else "")
            for place, now in self.elements.items()
        ) and all(before.shown.get(key, now) == now for key, now in self.shown.items())


NOTHING_SEEN = Seen()


def acts_targets(acts: Sequence[Act]) -> list[tuple[str, Mapping[str, Any]]]:
    """All targets of a call, or of the steps of a batch, by their place."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for number, (tool, arguments) in enumerate(acts):
        if tool.source.kind == "browser":
            found += targets(tool.name, arguments, f"{number}/" if len(acts) > 1 else "")
    return found[:_MOST_TARGETS]


@dataclass(frozen=True, slots=True)
class ElementLookup:
    """The lookup of one hub."""

    box: Toolbox

    def page(self, session: Session, tab_id: int) -> Page:
        """A tab to look at."""
        box = self.box
        return Page(box.browsers, box.watch, box.browsers.tab(tab_id), None, box.view(session))

    def look(self, session: Session, acts: Sequence[Act], tab_id: int | None) -> Awaitable[Seen] | None:
        """Find the elements of a call; it never fails, and what is not found in time is said to be unchecked."""
        wanted = acts_targets(acts)
        return self._find(session, wanted, tab_id, several=len(acts) > 1) if wanted and tab_id is not None else None

    async def _find(
        self, session: Session, wanted: Sequence[tuple[str, Mapping[str, Any]]], tab_id: int, *, several: bool
    ) -> Seen:
        elements: dict[str, NamedElement] = {place: NamedElement(problem="unchecked") for place, _ in wanted}
        shown: dict[TargetKey, ShownElement] = {}
        found: dict[str, Element] = {}
        limit = self.box.browsers.limits.approval_lookup
        try:
            page = self.page(session, tab_id)
            async with asyncio.timeout(limit):
                await asyncio.gather(*(self._one(page, place, target, elements, found) for place, target in wanted))
        except (TabhubError, TimeoutError):
            pass  # `elements` says so
        for place, target in wanted:
            if (element := found.get(place)) is not None:
                seen = ShownElement(*elements[place][:2], None if several else element.ref)
                shown[target_key(target)] = seen
                if not target:  # the tool then names the focused element by its ref
                    shown[target_key({"ref": element.ref})] = seen
        return Seen(elements, shown, next((found[place] for place, _ in wanted if place in found), None))

    async def _one(
        self,
        page: Page,
        place: str,
        target: Mapping[str, Any],
        elements: dict[str, NamedElement],
        found: dict[str, Element],
    ) -> None:
        problem: Problem = "unchecked"
        try:
            element = await find_element(
                page, target or await focused_target(page), wait=page.link.limits.approval_lookup / 2
            )
            facts = parse_object(await element.call("identity"))
        except ElementMissing as error:
            problem = "several" if error.several else "missing"
        except TabhubError:
            problem = "unchecked" if target else "missing"
        else:
            elements[place] = NamedElement(
                str(facts.get("role", "")), str(facts.get("name", "")), bool(facts.get("secret"))
            )
            found[place] = element
            return
        elements[place] = NamedElement(problem=problem)
