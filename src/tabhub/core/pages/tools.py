"""Tools declared by pages: by site, tab and frame, and those cached after their page was closed.

Owns `PageTool`, `Frame` and the storage of both (seed 000's DomainToolStorage). Every method is passed origin, tab and
frame as the browser reports them, and returns what changed. Declarations of pages are validated, and invalid tools
rejected one by one; how many a document may list is page_shares'. Knows nothing of links, of the names agents use, and
of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import orjson

from tabhub.config.public_suffixes import site_of
from tabhub.core.definitions import checked_name, shown_annotations, shown_schema
from tabhub.core.pages.shares import NOTHING, PageShares, Place, Share
from tabhub.core.pages.tool_cache import CachedTool, CachedTools
from tabhub.core.schemas.bounds import find_problem
from tabhub.core.schemas.references import resolved
from tabhub.core.schemas.validators import Schema, compile_schema
from tabhub.errors import BadInput
from tabhub.limits import DEFAULTS, Limits
from tabhub.wire.messages import convert
from tabhub.wire.page_tools import PageTool as DeclaredTool

_MAX_TEXT = 20_000
_MAX_SCHEMA = 64 * 1024
_MAX_HINTS = 20
_HINT = re.compile(r"[A-Za-z][A-Za-z0-9]{0,39}")


@dataclass(frozen=True, slots=True, eq=False)
class PageTool:
    """One tool as a page declares it, checked; two are equal when their `wire` is.

    There may be thousands: it is stored as the page sent it, and decoded when something asks for a part.
    """

    name: str
    via: str
    wire: bytes = field(repr=False)
    """What the page sent."""
    schema: Schema = field(repr=False)
    """As agents are shown it, as is `output`."""
    output: Schema | None = field(repr=False, default=None)
    kind: str | None = None
    """`prompt`, `resource` or `template` if it is none of the page's tools (calls.sources.page_resources)."""
    cached: bool = False
    """Whether the page asks that the tool stays listed after the page is closed."""

    @property
    def size(self) -> int:
        return len(self.wire)

    @property
    def title(self) -> str | None:
        title: str | None = self._declared().get("title")
        return title and title[:_MAX_TEXT]

    @property
    def description(self) -> str:
        return str(self._declared().get("description") or "")[:_MAX_TEXT]

    @property
    def input_schema(self) -> Mapping[str, Any]:
        return self.schema.value()

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        return self.output.value() if self.output is not None else None

    @property
    def annotations(self) -> Mapping[str, Any]:
        return shown_annotations(_annotations(self._declared().get("annotations")))

    def _declared(self) -> dict[str, Any]:
        declared: dict[str, Any] = orjson.loads(self.wire)
        return declared


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame's document and its tools."""

    tab_id: int
    frame_id: int
    document: str
    origin: str
    url: str
    title: str
    tools: Mapping[str, PageTool]
    updated: float
    capabilities: Mapping[str, Any] = field(default_factory=dict)
    extensions: Any = None
    embedded: bool = False
    """Whether it is a frame in a page of another site."""
    left_out: int = 0
    """How many more tools it offers than are listed."""

    @property
    def key(self) -> tuple[int, int]:
        return self.tab_id, self.frame_id

    @property
    def place(self) -> Place:
        return Place(self.tab_id, not self.frame_id, site_of(self.origin), self.embedded)

    @property
    def share(self) -> Share:
        return Share(len(self.tools), sum(tool.size for tool in self.tools.values()))


@dataclass(frozen=True, slots=True)
class PageChange:
    """The changes of a report: sites whose tools differ, sites whose descriptions may, and rejected tools with the
    reason."""

    sites: frozenset[str] = frozenset()
    descriptions: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    trimmed: frozenset[str] = frozenset()
    """Other sites that had to give way: some of their tools are no longer listed."""


@dataclass(slots=True)
class _Listing:
    """A list of tools, parsed."""

    declared: int
    """How many tools the document has."""
    tools: dict[str, PageTool] = field(default_factory=dict)
    refused: int = 0
    problems: list[str] = field(default_factory=list)


class PageToolTable:
    """The tools of all pages."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._frames: dict[tuple[int, int], Frame] = {}
        self._sites: dict[str, dict[tuple[int, int], Frame]] = {}
        self._tabs: dict[int, set[int]] = {}
        self.shares = PageShares(limits)
        self.cached = CachedTools(limits)

    def register(self, frame: Frame, raw_tools: list[Any], declared: int = 0) -> PageChange:
        """Set all tools of a frame's document; a new document replaces the old one, the same tools change nothing.

        `declared` is how many tools the document has, if these are not all.
        """
        before = self._frames.get(frame.key)
        same = before is not None and (before.document, before.origin) == (frame.document, frame.origin)
        if before is None and frame.frame_id and len(self._tabs.get(frame.tab_id, ())) >= self._limits.page_documents:
            return PageChange(problems=(f"the tools of {self._limits.page_documents} documents of the tab are known",))
        return self._put(before, frame, self._read(raw_tools, declared, before.tools if before and same else {}))

    def update(
        self, tab_id: int, frame_id: int, document: str, raw_tools: list[Any], now: float, declared: int = 0
    ) -> PageChange:
        """Replace the list of a known document."""
        before = self._frames.get((tab_id, frame_id))
        if before is None or before.document != document:
            return PageChange(problems=("an update of a document that is not registered",))
        return self._put(before, replace(before, updated=now), self._read(raw_tools, declared, before.tools))

    def remove_document(self, tab_id: int, frame_id: int, document: str) -> PageChange:
        """A document was unloaded; a newer one in its frame stays."""
        frame = self._frames.get((tab_id, frame_id))
        return self._drop([frame]) if frame is not None and frame.document == document else PageChange()

    def remove_tab(self, tab_id: int) -> PageChange:
        """A tab closed or became unreachable."""
        return self._drop(self._of_tab(tab_id))

    def sites(self) -> list[str]:
        """The origins with tools of open pages or cached tools."""
        return sorted({*self._sites, *self.cached.origins()})

    def frames(self, origin: str) -> list[Frame]:
        """A site's frames by tab, the top frame of each tab first."""
        frames = self._sites.get(origin, {})
        return [frames[key] for key in sorted(frames)]

    def frame(self, tab_id: int, frame_id: int) -> Frame | None:
        return self._frames.get((tab_id, frame_id))

    def frames_with_tool(self, origin: str, tool: str) -> list[Frame]:
        """The frames that have a tool, the first of each tab."""
        found: dict[int, Frame] = {}
        for (tab_id, _), frame in sorted(self._sites.get(origin, {}).items(), key=itemgetter(0)):
            if tool in frame.tools:
                found.setdefault(tab_id, frame)
        return list(found.values())

    def sites_of(self, tab_id: int) -> set[str]:
        return {frame.origin for frame in self._of_tab(tab_id)}

    def _of_tab(self, tab_id: int) -> list[Frame]:
        return [self._frames[tab_id, frame_id] for frame_id in sorted(self._tabs.get(tab_id, ()))]

    def left_out(self) -> dict[str, tuple[int, int]]:
        """The sites that offer more than is listed: how many tools they offer, and how many are listed."""
        short = {frame.place.site for frame in self._frames.values() if frame.left_out}
        counts = dict.fromkeys(sorted(short), (0, 0))
        for frame in self._frames.values():
            if (site := frame.place.site) in counts:
                offered, listed = counts[site]
                counts[site] = offered + len(frame.tools) + frame.left_out, listed + len(frame.tools)
        return counts

    def capabilities(self) -> dict[str, bool]:
        """The capabilities of all pages combined: one that has it is enough."""
        declared = [frame.capabilities for frame in self._frames.values()]
        return {
            "multiTabSupport": True,
            "cacheSupported": bool(self.cached) or any(each.get("cacheSupported") is True for each in declared),
            "elicitation": any(each.get("elicitation") not in (None, False) for each in declared),
        }

    def restore(self, tools: Iterable[CachedTool]) -> None:
        for cached in tools:
            self.cached.add(cached)

    def mark_seen(self, now: float) -> None:
        """Update the `seen` time of cached tools whose pages are open."""
        for frame in self._frames.values():
            for name in frame.tools:
                self.cached.mark_seen(frame.origin, name, now)

    def _put(self, before: Frame | None, frame: Frame, listing: _Listing) -> PageChange:
        if before is not None:
            self._remove(before)
        tools = self._fitting(frame, listing.tools)
        left_out = listing.declared - listing.refused - len(tools)
        frame = replace(frame, tools=tools, left_out=max(left_out, 0))
        sites = {frame.origin}
        if before is not None:
            if before.origin == frame.origin and _same(before.tools, frame.tools):
                sites = set()
                # The tools are as old as before; only the page's title or URL may be new.
                frame = replace(frame, tools=before.tools, updated=before.updated)
            elif before.origin != frame.origin:
                sites.add(before.origin)
        self._add(frame)
        trimmed = self._trim(frame.key)
        kept = self._frames[frame.key].tools
        if sites:
            for tool in kept.values():
                if tool.cached:
                    self.cached.add(CachedTool(frame.origin, frame.url, tool, frame.updated))
        old = before.tools if before is not None and before.origin == frame.origin else {}
        added = tuple(name for name in kept if name not in old)
        removed = tuple(name for name in old if name not in kept)
        problems, others = tuple(listing.problems), frozenset(trimmed - sites)
        return PageChange(frozenset(sites), frozenset({frame.origin}), problems, added, removed, others)

    def _fitting(self, frame: Frame, tools: Mapping[str, PageTool]) -> dict[str, PageTool]:
        """The tools that a document may list, in its order."""
        room = self.shares.room(frame.place)
        kept: dict[str, PageTool] = {}
        for name, tool in tools.items():
            if len(kept) < room.tools and tool.size <= room.size:
                kept[name] = tool
                room = Share(room.tools, room.size - tool.size)
        return kept

    def _trim(self, newest: tuple[int, int]) -> set[str]:
        """Take tools from the sites that list the most until all are few enough; the origins that lost some."""
        trimmed: set[str] = set()
        for site, most in self.shares.overdrawn().items():
            frames = [frame for frame in self._frames.values() if frame.place.site == site]
            for frame in sorted(frames, key=lambda each: (each.key != newest, -each.updated)):
                excess = self.shares.of_site(site).minus(most)
                if excess == NOTHING or self.shares.all_fit:
                    break
                kept = list(frame.tools.values())
                while kept and excess != NOTHING:
                    excess = excess.minus(Share(1, kept.pop().size))
                self._remove(frame)
                left_out = frame.left_out + len(frame.tools) - len(kept)
                self._add(replace(frame, tools={tool.name: tool for tool in kept}, left_out=left_out))
                trimmed.add(frame.origin)
        return trimmed

    def _drop(self, frames: list[Frame]) -> PageChange:
        for frame in frames:
            self._remove(frame)
        removed = tuple(name for frame in frames for name in frame.tools)
        sites = frozenset(frame.origin for frame in frames)
        return PageChange(sites, sites, removed=removed)

    def _add(self, frame: Frame) -> None:
        self._frames[frame.key] = frame
        self._sites.setdefault(frame.origin, {})[frame.key] = frame
        self._tabs.setdefault(frame.tab_id, set()).add(frame.frame_id)
        self.shares.add(frame.place, frame.share)

    def _remove(self, frame: Frame) -> None:
        del self._frames[frame.key]
        frames = self._sites[frame.origin]
        del frames[frame.key]
        if not frames:
            del self._sites[frame.origin]
        documents = self._tabs[frame.tab_id]
        documents.discard(frame.frame_id)
        if not documents:
            del self._tabs[frame.tab_id]
        self.shares.add(frame.place, Share(-frame.share.tools, -frame.share.size))

    def _read(self, raw_tools: list[Any], declared: int, known: Mapping[str, PageTool]) -> _Listing:
        """Parse a list of tools, as far as one document may list them at all."""
        listing = _Listing(max(declared, len(raw_tools)))
        room = self._limits.page_bytes
        for raw in raw_tools[: self._limits.page_tools]:
            if room <= 0:
                break
            try:
                tool = read_tool(raw, known)
            except BadInput as error:
                listing.problems.append(error.message)
                listing.refused += 1
                continue
            if tool.name in listing.tools:
                listing.problems.append(f"tool {tool.name!r} is declared twice; the first is used")
                listing.refused += 1
            else:
                listing.tools[tool.name] = tool
                room -= tool.size
        return listing


def _same(one: Mapping[str, PageTool], other: Mapping[str, PageTool]) -> bool:
    return list(one) == list(other) and all(tool.wire == other[name].wire for name, tool in one.items())


def read_tool(raw: Any, known: Mapping[str, PageTool] | None = None) -> PageTool:
    """Parse a page's declaration; BadInput says what is wrong. An unchanged `known` tool is reused."""
    if not isinstance(raw, dict):
        raise BadInput("a tool that is not an object")
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        raise BadInput("a tool without a name")
    try:
        wire = orjson.dumps({field: raw[field] for field in _FIELDS if raw.get(field) is not None})
    except TypeError as error:
        raise BadInput(f"tool {name[:80]!r}: {error}") from None
    same = known.get(name) if known else None
    if same is not None and same.wire == wire:
        return same
    try:
        checked_name(name)
        annotations = shown_annotations(_annotations(raw.get("annotations")))
    except BadInput as error:
        raise BadInput(f"tool {name[:80]!r}: {error.message}") from None
    declared = convert(f"tool {name[:80]!r}", {"via": "webmcp", **raw, "annotations": annotations}, DeclaredTool)
    if declared.input_schema is None and declared.via == "mcpb":
        raise BadInput(f"tool {name!r} has no inputSchema")
    output = _schema(name, "outputSchema", declared.output_schema)
    return PageTool(
        name,
        declared.via,
        memoryview(wire).tobytes(),  # what orjson returns keeps the whole kilobytes that it wrote into
        _schema(name, "inputSchema", declared.input_schema) or _NO_ARGUMENTS,
        output,
        declared.kind,
        annotations.get("cache") is True,
    )


_NO_ARGUMENTS = Schema.of({"type": "object", "properties": {}})
_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "via", "kind")


def _schema(name: str, field: str, value: dict[str, Any] | None) -> Schema | None:
    if value is None:
        return None
    schema = {"type": "object", **value}
    if schema["type"] != "object":
        raise BadInput(f"tool {name!r}: `{field}` is not of type object")
    text = orjson.dumps(schema)
    if len(text) > _MAX_SCHEMA:
        raise BadInput(f"tool {name!r}: `{field}` is larger than {_MAX_SCHEMA} bytes")
    if (known := Schema.known(text)) is not None:
        return known
    try:
        schema = dict(resolved(schema))
        if (problem := find_problem(schema)) is not None:
            raise BadInput(problem)
        compile_schema(schema)
        shown = Schema.of(shown_schema(schema))
    except BadInput as error:
        raise BadInput(f"tool {name!r}: {error.message}") from None
    shown.checked = True
    return shown


def _annotations(value: Any) -> dict[str, Any]:
    """The hints of a page: booleans and short texts; everything else is dropped."""
    if not isinstance(value, dict):
        return {}
    kept = {
        name: hint
        for name, hint in value.items()
        if _HINT.fullmatch(name) and (type(hint) is bool or (isinstance(hint, str) and len(hint) <= 200))
    }
    return dict(list(kept.items())[:_MAX_HINTS])
