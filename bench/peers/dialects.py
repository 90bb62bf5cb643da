"""The tools of each server for the same tasks, and how its answers name an element."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one kind of server is asked."""

    list_tabs: Call
    evaluate: Callable[[str], Call]
    """Of a JavaScript expression."""
    click: Callable[[str], Call]
    type_text: Callable[[str, str], Call]
    """Into a field, with key events where the server can."""
    navigate: Callable[[str], Call]
    screenshot: Call
    snapshot: Call
    text: Call
    """Of the whole page."""
    ref: Callable[[str], str]
    """A regular expression that finds the reference of an element with this name in a snapshot."""
    replaces: bool = False
    """Whether typing replaces what the field holds."""


def _call(name: str, **arguments: Any) -> Call:
    return name, arguments


def _bracketed(name: str) -> str:
    return rf'"{re.escape(name)}"[^\n]*?\[ref=(\w+)\]'


TABHUB = Dialect(
    list_tabs=_call("browser_list_tabs"),
    evaluate=lambda expression: _call("browser_execute_script", code=f"return {expression}"),
    click=lambda ref: _call("browser_click_element", ref=ref),
    type_text=lambda ref, text: _call("browser_type_text", ref=ref, text=text),
    navigate=lambda url: _call("browser_navigate_tab", url=url),
    screenshot=_call("browser_screenshot_tab"),
    snapshot=_call("browser_snapshot"),
    text=_call("browser_get_tab_content"),
    ref=_bracketed,
)
_INNER_TEXT = "() => document.body.innerText"
PLAYWRIGHT = Dialect(
    list_tabs=_call("browser_tabs", action="list"),
    evaluate=lambda expression: _call("browser_evaluate", function=f"() => {expression}"),
    click=lambda ref: _call("browser_click", element="the element", target=ref),
    type_text=lambda ref, text: _call("browser_type", element="the field", target=ref, text=text, slowly=True),
    navigate=lambda url: _call("browser_navigate", url=url),
    screenshot=_call("browser_take_screenshot"),
    snapshot=_call("browser_snapshot"),
    text=_call("browser_evaluate", function=_INNER_TEXT),
    ref=_bracketed,
)
CHROME_DEVTOOLS = Dialect(
    list_tabs=_call("list_pages"),
    evaluate=lambda expression: _call("evaluate_script", pageId=1, function=f"() => {expression}"),
    click=lambda ref: _call("click", pageId=1, uid=ref),
    type_text=lambda ref, text: _call("fill", pageId=1, uid=ref, value=text),
    navigate=lambda url: _call("navigate_page", pageId=1, type="url", url=url),
    screenshot=_call("take_screenshot", pageId=1),
    snapshot=_call("take_snapshot", pageId=1),
    text=_call("evaluate_script", pageId=1, function=_INNER_TEXT),
    ref=lambda name: rf'uid=(\w+)[^\n]*?"{re.escape(name)}"',
    replaces=True,
)

BARE = Dialect(
    list_tabs=_call("Target.getTargets"),
    evaluate=lambda expression: _call("Runtime.evaluate", expression=expression, returnByValue=True),
    click=lambda ref: _call("", ref=ref),
    type_text=lambda ref, text: _call("", ref=ref, text=text),
    navigate=lambda url: _call("Page.navigate", url=url),
    screenshot=_call("Page.captureScreenshot", format="png"),
    snapshot=_call(""),
    text=_call("Runtime.evaluate", expression="document.body.innerText", returnByValue=True),
    ref=lambda name: name,
)
"""The browser's own protocol without a server, for what one command does: the rest is left out."""


def find_ref(dialect: Dialect, snapshot: str, name: str) -> str:
    """The reference of an element with this name."""
    found = re.search(dialect.ref(name), snapshot.replace('\\"', '"'))
    if found is None:
        raise LookupError(f"no element {json.dumps(name)} in {snapshot[:1000]}")
    return found[1]
