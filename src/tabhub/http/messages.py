"""HTTP requests and responses as values.

Owns what a route receives and returns. Knows no sockets: the connection behind a request is a protocol class here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol
from urllib.parse import parse_qs

import msgspec
import orjson

from tabhub.errors import BadInput, InvalidParams, TabhubError
from tabhub.limits import Limits
from tabhub.wire import strict_json as strict

Header = tuple[bytes, bytes]

JSON: Header = (b"content-type", b"application/json")
TEXT: Header = (b"content-type", b"text/plain; charset=utf-8")


class ResponseStream(Protocol):
    """A response that is written piece by piece."""

    @property
    def disconnected(self) -> bool: ...

    async def write(self, data: bytes) -> None:
        """Send a piece. Waits while the client does not read; raises ClientDisconnected if it has disconnected."""
        ...

    def abort(self) -> None:
        """Close the connection at once."""
        ...


class Connection(Protocol):
    """The connection a request came on."""

    def start_stream(self, request: Request, headers: Sequence[Header]) -> ResponseStream: ...


class Request(msgspec.Struct, eq=False):
    """One HTTP request."""

    connection: Connection
    method: str
    path: str
    query: bytes
    raw_headers: list[Header]
    headers: dict[bytes, bytes]
    """By lower-case name; of a repeated header the last one. Code that relies on one checks for repeats first."""
    version: str = "1.1"
    peer: str | None = None
    """The client's IP address."""
    keep_alive: bool = True
    body: bytes = b""
    agent: str | None = None
    """The sender's name: that of its token, or of the person's own command line."""
    person: bool = False
    """Whether it carries the person's key."""
    disconnected: bool = False
    on_disconnect: list[Callable[[], None]] = []
    """Called when the client disconnects before it is answered."""

    def start_stream(self, headers: Sequence[Header]) -> ResponseStream:
        """Begin a streamed 200 response. The route returns None when it is complete."""
        return self.connection.start_stream(self, headers)

    def query_values(self, known: set[str] | None = None) -> dict[str, str]:
        """The query's parameters; with `known`, any other parameter is an error."""
        values = parse_qs(self.query.decode("latin-1"), keep_blank_values=True)
        if known is not None and (unknown := values.keys() - known):
            raise BadInput(
                f"Unknown parameter: {sorted(unknown)[0][:100]}.", hint=f"Known: {', '.join(sorted(known))}."
            )
        return {name: each[-1] for name, each in values.items()}

    def json_object(
        self, limits: Limits, known: set[str] | None = None, *, may_be_empty: bool = False
    ) -> dict[str, Any]:
        """The body as a JSON object; with `may_be_empty`, an empty body is an empty object."""
        body = {} if may_be_empty and not self.body else strict.decode(self.body, limits)
        if not isinstance(body, dict):
            raise InvalidParams("The body must be a JSON object.")
        if known is not None and (unknown := body.keys() - known):
            hint = f"Known: {', '.join(sorted(known))}." if known else "This address takes no fields."
            raise InvalidParams(f"Unknown field: {sorted(unknown)[0][:100]}.", hint=hint)
        return body


class Response(msgspec.Struct, frozen=True):
    """A whole response."""

    status: int
    body: bytes = b""
    headers: tuple[Header, ...] = ()


Route = Callable[[Request], Awaitable[Response | None]]
"""Answers a request; None means that the answer was streamed."""


def json_response(value: Any, status: int = 200, *headers: Header) -> Response:
    return Response(status, orjson.dumps(value), (JSON, *headers))


def retry_after(error: TabhubError) -> tuple[Header, ...]:
    """The Retry-After header of an error that states a time."""
    return () if error.retry_after is None else ((b"retry-after", b"%d" % error.retry_after),)


def error_response(error: TabhubError, *headers: Header) -> Response:
    """An error outside JSON-RPC."""
    body = {"error": {"message": error.message, **error.details()}}
    return json_response(body, error.status, *headers, *retry_after(error))
