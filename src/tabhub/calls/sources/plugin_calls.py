"""Calls of plugin tools: which tabs a plugin works on, the message to its adapter, and the answer.

A call that names its tab runs there or not at all; otherwise the plugin's best tab runs it, and another one only where
the first certainly did not begin. Choosing, leases and retries are tab_calls'.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from tabhub.calls.engine import Context
from tabhub.calls.sources.plugin_requests import PluginRequests, Requester
from tabhub.calls.sources.tab_calls import UNTRUSTED, TabCall, TabCalls, unreadable
from tabhub.core.match_patterns import any_matches
from tabhub.core.registry import Entry
from tabhub.core.tab_routing import Candidate
from tabhub.core.tabs import Tab
from tabhub.core.tools import Source, Tool, ToolResult
from tabhub.errors import InvalidArguments, NoMatchingTab, TabhubError, TabMismatch
from tabhub.links.browsers import Browsers
from tabhub.links.transport import TabHubTransport
from tabhub.plugins.adapters import Adapter
from tabhub.plugins.inject import injected, stripped
from tabhub.plugins.model import Plugin, PluginTool, agents_name
from tabhub.plugins.settings import Setup
from tabhub.wire.browser_commands import DispatchResult
from tabhub.wire.page_tools import PluginRequest

_DECODED = 65_536
_PLACEHOLDER = "{{setting:"


@dataclass(frozen=True, slots=True)
class Active:
    """A plugin in use: as its package defines it and as it is set up here."""

    plugin: Plugin
    setup: Setup
    adapter: Adapter

    @property
    def name(self) -> str:
        return self.plugin.name

    @property
    def instances(self) -> tuple[str, ...]:
        return tuple(self.setup.instances)

    def owns(self, url: str, instance: str | None = None) -> bool:
        return any_matches(self.setup.patterns_of(instance), url, self.plugin.exclude_patterns)


_RESULT: msgspec.json.Decoder[DispatchResult] = msgspec.json.Decoder(DispatchResult)


class PluginCall(TabCall[Tab]):
    """One call of a plugin's tool."""

    def __init__(
        self, calls: PluginCalls, active: Active, tool: PluginTool, ctx: Context, arguments: dict[str, Any]
    ) -> None:
        self.ctx = ctx
        self._calls = calls
        self._active = active
        self._tool = tool
        self._input, self._tab_id, self._instance = stripped(arguments, active.instances)
        if _PLACEHOLDER in str(self._input):
            raise InvalidArguments(
                f"{_PLACEHOLDER}…}}}} may not be in the arguments: only the plugin itself uses its secrets.",
                hint="Nothing was sent.",
            )
        self._requests: set[asyncio.Task[dict[str, Any]]] = set()
        self._requested = 0
        self.exact = self._tab_id is not None

    def targets(self) -> list[Tab]:
        active, instance, browsers = self._active, self._instance, self._calls.browsers
        if self._tab_id is None:
            return [tab for tab in browsers.book if active.owns(tab.url, instance)]
        tab = browsers.tab(self._tab_id).tab
        if not active.owns(tab.url, instance):
            shown = tab.url[:200] or "nothing"
            raise TabMismatch(
                f"Tab {tab.tab_id} shows {shown}, which is not a page of {_site(active, instance)}.",
                hint="plugin_list_tabs lists its tabs; without `tabId` the best one is used.",
            )
        return [tab]

    def annotations(self, target: Tab) -> Mapping[str, Any]:
        return self._tool.annotations

    def candidate(self, target: Tab) -> Candidate:
        return Candidate(target.tab_id, target.last_accessed or 0.0, self._calls.is_ready(target, self._active.name))

    async def await_target(self, failure: TabhubError | None) -> Tab:
        if failure is not None:
            raise failure
        setup = self._active.setup
        named = next(iter(setup.instances.get(self._instance or "", ())), None)
        where = named or setup.homepage or ", ".join(setup.url_patterns[:3])
        raise NoMatchingTab(
            f"No open tab shows {_site(self._active, self._instance)}.",
            hint=f"Open {where} with browser_open_tab, see that the person is signed in there, and call again.",
        )

    def may_retry(self, error: TabhubError, target: Tab) -> bool:
        return not self.exact and super().may_retry(error, target)

    async def before_retry(self, error: TabhubError, target: Tab, failed: set[int]) -> None:
        failed.add(target.tab_id)

    async def send(self, target: Tab, transport: TabHubTransport) -> ToolResult:
        self.ctx.visit(target.tab_id, target.site)
        params = {
            "plugin": self._active.name,
            "tool": self._tool.name,
            "input": self._input,
            "urlPatterns": list(self._active.setup.patterns_of(self._instance)),
            # The hub decides when the call times out, since it receives progress; this only bounds a lost call.
            "timeoutMs": round(self._calls.tab_calls.limits.call_timeout_max * 1000),
        }
        self.ctx.sent = True
        try:
            raw = await transport.send_request(
                target.tab_id, {"method": "tool.dispatch", "params": params}, listener=self, raw=True
            )
        finally:
            for request in self._requests:
                request.cancel()
        return _result(raw, self._active, self._tool, target, structured=self.ctx.structured)

    def requested(self, request: PluginRequest) -> asyncio.Task[dict[str, Any]]:
        who = Requester(self._active.plugin, self._active.setup, self.ctx)
        task = asyncio.ensure_future(self._calls.requests.send(who, request, self._requested))
        self._requested += 1
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        return task


@dataclass(eq=False)
class PluginCalls:
    """Runs calls of plugin tools."""

    tab_calls: TabCalls
    browsers: Browsers
    is_ready: Callable[[Tab, str], bool]
    requests: PluginRequests

    def entries(self, active: Active) -> list[Entry]:
        """The plugin's tools for the registry; a call in flight keeps the plugin it began with."""
        return [Entry(_tool(active, tool), partial(self._run, active, tool)) for tool in active.plugin.tools]

    async def _run(self, active: Active, tool: PluginTool, ctx: Any, arguments: dict[str, Any]) -> ToolResult:
        return await self.tab_calls.run(PluginCall(self, active, tool, ctx, arguments))


def _result(raw: bytes, active: Active, tool: PluginTool, tab: Tab, *, structured: bool = True) -> ToolResult:
    """The answer as text, and for programs also as data."""
    try:
        answer = _RESULT.decode(raw).output
        output = b"null" if answer is msgspec.UNSET else bytes(answer).strip()
        # Large output is passed on undecoded: decoding it would block the event loop.
        value = msgspec.json.decode(output) if len(output) <= _DECODED or output[:1] == b'"' else None
    except (msgspec.DecodeError, RecursionError) as error:
        name = active.plugin.display_name
        raise unreadable(f"{name} ran {tool.name}, but its answer cannot be read: {error}.") from None
    text = value if isinstance(value, str) else output.decode()
    fields: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if structured and output[:1] == b"{":
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
