"""The definition of a built-in tool: name, texts, schemas, annotations and one async function.

Owns the decorator `tool` and what a running tool receives. It knows no tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tabhub.browser.actions import Activity
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.files import Folder
from tabhub.browser.intercepted_requests import Interceptions
from tabhub.browser.record.recorder import Recorder
from tabhub.browser.record.tracing import TabTraces
from tabhub.browser.style_sheets import StyleSheets
from tabhub.browser.tab_overrides import TabOverrides
from tabhub.core.leases import Lease
from tabhub.core.tabs import Tab
from tabhub.core.tools import BROWSER, CallContext, Runner, Tool, ToolResult
from tabhub.errors import TabLeased
from tabhub.links.browsers import Browsers, TabRef

TAB_ID = {"type": "integer", "minimum": 0, "description": "The tab; without it, the session's own tab."}


def object_schema(fields: Mapping[str, Any], required: Iterable[str] = ()) -> dict[str, Any]:
    """The schema of an object; a field is a schema, or the name of a JSON type."""
    return {"type": "object", "properties": _properties(fields), "required": list(required)}


def _properties(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {"type": field} if isinstance(field, str) else field for name, field in fields.items()}


TAB = object_schema(
    {
        "tabId": "integer",
        "title": "string",
        "url": "string",
        "active": "boolean",
        "windowId": "integer",
        "status": "string",
        "browserId": "string",
    },
    ("tabId", "title", "url", "active", "browserId"),
)


def hints(
    *, read_only: bool = False, destructive: bool = False, idempotent: bool = False, open_world: bool = True
) -> dict[str, bool]:
    """All four annotations, stated explicitly."""
    return {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": read_only or idempotent,
        "openWorldHint": open_world,
    }


class TabChoice(Protocol):
    """Sessions and their tabs, as the tools need them; implemented by a layer above."""

    def find_tab(self, session: Any, tab_id: int | None, reads: bool = False) -> TabRef | None:
        """The named tab, or the session's own; None if it has none yet.

        TabLeased if another session holds the tab, unless the call only `reads` and reading is allowed.
        """
        ...

    async def open_for(self, session: Any) -> TabRef: ...

    def adopt(self, session: Any, tab_id: int) -> None:
        """Make a tab the session opened its own."""
        ...

    def tab_group(self, session: Any) -> dict[str, str]:
        """The tab group of the session's tabs, for `open_tab`."""
        ...

    def blocking_lease(self, session: Any, tab_id: int) -> Lease | None:
        """The lease of another session on the tab."""
        ...

    def leased_error(self, lease: Lease, *, asked: bool = False) -> TabLeased:
        """The error for a tab that another session holds; `asked`: it was requested and not granted."""
        ...

    def require_free(self, session: Any, tab_id: int) -> None:
        """Raise TabLeased if another session holds the tab; for tools that affect several tabs."""
        ...

    def acquire(self, session: Any, tab_id: int) -> None:
        """Lease the tab to the session, ending any other lease."""
        ...

    def release(self, session: Any, tab_id: int) -> bool:
        """False if the session does not hold the tab."""
        ...

    def describe_session(self, session: Any) -> dict[str, Any] | None:
        """Its id, tab, own tabs and leases; None for a session that is not kept."""
        ...

    def session_by_handle(self, handle: str, to: Any) -> Any:
        """The session of a stateless client's handle, if it belongs to the client of the asking session."""
        ...

    def on_session_end(self, listener: Callable[[Any], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class PluginSite:
    """A site plugin: its name and URL patterns (`https://*.example.com/*`)."""

    name: str
    patterns: tuple[str, ...]
    about: Callable[[Tab], dict[str, Any] | None] | None = None
    """Facts about a tab (ready, instance), or None if it is not the plugin's; if unset, the patterns decide."""


def no_plugins() -> Sequence[PluginSite]:
    return ()


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What all tools share."""

    browsers: Browsers
    watch: TabWatch
    choice: TabChoice
    folder: Folder
    activity: Activity
    record: Recorder
    network_overrides: TabOverrides
    interceptions: Interceptions
    emulation: TabOverrides
    """Also holds forced pseudo states."""
    style_sheets: StyleSheets
    traces: TabTraces
    hub_facts: Callable[[], dict[str, Any]]
    file_urls: bool = False
    plugins: Callable[[], Sequence[PluginSite]] = no_plugins


@dataclass(slots=True)
class Call:
    """One run of a tool."""

    box: Toolbox
    ctx: CallContext
    args: dict[str, Any]
    read_only: bool

    async def page(self) -> Page:
        """The page of the named tab, or of the session's, which is opened if needed.

        The first command of a tool that is not read-only is recorded as sent.
        """
        box, session = self.box, self.ctx.session
        ref = box.choice.find_tab(session, self.args.get("tabId"), self.read_only)
        if ref is None:
            ref = await box.choice.open_for(session)
        self.ctx.touch(ref.tab.tab_id, ref.tab.origin)
        return Page(box.browsers, box.watch, ref, None if self.read_only else self.ctx.sent)


def with_note(facts: dict[str, Any], *notes: str) -> dict[str, Any]:
    """Add the notes that are not empty, as one text."""
    text = " ".join(filter(None, notes))
    return {**facts, "note": text} if text else facts


Run = Callable[[Call], Awaitable[ToolResult]]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool and the function that runs it."""

    tool: Tool
    run: Run

    def bind(self, box: Toolbox) -> tuple[Tool, Runner]:
        run, read_only = self.run, self.tool.read_only

        def runner(ctx: CallContext, args: dict[str, Any]) -> Awaitable[ToolResult]:
            return run(Call(box, ctx, args, read_only))

        return self.tool, runner


def tool(
    name: str,
    title: str,
    description: str,
    *,
    params: dict[str, Any] | None = None,
    required: Iterable[str] = (),
    output: dict[str, Any],
    output_required: Iterable[str] | None = None,
    annotations: dict[str, bool] | None = None,
    on_tab: bool = True,
) -> Callable[[Run], ToolSpec]:
    """Define a tool: `params` are its parameters besides `tabId`, `output` the fields of its result.

    All fields of the result but `note` are required, unless `output_required` names those that are.
    """
    properties = {**({"tabId": TAB_ID} if on_tab else {}), **_properties(params or {})}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if wanted := list(required):
        schema["required"] = wanted
    if output_required is None:
        output_required = (field for field in output if field != "note")
    made = Tool(
        name=name,
        source=BROWSER,
        title=title,
        description=description,
        input_schema=schema,
        output_schema=object_schema(output, output_required),
        annotations=annotations or hints(),
    )
    return lambda run: ToolSpec(made, run)
