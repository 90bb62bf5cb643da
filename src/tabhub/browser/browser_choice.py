"""Calls that are not about one tab: which browser they go to, and how its reply is parsed.

Owns the choice of a browser, querying one or all of them, finding the one that has a given id, and parsing lists in
replies. It knows no tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tabhub.browser.tool_spec import Call
from tabhub.core.tabs import Tab
from tabhub.errors import CommandFailed, InvalidArguments, NotInBrowser, TabhubError, TabNotFound
from tabhub.links.extension import ExtensionLink

BROWSER_ID = {
    "type": "string",
    "minLength": 1,
    "maxLength": 200,
    "description": "Which browser; without it, that of the session's tab, else the one used last.",
}
WHICH_BROWSER = {
    **BROWSER_ID,
    "description": "Which browser; needed only when several have that number.",
}
TAB_IDS = {
    "type": "array",
    "items": {"type": "integer", "minimum": 0},
    "minItems": 1,
    "maxItems": 500,
    "uniqueItems": True,
}
MORE = {"type": "integer", "description": "How many more there are than listed."}
_LONGEST = 4096
_NAMED = 10
_KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,)}

Fields = Mapping[str, str]
"""The fields of a reply by name, each with its JSON type."""


@dataclass(frozen=True, slots=True)
class Found:
    """Something a browser described, and that browser."""

    link: ExtensionLink
    what: dict[str, Any]


def choose_link(call: Call) -> ExtensionLink:
    """The browser named by the call, that of the session's tab, or the one used last."""
    browsers = call.box.browsers
    if (named := call.args.get("browserId")) is not None:
        return browsers.link(named)
    own: int | None = getattr(call.ctx.session, "tab", None)
    tab = browsers.book.get(own) if own is not None else None
    return browsers.link(tab.browser_id) if tab is not None else browsers.default_link()


async def query_browser(link: ExtensionLink, command: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a command that changes nothing."""
    answer = await link.request(command, params or {})
    if not isinstance(answer, dict):
        raise CommandFailed(f"invalid response: the browser's answer to {command} is not an object.")
    return answer


def run_command(call: Call, link: ExtensionLink, command: str, params: dict[str, Any]) -> Awaitable[dict[str, Any]]:
    """Send a command that changes something; it is recorded as sent, so that it is never repeated."""
    if not call.read_only:
        call.ctx.sent()
    return query_browser(link, command, params)


async def query_all_browsers(
    call: Call, command: str, params: dict[str, Any] | None = None
) -> tuple[list[Found], list[str]]:
    """Query every browser, or the named one; returns the replies, and a sentence for each that failed."""
    browsers = call.box.browsers
    named = call.args.get("browserId")
    links = [browsers.link(named)] if named is not None else browsers.links() or [browsers.default_link()]
    answers = await asyncio.gather(*(_in_time(link, command, params) for link in links), return_exceptions=True)
    found: list[Found] = []
    problems: list[str] = []
    for link, answer in zip(links, answers, strict=True):
        if isinstance(answer, TabhubError) and len(links) > 1:
            problems.append(f"Browser {link.browser_id} is left out: {answer.message}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            found.append(Found(link, answer))
    return found, problems


async def _in_time(link: ExtensionLink, command: str, params: dict[str, Any] | None) -> dict[str, Any]:
    limit = link.limits.browser_answer  # one that hangs must not delay the others
    try:
        async with asyncio.timeout(limit):
            return await query_browser(link, command, params)
    except TimeoutError:
        raise CommandFailed(f"Browser {link.browser_id} did not answer within {limit:g} s.") from None


async def find_by_number(
    call: Call, command: str, listed: str, key: str, number: int, label: Callable[[dict[str, Any]], str]
) -> Found:
    """The item with this id in any browser; `label` describes each existing one for the error."""
    answers, problems = await query_all_browsers(call, command)
    there = [Found(answer.link, item) for answer in answers for item in list_items(answer.what, listed)]
    matching = [found for found in there if found.what.get(key) == number]
    if len(matching) == 1:
        return matching[0]
    if matching:
        owners = ", ".join(found.link.browser_id for found in matching)
        raise InvalidArguments(f"{key} {number} is in several browsers: {owners}.", hint="Choose one with browserId.")
    alternatives = [f"{found.what.get(key)} ({label(found.what)})" for found in there]
    hint = " ".join([alternatives_hint(alternatives, listed), *problems])
    raise NotInBrowser(f"There is no {key} {number}.", hint=hint)


def alternatives_hint(existing: Sequence[str], what: str) -> str:
    if not existing:
        return f"There are no {what}."
    more = len(existing) - _NAMED
    return f"There are: {'; '.join(existing[:_NAMED])}{f'; and {more} more' if more > 0 else ''}."


def chosen_tabs(call: Call) -> tuple[ExtensionLink, list[Tab]]:
    """The tabs named by `tabIds`, which must be of one browser, and the link to it."""
    refs = [call.box.browsers.tab(tab_id) for tab_id in call.args["tabIds"]]
    owners = {ref.tab.browser_id for ref in refs}
    if len(owners) > 1:
        listed = "; ".join(f"{ref.tab.tab_id} is in {ref.tab.browser_id}" for ref in refs[:_NAMED])
        raise InvalidArguments(
            "The tabs belong to different browsers, and a group is in one.", hint=f"Tab {listed}. Call once for each."
        )
    for ref in refs:
        call.box.choice.require_free(call.ctx.session, ref.tab.tab_id)
        call.ctx.touch(ref.tab.tab_id, ref.tab.origin)
    return refs[0].link, [ref.tab for ref in refs]


async def run_on_tabs(
    call: Call, link: ExtensionLink, tabs: list[Tab], command: str, params: dict[str, Any]
) -> dict[str, Any]:
    try:
        return await run_command(call, link, command, {**params, "tabIds": [tab.chrome_id for tab in tabs]})
    except TabNotFound:
        listed = ", ".join(str(tab.tab_id) for tab in tabs[:_NAMED])
        raise TabNotFound(
            f"One of the tabs {listed} is closed.", hint="browser_list_tabs shows what is open; nothing was changed."
        ) from None


def hub_tab_ids(call: Call, link: ExtensionLink, chrome_ids: Any) -> list[int]:
    """The hub's ids of a browser's tabs; tabs that the hub does not know yet are left out."""
    book, owner = call.box.browsers.book, link.browser_id
    tabs = (
        (book.find(owner, number) for number in chrome_ids if type(number) is int) if type(chrome_ids) is list else ()
    )
    return [tab.tab_id for tab in tabs if tab is not None]


def list_items(answer: dict[str, Any], name: str, most: int = 5000) -> list[dict[str, Any]]:
    found = answer.get(name)
    if not isinstance(found, list):
        raise CommandFailed(f"invalid response: the browser's answer has no list `{name}`.")
    return [item for item in found[:most] if isinstance(item, dict)]


def pick_fields(item: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """The known fields of an object that have the right type; long texts are truncated."""
    kept = {name: item[name] for name, kind in fields.items() if type(item.get(name)) in _KINDS[kind]}
    return {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in kept.items()}


def pick_rows(answer: dict[str, Any], name: str, fields: Fields) -> list[dict[str, Any]]:
    return [pick_fields(item, fields) for item in list_items(answer, name)]


async def list_from_browser(
    call: Call, command: str, params: dict[str, Any], name: str, fields: Fields
) -> dict[str, Any]:
    """The rows one browser lists, with `more` or `cut` if there are others."""
    answer = await query_browser(choose_link(call), command, params)
    cut = {"cut": True} if answer.get("cut") is True else {}
    return {name: pick_rows(answer, name, fields), **pick_fields(answer, {"more": "integer"}), **cut}


def given_args(call: Call, *names: str) -> dict[str, Any]:
    return {name: call.args[name] for name in names if name in call.args}
