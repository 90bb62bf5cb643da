"""browser_click_element and browser_hover_element: the mouse on an actionable element."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.browser.action_result import (
    OUTPUT,
    action_result,
    page_left,
    run_and_probe,
    tolerate_navigation,
    unsent_form_note,
)
from tabhub.browser.activity import TrackedAction
from tabhub.browser.driver.page import Page
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.actionability import ActionableElement, raise_problem, wait_actionable
from tabhub.browser.elements.element import TARGET
from tabhub.browser.tool_spec import Call, Toolbox, hints, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, DialogOpen, TabFailed

MODIFIERS = {"type": "array", "items": {"enum": list(keys.MODIFIERS)}}
_RETRIES = 2
_NOT_SEEN_NOTE = (
    "The page did not receive the click. The browser may be showing its own dialog over the tab (print, file, screen "
    "sharing), which only the person can answer; browser_navigate_tab leaves it."
)
_CLICKED = {1: "Clicked", 2: "Double-clicked", 3: "Triple-clicked"}


@tool(
    "browser_click_element",
    "Click",
    "Clicks an element once it is actionable; reports the page, tab or dialog it opened.",
    params={**TARGET, "button": {"enum": list(pointer.BUTTONS)}, "count": {"enum": [1, 2, 3]}, "modifiers": MODIFIERS},
    output=OUTPUT,
    annotations=hints(destructive=True),
)
async def click_element(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    button, count = str(args.get("button", "left")), int(args.get("count", 1))
    with box.activity.track_action(page) as action:
        target, landed = await click_until_it_lands(
            box,
            page,
            action,
            args,
            button=button,
            count=count,
            modifiers=pointer.modifier_bits(args.get("modifiers", ())),
        )
        did = _CLICKED[count] if button == "left" else f"{_CLICKED[count]} ({button})"
        if landed and landed.get("download") and button == "left":
            action.downloading = action.download is None
        url = landed.get("url") if landed and target.element.frame.is_main else None
        return await action_result(
            box,
            page,
            action,
            f"{did} {target.element.label}",
            before=target.facts.get("url"),
            now=url,
            checked=landed.get("checked") if landed else None,
            note=landed["kept"] if landed else None,
        )


async def click_until_it_lands(
    box: Toolbox,
    page: Page,
    action: TrackedAction,
    args: Mapping[str, Any],
    *,
    need: str = "click",
    target: ActionableElement | None = None,
    button: str = "left",
    count: int = 1,
    modifiers: int = 0,
) -> tuple[ActionableElement, dict[str, Any] | None]:
    """Click until the element receives it: a click that another element intercepts is blocked and retried."""
    attempt = 0
    target = target or await wait_actionable(page, args, need)
    while True:
        events = pointer.click(*target.input_point, button=button, count=count, modifiers=modifiers)
        sending = tolerate_navigation(
            box, page, _tolerate_lost_frame(target, pointer.send_events(page, events, target.session_id))
        )
        probe = _ClickProbe(box, page, action, target)
        if button == "left":
            landed = await run_and_probe(sending, probe.when_clicked(count), probe.now)
        else:
            await sending
            landed = await probe.now()
        if page_left(page, action) or not isinstance(landed, dict):
            return target, None
        if landed.get("verdict") != "missed":
            unsent = await probe.unsent_form() if landed.get("leads") else None
            return target, {**landed, "kept": _NOT_SEEN_NOTE if landed.get("unseen") else unsent}
        if attempt == _RETRIES:
            raise_problem(target.element, {"problem": {"why": "covered", "detail": landed.get("cover")}})
        attempt += 1
        target = await wait_actionable(page, args, need, patient=True)


@dataclass(frozen=True, slots=True)
class _ClickProbe:
    """Asks the page what it saw of a click."""

    box: Toolbox
    page: Page
    action: TrackedAction
    target: ActionableElement

    async def now(self) -> Any:
        return None if page_left(self.page, self.action) else await self.action.unless_navigating(self.when_clicked(0))

    async def unsent_form(self) -> str | None:
        """Wait until the page handled the click, so that navigation is known; returns a note if a form was not sent."""
        if page_left(self.page, self.action):
            return None
        asked = self.target.element.frame.evaluate("form_submitted", {})
        unsent = await self.action.unless_navigating(
            tolerate_navigation(self.box, self.page, _tolerate_lost_frame(self.target, asked))
        )
        return unsent_form_note(unsent)

    async def when_clicked(self, clicks: int) -> Any:
        """Probe the page; it replies once it has seen this many clicks."""
        element = self.target.element
        answer = element.frame.evaluate("click_landed", {"ref": element.ref, "clicks": clicks})
        return await tolerate_navigation(self.box, self.page, _tolerate_lost_frame(self.target, answer))


async def _tolerate_lost_frame(target: ActionableElement, work: Awaitable[Any]) -> Any:
    """Await work in the element's frame; None if the click removed that frame."""
    try:
        return await work
    except TabFailed:
        raise
    except CommandFailed as error:
        if target.element.frame.is_main or isinstance(error, DialogOpen):
            raise
        return None


@tool(
    "browser_hover_element",
    "Hover",
    "Moves the mouse onto an element, e.g. to open a menu or tooltip.",
    params=TARGET,
    output=OUTPUT,
    annotations=hints(idempotent=True),
)
async def hover_element(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    with box.activity.track_action(page) as action:
        target = await wait_actionable(page, args, "hover")
        await tolerate_navigation(
            box, page, pointer.send_events(page, [pointer.mouse_move(*target.input_point)], target.session_id)
        )
        return await action_result(box, page, action, f"Moved the mouse onto {target.element.label}")


TOOLS = (click_element, hover_element)
