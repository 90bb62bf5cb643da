"""Cached page tools on disk: read once at startup, replaced when they change.

Owns the file and the maximum age of an entry. What a tool is, is core.page_tools'; when to save is up to the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import msgspec

from tabhub.core.pages.tool_cache import CachedTool
from tabhub.core.pages.tools import read_tool
from tabhub.errors import BadInput
from tabhub.limits import DEFAULTS, Limits
from tabhub.store.json_file import JsonFile

log = logging.getLogger("tabhub.pages")


class _Saved(msgspec.Struct, frozen=True):
    origin: str
    url: str
    seen: float
    tool: Any


class _File(msgspec.Struct, frozen=True):
    version: Literal[1]
    tools: list[Any]


class PageToolStore:
    """The file of cached page tools."""

    def __init__(self, path: Path | None, limits: Limits = DEFAULTS) -> None:
        """Without a path nothing is stored."""
        self._file = JsonFile(path, _File)
        self._limits = limits

    def load(self, now: float) -> list[CachedTool]:
        """The cached tools seen recently; an invalid entry is logged and skipped."""
        saved = self._file.load()
        cached = [tool for entry in saved.tools if (tool := _read(entry)) is not None] if saved is not None else []
        fresh = [tool for tool in cached if now - tool.seen <= self._limits.page_cache_age]
        if len(fresh) < len(cached):
            log.info("%d cached page tools have not been seen recently and are dropped", len(cached) - len(fresh))
        return fresh

    def save(self, cached: Iterable[CachedTool]) -> bool:
        """Write the file if it changed; returns whether the file is up to date. Any thread may call it."""
        entries = [_Saved(each.origin, each.url, each.seen, msgspec.Raw(each.tool.wire)) for each in cached]
        return self._file.save(_File(1, entries))


def _read(entry: Any) -> CachedTool | None:
    try:
        saved = msgspec.convert(entry, _Saved)
        return CachedTool(saved.origin, saved.url, read_tool(saved.tool), saved.seen)
    except (BadInput, msgspec.ValidationError) as error:
        log.warning("a cached page tool cannot be used and is dropped: %s", error)
        return None
