"""JSON-RPC 2.0: values to messages and messages to bytes.

Owns the rules (B2) that tell requests, notifications and responses from invalid messages, and the parameters by which a
request calls something. Results are spliced in as encoded bytes, never decoded and encoded again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from tabhub.errors import InvalidParams, InvalidRequest, TabhubError

Id = str | int
_OF_RESPONSES = frozenset({"result", "error"})


class Request(msgspec.Struct):
    """A message that expects a response."""

    id: Id
    method: str
    params: dict[str, Any]


class Notification(msgspec.Struct):
    """A message that expects no response."""

    method: str
    params: dict[str, Any]


class Response(msgspec.Struct):
    """A response to a request of ours."""

    id: Id
    result: Any = None
    error: dict[str, Any] | None = None


Message = Request | Notification | Response


def parse(value: Any) -> Message:
    """One message, or InvalidRequest."""
    if type(value) is not dict:
        raise InvalidRequest("A JSON-RPC message must be an object.")
    get = value.get
    if get("jsonrpc") != "2.0":
        raise InvalidRequest('A JSON-RPC message must have "jsonrpc": "2.0".')
    ident, method, params = get("id"), get("method"), get("params")
    kind = type(ident)
    if kind is not int and kind is not str and "id" in value:
        raise InvalidRequest("`id` must be a string or a whole number.")
    if method is None:
        return _response(value)
    if type(method) is not str or not method:
        raise InvalidRequest("`method` must be a non-empty string.")
    if not _OF_RESPONSES.isdisjoint(value):
        raise InvalidRequest("A request must not have `result` or `error`.")
    if type(params) is not dict:
        if params is not None:
            raise InvalidRequest("`params` must be an object.")
        params = {}
    return Notification(method, params) if ident is None else Request(ident, method, params)


def _response(value: dict[str, Any]) -> Response:
    if "id" not in value:
        raise InvalidRequest("A JSON-RPC message must have a `method`.")
    has_result, has_error = "result" in value, "error" in value
    if has_result == has_error:
        raise InvalidRequest("A message without `method` must have either `result` or `error`.")
    if has_result:
        return Response(value["id"], value["result"])
    error = value["error"]
    if type(error) is not dict or type(error.get("code")) is not int or type(error.get("message")) is not str:
        raise InvalidRequest("`error` must be an object with a whole-number `code` and a `message`.")
    return Response(value["id"], None, error)


def name_and_arguments(params: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What a request calls by its name, and the arguments it may have; or InvalidParams."""
    name, arguments = params.get("name"), params.get("arguments")
    if type(name) is not str:
        raise InvalidParams("`name` must be a string.")
    if arguments is None:
        return name, {}
    if type(arguments) is not dict:
        raise InvalidParams("`arguments` must be an object.")
    return name, arguments


def id_of(value: Any) -> Id | None:
    """The id of a message that may be malformed, for its error response."""
    ident = value.get("id") if type(value) is dict else None
    return ident if type(ident) in (str, int) else None


def encode_result(ident: Id, payload: bytes) -> bytes:
    """A response with a result that is already JSON."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (
        b"%d" % ident if type(ident) is int else orjson.dumps(ident),
        payload,
    )


def encode_error(ident: Id | None, code: int, message: str, data: Any = None) -> bytes:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return orjson.dumps({"jsonrpc": "2.0", "id": ident, "error": error})


def encode_failure(ident: Id | None, error: TabhubError) -> bytes:
    return encode_error(ident, error.code, error.text(), error.details())


def encode_request(ident: Id, method: str, params: Any) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})


def encode_notification(method: str, params: Any = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return orjson.dumps(message)
