"""The errors for an element that is missing, or that cannot be acted on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tabhub.browser.driver.cdp_values import parse_number
from tabhub.browser.driver.page import Page
from tabhub.errors import CommandFailed, ElementMissing

if TYPE_CHECKING:
    from tabhub.browser.elements.element import Element

_TARGETS = {"selector": "", "ref": "the ref ", "text": "the text ", "role": "the role ", "label": "the label "}
_LOOK_AGAIN = "Take a new browser_snapshot to see what is there now."
_PROBLEMS: Mapping[str, tuple[str, str]] = {
    "detached": ("is no longer on the page", _LOOK_AGAIN),
    "hidden": (
        "is not visible: {detail}",
        "Open its container (a menu, a tab, a dialog) first, or choose another element.",
    ),
    "disabled": ("is disabled {detail}", "Meet the page's conditions first, such as a required field or a consent."),
    "readonly": ("is read-only", "Click it if it opens a list or a calendar; otherwise choose another field."),
    "deaf": (
        "cannot be clicked: it has pointer-events: none",
        "The page disabled it; meet the page's conditions first, or choose another element.",
    ),
    "moving": ("keeps moving", "Wait until the animation ends (browser_wait_for), then try again."),
    "covered": (
        "is covered by {detail}",
        "Close or scroll away what covers it, or act on the covering element instead.",
    ),
    "outside": ("cannot be scrolled into view", "Choose an element around it, or open its container first."),
    "clipped": (
        "is for screen readers only: it is clipped to nothing",
        "To use it, press Enter in it (browser_press_key with this ref); otherwise choose a visible element.",
    ),
    "option": ("is an option of a select", "Use browser_select_option."),
    "notText": (
        "is not a text field ({detail})",
        "Use browser_click_element, browser_select_option or browser_fill_form.",
    ),
    "file": ("is a file field", "Use browser_upload_file."),
    "unfocusable": ("cannot receive keyboard input: {detail} cannot be focused", "Choose the field itself."),
    "notSelect": (
        "is not a select ({detail})",
        "Click it, then click the option that appears (browser_click_element).",
    ),
    "noOption": ("has no option {detail!r}", "Its options: {options}."),
    "offOption": ("has the option {detail!r}, but it is disabled", "Choose another option."),
    "single": ("accepts one option only", "Give one value."),
    "reverted": (
        "did not take the value: the page changed it back to {detail!r}",
        "Take a browser_snapshot to see what it accepts.",
    ),
    "malformed": ("does not accept that value", "Expected: {detail}."),
}


def missing_error(page: Page, wanted: dict[str, Any], missing: dict[str, Any]) -> ElementMissing:
    why, where = missing.get("why"), f"tab {page.tab_id} ({page.tab.url[:200]})"
    nearest = [str(name)[:300] for name in missing.get("nearest") or []]
    if why == "gone":
        return ElementMissing(
            f"The ref {wanted['ref']} names nothing in {where}: its element or its whole document is gone.",
            hint="Take a new browser_snapshot and use one of its refs.",
        )
    if why == "invalid":
        return ElementMissing(
            f"The selector {wanted['selector']!r} is not valid CSS: {missing.get('message')}",
            hint="`selector` accepts CSS only. Put the element's text into `text` and its role into `role`.",
        )
    described = describe_target(wanted)
    if why == "several":
        error = ElementMissing(
            f"{missing.get('count')} elements match {described} in {where}.",
            hint=f"Choose one by its ref: {', '.join(nearest)}.",
            data={"nearest": nearest},
        )
        error.several = True
        return error
    kind = "field" if "label" in wanted else "element"
    nothing = "Nothing on the page has a similar id, class or name; browser_snapshot shows what there is."
    return ElementMissing(
        f"No {kind} matches {described} in {where}.",
        hint=f"Nearest matches: {', '.join(nearest)}." if nearest else nothing,
        data={"nearest": nearest},
    )


def describe_target(wanted: Mapping[str, Any]) -> str:
    return " with ".join(f"{_TARGETS[name]}{value!r}" for name, value in wanted.items())


def problem_error(
    element: Element, problem: Mapping[str, Any], kind: type[CommandFailed] = CommandFailed
) -> CommandFailed:
    why = str(problem.get("why"))
    message, hint = _PROBLEMS.get(why, ("cannot be used", _LOOK_AGAIN))
    details = {"detail": str(problem.get("detail", ""))[:300], "options": ", ".join(problem.get("options", ()))}
    waited = parse_number(problem.get("waited")) / 1000
    after = f" after {waited:.1f} s" if waited >= 1 else ""
    instead = f" Visible elements that contain the text: {', '.join(element.instead)}." if element.instead else ""
    return kind(
        f"{element.label} in tab {element.page.tab_id} {message.format(**details)}{after}.",
        hint=hint.format(**details) + instead,
        data={"problem": why, "ref": element.ref},
    )
