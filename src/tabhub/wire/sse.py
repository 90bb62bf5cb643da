"""Server-sent events: messages as event-stream bytes."""

from __future__ import annotations

KEEPALIVE = b": keep-alive\n\n"


def event(data: bytes, event_id: str | None = None) -> bytes:
    """One event; JSON from orjson holds no newline, so one data line is enough."""
    if event_id is None:
        return b"event: message\ndata: %b\n\n" % data
    return b"id: %b\nevent: message\ndata: %b\n\n" % (event_id.encode(), data)


def priming(event_id: str, retry_ms: int) -> bytes:
    """The first event of a resumable stream: the id to resume with, and the delay before reconnecting."""
    return b"id: %b\nretry: %d\ndata: \n\n" % (event_id.encode(), retry_ms)
