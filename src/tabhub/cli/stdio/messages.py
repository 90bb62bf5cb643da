"""MCP messages from a client on stdio: the rules of JSON-RPC, and the errors that the bridge sends itself."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HUB_UNAVAILABLE = -32000
PARSE_ERROR = -32700
INVALID_REQUEST = -32600


def read(line: bytes) -> tuple[Any, bool]:
    """A line as JSON, and whether an object in it has a key twice; raises ValueError or RecursionError."""
    doubled = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal doubled
        value = dict(pairs)
        doubled = doubled or len(value) != len(pairs)
        return value

    def constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    return json.loads(line.decode(), object_pairs_hook=members, parse_constant=constant), doubled


def invalid(message: Any) -> str | None:
    """Why a value is not a JSON-RPC message. Same rules as wire/jsonrpc.py, which takes longer to import."""
    if type(message) is not dict:
        return "A JSON-RPC message must be an object."
    if message.get("jsonrpc") != "2.0":
        return 'A JSON-RPC message must have "jsonrpc": "2.0".'
    if "id" in message and type(message["id"]) not in (str, int):
        return "`id` must be a string or a whole number."
    ends = ("result" in message) + ("error" in message)
    method, params = message.get("method"), message.get("params")
    if method is None:
        if "id" in message and ends == 1:
            return None
        return "A message must have a `method`, or an `id` with either `result` or `error`."
    if type(method) is not str or not method:
        return "`method` must be a non-empty string."
    if ends:
        return "A request must not have `result` or `error`."
    return None if params is None or type(params) is dict else "`params` must be an object."


def id_of(message: Any) -> str | int | None:
    ident = message.get("id") if type(message) is dict else None
    return ident if type(ident) in (str, int) else None


def error_body(code: int, message: str, **data: Any) -> bytes:
    """The error member of a response that the bridge sends itself."""
    return b'"error":' + json.dumps({"code": code, "message": message} | ({"data": data} if data else {})).encode()
