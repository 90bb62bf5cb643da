"""Log entries of plugins: kept per plugin, and forwarded to agents.

Owns the ring buffer of each plugin and who receives an entry: the agents whose calls the plugin runs, or every listener
if it runs none. Entries come from pages: each field is bounded and reduced to one safe line.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tabhub.calls.context import Context
from tabhub.core.tools import Source
from tabhub.errors import InvalidParams
from tabhub.limits import Limits
from tabhub.trust.redact import clean, redact
from tabhub.wire.extension_link import PluginLog, PluginLogEntry
from tabhub.wire.mcp import LOG_LEVELS
from tabhub.wire.messages import convert

log = logging.getLogger("tabhub.plugins")

_LEVELS = {"log": "info", "warn": "warning", **{level: level for level in LOG_LEVELS}}
_AT_ONCE = 200
_MESSAGE = 2_000
_DATA = 8_000

Broadcast = Callable[[str, str, Any], None]
"""Sends a level, a logger and data to every agent that listens and wants that level."""


@dataclass(eq=False)
class PluginLogs:
    """The logs of all plugins."""

    limits: Limits
    calls: Iterable[Context]
    broadcast: Broadcast
    wall: Callable[[], float]
    hides: Callable[[str | None, str], bool]
    """Whether entries of a plugin may come from a tab that an agent is kept off."""
    _rings: dict[str, deque[dict[str, Any]]] = field(default_factory=dict, init=False)

    def of(self, plugin: str) -> list[dict[str, Any]]:
        return list(self._rings.get(plugin, ()))

    def size(self, plugin: str) -> int:
        return len(self._rings.get(plugin, ()))

    def forget(self, plugin: str) -> None:
        self._rings.pop(plugin, None)

    def receive(self, batch: PluginLog, known: Callable[[str], bool]) -> None:
        """Keep a batch of entries; those that are invalid, or of an unknown plugin, are dropped."""
        for raw in batch.entries[:_AT_ONCE]:
            try:
                entry = convert("plugin.log", raw, PluginLogEntry)
            except InvalidParams:
                continue
            if known(entry.plugin):
                self._keep(entry)

    def _keep(self, line: PluginLogEntry) -> None:
        plugin, data = line.plugin, line.data
        level = _LEVELS.get(line.level, "info")
        message = clean(redact(line.message[: _MESSAGE * 4]), _MESSAGE)
        entry: dict[str, Any] = {"at": round(self.wall() * 1000), "level": level, "message": message}
        if data not in (None, [], {}):
            text = orjson.dumps(data).decode()
            safe = redact(text)
            entry["data"] = data if safe == text and len(text) <= _DATA else clean(safe, _DATA)
        ring = self._rings.setdefault(plugin, deque(maxlen=max(self.limits.plugin_logs, 1)))
        ring.append(entry)
        log.log(logging.DEBUG, "%s: %s: %s", plugin, level, message)
        self._forward(plugin, level, {key: value for key, value in entry.items() if key in ("message", "data")})

    def _forward(self, plugin: str, level: str, data: dict[str, Any]) -> None:
        source = Source("plugin", plugin)
        running = [call for call in self.calls if call.tool.source == source]
        for call in running:
            if not self.hides(call.session.token, plugin):
                call.log(level, plugin, data)
        if not running:
            self.broadcast(level, plugin, data)
