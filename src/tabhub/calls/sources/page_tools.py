"""Page tools in the hub: what pages register becomes tools of the registry, by site, and is removed with the page.

Owns the intake of registrations (origin, permission, rate), names and descriptions of the listed tools, which tools
outlive their page, and the notices about pages with too many tools. Calls are page_calls'. Messages come through the
transport, whatever that is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec

from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.sources.page_calls import PageCalls
from tabhub.calls.sources.tab_calls import TabCalls
from tabhub.calls.tab_binding import TabBinding
from tabhub.config.public_suffixes import site_of
from tabhub.config.settings import PageSettings
from tabhub.core.descriptions import ToolLocation, describe, one_line
from tabhub.core.origins import origin_of
from tabhub.core.pages.tool_names import PageKey, TabNumbers, ToolNamer, domain_of
from tabhub.core.pages.tools import Frame, PageChange, PageTool, PageToolTable
from tabhub.core.registry import Entry, Registry
from tabhub.core.tabs import Tab, TabTable
from tabhub.core.tools import Source, Tool
from tabhub.errors import InvalidParams
from tabhub.limits import Limits
from tabhub.links.transport import Sites, TabHubTransport
from tabhub.store.audit import AuditLog
from tabhub.store.page_tools import PageToolStore
from tabhub.trust.redact import clean
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.wire.page_tools import ElicitConfirmation, PageDisconnected, PageMessage, RegisterTools, UpdateTools

log = logging.getLogger("tabhub.pages")

_DESCRIBE_DELAY = 0.05
"""Seconds in which changes of descriptions are gathered, as when the person switches tabs."""
_SEEN_EVERY = 300.0
_TEXT = 8192
_LOGGED = 5
_LOGGED_A_MINUTE = 60
_NAMES = 50
_NOTICES = 5

ToolList = RegisterTools | UpdateTools


class _Offer(NamedTuple):
    """What one name is to mean."""

    tool: PageTool
    place: ToolLocation
    facts: dict[str, Any]
    tab_id: int | None = None
    """The tab it runs in; None: the best one."""


@dataclass(eq=False)
class PageTools:
    """The tools of all pages, in the registry."""

    transport: TabHubTransport
    registry: Registry
    tabs: TabTable
    sites: InitVar[Sites]
    store: PageToolStore
    limits: InitVar[Limits]
    settings: PageSettings
    audit: AuditLog
    clock: Callable[[], float]
    wall: Callable[[], float]
    leases: InitVar[TabBinding]
    approvals: InitVar[ApprovalInbox | None] = None

    def __post_init__(self, sites: Sites, limits: Limits, leases: TabBinding, approvals: ApprovalInbox | None) -> None:
        self.pages = PageToolTable(limits)
        self._limits = limits
        self._namer = ToolNamer()
        self._numbers = TabNumbers()
        self._keys: dict[str, set[PageKey]] = {}
        self._built: dict[str, dict[str, tuple[PageTool, Tool]]] = {}
        self._rate = SlidingWindow(limits.page_update_rate, 1.0)
        self._rate_all = SlidingWindow(limits.page_update_rate_all, 1.0)
        self._log_rate = SlidingWindow(_LOGGED_A_MINUTE)
        self._delayed: dict[tuple[int, int], ToolList] = {}
        self._logged_counts: dict[str, int] = {}
        self._logged_problems: dict[tuple[int, int], tuple[str, ...]] = {}
        self._followed: set[int] = set()
        """Tabs whose end matters here: those that have sent something."""
        self._undescribed: set[str] = set()
        self._on_publish: list[Callable[[str], None]] = []
        self._dirty = False
        self._seen = self.wall()
        self.calls = PageCalls(TabCalls(self.transport, self.tabs, limits, leases), self.pages, sites, approvals)
        self.transport.on_message(self.receive)
        self.pages.restore(self.store.load(self.wall()))
        for origin in self.pages.sites():
            self._publish(origin)

    def capabilities(self) -> dict[str, Any]:
        return self.pages.capabilities()

    def receive(self, tab_id: int, message: PageMessage) -> Any:
        """Handle one message of a page; one that is refused is logged and changes nothing."""
        try:
            return self._receive(tab_id, message)
        except InvalidParams as error:
            if self._log_rate.hit("refused", self.clock()) is None:
                log.warning("tab %d: refused: %s", tab_id, error.message)
            raise

    def _receive(self, tab_id: int, message: PageMessage) -> Any:
        place = (tab_id, message.frame_id)
        if tab_id not in self._followed:
            self._followed.add(tab_id)
            self.transport.on_disconnect(tab_id, self._tab_disconnected)
        if isinstance(message, ElicitConfirmation):
            return self.calls.confirm(tab_id, message)
        if isinstance(message, PageDisconnected):
            waiting = self._delayed.get(place)
            if waiting is not None and waiting.document_id == message.document_id:
                del self._delayed[place]
            self._logged_problems.pop(place, None)
            self.calls.document_unloaded(*place, message.document_id)
            self._apply(tab_id, self.pages.remove_document(*place, message.document_id))
        elif isinstance(message, RegisterTools | UpdateTools):
            self._receive_list(place, message)
        return None

    def _receive_list(self, place: tuple[int, int], message: ToolList) -> None:
        """Apply a list of tools now, or a little later where the site sends too many; then the last one counts."""
        if place in self._delayed:
            self._delayed[place] = _merge_lists(self._delayed[place], message)
            return
        frame = self.pages.frame(*place)
        origin = frame.origin if frame is not None else getattr(message, "origin", "")[:_TEXT]
        now = self.clock()
        # The total comes last: what one tab or site sends too often does not count against the others.
        for window, key in (self._rate, f"tab {place[0]}"), (self._rate, site_of(origin)), (self._rate_all, "all"):
            wait = window.hit(key, now)
            if wait is not None:
                self._delayed[place] = self._shortened(message)
                asyncio.get_running_loop().call_later(wait, self._apply_delayed, place)
                return
        self._apply_list(place, message)

    def _shortened(self, message: ToolList) -> ToolList:
        """A list that waits, without the tools that are too many anyway."""
        tools, most = message.tools, self._limits.page_tools
        return msgspec.structs.replace(message, tools=tools[:most], declared=max(message.declared, len(tools)))

    def _apply_delayed(self, place: tuple[int, int]) -> None:
        message = self._delayed.pop(place, None)
        if message is not None:
            try:
                self._receive_list(place, message)
            except InvalidParams as error:
                log.warning("tab %d: %s", place[0], error.message)

    def _apply_list(self, place: tuple[int, int], message: ToolList) -> None:
        if isinstance(message, UpdateTools):
            change = self.pages.update(*place, message.document_id, message.tools, self.wall(), message.declared)
        else:
            frame = self._frame(place, message)
            if not self.settings.allow(frame.origin):
                log.info("tools of %s in tab %d are ignored: its origin is not allowed", frame.origin, place[0])
                return
            self._logged_problems.pop(place, None)
            before = self.pages.frame(*place)
            change = self.pages.register(frame, message.tools, message.declared)
            if before is not None and before.document != frame.document:
                self.calls.document_unloaded(*place, before.document)
        if not message.tools:
            log.info("tab %d, frame %d: the page offers no tools", *place)
        self._log_problems(place, change)
        self._apply(place[0], change)
        self._log_left_out()

    def _frame(self, place: tuple[int, int], message: RegisterTools) -> Frame:
        """The frame as the browser describes it; what the page claims about itself decides nothing."""
        claimed = message.origin
        origin = origin_of(claimed) or (origin_of(message.url) if claimed == "null" else None)
        if origin is None or (claimed == "null" and origin != "file://"):
            raise InvalidParams(f"tools of {clean(claimed, 100)} are refused: it has no origin of its own")
        shown = origin_of(message.url)
        if shown is not None and shown != origin:
            raise InvalidParams(f"tools of {origin} are refused: the URL of their page is {clean(message.url, 100)}")
        capabilities = message.capabilities or {}
        browser = capabilities.get("browser", capabilities)
        browser = browser if isinstance(browser, dict) else {}
        top = origin_of(message.tab_url)
        return Frame(
            *place,
            document=message.document_id,
            origin=origin,
            url=message.url[:_TEXT],
            title=(message.title or "")[:_TEXT],
            tools={},
            updated=self.wall(),
            capabilities={
                "cacheSupported": browser.get("cacheSupported") is True,
                "elicitation": browser.get("elicitation") not in (None, False),
            },
            extensions=message.extensions,
            embedded=place[1] != 0 and (top is None or site_of(top) != site_of(origin)),
        )

    def _log_problems(self, place: tuple[int, int], change: PageChange) -> None:
        """Log refused tools, unless the same ones were logged last time."""
        if self._logged_problems.get(place, ()) == change.problems:
            return
        self._logged_problems[place] = change.problems
        if change.problems and self._log_rate.hit("refused", self.clock()) is not None:
            return
        for problem in change.problems[:_LOGGED]:
            log.warning("tab %d, frame %d: refused: %s", *place, clean(problem, 300))
        if len(change.problems) > _LOGGED:
            log.warning("tab %d, frame %d: and %d more refused", *place, len(change.problems) - _LOGGED)

    def _tab_disconnected(self, tab_id: int) -> None:
        for place in [place for place in (*self._delayed, *self._logged_problems) if place[0] == tab_id]:
            self._delayed.pop(place, None)
            self._logged_problems.pop(place, None)
        self._apply(tab_id, self.pages.remove_tab(tab_id))
        if self.tabs.get(tab_id) is None and self.tabs.find_disconnected(tab_id) is None:
            self._followed.discard(tab_id)
            self._numbers.closed(tab_id)
        else:  # it may come back, and keeps its number until it is closed
            self.transport.on_disconnect(tab_id, self._tab_disconnected)

    def notices(self) -> list[str]:
        """What the person should know: sites that offer more tools than are listed."""
        counts = sorted(self.pages.left_out().items(), key=lambda each: -each[1][0])
        shown = [
            f"{site} offers {offered:,} tools; Tabhub lists {listed:,} of them."
            for site, (offered, listed) in counts[:_NOTICES]
        ]
        more = len(counts) - len(shown)
        return [*shown, f"{more} more sites offer more tools than are listed."] if more else shown

    def _log_left_out(self) -> None:
        """Log notices once, not with every list of tools; a site is named again when it offers twice as many."""
        counts = self.pages.left_out()
        self._logged_counts = {site: logged for site, logged in self._logged_counts.items() if site in counts}
        for site, (offered, listed) in counts.items():
            if offered >= 2 * self._logged_counts.get(site, 0):
                self._logged_counts[site] = offered
                log.warning("%s offers %d tools; Tabhub lists %d of them", site, offered, listed)

    def tabs_changed(self, tabs: Iterable[Tab]) -> None:
        """Update descriptions, which say which tab is active."""
        touched = {origin for tab in tabs for origin in self.pages.sites_of(tab.tab_id)}
        if touched:
            self._describe_soon(touched)

    def allow(self, settings: PageSettings) -> None:
        """Apply settings: remove the tools of sites that are no longer allowed."""
        self.settings = settings
        for origin in self.pages.sites():
            if not settings.allow(origin):
                for frame in self.pages.frames(origin):
                    self._apply(frame.tab_id, self.pages.remove_document(*frame.key, frame.document))
            self._publish(origin)

    def _apply(self, tab_id: int, change: PageChange) -> None:
        for origin in sorted(change.trimmed):
            self._publish(origin)
            log.info("%s: fewer tools are listed, because all pages together have too many", origin)
        for origin in sorted(change.sites):
            self._publish(origin)
            self.calls.tools_changed(origin)
            self._dirty = True
            if change.added or change.removed:
                added, removed = _names(change.added), _names(change.removed)
                log.info(
                    "%s, tab %d: %d tools added, %d removed", origin, tab_id, len(change.added), len(change.removed)
                )
                source = Source("page", origin)
                self.audit.event("page.tools", source, tab_id=tab_id, origin=origin, added=added, removed=removed)
        if change.descriptions - change.sites:
            self._describe_soon(set(change.descriptions - change.sites))

    def on_publish(self, listener: Callable[[str], None]) -> None:
        """Call back with an origin when what its pages offer has changed."""
        self._on_publish.append(listener)

    def _publish(self, origin: str) -> None:
        for listener in self._on_publish:
            listener(origin)
        for problem in self.registry.replace(Source("page", origin), self._entries(origin)):
            log.warning("tool refused: %s", problem)

    def _describe_soon(self, origins: set[str]) -> None:
        if not self._undescribed:
            asyncio.get_running_loop().call_later(_DESCRIBE_DELAY, self._describe)
        self._undescribed |= origins

    def _describe(self) -> None:
        """Update descriptions. Agents are not notified, since the tools themselves are the same."""
        origins, self._undescribed = self._undescribed, set()
        for origin in sorted(origins):
            if not self.registry.refresh(Source("page", origin), self._entries(origin)):
                self._publish(origin)

    def _entries(self, origin: str) -> list[Entry]:
        offered: dict[PageKey, _Offer] = {}
        holders: dict[str, list[Frame]] = {}
        domain = domain_of(origin)
        for frame in self.pages.frames(origin):
            if not frame.tools:
                continue
            number = self._numbers.number(origin, frame.tab_id)
            tab = self.tabs.get(frame.tab_id)
            top = tab.origin if tab is not None and frame.frame_id else None
            place = ToolLocation(
                domain,
                frame.title or (tab.title if tab is not None and not frame.frame_id else ""),
                number,
                tab is not None and tab.active,
                embedded_in=domain_of(top) if top is not None and top != origin else None,
            )
            facts = {"origin": origin, "tab": number, "tabId": frame.tab_id, "frameId": frame.frame_id}
            for tool in (each for each in frame.tools.values() if each.kind is None):
                key = PageKey(origin, number, tool.name)
                if key in offered:
                    key = PageKey(origin, number, tool.name, frame.frame_id)
                offered[key] = _Offer(tool, place, facts, frame.tab_id)
                holders.setdefault(tool.name, []).append(frame)
        kept = self.pages.cached.of(origin) if self.settings.allow(origin) else {}
        kept = {name: cached for name, cached in kept.items() if cached.tool.kind is None}
        for name in sorted({*holders, *kept}):
            there = holders.get(name, [])
            newest = max(there, key=lambda frame: frame.updated, default=None)
            tool = newest.tools[name] if newest is not None else kept[name].tool
            place = ToolLocation(domain, tabs=len({frame.tab_id for frame in there}))
            offered[PageKey(origin, None, name)] = _Offer(tool, place, {"origin": origin})
        return self._build(origin, offered, holders)

    def _build(
        self,
        origin: str,
        offered: dict[PageKey, _Offer],
        holders: dict[str, list[Frame]],
    ) -> list[Entry]:
        for key in self._keys.get(origin, set()) - offered.keys():
            self._namer.release(key)
        built, before, source = {}, self._built.get(origin, {}), Source("page", origin)
        entries: list[Entry] = []
        for key, (declared, place, facts, tab_id) in offered.items():
            name = self._namer.name(key)
            known = before.get(name)
            description = describe(declared.description, place)
            meta = {"tabhub/page": {**facts, "via": declared.via}}
            if known is None or known[0].wire != declared.wire:
                timeout = self._limits.page_call_timeout
                tool = _tool(name, source, declared, description, meta, timeout, tab_id)
            else:
                tool = known[1]
                if tool.description != description or tool.meta != meta:
                    tool = tool.changed(description=description, meta=meta, tab_id=tab_id)
            built[name] = (declared, tool)
            listed = key.number is not None or key.tool not in holders
            entries.append(Entry(tool, partial(self.calls.run, key, tab_id), listed))
        if offered:
            self._keys[origin], self._built[origin] = set(offered), built
        else:
            self._keys.pop(origin, None)
            self._built.pop(origin, None)
        return entries

    def declared(self, tool: Tool) -> PageTool | None:
        known = self._built.get(tool.source.key, {}).get(tool.name)
        return known[0] if known is not None else None

    async def keep(self) -> None:
        """Save what should survive a restart, if it changed."""
        now = self.wall()
        if now - self._seen >= _SEEN_EVERY:
            self._seen, self._dirty = now, True
        if self._dirty:
            self._dirty = False
            self.pages.mark_seen(now)
            if not await asyncio.to_thread(self.store.save, list(self.pages.cached)):
                self._dirty = True

    def close(self) -> None:
        self.pages.mark_seen(self.wall())
        self.store.save(self.pages.cached)


def _tool(
    name: str,
    source: Source,
    declared: PageTool,
    description: str,
    meta: dict[str, Any],
    timeout: float,
    tab_id: int | None,
) -> Tool:
    title = declared.title
    return Tool(
        name,
        source,
        description,
        declared.schema,
        title=one_line(title) or None if title else None,
        output_schema=declared.output,
        annotations=declared.annotations,
        timeout=timeout,
        meta=meta,
        tab_id=tab_id,
    )


def _merge_lists(waiting: ToolList, message: ToolList) -> ToolList:
    """One of two lists that wait: the last one, as a registration if there was one."""
    same = waiting.document_id == message.document_id
    if same and isinstance(waiting, RegisterTools) and isinstance(message, UpdateTools):
        return msgspec.structs.replace(waiting, tools=message.tools)
    return message if same or isinstance(message, RegisterTools) else waiting


def _names(names: tuple[str, ...]) -> list[str]:
    return [one_line(name) for name in names[:_NAMES]]
