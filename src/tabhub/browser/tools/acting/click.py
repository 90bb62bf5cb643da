"""browser_click_element and browser_hover_element: the mouse, at an element that is ready for it."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.browser.activity import TrackedAction
from tabhub.browser.driver.page import Page
from tabhub.browser.elements import keys, pointer
from tabhub.browser.elements.action_result import (
    OUTPUT,
    OUTPUT_REQUIRED,
    action_result,
    run_and_probe,
    tolerate_navigation,
    unsent_form_note,
)
from tabhub.browser.elements.actionability import ActionableElement, raise_problem, wait_actionable
from tabhub.browser.elements.element import TARGET
from tabhub.browser.tool_spec import Call, Toolbox, hints, tool
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, DialogOpen, TabFailed

MODIFIERS = {"type": "array", "items": {"enum": list(keys.MODIFIERS)}}
_TRIES = 2
_UNSEEN = (
    "The page has seen nothing of it. The browser may show a question of its own over the tab (for printing, a file, "
    "sharing the screen), which only the person can answer; browser_navigate_tab leads out of it."
)
_TIMES = {1: "Clicked", 2: "Double-clicked", 3: "Triple-clicked"}


@tool(
    "browser_click_element",
    "Click",
    "Clicks an element once it is ready; tells which page, tab or dialog that opened.",
    params={
        **TARGET,
        "button": {"enum": list(pointer.BUTTONS)},
        "count": {"enum": [1, 2, 3]},
        "modifiers": MODIFIERS,
    },
    output=OUTPUT,
    output_required=OUTPUT_REQUIRED,
    annotations=hints(destructive=True),
)
async def click_element(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    button, count = str(args.get("button", "left")), int(args.get("count", 1))
    with box.activity.track_action(page) as doing:
        aimed, landed = await click_until_it_lands(
            box,
            page,
            doing,
            args,
            button=button,
            count=count,
            modifiers=pointer.modifier_bits(args.get("modifiers", ())),
        )
        did = _TIMES[count] if button == "left" else f"{_TIMES[count]} ({button})"
        if landed and landed.get("download") and button == "left":
            doing.downloading = doing.download is None
        now = landed.get("url") if landed and aimed.element.frame.is_main else None
        return await action_result(
            box,
            page,
            doing,
            f"{did} {aimed.element.label}",
            before=aimed.facts.get("url"),
            now=now,
            checked=landed.get("checked") if landed else None,
            note=landed["kept"] if landed else None,
        )


async def click_until_it_lands(
    box: Toolbox,
    page: Page,
    doing: TrackedAction,
    args: Mapping[str, Any],
    *,
    need: str = "click",
    aimed: ActionableElement | None = None,
    button: str = "left",
    count: int = 1,
    modifiers: int = 0,
) -> tuple[ActionableElement, dict[str, Any] | None]:
    """Click until it lands on the element: a click that something else caught is kept from it, and tried again."""
    turn = 0
    aimed = aimed or await wait_actionable(box, page, args, need)
    while True:
        events = pointer.click(*aimed.input_point, button=button, count=count, modifiers=modifiers)
        struck = tolerate_navigation(box, page, _within(aimed, pointer.send_events(page, events, aimed.session_id)))
        after = _Landed(box, page, doing, aimed)
        if button == "left":
            landed = await run_and_probe(struck, after.ask(count), after.now)
        else:
            await struck
            landed = await after.now()
        if after.elsewhere or not isinstance(landed, dict):
            return aimed, None
        if landed.get("verdict") != "missed":
            kept = await after.turn() if landed.get("leads") else None
            return aimed, {**landed, "kept": _UNSEEN if landed.get("unseen") else kept}
        if turn == _TRIES:
            raise_problem(aimed.element, {"problem": {"why": "covered", "detail": landed.get("cover")}})
        turn += 1
        aimed = await wait_actionable(box, page, args, need, patient=True)


@dataclass(frozen=True, slots=True)
class _Landed:
    """What the page saw of a click."""

    box: Toolbox
    page: Page
    doing: TrackedAction
    aimed: ActionableElement

    @property
    def elsewhere(self) -> bool:
        """Whether the page has gone, is about to, or waits behind a dialog."""
        doing, tab = self.doing, self.page.tab
        return bool(
            doing.unsettled or doing.url is not None or self.box.watch.open_dialog(self.page.link, tab.chrome_id)
        )

    async def now(self) -> Any:
        """Ask after the click."""
        return None if self.elsewhere else await self.doing.unless_navigating(self.ask(0))

    async def turn(self) -> str | None:
        """Let the page come to what the click put behind it: where that leads is told before this is answered.

        Gives what is to be said of a form that is kept from being sent.
        """
        if self.elsewhere:
            return None
        asked = self.aimed.element.frame.evaluate("form_submitted", {})
        kept = await self.doing.unless_navigating(tolerate_navigation(self.box, self.page, _within(self.aimed, asked)))
        return unsent_form_note(kept)

    async def ask(self, clicks: int) -> Any:
        """Ask, to be answered when the page has seen so many clicks."""
        element = self.aimed.element
        answer = element.frame.evaluate("click_landed", {"ref": element.ref, "clicks": clicks})
        return await tolerate_navigation(self.box, self.page, _within(self.aimed, answer))


async def _within(aimed: ActionableElement, work: Awaitable[Any]) -> Any:
    """Do something in the element's frame; a frame that the click took away is no failure."""
    try:
        return await work
    except TabFailed:
        raise
    except CommandFailed as error:
        if aimed.element.frame.is_main or isinstance(error, DialogOpen):
            raise
        return None


@tool(
    "browser_hover_element",
    "Hover",
    "Moves the mouse onto an element, as to open a menu or tooltip; it stays there.",
    params=TARGET,
    output=OUTPUT,
    output_required=OUTPUT_REQUIRED,
    annotations=hints(idempotent=True),
)
async def hover_element(call: Call) -> ToolResult:
    box, page, args = call.box, await call.page(), call.args
    with box.activity.track_action(page) as doing:
        aimed = await wait_actionable(box, page, args, "hover")
        await tolerate_navigation(
            box, page, pointer.send_events(page, [pointer.mouse_move(*aimed.input_point)], aimed.session_id)
        )
        return await action_result(box, page, doing, f"Moved the mouse onto {aimed.element.label}")


TOOLS = (click_element, hover_element)
