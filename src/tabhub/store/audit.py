"""The audit log: one line for every answered call, on disk before the answer leaves, and the last ones in memory.

Owns what an entry says, the ring `/audit` shows and the figures of `/health` and `/metrics`. How lines reach the disk
is `store.journal`'s. Time is the wall clock handed in; it stamps entries and never decides a deadline.
"""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import orjson

from tabhub.errors import SetupError, TabhubError
from tabhub.limits import DEFAULTS, Limits
from tabhub.store.journal import Journal, Nowhere, lines_backward
from tabhub.trust.redact import clean, redact

if TYPE_CHECKING:
    from tabhub.core.tools import Source

_DAY_MINUTES = 24 * 60
_MESSAGE = 2000
_LOOKED_AT = 10_000
_DEPTH = 64
_INT = 2**63
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds, in seconds, of the histogram of durations."""


class CallError(msgspec.Struct):
    """Why a call failed."""

    code: int
    message: str
    category: str


class CallRecord(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What the log keeps of one call; its arguments only if the person set it so."""

    timestamp: str = ""
    """Set when the record is written."""
    tool: str
    plugin: str
    source: str
    success: bool
    duration_ms: float
    session: str
    client: str
    via: str
    """How the call came in."""
    token_name: str | None = None
    args_digest: str
    tab_id: int | None = None
    origin: str | None = None
    approval: Any = None
    """An Approval, or what the error of a refused call says of it."""
    arguments: Mapping[str, Any] | None = None
    error: CallError | None = None
    outcome: str | None = None


def call_error(error: TabhubError) -> CallError:
    return CallError(error.code, clean(redact(error.message), _MESSAGE), error.category)


def _as_dict(record: CallRecord) -> dict[str, Any]:
    """The fields by their names in the log, whatever values they hold."""
    fields = msgspec.structs.fields(record)
    made = {field.encode_name: getattr(record, field.name) for field in fields}
    for name in ("error", "approval"):
        made[name] = msgspec.to_builtins(made[name])
    return {name: value for name, value in made.items() if value is not None}


_encode = msgspec.json.Encoder().encode


def digest(arguments: Mapping[str, Any]) -> str:
    """A short fingerprint of arguments, the same for the same JSON whatever the order of its keys."""
    try:
        canonical = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        canonical = orjson.dumps(_writable(arguments), option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2s(canonical, digest_size=8).hexdigest()


_second = (-1, "")


def stamp(now: float) -> str:
    """A time as `2026-02-21T10:30:00.000Z`."""
    global _second
    milliseconds = int(now * 1000)
    second = milliseconds // 1000
    if second != _second[0]:
        _second = (second, time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)))
    return f"{_second[1]}.{milliseconds % 1000:03d}Z"


class Batch(Protocol):
    """What all answers are written through (http.write_batch.WriteBatch)."""

    def before_write(self, hook: Callable[[], None]) -> None:
        """Run this before any answer is written."""
        ...


class AuditLog:
    """The log of one hub."""

    def __init__(
        self,
        path: Path | None,
        limits: Limits = DEFAULTS,
        *,
        clock: Callable[[], float] = time.time,
        batch: Batch | None = None,
    ) -> None:
        """Open the file and fill the ring from its end; a torn last line is skipped and counted in `torn`.

        Without a path there is no file, and the ring is all that is kept. With a batch, lines are held until it writes
        an answer, and are written before it.
        """
        self._clock = clock
        self._longest = limits.audit_line
        self._ring: deque[bytes] = deque(maxlen=max(limits.audit_ring, 1))
        self.figures = Figures()
        self._lines: list[bytes] = []
        """Lines to be written before the next answer."""
        self._holds = batch is not None
        if batch is not None:
            batch.before_write(self._write_lines)
        self.torn = 0
        self.unreadable: str | None = None
        self._journal: Journal | Nowhere = Nowhere()
        if path is not None:
            self._journal = Journal(path, rotate_at=limits.audit_bytes, waiting=limits.audit_ring)
            self._load(path)

    @property
    def degraded(self) -> str | None:
        """Why lines do not reach the disk, while they do not."""
        return self._journal.degraded

    @property
    def lost(self) -> int:
        """Lines that were answered for and never reached the disk."""
        return self._journal.lost

    def write(self, record: CallRecord) -> None:
        """Record and count one call; it never fails the call."""
        now = self._clock()
        record.timestamp = stamp(now)
        try:
            line = _encode(record) + b"\n"
        except (TypeError, ValueError, OverflowError, RecursionError):
            line = orjson.dumps(_writable(_as_dict(record)), option=orjson.OPT_APPEND_NEWLINE)
        if len(line) > self._longest:
            line = orjson.dumps(_shortened(orjson.loads(line), self._longest), option=orjson.OPT_APPEND_NEWLINE)
        self._ring.append(line)
        self.figures.add(record.plugin, now, record.duration_ms / 1000, ok=record.success)
        self._lines.append(line)
        if not self._holds:
            self._write_lines()

    def event(self, what: str, source: Source, *, tab_id: int | None, **facts: Any) -> None:
        """Record something that is no call, as pages declaring tools: on disk only, and no part of the figures."""
        made = {"timestamp": stamp(self._clock()), "tool": what, "plugin": source.key, "source": source.label}
        line = orjson.dumps({**made, "event": True, "success": True, "tabId": tab_id, **_writable(facts)})
        if len(line) < self._longest:
            self._lines.append(line + b"\n")
            if not self._holds:
                self._write_lines()

    def _write_lines(self) -> None:
        if self._lines:
            text = b"".join(self._lines)
            self._lines.clear()
            self._journal.append(text)

    def recent(
        self, limit: int = 50, plugin: str | None = None, tool: str | None = None, success: bool | None = None
    ) -> list[dict[str, Any]]:
        """The last calls, newest first."""
        found: list[dict[str, Any]] = []
        for kept in reversed(self._ring):
            if len(found) >= limit:
                break
            made: dict[str, Any] = orjson.loads(kept)
            if _fits(made, plugin, tool, success):
                found.append(made)
        return found

    def summary(self, now: float | None = None) -> dict[str, Any]:
        """The figures of `/health`: those of the calls of this run, and of the ring it began with."""
        return self.figures.summary(self._clock() if now is None else now)

    def flush(self) -> bool:
        """Try to write what waits for the disk; True when nothing does."""
        self._write_lines()
        return self._journal.flush()

    def close(self) -> None:
        """Write what waits and close the file."""
        self._write_lines()
        self._journal.close()

    def _load(self, path: Path) -> None:
        found: list[dict[str, Any]] = []
        try:
            for number, line in enumerate(lines_backward(path)):
                made = _read(line)
                if made is not None:
                    if "event" not in made:
                        found.append(made)
                elif number == 0:
                    self.torn += 1
                if len(found) == self._ring.maxlen or number > _LOOKED_AT:
                    break
        except OSError as error:
            self.unreadable = f"The audit log {path} cannot be read: {error.strerror}."
        for made in reversed(found):
            self._ring.append(orjson.dumps(made))
            duration = made.get("durationMs")
            seconds = duration / 1000 if type(duration) in (int, float) else 0.0
            self.figures.add(None, _seconds(made), seconds, ok=made.get("success") is True)


@dataclass(slots=True)
class Series:
    """Counts of the calls of one plugin or source."""

    ok: int = 0
    failed: int = 0
    seconds: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))


class Figures:
    """Counts of calls: by plugin since the start, and over the last day by the minute."""

    def __init__(self) -> None:
        self.series: dict[str | None, Series] = {}
        """By plugin; under None those of earlier runs."""
        self._minutes: dict[int, list[int]] = {}

    def add(self, plugin: str | None, now: float, seconds: float, *, ok: bool) -> None:
        series = self.series.get(plugin)
        if series is None:
            series = self.series[plugin] = Series()
        series.ok += ok
        series.failed += not ok
        series.seconds += seconds
        series.buckets[bisect_left(BUCKETS, seconds)] += 1
        minute = int(now) // 60
        counts = self._minutes.get(minute)
        if counts is None:
            counts = self._minutes[minute] = [0, 0]
            while len(self._minutes) > _DAY_MINUTES + 60:
                del self._minutes[min(self._minutes)]
        counts[0] += 1
        counts[1] += ok

    def summary(self, now: float) -> dict[str, Any]:
        """The figures of `/health`."""
        success = sum(series.ok for series in self.series.values())
        failure = sum(series.failed for series in self.series.values())
        seconds = sum(series.seconds for series in self.series.values())
        since = int(now) // 60 - _DAY_MINUTES
        day = [counts for minute, counts in self._minutes.items() if minute > since]
        day_total, day_success = sum(counts[0] for counts in day), sum(counts[1] for counts in day)
        return {
            "totalInvocations": success + failure,
            "successCount": success,
            "failureCount": failure,
            "last24h": {"total": day_total, "success": day_success, "failure": day_total - day_success},
            "avgDurationMs": round(seconds * 1000 / (success + failure)) if success + failure else 0,
        }


def read_log(
    path: Path,
    *,
    limit: int | None = 50,
    plugin: str | None = None,
    tool: str | None = None,
    since: float | None = None,
    success: bool | None = None,
) -> tuple[list[dict[str, Any]], int]:
    """The calls on disk, newest first, over both files, and how many lines could not be read.

    `since` is a time in seconds. The log may be read while a hub writes to it.
    """
    earliest = None if since is None else stamp(since)
    found: list[dict[str, Any]] = []
    skipped = 0
    try:
        for line in lines_backward(path):
            if limit is not None and len(found) >= limit:
                break
            made = _read(line)
            if made is None:
                skipped += 1
            elif _fits(made, plugin, tool, success) and (earliest is None or str(made.get("timestamp")) >= earliest):
                found.append(made)
    except OSError as error:
        raise SetupError(
            f"The audit log {path} cannot be read: {error.strerror}.", hint="Check that the file is yours and readable."
        ) from error
    return found, skipped


def _fits(made: Mapping[str, Any], plugin: str | None, tool: str | None, success: bool | None) -> bool:
    return (
        (plugin is None or made.get("plugin") == plugin)
        and (tool is None or made.get("tool") == tool)
        and (success is None or made.get("success") is success)
    )


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        made = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return made if isinstance(made, dict) else None


def _seconds(made: Mapping[str, Any]) -> float:
    """When an entry of the file was made; long ago if it does not say so properly."""
    try:
        return datetime.fromisoformat(str(made.get("timestamp"))).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def _shortened(made: dict[str, Any], longest: int) -> dict[str, Any]:
    """An entry that fits: without its arguments, and then with its longest texts cut."""
    short = {**made, "arguments": {"leftOut": "longer than an audit line may be"}} if "arguments" in made else made
    if len(orjson.dumps(short)) < longest:
        return short
    room = max(longest // (len(short) * 8), 16)
    return {
        key: clean(value if isinstance(value, str) else str(value), room)
        if isinstance(value, (str, dict, list))
        else value
        for key, value in short.items()
    }


def _writable(value: Any, depth: int = 0) -> Any:
    """Any value as JSON can hold it: stray surrogates spelled out, huge numbers and unknown things as text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and -_INT <= value < _INT:
        return value
    if depth < _DEPTH and isinstance(value, Mapping):
        return {_writable(str(key)): _writable(item, depth + 1) for key, item in value.items()}
    if depth < _DEPTH and isinstance(value, (list, tuple)):
        return [_writable(item, depth + 1) for item in value]
    return _writable(repr(value)[:_MESSAGE]) if depth < _DEPTH else "…"
