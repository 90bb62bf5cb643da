"""Cached page tools on disk: read once at startup, replaced when they change.

Owns the file and the maximum age of an entry. What a tool is, is core.page_tools'; when to save is up to the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from tabhub.core.page_tools import CachedTool, read_tool
from tabhub.errors import BadInput, ParseError, SetupError
from tabhub.limits import DEFAULTS, Limits
from tabhub.platform.files import write_atomic
from tabhub.wire import strict_json as strict

log = logging.getLogger("tabhub.pages")

_VERSION = 1
_LARGEST = 64 * 1024 * 1024


class PageToolStore:
    """The file of cached page tools."""

    def __init__(self, path: Path | None, limits: Limits = DEFAULTS) -> None:
        """Without a path nothing is stored."""
        self.path = path
        self._limits = limits
        self._written: bytes | None = None
        self.error: str | None = None
        """Why the file could not be written, while it cannot."""

    def load(self, now: float) -> list[CachedTool]:
        """The cached tools seen recently; a broken file or entry is logged and skipped."""
        if self.path is None:
            return []
        try:
            if self.path.stat().st_size > _LARGEST:
                log.warning("%s is larger than %d bytes and is not read", self.path, _LARGEST)
                return []
            values = strict.decode(self.path.read_bytes(), Limits(max_keys=10_000_000))
        except FileNotFoundError:
            return []
        except (OSError, ParseError) as error:
            log.warning("the cached page tools in %s cannot be read, and are dropped: %s", self.path, error)
            return []
        entries = values.get("tools") if isinstance(values, dict) and values.get("version") == _VERSION else None
        if not isinstance(entries, list):
            log.warning("the cached page tools in %s are not in this version's format: dropped", self.path)
            return []
        kept = [cached for entry in entries if (cached := _read(entry)) is not None]
        fresh = [cached for cached in kept if now - cached.seen <= self._limits.page_cache_age]
        if len(fresh) < len(kept):
            log.info("%d cached page tools have not been seen recently and are dropped", len(kept) - len(fresh))
        return fresh

    def encode(self, kept: Iterable[CachedTool]) -> bytes:
        tools = [{"origin": c.origin, "url": c.url, "seen": c.seen, "tool": c.tool.raw()} for c in kept]
        return orjson.dumps({"version": _VERSION, "tools": tools})

    def save(self, data: bytes) -> bool:
        """Write the file if it changed; a failure is logged once, and retried at the next save."""
        if data == self._written or self.path is None:
            return True
        try:
            write_atomic(self.path, data)
        except SetupError as error:
            if self.error is None:
                log.error("page tools cannot be saved: %s", error.text())
            self.error = error.message
            return False
        self._written, self.error = data, None
        return True


def _read(entry: Any) -> CachedTool | None:
    try:
        origin, url, seen = entry["origin"], entry["url"], entry["seen"]
        if not (isinstance(origin, str) and isinstance(url, str) and type(seen) in (int, float)):
            raise BadInput("origin, url or seen is not what it should be")
        return CachedTool(origin, url, read_tool(entry["tool"]), float(seen))
    except (BadInput, KeyError, TypeError) as error:
        log.warning("a cached page tool cannot be used and is dropped: %s", error)
        return None
