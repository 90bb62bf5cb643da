"""The definition of a built-in tool: name, texts, schemas, annotations and one async function.

Owns the decorator `tool` and what a running tool receives. It knows no tool.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
import orjson
from msgspec import structs

from tabhub.browser.actions import Activity
from tabhub.browser.awake_tabs import AwakeTabs
from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.files.downloads import Downloads, describe
from tabhub.browser.files.folder import Folder
from tabhub.browser.files.hidden_downloads import HiddenDownloads
from tabhub.browser.intercepted_requests import Interceptions
from tabhub.browser.record.recorder import Recorder
from tabhub.browser.record.tracing import TabTraces
from tabhub.browser.schemas import CHANGES, TAB_ID, Fields, closed_object, object_schema
from tabhub.browser.secrets.fields import ReadFields, read_secret_fields
from tabhub.browser.secrets.text import SecretText
from tabhub.browser.style_sheets import StyleSheets
from tabhub.browser.tab_overrides import TabOverrides
from tabhub.core.leases import Lease
from tabhub.core.sessions import Session
from tabhub.core.tabs import Tab
from tabhub.core.tools import BROWSER, CallContext, Runner, Tool, ToolResult
from tabhub.errors import TabhubError, TabLeased
from tabhub.links.browsers import Browsers, TabRef
from tabhub.trust.value_mask import FieldMask
from tabhub.trust.visibility import EVERYTHING, View


class TabChoice(Protocol):
    """Sessions and their tabs, as the tools need them; implemented by a layer above."""

    def find_tab(self, session: Any, tab_id: int | None, reads: bool = False) -> TabRef | None:
        """The named tab, or the session's own; None if it has none yet.

        TabLeased if another session holds the tab, unless the call only `reads` and reading is allowed.
        """
        ...

    async def open_for(self, session: Any) -> TabRef: ...

    def report_closed(self, session: Any, tab_id: int) -> int | None:
        """An answer reports that the session's tab has closed: the tab that it continues in."""
        ...

    def adopt(self, session: Any, tab_id: int) -> None:
        """Make a tab the session opened its own."""
        ...

    def tab_group(self, session: Any) -> dict[str, str]:
        """The tab group of the session's tabs, for `open_tab`."""
        ...

    def blocking_lease(self, session: Any, tab_id: int) -> Lease | None:
        """The lease of another session on the tab."""
        ...

    def held_tabs(self, session: Any) -> Mapping[int, bool]:
        """The tabs that sessions hold: whether it is this session."""
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


class ChangeReport(Protocol):
    """Reads what an action changed in the page."""

    async def begin(self, call: Call) -> None:
        """The action is about to begin."""

    async def read(self, call: Call) -> str:
        """What changed, as lines; empty if the page is gone."""


def no_plugins() -> Sequence[PluginSite]:
    return ()


def everything(session: Session) -> View:
    return EVERYTHING


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What all tools share."""

    browsers: Browsers
    watch: TabWatch
    choice: TabChoice
    folder: Folder
    activity: Activity
    awake: AwakeTabs
    downloads: Downloads
    hidden_downloads: HiddenDownloads
    record: Recorder
    network_overrides: TabOverrides
    interceptions: Interceptions
    emulation: TabOverrides
    """Also holds forced pseudo states."""
    style_sheets: StyleSheets
    traces: TabTraces
    secrets: SecretText
    hub_facts: Callable[[], dict[str, Any]]
    changes: ChangeReport
    file_urls: bool = False
    read_fields: ReadFields = read_secret_fields
    plugins: Callable[[], Sequence[PluginSite]] = no_plugins
    view: Callable[[Session], View] = everything
    """What a call of a session may show."""


class Call(msgspec.Struct, eq=False):
    """One run of a tool."""

    box: Toolbox
    ctx: CallContext
    args: dict[str, Any]
    read_only: bool
    view: View = EVERYTHING
    repeats_page: bool = False
    """Whether the result may repeat whatever the page holds."""
    worked_on: Page | None = None
    """The page that the call was about last."""

    def hides_tab(self, tab: Tab) -> bool:
        """Whether the tab shows a site that the agent is kept off."""
        return self.view.active and self.view.hides(tab.site)

    def visible_tabs(self, tabs: Iterable[Tab]) -> list[Tab]:
        """The tabs that the agent may know of; the others are counted."""
        return self.view.keep(tabs, self.hides_tab, lambda tab: ("tab", tab.tab_id)) if self.view.active else list(tabs)

    async def page(self, *, leaves: bool = False, settle: bool = True) -> Page:
        """The page of the named tab, or of the session's, which is opened if needed.

        SiteChanged if the tab shows another site than the one the call was permitted for, unless the tool only `leaves`
        it. The first command of a tool that is not read-only is recorded as sent. With `settle`, the page first reacts
        to the last action.
        """
        box, ctx = self.box, self.ctx
        activity = box.activity
        ref = box.choice.find_tab(ctx.session, self.args.get("tabId"), self.read_only)
        if ref is None:
            ref = await box.choice.open_for(ctx.session)
        if leaves:
            ctx.visit(ref.tab.tab_id, ref.tab.site)
        else:
            if settle and activity.is_reacting(ref.key):
                await activity.settled(ref.key)
                # It may have navigated or closed itself meanwhile.
                ref = box.choice.find_tab(ctx.session, self.args.get("tabId"), self.read_only) or ref
            ctx.work_on(ref.tab)
        acting = None if self.read_only else ctx
        page = self.worked_on = Page(box.browsers, box.watch, ref, acting, self.view, activity.is_requesting)
        if self.repeats_page:
            await box.read_fields(page, True)
        return page

    def secret_fields(self) -> list[FieldMask]:
        """What the secret fields of the call's tab hold, or of all tabs if it worked on none."""
        tabs, page = self.box.watch.tabs, self.worked_on
        if page is None:
            return [state.fields for state in tabs.values() if state.fields.in_use]
        state = tabs.get(page.key)
        return [state.fields] if state is not None and state.fields.in_use else []

    def mask_text(self, text: str) -> str:
        """A text of the page without the known secrets. It comes before redaction by name, which leaves the words after
        the first one of a value with spaces; nothing would recognise those later."""
        text = self.box.secrets.mask_text(text)
        for fields in self.secret_fields():
            text = fields.text(text)
        return text

    def mask_file(self, data: bytes) -> bytes:
        """What is written to a file, without the secrets that a result would not show."""
        data = self.box.secrets.mask(data)
        for fields in self.secret_fields():
            data = fields.data(data)
        return data


def with_note(facts: dict[str, Any], *notes: str) -> dict[str, Any]:
    """Add the notes that are not empty, as one text."""
    text = " ".join(filter(None, notes))
    return {**facts, "note": text} if text else facts


def data_result(facts: dict[str, Any], *notes: str) -> ToolResult:
    """The facts with their notes; agents read what was done in a line, or the facts as JSON."""
    if "did" in facts:
        return text_result(did_line(facts, "tabId"), facts, *notes)
    return json_result(orjson.dumps(with_note(facts, *notes) if notes else facts))


def did_line(facts: dict[str, Any], *omitted: str) -> str:
    """What was done, with all else that is reported of it except its note."""
    rest = {name: value for name, value in facts.items() if name not in ("did", "note", *omitted)}
    return f"{facts['did']} {orjson.dumps(rest).decode()}" if rest else str(facts["did"])


def json_result(facts: bytes) -> ToolResult:
    """Facts that are encoded already."""
    payload = b'{"content":[{"type":"text","text":%b}]}' % orjson.dumps(facts.decode())
    return ToolResult(payload, facts=facts, is_json=True)


def text_result(
    text: str, facts: dict[str, Any], *notes: str, rest: str | None = None, fits: bool = False
) -> ToolResult:
    """The facts with their notes; agents read a text that is better to read than their JSON and says the same.

    `rest` is what the tool left out to keep to the budget, for which the agent gets a handle; `fits`: it did so.
    """
    noted = with_note(facts, *notes)
    shown = f"{text}\n\n[{noted['note']}]" if "note" in noted else text
    return ToolResult(
        orjson.dumps({"content": [{"type": "text", "text": shown}]}),
        facts=orjson.dumps(noted),
        fits=fits or bool(rest),
        rest=rest or None,
    )


def content_result(content: list[dict[str, Any]], facts: dict[str, Any]) -> ToolResult:
    """Blocks of which some are no text, such as images, and facts about them for programs."""
    return ToolResult(orjson.dumps({"content": content}), facts=orjson.dumps(facts), has_media=True)


Run = Callable[[Any], Awaitable[ToolResult]]
"""The function of a tool: takes a `Call` or the subclass named in its definition."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool and the function that runs it."""

    tool: Tool
    run: Run
    call_type: type[Call]
    repeats_page: bool = False

    def bind(self, box: Toolbox) -> tuple[Tool, Runner]:
        run, call_type, read_only, repeats = self.run, self.call_type, self.tool.read_only, self.repeats_page

        async def runner(ctx: CallContext, args: dict[str, Any]) -> ToolResult:
            call = call_type(box, ctx, args, read_only, box.view(ctx.session), repeats)
            wants_changes = not read_only and args.get("changes") is True
            try:
                if wants_changes:
                    await box.changes.begin(call)
                answer = await run(call)
                if wants_changes and (changes := await box.changes.read(call)):
                    answer = _with_changes(answer, changes)
            except TabhubError as error:
                for fields in call.secret_fields():
                    fields.error(error)
                raise
            page = call.worked_on
            if page is not None and not repeats and _PROBLEMS in (answer.facts or b""):
                # They are texts of the page's scripts, which may repeat what was typed into it.
                with suppress(TabhubError):
                    await box.read_fields(page, True)
            result = answer.form(structured=ctx.structured)
            for fields in call.secret_fields():
                result = result.with_payload(fields.result(result.payload))
            if page is not None and box.downloads.may_have_news(page.key):
                reports = await box.downloads.reports(page.key, call.view)
                result = _noted(result, " ".join(map(describe, reports)), downloads=reports) if reports else result
            note = call.view.note() if call.view.active else ""
            return _noted(result, note) if note else result

        return self.tool, runner


_PROBLEMS = b'"problems":['
"""In a result: what went wrong in the page (browser.page_problems)."""


def _with_changes(answer: ToolResult, changes: str) -> ToolResult:
    """An answer that also says what changed: in a text of its own, and for programs in its facts."""
    body = orjson.loads(answer.payload)
    body["content"].append({"type": "text", "text": changes})
    facts = {**orjson.loads(answer.facts or b"{}"), "changes": changes}
    return structs.replace(answer, payload=orjson.dumps(body), facts=orjson.dumps(facts))


def _noted(result: ToolResult, note: str, **more: Any) -> ToolResult:
    """A finished result with one more note and more facts."""
    body = orjson.loads(result.payload)
    facts = orjson.loads(body["content"][0]["text"]) if result.is_json else body.get("structuredContent")
    if facts is None:
        body["content"].append({"type": "text", "text": f"[{note}]"})
        return result.with_payload(orjson.dumps(body))
    facts.update(more)
    facts["note"] = " ".join(filter(None, (facts.get("note"), note)))
    if result.is_json:
        body["content"][0]["text"] = orjson.dumps(facts).decode()
        return result.with_payload(orjson.dumps(body))
    return result.with_payload(orjson.dumps({**body, "structuredContent": facts}))


def tool(
    name: str,
    title: str,
    description: str,
    *,
    params: Fields | None = None,
    output: Fields,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool = False,
    open_world: bool = True,
    on_tab: bool = True,
    call_type: type[Call] = Call,
    repeats_page: bool = False,
    tells_changes: bool = False,
) -> Callable[[Run], ToolSpec]:
    """Define a tool: its parameters besides `tabId`, the fields of its result, and its effect.

    The result of a tool that `repeats_page` may have anything that the page holds: the values of secret fields are read
    when the tool begins, and masked in it. Tools whose scripts mask them in the page need no more. One that
    `tells_changes` takes `changes: true` and then also answers what it changed in the page.
    """
    made = Tool(
        name=name,
        source=BROWSER,
        title=title,
        description=description,
        input_schema=closed_object(
            {
                **({"tabId?": TAB_ID} if on_tab else {}),
                **(params or {}),
                **({"changes?": CHANGES} if tells_changes else {}),
            }
        ),
        output_schema=object_schema(output),
        annotations={
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": read_only or idempotent,
            "openWorldHint": open_world,
        },
    )
    return lambda run: ToolSpec(made, run, call_type, repeats_page)
