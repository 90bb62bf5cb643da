"""The relay protocol: the messages between a relay and its agents and browsers, and the mapping of ids.

Owns their form. Knows no connection and no user. Params, results and errors that are forwarded pass through as bytes;
only the envelope of a message is written again.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
import orjson

from tabhub.errors import BadFrame, InvalidParams, InvalidRequest, ParseError
from tabhub.limits import DEFAULTS, Limits
from tabhub.wire import jsonrpc
from tabhub.wire import strict_json as strict
from tabhub.wire.jsonrpc import Id
from tabhub.wire.messages import Received

UNSET = msgspec.UNSET
RESERVED = ("proxy:", "ext:", "conn-")
"""Prefixes of ids that agents may not use."""
CANCELS = {"cancel": "id", "notifications/cancelled": "requestId"}
"""Notifications that name a request, and the field with its id."""

REPLACED, NOT_AUTHENTICATED, PROTOCOL_ERROR = 4000, 4001, 4002
RESTARTING, TRY_AGAIN_LATER = 1012, 1013
"""Why a relay closes a connection, as WebSocket close codes."""

LARGE = 64 * 1024
PING = b'{"jsonrpc":"2.0","method":"ping","params":{}}'
"""As the extension encodes it; with spaces or other keys it means the same."""
PONG = b'{"jsonrpc":"2.0","method":"pong","params":{}}'
_LONGEST_ID = 256
_NUMBER = re.compile(r"-?[0-9]+")

Name = Annotated[str, msgspec.Meta(min_length=1)]


class Token(Received):
    """The params of `mcp_handshake` and `refresh_token`; both spellings are accepted."""

    access_token: Name | None = None
    snake_case: Name | None = msgspec.field(default=None, name="access_token")

    def __post_init__(self) -> None:
        if not self.token:
            raise ValueError("`accessToken` must be a non-empty string")

    @property
    def token(self) -> str:
        return self.access_token or self.snake_case or ""


class Login(Token, kw_only=True):
    """A browser's reply to `authenticate`."""

    name: Annotated[str, msgspec.Meta(pattern=r"\S")]
    instance_id: Any = None
    """A text that stays the same across connections; anything else is ignored."""


class Connect(msgspec.Struct):
    """Which browser to connect to."""

    extension_id: Name


class Authenticated(msgspec.Struct):
    """The token was accepted."""

    user_id: str
    mcp_client_id: str
    authenticated: Literal[True] = True


class Extension(msgspec.Struct):
    """A connected browser of the user."""

    id: str
    name: str = ""
    connected: bool = True


class Extensions(msgspec.Struct):
    """All connected browsers of the user."""

    extensions: list[Extension]


class Connected(msgspec.Struct):
    """The connection to a browser."""

    connection_id: str
    extension_id: str = ""
    extension_name: str = "browser"


class DisconnectResult(msgspec.Struct):
    """The agent is no longer connected to a browser."""

    disconnected: Literal[True] = True


class Status(msgspec.Struct):
    """Whether a client is connected to another, and to how many it could be or is."""

    connected: bool
    peer_count: int
    timestamp: str


class Admitted(msgspec.Struct):
    """A browser's token was accepted."""

    user_id: str
    extension_id: str


class Disconnected(msgspec.Struct):
    """A connection ended."""

    connection_id: str = ""
    reason: str = "the browser disconnected"


class Cancel(msgspec.Struct):
    """Stop a request in the browser."""

    id: str


class NoParams(msgspec.Struct):
    """No parameters."""


CONTROL: dict[str, tuple[type[msgspec.Struct], type[msgspec.Struct]]] = {
    "mcp_handshake": (Token, Authenticated),
    "refresh_token": (Token, Authenticated),
    "list_extensions": (NoParams, Extensions),
    "connect": (Connect, Connected),
    "disconnect": (NoParams, DisconnectResult),
}
"""Methods the relay answers itself, with their params and results."""
NOTIFICATIONS: dict[str, type[msgspec.Struct]] = {
    "status": Status,
    "authenticated": Admitted,
    "disconnected": Disconnected,
    "cancel": Cancel,
}
"""The relay's own notifications."""
RELAY_ONLY = frozenset({"authenticate", "authenticated", "status", "disconnected"})
"""Methods that are never forwarded: one side would believe that the other is the relay."""


class Frame(msgspec.Struct, gc=False):
    """The envelope of one message; what it carries stays encoded."""

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
_LOGIN = msgspec.json.Decoder(Login)
_PARAMS = {method: msgspec.json.Decoder(params) for method, (params, _) in CONTROL.items()}
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_METHODS = {kind: method.encode() for method, kind in NOTIFICATIONS.items()}
_ENCODER = msgspec.json.Encoder()


def read(data: bytes, limits: Limits = DEFAULTS, parsed: strict.Parsed | None = None) -> Frame:
    """Read one message, or raise BadFrame. A text that was `parsed` before is not parsed again."""
    value: Any = UNSET
    try:
        if len(data) <= LARGE or not _is_plain(data, limits):
            value = strict.decode(data, limits, parsed=parsed)
        frame = _FRAME.decode(data)
    except ParseError as error:
        raise BadFrame(error) from None
    except msgspec.ValidationError:
        raise _invalid(data, limits, value) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadFrame(ParseError(f"Not valid JSON: {error}.")) from None
    if frame.jsonrpc != "2.0" or (frame.method is UNSET) == (frame.result is UNSET and frame.error is UNSET):
        raise _invalid(data, limits, value)
    if frame.method is UNSET:
        if frame.id is UNSET or (frame.result is not UNSET and frame.error is not UNSET) or not _has_valid_error(frame):
            raise _invalid(data, limits, value)
    elif not frame.method or (frame.params is not UNSET and bytes(frame.params)[:1] != b"{"):
        if frame.method and bytes(frame.params) == b"null":  # type: ignore[arg-type]
            frame.params = UNSET
            return frame
        raise _invalid(data, limits, value)
    return frame


def _is_plain(data: bytes, limits: Limits) -> bool:
    """Whether a large text has so little structure (images, long texts) that decoding its envelope is enough."""
    if data.count(b"{") + data.count(b"[") > limits.max_depth or b"\\u" in data or data.count(b":") > limits.max_keys:
        return False
    data.decode()
    return True


def _has_valid_error(frame: Frame) -> bool:
    if frame.error is UNSET:
        return True
    try:
        _ERROR.decode(frame.error)
    except msgspec.DecodeError:
        return False
    return True


def _invalid(data: bytes, limits: Limits, value: Any) -> BadFrame:
    """The error of a JSON text that is not a valid message."""
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


def params_of(frame: Frame) -> Any:
    """The params of a control method as its struct, or InvalidParams."""
    method = str(frame.method)
    try:
        return _PARAMS[method].decode(b"{}" if frame.params is UNSET else frame.params)
    except msgspec.DecodeError as error:
        raise InvalidParams(f"{method}: {error}.") from None


def login_of(frame: Frame) -> Login:
    """A browser's reply to `authenticate`, or InvalidParams."""
    try:
        return _LOGIN.decode(frame.result)  # type: ignore[arg-type]
    except msgspec.DecodeError as error:
        raise InvalidParams(f"authenticate: {error}.") from None


def forwarded(mapped: str, frame: Frame) -> bytes:
    """A request with the mapped id and without connectionId."""
    return b'{"jsonrpc":"2.0","id":%b,%b}' % (orjson.dumps(mapped), _method_and_params(frame))


def notice(connection: str, frame: Frame) -> bytes:
    """A notification of an agent for its browser, with the connection it came over; the request id in a cancellation is
    mapped like the request's."""
    param = CANCELS.get(str(frame.method))
    if param is not None and frame.params is not UNSET:
        params: dict[str, msgspec.Raw] = _FIELDS.decode(frame.params)
        request = msgspec.json.decode(params.get(param, b"null"))
        if type(request) is int or type(request) is str:
            params[param] = msgspec.Raw(orjson.dumps(map_id(connection, request)))
        frame.params = msgspec.Raw(msgspec.json.encode(params))
    return b'{"jsonrpc":"2.0","connectionId":%b,%b}' % (orjson.dumps(connection), _method_and_params(frame))


def passed_on(frame: Frame) -> bytes:
    """A browser's notification, reduced to its method and params."""
    return b'{"jsonrpc":"2.0",%b}' % _method_and_params(frame)


def _method_and_params(frame: Frame) -> bytes:
    params = b"" if frame.params is UNSET else b',"params":%b' % bytes(frame.params)
    return b'"method":%b%b' % (orjson.dumps(frame.method), params)


def answered(ident: Id, frame: Frame) -> bytes:
    """A browser's response under the agent's own id."""
    shown = b"%d" % ident if type(ident) is int else orjson.dumps(ident)
    if frame.result is not UNSET:
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (shown, bytes(frame.result))
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (shown, bytes(frame.error))  # type: ignore[arg-type]


def result(ident: Id, value: msgspec.Struct) -> bytes:
    return jsonrpc.encode_result(ident, _ENCODER.encode(value))


def authenticate(number: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":"proxy:%d","method":"authenticate","params":{}}' % number


def notification(params: Status | Admitted | Disconnected | Cancel) -> bytes:
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}' % (_METHODS[type(params)], _ENCODER.encode(params))
