"""The client side of the NATS protocol, as much of it as a bus needs: bytes to events, and commands to bytes.

Owns their form; no I/O. A line or payload beyond its bound is an error, for then what comes is not NATS.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from tabhub.errors import ParseError

PING = b"PING\r\n"
PONG = b"PONG\r\n"

_LONGEST_LINE = 64 * 1024
_LARGEST = 64 * 1024 * 1024


class Message(msgspec.Struct, gc=False, frozen=True):
    """Something published where this client listens."""

    number: int
    """Of the subscription."""
    subject: str
    reply: str
    payload: bytes
    nobody: bool = False
    """The server's word that nobody listens where this client asked."""


@dataclass(frozen=True, slots=True)
class Info:
    """What the server says of itself."""

    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something the server does not like."""

    reason: str


Event = Message | Info | Refusal | bytes
"""PING and PONG are themselves."""


def publish(subject: str, payload: bytes, reply: str = "") -> bytes:
    """Say something."""
    head = f"PUB {subject} {reply} {len(payload)}\r\n" if reply else f"PUB {subject} {len(payload)}\r\n"
    return b"%b%b\r\n" % (head.encode(), payload)


def subscribe(subject: str, number: int) -> bytes:
    """Listen."""
    return f"SUB {subject} {number}\r\n".encode()


def unsubscribe(number: int) -> bytes:
    """Listen no more."""
    return f"UNSUB {number}\r\n".encode()


def connect(name: str, user: str | None, password: str | None, token: str | None, tls: bool) -> bytes:
    """Introduce this client."""
    facts: dict[str, Any] = {
        "name": name,
        "lang": "python",
        "version": "1",
        "protocol": 1,
        "verbose": False,
        "pedantic": False,
        "echo": False,
        "headers": True,
        "no_responders": True,
        "tls_required": tls,
    }
    known = {"user": user, "pass": password, "auth_token": token}
    facts |= {key: value for key, value in known.items() if value is not None}
    return b"CONNECT %b\r\n" % orjson.dumps(facts)


class Reader:
    """Makes events of what the server sends, however it is cut."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that are whole by now; ParseError if it is not NATS."""
        data = self._buffer + data if self._buffer else data
        at = 0
        while True:
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > _LONGEST_LINE:
                    raise ParseError("A line of the bus is too long.")
                break
            line = data[at:end]
            if line.startswith((b"MSG ", b"HMSG ")):
                words = line.split()
                stop = end + 2 + _size(words[-1])
                if len(data) < stop + 2:
                    break
                yield _message(words, data[end + 2 : stop])
                at = stop + 2
            else:
                at = end + 2
                event = _said(line)
                if event is not None:
                    yield event
        self._buffer = data[at:]


def _size(word: bytes) -> int:
    if not word.isdigit() or len(word) > 9 or int(word) > _LARGEST:
        raise ParseError(f"Not a size of a message of the bus: {word[:20]!r}.")
    return int(word)


def _message(words: list[bytes], body: bytes) -> Message:
    headed = words[0] == b"HMSG"
    fields = words[1:-2] if headed else words[1:-1]
    if len(fields) not in (2, 3):
        raise ParseError("Not a message of the bus.")
    skip = _size(words[-2]) if headed else 0
    reply = fields[2].decode() if len(fields) == 3 else ""
    nobody = headed and body.startswith(b"NATS/1.0 503")
    return Message(_size(fields[1]), fields[0].decode(), reply, body[skip:] if skip else body, nobody)


def _said(line: bytes) -> Event | None:
    word = line[:5].upper()
    if word == b"PING":
        return PING
    if word == b"PONG":
        return PONG
    if word.startswith(b"+OK"):
        return None
    if word == b"INFO ":
        try:
            facts = orjson.loads(line[5:])
        except orjson.JSONDecodeError:
            facts = None
        if isinstance(facts, dict):
            return Info(facts)
    if word == b"-ERR ":
        return Refusal(line[5:].decode("utf-8", "replace").strip("' ")[:200])
    raise ParseError(f"Not what a server of the bus says: {line[:40]!r}.")
