"""A bench: one fake browser with two tabs, all tools, and a way to call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from tabhub.browser import browser_tools
from tabhub.browser.driver.page import Page, open_tab
from tabhub.browser.secrets.fields import ReadFields
from tabhub.core.leases import Lease
from tabhub.core.schemas.validators import compile_schema
from tabhub.core.shown_elements import NOTHING_SHOWN, ShownElements, TargetKey
from tabhub.core.tabs import Tab
from tabhub.core.tools import Runner, Tool, ToolResult
from tabhub.errors import TabLeased
from tabhub.links.browsers import Browsers, TabRef
from tests.browser.fake_browser import FakeBrowser, tab

GROUP = {"key": "k", "title": "Agent"}


@dataclass
class Context:
    """A call's context; no tool here reports progress, logs or asks."""

    session: Any = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    structured: bool = True
    sent: bool = False
    tab: int | None = None
    origin: str | None = None
    sites: list[str] = field(default_factory=list)
    shown: ShownElements = field(default_factory=lambda: NOTHING_SHOWN)
    labels: dict[TargetKey, str] = field(default_factory=dict)

    def note_target(self, target: TargetKey, label: str, area: object = None) -> None:
        self.labels[target] = label

    def visit(self, tab: int | None, site: str | None) -> None:
        self.tab, self.origin = tab, site
        self.note_site(site)

    def note_site(self, site: str | None) -> None:
        if site is not None and site not in self.sites:
            self.sites.append(site)

    def begin_step(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Every step may run here."""

    def work_on(self, tab: Tab) -> None:
        """Every site may be acted on here."""
        self.visit(tab.tab_id, tab.site)

    async def require_frame(self, tab_id: int, site: str) -> None:
        """Every frame may be acted in here."""

    def frames_matter(self) -> bool:
        return False

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        raise AssertionError("no tool here reports progress")

    def log(self, level: str, logger: str, data: Any) -> None:
        raise AssertionError("no tool here writes a log")

    def conceal(self, text: str) -> None:
        """There is no audit log here."""

    async def wait_while_paused(self) -> None:
        """Agents are never paused here."""

    def can(self, capability: str) -> bool:
        return False

    def confirm(self, text: str, tab_id: int) -> None:
        return None

    async def ask(self, questions: dict[str, tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
        raise AssertionError("no one can be asked")


@dataclass
class Bench:
    """The fixture of tool tests: browsers, tools and files."""

    browsers: Browsers
    browser: FakeBrowser
    tools: dict[str, tuple[Tool, Runner]]
    files: Path
    context: Context = field(default_factory=Context)
    listeners: list[Callable[[Any], None]] = field(default_factory=list)

    def end(self, session: Any) -> None:
        for listener in self.listeners:
            listener(session)

    async def result(self, name: str, **args: Any) -> ToolResult:
        """Call a tool as the hub would: arguments checked first, the answer validated against its schema."""
        tool, run = self.tools[name]
        if not tool.accepts(args):
            raise tool.invalid(args)
        result = await run(self.context, args)
        body = orjson.loads(result.payload)
        if not result.is_error and self.context.structured:
            assert tool.output_schema is not None
            assert compile_schema(tool.output_schema).is_valid(body["structuredContent"]), body
        return result

    async def call(self, name: str, **args: Any) -> dict[str, Any]:
        """The structured content of a tool's answer."""
        structured: dict[str, Any] = orjson.loads((await self.result(name, **args)).payload)["structuredContent"]
        return structured

    def evaluates(self, value: Any) -> None:
        """What the page answers to Runtime.evaluate."""
        self.browser.answers["Runtime.evaluate"] = lambda _: {"result": {"type": "object", "value": value}}


async def no_fields(page: Page, frames: bool) -> bool:
    """The fake page has no secret fields, and does not expect to be asked for them."""
    return False


class Choice:
    """Gives every session without a tab a new one."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self.listeners: list[Callable[[Any], None]] = []

    def find_tab(self, session: Any, tab_id: int | None, reads: bool = False) -> TabRef | None:
        return None if tab_id is None else self._browsers.tab(tab_id)

    async def open_for(self, session: Any) -> TabRef:
        return self._browsers.tab((await open_tab(self._browsers)).tab_id)

    def report_closed(self, session: Any, tab_id: int) -> int | None:
        return None

    def adopt(self, session: Any, tab_id: int) -> None:
        """Sessions are not recorded here."""

    def tab_group(self, session: Any) -> dict[str, str]:
        return GROUP

    def blocking_lease(self, session: Any, tab_id: int) -> Lease | None:
        return None

    def held_tabs(self, session: Any) -> dict[int, bool]:
        return {}

    def leased_error(self, lease: Lease, *, asked: bool = False) -> TabLeased:
        raise AssertionError("no tab is leased here")

    def require_free(self, session: Any, tab_id: int) -> None:
        """Every tab is free."""

    def acquire(self, session: Any, tab_id: int) -> None:
        """Leases are not recorded here."""

    def release(self, session: Any, tab_id: int) -> bool:
        return False

    def describe_session(self, session: Any) -> dict[str, Any] | None:
        return None

    def session_by_handle(self, handle: str, to: Any) -> Any:
        raise AssertionError("there are no handles here")

    def on_session_end(self, listener: Callable[[Any], None]) -> None:
        self.listeners.append(listener)


def make_bench(folder: Path, read_fields: ReadFields) -> Bench:
    browsers = Browsers()
    browser = FakeBrowser().join(browsers, tab(1, active=True, windowFocused=True), tab(2))
    choice = Choice(browsers)
    made = browser_tools(
        browsers, choice, folder / "files", hub_facts=lambda: {"version": "0.1.0"}, read_fields=read_fields
    )
    tools = {tool.name: (tool, run) for tool, run in made}
    return Bench(browsers, browser, tools, folder / "files", listeners=choice.listeners)


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return make_bench(tmp_path, no_fields)
