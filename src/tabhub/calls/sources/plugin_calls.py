"""Calls of plugin tools: find the tab, hand the call to its adapter once, read the answer.

Owns the choice of the tab and the way of one call. A call that names its tab goes there or nowhere; otherwise the best
tab of the plugin takes it, and another one only where the first certainly did not begin. The time is the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from tabhub.calls.engine import Context
from tabhub.calls.sources.page_calls import Held
from tabhub.calls.sources.page_result import UNTRUSTED
from tabhub.core.descriptions import visible
from tabhub.core.leases import Lease
from tabhub.core.match_patterns import any_matches
from tabhub.core.registry import Entry
from tabhub.core.tab_routing import retry_where
from tabhub.core.tabs import Tab
from tabhub.core.tools import Source, Tool, ToolResult
from tabhub.errors import CommandFailed, NoMatchingTab, PluginToolFailed, TabhubError, TabMismatch
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.transport import TabHubTransport
from tabhub.plugins.adapters import Adapter
from tabhub.plugins.inject import injected, stripped
from tabhub.plugins.model import Plugin, PluginTool, agents_name
from tabhub.plugins.settings import Setup

_MESSAGE = 2_000
_READ = 65_536


@dataclass(frozen=True, slots=True)
class Active:
    """A plugin in use: as its package defines it and as it is set up here."""

    plugin: Plugin
    setup: Setup
    adapter: Adapter

    @property
    def name(self) -> str:
        """Its name."""
        return self.plugin.name

    @property
    def instances(self) -> tuple[str, ...]:
        """The names of its instances."""
        return tuple(each.name for each in self.setup.instances)

    def owns(self, url: str, instance: str | None = None) -> bool:
        """Whether an address is one of its pages."""
        return any_matches(self.setup.patterns_of(instance), url, self.plugin.exclude_patterns)


class _Answer(msgspec.Struct):
    output: msgspec.Raw = msgspec.Raw(b"null")


_ANSWER = msgspec.json.Decoder(_Answer)


class _Running:
    """One call that an adapter has (links.transport.Listener)."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def progress(self, params: dict[str, Any]) -> None:
        """Pass on how far the plugin is."""
        done, total, message = params.get("progress"), params.get("total"), params.get("message")
        if isinstance(done, int | float):
            whole = total if isinstance(total, int | float) else None
            words = visible(message[:_MESSAGE])[0] if isinstance(message, str) else None
            self._ctx.progress(done, whole, words)

    def asked(self, params: dict[str, Any]) -> Any:
        """Adapters ask nothing."""
        return None


class PluginCalls:
    """Runs calls of plugin tools."""

    def __init__(
        self,
        transport: TabHubTransport,
        browsers: Browsers,
        limits: Limits,
        leases: Held,
        ready: Callable[[Tab, str], bool],
    ) -> None:
        self._transport = transport
        self._browsers = browsers
        self._limits = limits
        self._leases = leases
        self._ready = ready

    def entries(self, active: Active) -> list[Entry]:
        """The plugin's tools for the registry; a call in flight keeps the plugin it began with."""
        return [Entry(_tool(active, tool), partial(self._run, active, tool)) for tool in active.plugin.tools]

    async def _run(self, active: Active, tool: PluginTool, ctx: Any, arguments: dict[str, Any]) -> ToolResult:
        own, tab_id, instance = stripped(arguments, active.instances)
        reads = tool.annotations.get("readOnlyHint") is True
        repeatable = reads or tool.annotations.get("idempotentHint") is True
        tried: set[int] = set()
        failed: TabhubError | None = None
        while True:
            try:
                tab = self._find(active, tab_id, instance, tried, ctx, reads=reads)
            except NoMatchingTab:
                raise failed or _no_tab(active, instance) from None
            try:
                return await self._send(active, tool, tab, instance, ctx, own)
            except TabhubError as error:
                elsewhere = _never_began(error) or retry_where(error, repeatable=repeatable, exact=False) != "no"
                if tab_id is not None or not elsewhere or len(tried) >= self._limits.retries:
                    raise
                failed = failed or error
                tried.add(tab.tab_id)

    def _find(
        self,
        active: Active,
        tab_id: int | None,
        instance: str | None,
        tried: Collection[int],
        ctx: Context,
        *,
        reads: bool,
    ) -> Tab:
        if tab_id is not None:
            tab = self._browsers.tab(tab_id).tab
            if not active.owns(tab.url, instance):
                raise _wrong_tab(active, instance, tab)
            if (lease := self._keeps_out(tab, ctx, reads=reads)) is not None:
                raise self._leases.leased_error(lease)
            return tab
        there = [tab for tab in self._browsers.book if tab.tab_id not in tried and active.owns(tab.url, instance)]
        barred = {tab.tab_id: lease for tab in there if (lease := self._keeps_out(tab, ctx, reads=reads)) is not None}
        free = [tab for tab in there if tab.tab_id not in barred]
        best = self.best(free, active.name, lambda tab: self._leases.holds(ctx.session, tab.tab_id))
        if best is None and barred and not tried:
            raise self._leases.leased_error(next(iter(barred.values())))
        if best is None:
            raise NoMatchingTab("There is no tab.")
        return best

    def best(self, tabs: Iterable[Tab], plugin: str, held: Callable[[Tab], bool] = lambda _: False) -> Tab | None:
        """The tab to call: ready before not ready, the caller's own, then active in the focused window, active, in the
        focused window, and of the rest the one used last."""

        def rank(tab: Tab) -> tuple[bool, bool, bool, bool, bool, float, int]:
            focused = tab.window_focused
            return (
                self._ready(tab, plugin),
                held(tab),
                tab.active and focused,
                tab.active,
                focused,
                tab.last_accessed or 0.0,
                -tab.tab_id,
            )

        return max(tabs, key=rank, default=None)

    def _keeps_out(self, tab: Tab, ctx: Context, *, reads: bool) -> Lease | None:
        lease = self._leases.blocking_lease(ctx.session, tab.tab_id)
        return None if lease is None or (reads and self._leases.reading) else lease

    async def _send(
        self, active: Active, tool: PluginTool, tab: Tab, instance: str | None, ctx: Context, own: dict[str, Any]
    ) -> ToolResult:
        ctx.touch(tab.tab_id, tab.origin)
        params = {
            "plugin": active.name,
            "tool": tool.name,
            "input": own,
            "urlPatterns": list(active.setup.patterns_of(instance)),
            # Its end is the hub's to decide, which hears of progress; this only keeps a lost call from staying.
            "timeoutMs": round(self._limits.call_timeout_max * 1000),
        }
        ctx.sent()
        raw = await self._transport.send_request(
            tab.tab_id, {"method": "tool.dispatch", "params": params}, listener=_Running(ctx), raw=True
        )
        return _result(raw, active, tool, tab)


def _never_began(error: TabhubError) -> bool:
    return isinstance(error, PluginToolFailed) and error.outcome == "not_sent"


def _result(raw: bytes, active: Active, tool: PluginTool, tab: Tab) -> ToolResult:
    try:
        output = bytes(_ANSWER.decode(raw).output).strip()
        # What is large is looked at from outside: reading all of it would keep the hub from everything else.
        value = msgspec.json.decode(output) if len(output) <= _READ or output[:1] == b'"' else None
    except (msgspec.DecodeError, RecursionError) as error:
        raise CommandFailed(
            f"{active.plugin.display_name} ran {tool.name} and answered with something that cannot be read: {error}.",
            hint="The call was carried out; only its answer is lost.",
        ) from None
    text = value if isinstance(value, str) else output.decode()
    fields: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if output[:1] == b"{":
        fields["structuredContent"] = msgspec.Raw(output)
    fields["_meta"] = {UNTRUSTED: {"origin": tab.origin}, "tabhub/plugin": {"plugin": active.name, "tabId": tab.tab_id}}
    return ToolResult(msgspec.json.encode(fields))


def _tool(active: Active, tool: PluginTool) -> Tool:
    meta: dict[str, Any] = {"plugin": active.name, "version": active.plugin.version}
    if tool.group:
        meta["group"] = tool.group
    return Tool(
        agents_name(active.name, tool.name),
        Source("plugin", active.name),
        f"[{active.plugin.display_name}] {tool.description}",
        injected(tool.input_schema, active.instances),
        title=tool.title,
        annotations=dict(tool.annotations),
        meta={"tabhub/plugin": meta},
    )


def _site(active: Active, instance: str | None) -> str:
    return active.plugin.display_name + (f" ({instance})" if instance is not None else "")


def _no_tab(active: Active, instance: str | None) -> NoMatchingTab:
    named = next((each.patterns[0] for each in active.setup.instances if each.name == instance), None)
    where = named or active.setup.homepage or ", ".join(active.setup.url_patterns[:3])
    return NoMatchingTab(
        f"No open tab shows {_site(active, instance)}.",
        hint=f"Open {where} with browser_open_tab, see that the person is signed in there, and call again.",
    )


def _wrong_tab(active: Active, instance: str | None, tab: Tab) -> TabMismatch:
    return TabMismatch(
        f"Tab {tab.tab_id} shows {tab.url[:200] or 'nothing'}, which is not a page of {_site(active, instance)}.",
        hint="plugin_list_tabs lists its tabs; without `tabId` the best one is taken.",
    )
