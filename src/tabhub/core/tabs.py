"""The tabs of each browser, and the ids the hub assigns to them.

Owns `Tab` and `TabTable`. Every method is passed reports as the wire decodes them and returns what changed. Knows
nothing of who is notified or how a tab is reached.

Ids: a tab's hub id is the browser's own id unless a tab of another browser has had it; then it is a new number above
anything a browser assigns. An id once assigned for one browser never names another browser's tab. When a browser
disconnects, its tabs are set aside; they get the same ids if it reconnects with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from tabhub.core.origins import BLANK, name_of, origin_of
from tabhub.errors import InvalidParams
from tabhub.limits import DEFAULTS, Limits
from tabhub.trust.hidden_text import escape_hidden
from tabhub.wire.extension_link import TabInfo, TabStateChanged, tab_info

_FIRST_OWN_ID = 2**31 + 1
_MAX_DISCONNECTED = 64
_STATUSES = ("loading", "complete", "unloaded")


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab as the browser last described it."""

    tab_id: int
    browser_id: str
    chrome_id: int
    url: str = ""
    title: str = ""
    active: bool = False
    window_id: int = -1
    window_focused: bool = False
    index: int = -1
    status: str = "complete"
    pinned: bool = False
    incognito: bool = False
    group_id: int | None = None
    opener_chrome_id: int | None = None
    discarded: bool = False
    audible: bool = False
    last_accessed: float | None = None
    stopped: bool = False
    """Whether the person took it from the agents with the browser's own Cancel button."""
    opener_origin: str | None = None
    """The origin of the page or frame that opened it, at that time."""
    creator: str | None = None
    """The origin of the page that created its document, where the URL has none of its own and that is known."""
    unused: bool = False
    """Whether it was opened empty by no page, and has shown nothing since."""
    origin: str | None = field(init=False, compare=False, repr=False)
    """The origin of its document: of its creator for a blob:, data: or about: document, None if unknown."""
    site: str = field(init=False, compare=False, repr=False)
    """Its origin, or a name for what has none."""
    _described: dict[str, Any] | None = field(init=False, compare=False, repr=False)
    _line: str | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        origin = origin_of(self.url) or self.creator
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "site", origin or (BLANK if self.unused else name_of(self.url)))
        object.__setattr__(self, "_described", None)
        object.__setattr__(self, "_line", None)

    def describe(self) -> dict[str, Any]:
        """The tab as agents see it; flags only where they are set."""
        if self._described is None:
            object.__setattr__(self, "_described", self._description())
        return {**(self._described or {})}

    @property
    def line(self) -> str:
        """The tab as one line: its id, title, URL, and what is special about it."""
        if self._line is None:
            facts = self._described or self._description()
            flags = [name for name, value in facts.items() if value is True]
            flags += ["loading"] if self.status == "loading" else []
            flags += [f"group {self.group_id}"] if self.group_id is not None else []
            marks = f" [{', '.join(flags)}]" if flags else ""
            title = " ".join(facts["title"].split())
            object.__setattr__(self, "_line", f'{self.tab_id} "{title}" {facts["url"]}{marks}')
        return self._line or ""

    def _description(self) -> dict[str, Any]:
        description: dict[str, Any] = {
            "tabId": self.tab_id,
            "title": escape_hidden(self.title, allowed="", joiners=True),
            "url": escape_hidden(self.url, allowed=""),
            "active": self.active,
            "windowId": self.window_id,
            "status": self.status,
            "browserId": self.browser_id,
        }
        for name, is_set in (
            ("windowFocused", self.window_focused),
            ("pinned", self.pinned),
            ("incognito", self.incognito),
            ("discarded", self.discarded),
            ("audible", self.audible),
            ("stopped", self.stopped),
        ):
            if is_set:
                description[name] = True
        if self.group_id is not None:
            description["groupId"] = self.group_id
        return description


@dataclass(frozen=True, slots=True)
class TabChanges:
    """The changes of one report. `disconnected` tabs are unreachable and may return; `closed` ones will not."""

    opened: tuple[Tab, ...] = ()
    closed: tuple[Tab, ...] = ()
    changed: tuple[Tab, ...] = ()
    disconnected: tuple[Tab, ...] = ()
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.opened or self.closed or self.changed or self.disconnected)


_ORDER = attrgetter("browser_id", "window_id", "index", "tab_id")


class TabTable:
    """All tabs of all connected browsers."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._tabs: dict[int, Tab] = {}
        self.get: Callable[[int], Tab | None] = self._tabs.get
        """The tab of that hub id, if its browser is connected."""
        self._by_browser: dict[str, dict[int, int]] = {}
        self._disconnected: dict[str, dict[int, Tab]] = {}
        self._owner: dict[int, tuple[str, int]] = {}
        self._next_id = _FIRST_OWN_ID

    def __len__(self) -> int:
        return len(self._tabs)

    def __iter__(self) -> Iterator[Tab]:
        return iter(self._tabs.values())

    def in_order(self) -> list[Tab]:
        """All tabs by browser, window and position."""
        return sorted(self._tabs.values(), key=_ORDER)

    def find(self, browser_id: str, chrome_id: int) -> Tab | None:
        """The tab by its browser and the id it has there."""
        tab_id = self._by_browser.get(browser_id, {}).get(chrome_id)
        return None if tab_id is None else self._tabs.get(tab_id)

    def of(self, browser_id: str) -> list[Tab]:
        return [self._tabs[tab_id] for tab_id in self._by_browser.get(browser_id, {}).values()]

    def find_disconnected(self, tab_id: int) -> Tab | None:
        """The last known state of a tab whose browser is not connected."""
        disconnected = (tab for tabs in self._disconnected.values() for tab in tabs.values())
        return next((tab for tab in disconnected if tab.tab_id == tab_id), None)

    def expect(self, tab_id: int, browser_id: str, chrome_id: int) -> None:
        """Reserve an id for a tab of a browser that is not connected yet, as it was assigned before a restart."""
        self._disconnected.setdefault(browser_id, {})[chrome_id] = Tab(tab_id, browser_id, chrome_id)
        self._owner[tab_id] = (browser_id, chrome_id)
        self._next_id = max(self._next_id, tab_id + 1)

    def sync(self, browser_id: str, raw_tabs: Iterable[Any]) -> TabChanges:
        """Apply a full list of a browser's tabs; those missing from it are closed."""
        problems: list[str] = []
        described: dict[int, TabInfo] = {}
        for raw in raw_tabs:
            try:
                info = tab_info(raw)
            except InvalidParams as error:
                problems.append(error.message)
                continue
            if len(described) >= self._limits.tabs_per_browser:
                problems.append(f"more than {self._limits.tabs_per_browser} tabs; the rest is ignored")
                break
            described[info.tab_id] = info
        known = self._by_browser.setdefault(browser_id, {})
        aside = self._disconnected.pop(browser_id, {})
        closed = [self._drop(browser_id, chrome_id) for chrome_id in list(known) if chrome_id not in described]
        closed += [tab for chrome_id, tab in aside.items() if chrome_id not in described and chrome_id not in known]
        opened, changed = [], []
        # Openers first: a document without an origin of its own is attributed to its opener's.
        for chrome_id in sorted(described, key=lambda each: described[each].opener_tab_id is not None):
            info, before = described[chrome_id], self.find(browser_id, chrome_id)
            tab = self._put(self._read(info, browser_id, before or aside.get(chrome_id), seen_opening=False))
            if before is None:
                opened.append(tab)
            elif before != tab:
                changed.append(tab)
        return TabChanges(tuple(opened), tuple(closed), tuple(changed), problems=tuple(problems))

    def apply(self, browser_id: str, report: TabStateChanged) -> TabChanges:
        chrome_id, info = report.tab_id, report.tab
        if report.change == "removed":
            if self.find(browser_id, chrome_id) is not None:
                return TabChanges(closed=(self._drop(browser_id, chrome_id),))
            closed = self._disconnected.get(browser_id, {}).pop(chrome_id, None)
            return TabChanges(closed=(closed,)) if closed else TabChanges()
        if report.change == "replaced":
            self._rename(browser_id, report.removed_tab_id, chrome_id)
        before = self.find(browser_id, chrome_id)
        if info is None:
            return self._without_description(before, chrome_id, report.change)
        if info.tab_id != chrome_id:
            return TabChanges(problems=(f"tab {chrome_id} described as {info.tab_id}",))
        most = self._limits.tabs_per_browser
        if before is None and len(self._by_browser.get(browser_id, ())) >= most:
            return TabChanges(problems=(f"more than {most} tabs; tab {chrome_id} is ignored",))
        aside = self._disconnected.get(browser_id, {}).pop(chrome_id, None)
        tab = self._read(info, browser_id, before or aside, seen_opening=report.change == "created")
        if before == tab:
            return TabChanges()
        self._put(tab)
        others = self._unset_others(tab)
        if before is None:
            return TabChanges(opened=(tab,), changed=others)
        return TabChanges(changed=(tab, *others))

    def apply_navigation(self, browser_id: str, chrome_id: int, url: str, title: str, status: str) -> TabChanges:
        """Apply the URL in the answer to a navigation, which arrives before the tab's own report."""
        before = self.find(browser_id, chrome_id)
        if before is None:
            return TabChanges()
        longest = self._limits.tab_text
        state = status if status in _STATUSES else before.status
        tab = replace(before, url=url[:longest], title=title[:longest], status=state)
        tab = _attributed(tab, before)
        return TabChanges(changed=(self._put(tab),)) if tab != before else TabChanges()

    def apply_stop(self, browser_id: str, chrome_id: int) -> TabChanges:
        """The person pressed the browser's Cancel button, which arrives before the tab's own report."""
        before = self.find(browser_id, chrome_id)
        if before is None or before.stopped:
            return TabChanges()
        return TabChanges(changed=(self._put(replace(before, stopped=True)),))

    def disconnect(self, browser_id: str) -> TabChanges:
        """The browser is no longer connected: its tabs are unreachable, and set aside."""
        known = self._by_browser.pop(browser_id, {})
        tabs = {chrome_id: self._tabs.pop(tab_id) for chrome_id, tab_id in known.items()}
        if not tabs:
            return TabChanges()
        self._disconnected[browser_id] = {**self._disconnected.pop(browser_id, {}), **tabs}
        dropped: tuple[Tab, ...] = ()
        if len(self._disconnected) > _MAX_DISCONNECTED:
            dropped = tuple(self._disconnected.pop(next(iter(self._disconnected))).values())
        return TabChanges(disconnected=tuple(tabs.values()), closed=dropped)

    def _without_description(self, before: Tab | None, chrome_id: int, change: str) -> TabChanges:
        if before is None:
            # The replaced tab may be unknown here; the new one is described by its own report.
            complete = change == "replaced"
            return TabChanges(problems=() if complete else (f"tab {chrome_id} {change} without a description",))
        if change != "activated" or before.active:
            return TabChanges()
        tab = self._put(replace(before, active=True))
        return TabChanges(changed=(tab, *self._unset_others(tab)))

    def _unset_others(self, tab: Tab) -> tuple[Tab, ...]:
        """One active tab per window, one focused window per browser."""
        if not (tab.active or tab.window_focused):
            return ()
        changed = []
        for other in self.of(tab.browser_id):
            if other.tab_id == tab.tab_id:
                continue
            active = other.active and not (tab.active and other.window_id == tab.window_id)
            focused = other.window_focused and not (tab.window_focused and other.window_id != tab.window_id)
            if (active, focused) != (other.active, other.window_focused):
                changed.append(self._put(replace(other, active=active, window_focused=focused)))
        return tuple(changed)

    def _read(self, info: TabInfo, browser_id: str, before: Tab | None, *, seen_opening: bool) -> Tab:
        longest = self._limits.tab_text
        tab = Tab(
            tab_id=self._id_for(browser_id, info.tab_id, before),
            browser_id=browser_id,
            chrome_id=info.tab_id,
            url=info.url[:longest],
            title=info.title[:longest],
            active=info.active,
            window_id=info.window_id,
            window_focused=info.window_focused,
            index=info.index,
            status=info.status if info.status in _STATUSES else "complete",
            pinned=info.pinned,
            incognito=info.incognito,
            group_id=None if info.group_id < 0 else info.group_id,
            opener_chrome_id=info.opener_tab_id,
            discarded=info.discarded,
            audible=info.audible,
            last_accessed=info.last_accessed,
            stopped=info.stopped,
            opener_origin=self._opener_origin(info, browser_id, before),
            unused=before is None and seen_opening,
        )
        return _attributed(tab, before)

    def _opener_origin(self, info: TabInfo, browser_id: str, before: Tab | None) -> str | None:
        if (frame := origin_of(info.opener_origin or "")) is not None:
            return frame
        if before is not None and before.opener_chrome_id == info.opener_tab_id:
            return before.opener_origin
        opener = self.find(browser_id, info.opener_tab_id) if info.opener_tab_id is not None else None
        return opener.origin if opener is not None else None

    def _id_for(self, browser_id: str, chrome_id: int, before: Tab | None) -> int:
        if before is not None:
            return before.tab_id
        tab_id, here = chrome_id, (browser_id, chrome_id)
        if self._owner.setdefault(tab_id, here) != here:
            tab_id, self._next_id = self._next_id, self._next_id + 1
            self._owner[tab_id] = here
        return tab_id

    def _rename(self, browser_id: str, old: int | None, new: int) -> None:
        """The browser replaced a tab: it has a new id there and keeps its hub id."""
        before = self.find(browser_id, old) if old is not None else None
        if before is None or self.find(browser_id, new) is not None:
            return
        del self._by_browser[browser_id][before.chrome_id]
        self._put(replace(before, chrome_id=new))
        self._owner[before.tab_id] = (browser_id, new)

    def _put(self, tab: Tab) -> Tab:
        self._tabs[tab.tab_id] = tab
        self._by_browser.setdefault(tab.browser_id, {})[tab.chrome_id] = tab.tab_id
        return tab

    def _drop(self, browser_id: str, chrome_id: int) -> Tab:
        return self._tabs.pop(self._by_browser[browser_id].pop(chrome_id))


def _attributed(tab: Tab, before: Tab | None) -> Tab:
    """The tab with the creator of its document, as far as `before`, the tab until now, and its opener tell.

    A document without an origin of its own inherits that of the page that created it: the page before it in the tab, or
    the opener. Where these differ, either can be it, so it counts as unknown.
    """
    if origin_of(tab.url) is not None:
        return replace(tab, creator=None, unused=False)
    if before is not None and before.url == tab.url and before.opener_origin == tab.opener_origin:
        return replace(tab, creator=before.creator, unused=before.unused)
    candidates = {tab.opener_origin, _previous_origin(tab, before) if before is not None else None} - {None}
    unused = (before is None and tab.unused) or (before is not None and before.unused)
    return replace(
        tab,
        creator=candidates.pop() if len(candidates) == 1 else None,
        unused=unused and tab.opener_chrome_id is None and tab.url in ("", BLANK),
    )


def _previous_origin(tab: Tab, before: Tab) -> str | None:
    """The origin of the page before; an opener that was reported wrongly at first does not count."""
    known = (before.opener_chrome_id, before.opener_origin) == (tab.opener_chrome_id, tab.opener_origin)
    return origin_of(before.url) or (before.creator if known else None)
