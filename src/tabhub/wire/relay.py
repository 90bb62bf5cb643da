"""The relay protocol: reading frames, mapping ids, and every message the relay itself writes.

Owns the form of the messages of browsers and agents to a relay, and of its own. Knows no connection and no user.
Params, results and errors pass through as bytes; only the envelope of a message is written again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import orjson

from tabhub.errors import BadFrame, InvalidParams, InvalidRequest, ParseError, TabhubError
from tabhub.limits import DEFAULTS, Limits
from tabhub.wire import jsonrpc
from tabhub.wire import strict_json as strict
from tabhub.wire.jsonrpc import Id

UNSET = msgspec.UNSET
RESERVED = ("proxy:", "ext:", "conn-")
"""Prefixes of ids that agents may not use."""
CONTROL = frozenset({"mcp_handshake", "list_extensions", "connect", "disconnect", "refresh_token"})
"""Methods the relay answers itself."""
RELAY_WORDS = frozenset({"authenticate", "authenticated", "status", "disconnected"})
"""What only a relay says: passed on, it would make one side believe the other is the relay."""
CANCELS = {"cancel": "id", "notifications/cancelled": "requestId"}
"""Notifications that name a request, and the field: the id in it is mapped like the request's."""

REPLACED, NOT_AUTHENTICATED, PROTOCOL_ERROR, TOO_SLOW, TOO_MANY = 4000, 4001, 4002, 4003, 4005
RESTARTING = 1012
"""Why a relay closes a connection, as WebSocket close codes."""

LARGE = 64 * 1024
PONG = b'{"jsonrpc":"2.0","method":"pong","params":{}}'
_LONGEST_ID = 256
_NUMBER = re.compile(r"-?[0-9]+")


class Frame(msgspec.Struct, gc=False):
    """The envelope of one message."""

    jsonrpc: str = ""
    id: int | str | msgspec.UnsetType = UNSET
    method: str | msgspec.UnsetType = UNSET
    params: msgspec.Raw | msgspec.UnsetType = UNSET
    result: msgspec.Raw | msgspec.UnsetType = UNSET
    error: msgspec.Raw | msgspec.UnsetType = UNSET
    connectionId: str | msgspec.UnsetType = UNSET  # noqa: N815 - its name on the wire


class _Error(msgspec.Struct):
    code: int
    message: str


_FRAME = msgspec.json.Decoder(Frame)
_ERROR = msgspec.json.Decoder(_Error)


def read(data: bytes, limits: Limits = DEFAULTS, parsed: strict.Parsed | None = None) -> Frame:
    """Read one message, or raise BadFrame. A text that was `parsed` before is not parsed again."""
    value: Any = UNSET
    try:
        if len(data) <= LARGE or not _plain(data, limits):
            value = strict.decode(data, limits, parsed=parsed)
        frame = _FRAME.decode(data)
    except ParseError as error:
        raise BadFrame(error) from None
    except msgspec.ValidationError:
        raise _misshapen(data, limits, value) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFrame(ParseError(f"Not valid JSON: {error}.")) from None
    if frame.jsonrpc != "2.0" or (frame.method is UNSET) == (frame.result is UNSET and frame.error is UNSET):
        raise _misshapen(data, limits, value)
    if frame.method is UNSET:
        if frame.id is UNSET or (frame.result is not UNSET and frame.error is not UNSET) or not _true_error(frame):
            raise _misshapen(data, limits, value)
    elif not frame.method or (frame.params is not UNSET and bytes(frame.params)[:1] != b"{"):
        if frame.method and bytes(frame.params) == b"null":  # type: ignore[arg-type]
            frame.params = UNSET
            return frame
        raise _misshapen(data, limits, value)
    return frame


def _plain(data: bytes, limits: Limits) -> bool:
    """Whether a large text has so little structure that decoding its envelope is enough: images and long texts."""
    if data.count(b"{") + data.count(b"[") > limits.max_depth or b"\\u" in data or data.count(b":") > limits.max_keys:
        return False
    data.decode()
    return True


def _true_error(frame: Frame) -> bool:
    if frame.error is UNSET:
        return True
    try:
        _ERROR.decode(frame.error)
    except msgspec.DecodeError:
        return False
    return True


def _misshapen(data: bytes, limits: Limits, value: Any) -> BadFrame:
    """What exactly is wrong with a message that is JSON."""
    if value is UNSET:
        try:
            value = strict.decode(data, limits)
        except ParseError as error:
            return BadFrame(error)
    answer = type(value) is dict and "method" not in value
    ident = jsonrpc.id_of(value)
    if type(value) is dict and type(value.get("params", {})) not in (dict, type(None)):
        return BadFrame(InvalidParams("`params` must be an object."), ident)
    try:
        jsonrpc.parse(value)
    except InvalidRequest as error:
        return BadFrame(error, ident, answer=answer)
    return BadFrame(InvalidRequest("`connectionId` must be a string."), ident)


def map_id(connection: str, ident: Id) -> str:
    """The id under which a browser gets a request. `1` and `"1"` map to different ids."""
    if type(ident) is int:
        return f"{connection}:{ident}"
    text = str(ident)
    if text[:1] == '"' or _NUMBER.fullmatch(text):
        return f"{connection}:{orjson.dumps(text).decode()}"
    return f"{connection}:{text}"


def check_id(ident: Id) -> None:
    """Raise InvalidRequest for an id that agents may not use."""
    if type(ident) is int:
        return
    text = str(ident)
    if text.startswith(RESERVED):
        raise InvalidRequest(
            f"The id {text[:60]!r} begins with a reserved prefix.",
            hint="Use a number, or a text without proxy:, ext:, conn-.",
        )
    if len(text) > _LONGEST_ID:
        raise InvalidRequest(f"The id is longer than {_LONGEST_ID} characters.")


def params_of(frame: Frame) -> dict[str, Any]:
    """The params of a message the relay answers itself."""
    if frame.params is UNSET:
        return {}
    value: dict[str, Any] = orjson.loads(bytes(frame.params))
    return value


def forwarded(mapped: str, frame: Frame) -> bytes:
    """A request with the mapped id and without connectionId."""
    if frame.params is UNSET:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (orjson.dumps(mapped), orjson.dumps(frame.method))
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        orjson.dumps(mapped),
        orjson.dumps(frame.method),
        bytes(frame.params),
    )


def notice(frame: Frame, params: Mapping[str, Any] | None = None) -> bytes:
    """A forwarded notification, with other params if given."""
    if params is None and frame.params is UNSET:
        return b'{"jsonrpc":"2.0","method":%b}' % orjson.dumps(frame.method)
    shown = orjson.dumps(params) if params is not None else bytes(frame.params)  # type: ignore[arg-type]
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (orjson.dumps(frame.method), shown)


def answered(ident: Id, frame: Frame) -> bytes:
    """A browser's response under the agent's own id."""
    shown = b"%d" % ident if type(ident) is int else orjson.dumps(ident)
    if frame.result is not UNSET:
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (shown, bytes(frame.result))
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (shown, bytes(frame.error))  # type: ignore[arg-type]


def result(ident: Id, value: Any) -> bytes:
    return jsonrpc.encode_result(ident, orjson.dumps(value))


def failure(ident: Id | None, error: TabhubError) -> bytes:
    return jsonrpc.encode_failure(ident, error)


def authenticate(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":"proxy:%d","method":"authenticate","params":{}}' % number


def authenticated(user: str, extension_id: str) -> bytes:
    return jsonrpc.encode_notification("authenticated", {"user_id": user, "extension_id": extension_id})


def status(connected: bool, peers: int, stamp: str) -> bytes:
    params = {"connected": connected, "peer_count": peers, "timestamp": stamp}
    return jsonrpc.encode_notification("status", params)


def disconnected(connection: str, reason: str) -> bytes:
    return jsonrpc.encode_notification("disconnected", {"connection_id": connection, "reason": reason})


def cancel(mapped: str) -> bytes:
    """Cancel a request in the browser."""
    return jsonrpc.encode_notification("cancel", {"id": mapped})


def extensions(listed: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The result of list_extensions, from ids and names."""
    return {"extensions": [{"id": ident, "name": name, "connected": True} for ident, name in listed]}


def token_of(params: Mapping[str, Any]) -> str:
    """The access token, as accessToken or access_token, or InvalidParams."""
    token = params.get("accessToken", params.get("access_token"))
    if type(token) is not str or not token:
        raise InvalidParams("`accessToken` must be a non-empty string.")
    return token
