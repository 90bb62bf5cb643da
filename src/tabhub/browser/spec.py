"""How a built-in tool is written down: name, words, schema, annotations and one async function.

Owns the decorator `tool` and what a running tool is given. It knows no tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tabhub.browser.files import Folder
from tabhub.browser.tab import Page
from tabhub.browser.watch import Watch
from tabhub.hub.tools import BROWSER, CallContext, Runner, Tool, ToolResult
from tabhub.links.browsers import Browsers, TabRef

TAB_ID = {"type": "integer", "minimum": 0, "description": "The tab; without it, the session's own tab."}
SELECTOR = {"type": "string", "minLength": 1, "maxLength": 2000, "description": "A CSS selector."}
TAB: dict[str, Any] = {
    "type": "object",
    "properties": {
        "tabId": {"type": "integer"},
        "title": {"type": "string"},
        "url": {"type": "string"},
        "active": {"type": "boolean"},
        "windowId": {"type": "integer"},
        "status": {"type": "string"},
        "browserId": {"type": "string"},
    },
    "required": ["tabId", "title", "url", "active", "browserId"],
}


def hints(
    *, read_only: bool = False, destructive: bool = False, again: bool = False, open_world: bool = True
) -> dict[str, bool]:
    """The four annotations, all said."""
    return {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": read_only or again,
        "openWorldHint": open_world,
    }


class TabChoice(Protocol):
    """Which tab a call works on when the session has a say in it."""

    def known(self, session: Any, tab_id: int | None) -> TabRef | None:
        """The tab that is named, or the session's own; None if it has none yet."""
        ...

    async def opened(self, session: Any) -> TabRef:
        """A tab opened for the session."""
        ...

    def adopt(self, session: Any, tab_id: int) -> None:
        """The session opened this tab and goes on in it."""
        ...


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What all tools share."""

    browsers: Browsers
    watch: Watch
    choice: TabChoice
    folder: Folder
    hub_facts: Callable[[], dict[str, Any]]
    file_urls: bool = False


@dataclass(slots=True)
class Call:
    """One run of a tool."""

    box: Toolbox
    ctx: CallContext
    args: dict[str, Any]
    read_only: bool

    async def tab(self) -> TabRef:
        """The tab that is meant: the one named, or the session's."""
        choice, session = self.box.choice, self.ctx.session
        ref = choice.known(session, self.args.get("tabId"))
        if ref is None:
            ref = await choice.opened(session)
        self.ctx.touch(ref.tab.tab_id, ref.tab.origin)
        return ref

    def known_page(self) -> Page | None:
        """The way to that tab if the session has one already; otherwise `page` opens it."""
        ref = self.box.choice.known(self.ctx.session, self.args.get("tabId"))
        if ref is None:
            return None
        self.ctx.touch(ref.tab.tab_id, ref.tab.origin)
        return self._page(ref)

    async def page(self) -> Page:
        """The way to that tab; the first command of a tool that changes things is noted as sent."""
        return self._page(await self.tab())

    def _page(self, ref: TabRef) -> Page:
        return Page(self.box.browsers, self.box.watch, ref, None if self.read_only else self.ctx.sent)


Run = Callable[[Call], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class Spec:
    """A tool and the function that runs it, before it is given its toolbox."""

    tool: Tool
    run: Run

    def bind(self, box: Toolbox) -> tuple[Tool, Runner]:
        """The tool, ready to be registered."""
        run, read_only = self.run, self.tool.read_only

        def runner(ctx: CallContext, args: dict[str, Any]) -> Awaitable[ToolResult]:
            return run(Call(box, ctx, args, read_only))

        return self.tool, runner


def tool(
    name: str,
    title: str,
    description: str,
    *,
    takes: dict[str, Any] | None = None,
    required: Iterable[str] = (),
    gives: dict[str, Any],
    always: Iterable[str] = (),
    annotations: dict[str, bool],
    on_tab: bool = True,
) -> Callable[[Run], Spec]:
    """Define a tool: `takes` are its parameters beside `tabId`, `gives` the fields of its result."""
    properties = {**({"tabId": TAB_ID} if on_tab else {}), **(takes or {})}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if wanted := list(required):
        schema["required"] = wanted
    made = Tool(
        name=name,
        source=BROWSER,
        title=title,
        description=description,
        input_schema=schema,
        output_schema={"type": "object", "properties": gives, "required": list(always)},
        annotations=annotations,
    )
    return lambda run: Spec(made, run)
