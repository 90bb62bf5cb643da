"""Small HTTP on ASGI: read a bounded body, send an answer.

Owns the two things every route does. No routing, no rules.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

import orjson

from tabhub.errors import TabhubError, TooLarge
from tabhub.limits import Limits

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")


class Disconnected(Exception):
    """The client went away; there is no one to answer."""


async def read_body(receive: Receive, limits: Limits) -> bytes:
    """The whole request body, within the size and time limits."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        _check(len(body), limits)
        return body
    parts, size = [body], len(body)
    try:
        async with asyncio.timeout(limits.header_timeout):
            while message.get("more_body", False):
                _check(size, limits)
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Disconnected
                part = message.get("body", b"")
                parts.append(part)
                size += len(part)
    except TimeoutError:
        raise SlowBody(limits.header_timeout) from None
    _check(size, limits)
    return b"".join(parts)


class SlowBody(TabhubError):
    """The body did not arrive in time."""

    status = 408
    category = "timeout"
    outcome = "not_sent"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The request body did not arrive within {seconds:g} s.")


def _check(size: int, limits: Limits) -> None:
    if size > limits.max_body:
        raise TooLarge(f"The request body is larger than {limits.max_body} bytes.")


async def respond(send: Send, status: int, body: bytes = b"", headers: Iterable[Header] = ()) -> None:
    """Send a whole answer."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def respond_json(send: Send, value: Any, status: int = 200, headers: Iterable[Header] = ()) -> None:
    """Send a value as JSON."""
    await respond(send, status, orjson.dumps(value), [JSON, *headers])


async def respond_error(send: Send, error: TabhubError, headers: Iterable[Header] = ()) -> None:
    """Send an error of ours, outside JSON-RPC."""
    extra = list(headers)
    retry_after = getattr(error, "retry_after", None)
    if retry_after is not None:
        extra.append((b"retry-after", b"%d" % retry_after))
    body = {"error": {"message": error.message, **error.facts()}}
    await respond_json(send, body, error.status, extra)
