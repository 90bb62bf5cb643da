"""Calls that are not about one tab: which browser they go to, and how its reply is parsed.

Owns the choice of a browser, querying one or all of them, finding the one that has a given id, and parsing lists in
replies. It knows no tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tabhub.browser.schemas import Fields, integer, known, text
from tabhub.browser.tool_spec import Call, tool
from tabhub.core.origins import origin_of
from tabhub.errors import CommandFailed, InvalidArguments, NotInBrowser, TabhubError
from tabhub.links.extension import ExtensionLink

BROWSER_ID = text("Which browser; without it, that of the session's tab, else the one used last.", least=1, most=200)
WHICH_BROWSER = text("Which browser; needed only when several have that number.", least=1, most=200)
MORE = integer("How many more there are than listed.")
_LONGEST, _MOST_LISTED = 4096, 5000
_NAMED = 10


@dataclass(frozen=True, slots=True)
class Found:
    """Something a browser described, and that browser."""

    link: ExtensionLink
    what: dict[str, Any]


class BrowserCall(Call):
    """A call that goes to a browser."""

    def link(self) -> ExtensionLink:
        """The browser named by the call, that of the session's tab, or the one used last."""
        browsers = self.box.browsers
        if (named := self.args.get("browserId")) is not None:
            return browsers.link(named)
        own: int | None = getattr(self.ctx.session, "tab", None)
        tab = browsers.book.get(own) if own is not None else None
        return browsers.link(tab.browser_id) if tab is not None else browsers.default_link()

    def given(self, *names: str) -> dict[str, Any]:
        return {name: self.args[name] for name in names if name in self.args}

    def run(self, link: ExtensionLink, command: str, params: dict[str, Any]) -> Awaitable[dict[str, Any]]:
        """Send a command that changes something; it is recorded as sent, so that it is never repeated."""
        self.ctx.sent = True
        return link.request(command, params)

    async def items(
        self, command: str, name: str, params: dict[str, Any] | None = None, link: ExtensionLink | None = None
    ) -> list[dict[str, Any]]:
        """What one browser lists."""
        return _listed(await (link or self.link()).request(command, params or {}), name)

    async def list_rows(self, command: str, params: dict[str, Any], name: str, fields: Fields) -> dict[str, Any]:
        """The rows one browser lists, with `more` or `cut` if there are others."""
        answer = await self.link().request(command, params)
        cut = {"cut": True} if answer.get("cut") else {}
        return {
            name: [pick_fields(row, fields) for row in self.visible_rows(_listed(answer, name))],
            **pick_fields(answer, {"more": "integer"}),
            **cut,
        }

    def visible_rows(self, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows that are not of a site that the agent is kept off; the others are counted."""
        return self.view.keep(rows, self.hides_row)

    def hides_row(self, row: dict[str, Any]) -> bool:
        """Whether something a browser listed is of a site that the agent is kept off, by its URLs or domain.

        A download is also of the site where it began, and one without a site of its own, of the page that made it.
        """
        if not self.view.active:
            return False
        urls = [row.get("url"), row.get("startUrl")]
        if origin_of(str(urls[0])) is None:
            urls.append(row.get("referrer"))
        return any(map(self.view.hides, urls)) or self.view.hides_host(row.get("domain") or "")

    async def query_all(self, command: str, params: dict[str, Any] | None = None) -> tuple[list[Found], list[str]]:
        """Query every browser, or the named one; returns the replies, and a sentence for each that failed."""
        browsers = self.box.browsers
        named = self.args.get("browserId")
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

    async def list_all(self, command: str, name: str) -> tuple[list[Found], list[str]]:
        """The items that every browser lists, and a sentence for each browser that failed."""
        answers, problems = await self.query_all(command)
        return [Found(answer.link, item) for answer in answers for item in _listed(answer.what, name)], problems

    async def find(self, command: str, name: str, key: str, label: Callable[[dict[str, Any]], str]) -> Found:
        """The item whose id is the argument `key`, in any browser; the error describes each one by `label`."""
        number = self.args[key]
        there, problems = await self.list_all(command, name)
        matching = [found for found in there if found.what.get(key) == number]
        if len(matching) == 1:
            return matching[0]
        if matching:
            owners = ", ".join(found.link.browser_id for found in matching)
            raise InvalidArguments(
                f"{key} {number} is in several browsers: {owners}.", hint="Choose one with browserId."
            )
        hint = alternatives_hint((f"{found.what.get(key)} ({label(found.what)})" for found in there), name)
        raise NotInBrowser(f"There is no {key} {number}.", hint=" ".join([hint, *problems]))

    def hub_tab_ids(self, link: ExtensionLink, chrome_ids: Iterable[Any] | None) -> list[int]:
        """The hub's ids of a browser's tabs; tabs that the hub does not know yet are left out."""
        tabs = (self.box.browsers.book.find(link.browser_id, chrome_id) for chrome_id in chrome_ids or ())
        return [tab.tab_id for tab in self.visible_tabs(tab for tab in tabs if tab is not None)]

    def has_hidden_tab(self, link: ExtensionLink, chrome_ids: Iterable[Any] | None) -> bool:
        """Whether one of a browser's tabs is on a site that the agent is kept off."""
        tabs = (self.box.browsers.book.find(link.browser_id, chrome_id) for chrome_id in chrome_ids or ())
        return any(tab is not None and self.hides_tab(tab) for tab in tabs)

    def hub_tab_id(self, link: ExtensionLink, name: str, chrome_id: Any) -> dict[str, int]:
        """The hub's id of a browser's tab as a field, if the hub knows the tab."""
        found = self.hub_tab_ids(link, [chrome_id])
        return {name: found[0]} if found else {}


browser_tool = partial(tool, on_tab=False, open_world=False, call_type=BrowserCall)
"""Define a tool that takes no `tabId`; by default it concerns only the browser itself."""


async def _in_time(link: ExtensionLink, command: str, params: dict[str, Any] | None) -> Any:
    limit = link.limits.browser_answer  # one that hangs must not delay the others
    try:
        async with asyncio.timeout(limit):
            return await link.request(command, params or {})
    except TimeoutError:
        raise CommandFailed(f"Browser {link.browser_id} did not answer within {limit:g} s.") from None


def alternatives_hint(alternatives: Iterable[str], what: str) -> str:
    existing = list(alternatives)
    if not existing:
        return f"There are no {what}."
    more = len(existing) - _NAMED
    return f"There are: {'; '.join(existing[:_NAMED])}{f'; and {more} more' if more > 0 else ''}."


def _listed(answer: dict[str, Any], name: str) -> list[dict[str, Any]]:
    if name not in answer:
        raise CommandFailed(f"invalid response: the browser's answer has no list `{name}`.")
    items: list[dict[str, Any]] = answer[name][:_MOST_LISTED]
    return items


def pick_fields(item: dict[str, Any], fields: Fields) -> dict[str, Any]:
    """The known fields of an object; long texts are truncated."""
    picked = {name: item.get(name) for name in (field.removesuffix("?") for field in fields)}
    return {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in known(picked).items()}


def pick_rows(answer: dict[str, Any], name: str, fields: Fields) -> list[dict[str, Any]]:
    return [pick_fields(item, fields) for item in _listed(answer, name)]
