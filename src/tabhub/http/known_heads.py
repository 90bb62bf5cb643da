"""Heads of requests that were let in before: a client sends the same line and headers with nearly every call.

Owns which heads are known and how a whole request is told by its bytes. Bytes that are the same, but for the number
after Content-Length, mean the same to every parser, so such a request need not be parsed again. Only heads that passed
the guard are learned, and whoever finds one still asks whether its token is right now. Knows no sockets and no routes.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from tabhub.http.responses import Header, Receive, Send

Post = Callable[["Head", bytes, Receive, Send], Coroutine[Any, Any, None]]
"""A route that takes a head and a whole body."""

HEAD = "tabhub.head"
"""Where the app leaves, in a request's scope, the head it let in."""

TOOLS = b":tools"
"""Among the headers, the selection of tools an address names (`/mcp?tools=core`); no header can have this name."""
TOKEN = b":token"
"""Among the headers, the name of the token a request came with; neither can any have this name."""
_LENGTHS = (b"\r\nContent-Length: ", b"\r\ncontent-length: ")
_END = b"\r\n\r\n"
_DIGITS = 7
_MOST = 512
_LONGEST = 4096


@dataclass(slots=True, eq=False)
class Head:
    """The line and headers of a request that passed the guard."""

    path: str
    raw: list[Header]
    headers: dict[bytes, bytes]
    route: Post | None = None
    """Where a request with this head may go straight."""
    facts: Any = None
    """What the route has read out of it, once and for all requests that begin with it."""


def with_query(headers: dict[bytes, bytes], query: bytes) -> dict[bytes, bytes]:
    """The headers, and what else the address asks for."""
    tools = parse_qs(query.decode("latin-1")).get("tools")
    return headers if tools is None else {**headers, TOOLS: ",".join(tools).encode("utf-8", "replace")}


class Heads:
    """The heads of one hub's clients."""

    def __init__(self) -> None:
        self._known: dict[bytes, Head] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, data: bytes) -> tuple[Head, bytes | None] | None:
        """The head and body, if these bytes are one request with a known head; no body if they are just the head."""
        cut = split(data)
        if cut is None:
            return None
        head = self._known.get(cut.key)
        if head is None:
            return None
        there = len(data) - cut.end
        if there == cut.length:
            return head, data[cut.end :]
        return None if there else (head, None)

    def learn(self, data: bytes, head: Head) -> None:
        """Know this head from now on; `data` is the whole request."""
        cut = split(data)
        if cut is not None and len(data) - cut.end == cut.length and len(cut.key) <= _LONGEST:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[cut.key] = head


class Cut(NamedTuple):
    """Where the head of a request ends, what it is without the digits of its length, and that length."""

    key: bytes
    end: int
    length: int


def split(data: bytes) -> Cut | None:
    """Cut a request; None if it has no whole head, or none that says plainly how long the body is."""
    end = data.find(_END)
    if end < 0:
        return None
    end += len(_END)
    for name in _LENGTHS:
        at = data.find(name, 0, end)
        if at >= 0:
            break
    else:
        return None
    at += len(name)
    stop = data.find(b"\r", at, end)
    digits = data[at:stop]
    if len(digits) > _DIGITS or not digits.isdigit():
        return None
    return Cut(data[:at] + data[stop:end], end, int(digits))
