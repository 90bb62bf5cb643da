"""Server-sent events: messages as event-stream bytes, and chunks of bytes as complete events.

Owns lines, fields and bounds; what the data of an event means is up to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass

from tabhub.errors import BadInput

KEEPALIVE = b": keep-alive\n\n"
_BOM = b"\xef\xbb\xbf"
_ENDS = (b"\n", b"\r")


def event(data: bytes, event_id: str | None = None) -> bytes:
    """One event; JSON from orjson holds no newline, so one data line is enough."""
    if event_id is None:
        return b"event: message\ndata: %b\n\n" % data
    return b"id: %b\nevent: message\ndata: %b\n\n" % (event_id.encode(), data)


def priming(event_id: str, retry_ms: int) -> bytes:
    """The first event of a resumable stream: the id to resume with, and the delay before reconnecting."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (event_id.encode(), retry_ms)


@dataclass(frozen=True, slots=True)
class Event:
    """One event with data."""

    data: bytes
    kind: str = "message"


class EventReader:
    """Reads one stream."""

    __slots__ = ("_after_cr", "_begun", "_data", "_kind", "_largest", "_parts", "_size", "last_id", "retry")

    def __init__(self, largest: int, last_id: str | None = None, retry: int | None = None) -> None:
        self._largest = largest
        self._parts: list[bytes] = []
        """A line that has no end yet."""
        self._data: list[bytes] = []
        self._kind = b""
        self._size = 0
        self._after_cr = False
        self._begun = False
        self.last_id = last_id
        """The id to resume after, if the server sent one."""
        self.retry = retry
        """Milliseconds to wait before reconnecting, if the server sent it."""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events completed by this chunk; BadInput if one is too large."""
        if not chunk:
            return []
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
        self._after_cr = chunk[-1:] == b"\r"
        self._size += len(chunk)
        found: list[Event] = []
        if b"\n" in chunk or b"\r" in chunk:
            lines = b"".join((*self._parts, chunk)).splitlines(keepends=True)
            self._parts = [lines.pop()] if lines[-1][-1:] not in _ENDS else []
            for line in lines:
                if (event := self._line(line.rstrip(b"\r\n"))) is not None:
                    found.append(event)
                    self._size = 0
            if found:
                self._size = sum(map(len, self._parts))
        elif chunk:
            self._parts.append(chunk)
        if self._size > self._largest:
            raise BadInput(f"An event is larger than {self._largest} bytes.")
        return found

    def _line(self, line: bytes) -> Event | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            return self._end()
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._kind = value
        elif field == b"id":
            if b"\0" not in value:
                self.last_id = value.decode("utf-8", "replace") or None
        elif field == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = int(value)
        elif not field:
            self._size -= len(line)  # a comment keeps the connection alive and does not count
        return None

    def _end(self) -> Event | None:
        data, self._data = self._data, []
        kind, self._kind = self._kind, b""
        if not data:
            return None
        return Event(b"\n".join(data), kind.decode("utf-8", "replace") or "message")
