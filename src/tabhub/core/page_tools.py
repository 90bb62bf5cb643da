"""Tools declared by pages: by site, tab and frame, and those cached after their page was closed.

Owns `PageTool`, `Frame` and the storage of both (seed 000's DomainToolStorage). Every method is passed origin, tab and
frame as the browser reports them, and returns what changed. Declarations of pages are validated, and invalid tools
rejected one by one. Knows nothing of links, of the names agents use, and of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import orjson
from jsonschema_rs import Validator

from tabhub.core.schema_bounds import find_problem
from tabhub.core.tools import compile_schema
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
    """One tool as a page declares it, parsed and checked; two are equal when their `wire` is."""

    name: str
    title: str | None
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    annotations: Mapping[str, Any]
    via: str
    wire: bytes = field(repr=False)
    output: Validator | None = field(repr=False, default=None)

    @property
    def cached(self) -> bool:
        """Whether the page asks that the tool stays listed after the page is closed."""
        return self.annotations.get("cache") is True


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

    @property
    def key(self) -> tuple[int, int]:
        return self.tab_id, self.frame_id


@dataclass(frozen=True, slots=True)
class CachedTool:
    """A tool that stays listed even if no open page declares it."""

    origin: str
    url: str
    tool: PageTool
    seen: float


@dataclass(frozen=True, slots=True)
class PageChange:
    """The changes of a report: sites whose tools differ, sites whose descriptions may, and rejected tools with the
    reason."""

    sites: frozenset[str] = frozenset()
    descriptions: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class PageToolTable:
    """The tools of all pages."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self._limits = limits
        self._frames: dict[tuple[int, int], Frame] = {}
        self._sites: dict[str, dict[tuple[int, int], Frame]] = {}
        self._cached: dict[str, dict[str, CachedTool]] = {}

    def register(self, frame: Frame, raw_tools: list[Any]) -> PageChange:
        """Set all tools of a frame's document; a new document replaces the old one, the same tools change nothing."""
        before = self._frames.get(frame.key)
        same = before is not None and (before.document, before.origin) == (frame.document, frame.origin)
        tools, problems = self._read(raw_tools, before.tools if before is not None and same else {})
        return self._put(before, replace(frame, tools=tools), problems)

    def update(self, tab_id: int, frame_id: int, document: str, raw_tools: list[Any], now: float) -> PageChange:
        """Replace the list of a known document."""
        before = self._frames.get((tab_id, frame_id))
        if before is None or before.document != document:
            return PageChange(problems=("an update of a document that is not registered",))
        tools, problems = self._read(raw_tools, before.tools)
        return self._put(before, replace(before, tools=tools, updated=now), problems)

    def remove_document(self, tab_id: int, frame_id: int, document: str) -> PageChange:
        """A document was unloaded; a newer one in its frame stays."""
        frame = self._frames.get((tab_id, frame_id))
        return self._drop([frame]) if frame is not None and frame.document == document else PageChange()

    def remove_tab(self, tab_id: int) -> PageChange:
        """A tab closed or became unreachable."""
        return self._drop([self._frames[key] for key in sorted(self._frames) if key[0] == tab_id])

    def sites(self) -> list[str]:
        """The origins with tools of open pages or cached tools."""
        return sorted({*self._sites, *self._cached})

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
        return {frame.origin for frame in self._frames.values() if frame.tab_id == tab_id}

    def capabilities(self) -> dict[str, bool]:
        """The capabilities of all pages combined: one that has it is enough."""
        declared = [frame.capabilities for frame in self._frames.values()]
        return {
            "multiTabSupport": True,
            "cacheSupported": bool(self._cached) or any(each.get("cacheSupported") is True for each in declared),
            "elicitation": any(each.get("elicitation") not in (None, False) for each in declared),
        }

    def cached(self, origin: str) -> dict[str, CachedTool]:
        return self._cached.get(origin, {})

    def all_cached(self) -> Iterator[CachedTool]:
        return (cached for tools in self._cached.values() for cached in tools.values())

    def restore(self, tools: Iterable[CachedTool]) -> None:
        for cached in tools:
            self._cache(cached)

    def mark_seen(self, now: float) -> None:
        """Update the `seen` time of cached tools whose pages are open."""
        for frame in self._frames.values():
            for name in frame.tools.keys() & self._cached.get(frame.origin, {}).keys():
                self._cached[frame.origin][name] = replace(self._cached[frame.origin][name], seen=now)

    def _cache(self, cached: CachedTool) -> None:
        self._cached.setdefault(cached.origin, {})[cached.tool.name] = cached
        if sum(map(len, self._cached.values())) > self._limits.page_cached:
            oldest = min(self.all_cached(), key=lambda each: each.seen)
            del self._cached[oldest.origin][oldest.tool.name]
            if not self._cached[oldest.origin]:
                del self._cached[oldest.origin]

    def _put(self, before: Frame | None, frame: Frame, problems: list[str]) -> PageChange:
        others = sum(len(other.tools) for other in self._frames.values() if other is not before)
        room = self._limits.page_tools_all - others
        if len(frame.tools) > room:
            problems.append(f"{len(frame.tools) - room} tools are ignored: all pages together have too many")
            frame = replace(frame, tools=dict(list(frame.tools.items())[: max(room, 0)]))
        sites = {frame.origin}
        if before is not None:
            if before.origin == frame.origin and _same(before.tools, frame.tools):
                sites = set()
                # The tools are as old as before; only the page's title or URL may be new.
                frame = replace(frame, tools=before.tools, updated=before.updated)
            elif before.origin != frame.origin:
                sites.add(before.origin)
            self._remove(before)
        self._frames[frame.key] = frame
        self._sites.setdefault(frame.origin, {})[frame.key] = frame
        if sites:
            for tool in frame.tools.values():
                if tool.cached:
                    self._cache(CachedTool(frame.origin, frame.url, tool, frame.updated))
        old = before.tools if before is not None and before.origin == frame.origin else {}
        added = tuple(name for name in frame.tools if name not in old)
        removed = tuple(name for name in old if name not in frame.tools)
        return PageChange(frozenset(sites), frozenset({frame.origin}), tuple(problems), added, removed)

    def _drop(self, frames: list[Frame]) -> PageChange:
        for frame in frames:
            self._remove(frame)
        removed = tuple(name for frame in frames for name in frame.tools)
        sites = frozenset(frame.origin for frame in frames)
        return PageChange(sites, sites, removed=removed)

    def _remove(self, frame: Frame) -> None:
        del self._frames[frame.key]
        frames = self._sites[frame.origin]
        del frames[frame.key]
        if not frames:
            del self._sites[frame.origin]

    def _read(self, raw_tools: list[Any], known: Mapping[str, PageTool]) -> tuple[dict[str, PageTool], list[str]]:
        tools: dict[str, PageTool] = {}
        problems: list[str] = []
        most = self._limits.page_tools
        for raw in raw_tools[:most]:
            try:
                tool = read_tool(raw, known)
            except BadInput as error:
                problems.append(error.message)
                continue
            if tool.name in tools:
                problems.append(f"tool {tool.name!r} is declared twice; the first is used")
            else:
                tools[tool.name] = tool
        if len(raw_tools) > most:
            problems.append(f"{len(raw_tools)} tools; only the first {most} are used")
        return tools, problems


def _same(one: Mapping[str, PageTool], other: Mapping[str, PageTool]) -> bool:
    return list(one) == list(other) and all(tool.wire == other[name].wire for name, tool in one.items())


def read_tool(raw: Any, known: Mapping[str, PageTool] | None = None) -> PageTool:
    """Parse a page's declaration; BadInput says what is wrong. An unchanged `known` tool is reused."""
    if not isinstance(raw, dict):
        raise BadInput("a tool that is not an object")
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip():
        raise BadInput("a tool without a name")
    annotations = _annotations(raw.get("annotations"))
    declared = convert(f"tool {name[:80]!r}", {"via": "webmcp", **raw, "annotations": annotations}, DeclaredTool)
    try:
        wire = orjson.dumps({field: raw[field] for field in _FIELDS if raw.get(field) is not None})
    except TypeError as error:
        raise BadInput(f"tool {name!r}: {error}") from None
    same = known.get(name) if known else None
    if same is not None and same.wire == wire:
        return same
    if declared.input_schema is None and declared.via == "mcpb":
        raise BadInput(f"tool {name!r} has no inputSchema")
    output = _schema(name, "outputSchema", declared.output_schema)
    return PageTool(
        name,
        declared.title and declared.title[:_MAX_TEXT],
        (declared.description or "")[:_MAX_TEXT],
        _schema(name, "inputSchema", declared.input_schema) or {"type": "object", "properties": {}},
        output,
        annotations,
        declared.via,
        wire,
        compile_schema(output) if output is not None else None,
    )


_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "via")


def _schema(name: str, field: str, value: dict[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    schema = {"type": "object", **value}
    if schema["type"] != "object":
        raise BadInput(f"tool {name!r}: `{field}` is not of type object")
    if len(orjson.dumps(schema)) > _MAX_SCHEMA:
        raise BadInput(f"tool {name!r}: `{field}` is larger than {_MAX_SCHEMA} bytes")
    if (problem := find_problem(schema)) is not None:
        raise BadInput(f"tool {name!r}: {problem}")
    try:
        compile_schema(schema)
    except BadInput as error:
        raise BadInput(f"tool {name!r}: {error.message}") from None
    return schema


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
