"""The client side of the NATS protocol, as far as the bus needs it: bytes to events, and commands to bytes.

Owns their form; no I/O. A line or payload beyond its bound is an error, because no NATS server sends one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

from tabhub.errors import ParseError

PING = b"PING\r\n"
PONG = b"PONG\r\n"

_LONGEST_LINE = 64 * 1024
_LARGEST = 64 * 1024 * 1024


class Message(msgspec.Struct, gc=False, frozen=True):
    """A message of a subscription."""

    subscription: int
    subject: str
    reply: str
    payload: bytes
    no_responders: bool = False
    """The server's status message (503): a request of this client has no subscribers."""


class Info(msgspec.Struct, frozen=True):
    """The server's facts about itself: its first message."""

    facts: dict[str, Any]


class ServerError(msgspec.Struct, frozen=True):
    """An error message of the server."""

    reason: str


Event = Message | Info | ServerError | bytes
"""PING and PONG are themselves."""


def publish(subject: str, payload: bytes, reply: str = "") -> bytes:
    head = f"PUB {subject} {reply} {len(payload)}\r\n" if reply else f"PUB {subject} {len(payload)}\r\n"
    return b"%b%b\r\n" % (head.encode(), payload)


def subscribe(subject: str, number: int, queue: str = "") -> bytes:
    """Of the subscribers with the same queue, one gets each message."""
    return f"SUB {subject} {queue} {number}\r\n".encode() if queue else f"SUB {subject} {number}\r\n".encode()


def unsubscribe(number: int) -> bytes:
    return f"UNSUB {number}\r\n".encode()


def connect(name: str, user: str | None, password: str | None, token: str | None, tls: bool) -> bytes:
    options: dict[str, Any] = {
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
    credentials = {"user": user, "pass": password, "auth_token": token}
    options |= {key: value for key, value in credentials.items() if value is not None}
    return b"CONNECT %b\r\n" % orjson.dumps(options)


class Reader:
    """Parses the server's bytes into events, in chunks of any size."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events completed by this chunk; ParseError if it is not NATS."""
        data = self._buffer + data if self._buffer else data
        at = 0
        while True:
            end = data.find(b"\r\n", at)
            if end < 0:
                if len(data) - at > _LONGEST_LINE:
                    raise ParseError("A line of the NATS server is too long.")
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
                event = _control(line)
                if event is not None:
                    yield event
        self._buffer = data[at:]


def _size(word: bytes) -> int:
    if not word.isdigit() or len(word) > 9 or int(word) > _LARGEST:
        raise ParseError(f"Invalid size of a NATS message: {word[:20]!r}.")
    return int(word)


def _message(words: list[bytes], body: bytes) -> Message:
    has_headers = words[0] == b"HMSG"
    fields = words[1:-2] if has_headers else words[1:-1]
    if len(fields) not in (2, 3):
        raise ParseError("Invalid NATS message.")
    header_size = _size(words[-2]) if has_headers else 0
    reply = fields[2].decode() if len(fields) == 3 else ""
    no_responders = has_headers and body.startswith(b"NATS/1.0 503")
    return Message(_size(fields[1]), fields[0].decode(), reply, body[header_size:], no_responders)


def _control(line: bytes) -> Event | None:
    """Any line but a message's; None for one that needs no reaction."""
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
        return ServerError(line[5:].decode("utf-8", "replace").strip("' ")[:200])
    raise ParseError(f"Not a line of a NATS server: {line[:40]!r}.")
