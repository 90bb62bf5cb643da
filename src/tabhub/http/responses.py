"""Small HTTP on ASGI: read a bounded body, send an answer.

Owns the two things every route does. No routing, no rules.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import lru_cache, partial
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from tabhub.errors import ClientDisconnected, TabhubError, TooLarge
from tabhub.http.fast_cycle import Visit
from tabhub.http.write_batch import Turn
from tabhub.limits import Limits

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

_LARGE = 64 * 1024
JSON: Header = (b"content-type", b"application/json")


async def read_body(receive: Receive, limits: Limits) -> bytes:
    """The whole request body, within the size limit; that it arrives in time is seen to before (arrival.py)."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        _check(len(body), limits)
        return body
    parts, size = [body], len(body)
    while message.get("more_body", False):
        _check(size, limits)
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
    _check(size, limits)
    return b"".join(parts)


def _check(size: int, limits: Limits) -> None:
    if size > limits.max_body:
        raise TooLarge(f"The request body is larger than {limits.max_body} bytes.")


async def respond(send: Send, status: int, body: bytes = b"", headers: Iterable[Header] = ()) -> None:
    """Send a whole answer."""
    if answered(send, status, body, headers):
        return
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body})


def answered(send: Send, status: int, body: bytes, headers: Iterable[Header]) -> bool:
    """Send a whole answer, head and body in one write; False if it has to go through `send`.

    The same bytes for half the system calls: a write is the costliest thing a quick call does, for it wakes the other
    process.
    """
    cycle = getattr(send, "__self__", None)
    if not isinstance(cycle, RequestResponseCycle):
        return False
    if type(cycle) is Visit:
        protocol: Any = cycle.protocol
        done = cycle.written
    else:
        after = cycle.on_response  # uvicorn forgets it when the application returns, which may be before the write
        protocol = getattr(after, "__self__", None)
        done = partial(_written, cycle, after)
    turn: Turn | None = getattr(protocol, "turn", None)
    if cycle.flow.write_paused:
        if turn is not None:
            turn.release()
        return False
    if cycle.disconnected:
        return True
    lines = _lines(status, tuple(headers))
    if not cycle.keep_alive:
        lines += b"connection: close\r\n"
    shown = b"" if cycle.scope["method"] == "HEAD" else body
    head = b"%bcontent-length: %d\r\n\r\n" % (lines, len(body))
    cycle.response_started = cycle.response_complete = True
    cycle.waiting_for_100_continue = False
    if turn is not None and len(body) <= _LARGE:
        turn.write(protocol.loop, cycle.transport, head + shown, done)
        return True
    if turn is not None:
        turn.release()
    cycle.transport.write(head)
    cycle.transport.write(shown)
    done()
    return True


@lru_cache(maxsize=512)
def _lines(status: int, headers: tuple[Header, ...]) -> bytes:
    """The beginning of an answer; nearly all have one of a few."""
    return STATUS_LINE[status] + b"".join([b"%b: %b\r\n" % header for header in headers])


def _written(cycle: RequestResponseCycle, after: Callable[[], None]) -> None:
    """What uvicorn does after the last byte of an answer."""
    cycle.message_event.set()
    if not cycle.keep_alive:
        cycle.transport.close()
    after()


def at_once(send: Send | None) -> bool:
    """Whether an answer given now leaves with the others of this turn, and not before the turn's lines of the log."""
    cycle = getattr(send, "__self__", None)
    return type(cycle) is Visit and cycle.protocol.turn.open and not cycle.flow.write_paused


def cut(send: Send) -> None:
    """End the connection of a client that does not take what it is sent; nothing waits for it any more."""
    cycle = getattr(send, "__self__", None)
    if isinstance(cycle, RequestResponseCycle):
        cycle.transport.abort()


async def respond_json(send: Send, value: Any, status: int = 200, headers: Iterable[Header] = ()) -> None:
    """Send a value as JSON."""
    await respond(send, status, orjson.dumps(value), [JSON, *headers])


async def respond_error(send: Send, error: TabhubError, headers: Iterable[Header] = ()) -> None:
    """Send an error of ours, outside JSON-RPC."""
    extra = list(headers)
    retry_after = error.retry_after
    if retry_after is not None:
        extra.append((b"retry-after", b"%d" % retry_after))
    body = {"error": {"message": error.message, **error.facts()}}
    await respond_json(send, body, error.status, extra)
