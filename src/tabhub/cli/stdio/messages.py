"""MCP messages from a client on stdio: one message or batch per line.

Owns the rules of JSON-RPC and the errors that the stdio server sends itself. Parts that are forwarded (ids, params,
results) are kept byte for byte; the hub validates them. Does no I/O.
"""

from __future__ import annotations

import json
import re

from tabhub.client_errors import NotJson

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"

HUB_UNAVAILABLE = -32000
PARSE_ERROR = -32700
INVALID_REQUEST = -32600


class Request:
    """A request; its id is kept as written in `ident`."""

    __slots__ = ("ident", "key", "method", "params")

    def __init__(self, ident: bytes, key: str | int, method: str, params: bytes) -> None:
        self.ident = ident
        self.key = key
        self.method = method
        self.params = params


class Notification:
    """A notification."""

    __slots__ = ("method", "params", "value")

    def __init__(self, method: str, params: bytes, value: dict[str, Any]) -> None:
        self.method = method
        self.params = params
        self.value = value


class Answer:
    """A response to a request of the hub."""

    __slots__ = ("body", "key")

    def __init__(self, key: str | int, body: bytes) -> None:
        self.key = key
        self.body = body
        """A JSON object with the id, and the result or error."""


class Invalid:
    """JSON that is not a JSON-RPC message."""

    __slots__ = ("ident", "why")

    def __init__(self, ident: bytes, why: str) -> None:
        self.ident = ident
        self.why = why


Message = Request | Notification | Answer | Invalid
_Members = dict[str, tuple["Any", str]]
"""The value and the source text of each member of an object."""


def read(line: bytes) -> Message | list[Message]:
    """The message of a line, or the messages of a batch; raises NotJson."""
    try:
        text = line.decode()
        start = _skip(text, 0)
        found: Message | list[Message]
        if text[start : start + 1] == "[":
            found, end = _batch(text, start)
        else:
            found, end = _one(text, start)
        if _skip(text, end) != len(text):
            raise NotJson("there is data after the end")
    except (ValueError, IndexError, RecursionError) as error:
        raise NotJson(str(error)) from None
    return found


def _constant(name: str) -> None:
    raise NotJson(f"{name} is not JSON")


_SCAN = json.JSONDecoder(parse_constant=_constant).raw_decode
_SPACE = re.compile(r"[ \t\n\r]*")


def _batch(text: str, start: int) -> tuple[list[Message], int]:
    found: list[Message] = []
    at = _skip(text, start + 1)
    if text[at] == "]":
        return found, at + 1
    while True:
        message, at = _one(text, at)
        found.append(message)
        at = _skip(text, at)
        if text[at] == "]":
            return found, at + 1
        at = _skip(text, _after(text, at, ","))


def _one(text: str, start: int) -> tuple[Message, int]:
    if text[start] != "{":
        _, end = _SCAN(text, start)
        return Invalid(b"null", "A JSON-RPC message must be an object."), end
    members, end = _members(text, start)
    return _message(members), end


def _members(text: str, start: int) -> tuple[_Members, int]:
    members: _Members = {}
    at = _skip(text, start + 1)
    if text[at] == "}":
        return members, at + 1
    while True:
        name, at = _SCAN(text, _after(text, at, '"') - 1)
        value_at = _skip(text, _after(text, _skip(text, at), ":"))
        value, at = _SCAN(text, value_at)
        if name in members:
            raise NotJson("an object has the same key twice")
        members[name] = (value, text[value_at:at])
        at = _skip(text, at)
        if text[at] == "}":
            return members, at + 1
        at = _skip(text, _after(text, at, ","))


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _after(text: str, at: int, expected: str) -> int:
    if text[at] != expected:
        raise NotJson(f"{expected} expected at character {at}")
    return at + 1


def _message(members: _Members) -> Message:
    key, raw = members.get("id", (None, "null"))
    ident = raw.encode() if type(key) is str or type(key) is int else b"null"
    if members.get("jsonrpc", (None,))[0] != "2.0":
        return Invalid(ident, 'A JSON-RPC message must have "jsonrpc": "2.0".')
    if "id" in members and ident == b"null":
        return Invalid(ident, "`id` must be a string or a whole number.")
    ends = [name for name in ("result", "error") if name in members]
    method = members.get("method", (None,))[0]
    if method is None:
        if "id" not in members or len(ends) != 1:
            return Invalid(ident, "A message must have a `method`, or an `id` with either `result` or `error`.")
        return Answer(key, b'{"id":%b,"%b":%b}' % (ident, ends[0].encode(), members[ends[0]][1].encode()))
    params, text = members.get("params", (None, "{}"))
    if type(method) is not str or not method:
        return Invalid(ident, "`method` must be a non-empty string.")
    if ends:
        return Invalid(ident, "A request must not have `result` or `error`.")
    if params is None:
        params, text = {}, "{}"
    if type(params) is not dict:
        return Invalid(ident, "`params` must be an object.")
    if "id" not in members:
        return Notification(method, text.encode(), params)
    return Request(ident, key, method, text.encode())


def error_body(code: int, message: str, **data: Any) -> bytes:
    """The error member of a response that the stdio server sends itself."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data:
        error["data"] = data
    return b'"error":' + json.dumps(error).encode()


def answer(ident: bytes, body: bytes) -> bytes:
    """A response with the id as the client wrote it."""
    return b'{"jsonrpc":"2.0","id":%b,%b}' % (ident, body)
