"""The messages of the bridge socket: lines of JSON between the hub and a client.

Owns what a client may send, how strictly it is read, and how the hub's lines are written. A REQUEST carries an MCP
method as its action. Ids are opaque. Knows no socket, no session and no method.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec
import orjson

from tabhub.errors import InvalidRequest, TabhubError
from tabhub.limits import Limits
from tabhub.wire import strict_json as strict

PROTOCOL = 1
"""The version of this protocol."""
ANSWER = "answer"
"""The event by which a client answers a question of the hub."""

Surface = Literal["all", "gateway"]
Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

_MAX_CLIENT = 100
_MAX_ID = 200
# A line that cannot be parsed may still name its request, if it begins as Tabhub's own client writes it.
_BEGINNING = re.compile(rb'\{"type":"[A-Z]{1,20}","id":"([A-Za-z0-9:._-]{1,200})"')


class _Line(msgspec.Struct, tag_field="type", rename="camel"):
    """A line from a client; fields it does not know are ignored."""


class Register(_Line, tag="REGISTER"):
    """A client introduces itself, or resumes the session it had."""

    client: Id | None = None
    version: Id | None = None
    session_id: Id | None = None
    token: Id | None = None
    surface: Surface = "all"
    tools: Annotated[str, msgspec.Meta(min_length=1, max_length=500)] | None = None
    """The selection of tools to list."""
    agent_token: Id | None = None
    """The client's named token."""

    @property
    def display_name(self) -> str | None:
        """Client and version as one printable line."""
        line = f"{self.client or ''} {self.version or ''}" if self.client else ""
        return "".join(c for c in line if c.isprintable()).strip()[:_MAX_CLIENT] or None


class Request(_Line, tag="REQUEST"):
    """A call of an MCP method."""

    id: Id
    session_id: Id
    action: Id
    params: dict[str, Any] = {}


class Cancel(_Line, tag="CANCEL"):
    """A request is cancelled."""

    id: Id


class Event(_Line, tag="EVENT"):
    """A notification of the client, or its answer to a question of the hub."""

    session_id: Id
    event: Id
    params: dict[str, Any] = {}


class Status(_Line, tag="STATUS"):
    """A request for the state of the hub."""

    id: Id
    token: Id | None = None


class Ping(_Line, tag="PING"):
    """A request for a PONG."""

    id: Id | None = None


class Disconnect(_Line, tag="DISCONNECT"):
    """The client is done: its session may end."""


Message = Register | Request | Cancel | Event | Status | Ping | Disconnect


class _HubLine(msgspec.Struct, tag_field="type", rename="camel", omit_defaults=True):
    """A line from the hub."""


class Registered(_HubLine, tag="REGISTER_OK"):
    """The session, whether it was resumed, and whether `initialize` was done before."""

    session_id: str
    resumed: bool
    initialized: bool
    protocol: int
    version: str | None = None
    max_line: int | None = None


class Failure(msgspec.Struct, omit_defaults=True):
    """A JSON-RPC error."""

    code: int
    message: str
    data: Any = None


class Response(_HubLine, tag="RESPONSE"):
    """The reply to a request: its result as `data`, or its error."""

    id: str
    success: bool
    data: Any = None
    error: Failure | None = None


class HubEvent(_HubLine, tag="EVENT"):
    """A notification or a question of the hub."""

    session_id: str
    event: str
    params: Any
    id: str | None = None
    """The request it belongs to."""
    ask: str | int | None = None
    """The id by which a question is answered."""


class StatusReply(_HubLine, tag="STATUS_OK"):
    """The state of the hub."""

    id: str
    extension_connected: bool
    active_sessions: int
    browsers: Any
    paused: Any
    version: str
    pid: int
    port: int


class Pong(_HubLine, tag="PONG"):
    """The reply to a PING."""

    id: str | None = None


class Error(_HubLine, tag="ERROR"):
    """A line that was refused; nothing of it was done."""

    id: str | None
    error: Failure


FROM_HUB = (Registered, Response, HubEvent, StatusReply, Pong, Error)


def read(line: bytes, limits: Limits) -> Message:
    """One line as a message, or InvalidRequest naming the field that is wrong."""
    value = strict.decode(line, limits)
    if type(value) is dict and value.get("params", value) is None:
        del value["params"]
    try:
        message: Message = msgspec.convert(value, Message)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"Invalid message: {error}.") from None
    return message


def beginning_id(line: bytes) -> str | None:
    """The id a line begins with, for the error reply to a line that cannot be parsed."""
    found = _BEGINNING.match(line)
    return found[1].decode() if found is not None else None


def id_in(line: bytes, limits: Limits) -> str | None:
    """The id of a line that was refused, if it has one."""
    try:
        value = strict.decode(line, limits)
    except TabhubError:
        return beginning_id(line)
    ident = value.get("id") if type(value) is dict else None
    return ident if type(ident) is str and 0 < len(ident) <= _MAX_ID else None


_ENCODER = msgspec.json.Encoder()


def encode(message: msgspec.Struct) -> bytes:
    return _ENCODER.encode(message) + b"\n"


def response(ident: str, answer: bytes) -> bytes:
    """The line around a JSON-RPC reply, whose result is spliced in without being decoded."""
    quoted = orjson.dumps(ident)
    head = b'{"jsonrpc":"2.0","id":%b,"result":' % quoted
    if answer.startswith(head):
        return b'{"type":"RESPONSE","id":%b,"success":true,"data":%b\n' % (quoted, answer[len(head) :])
    failure = msgspec.convert(orjson.loads(answer)["error"], Failure)
    return encode(Response(ident, success=False, error=failure))


def event(session_id: str, request_id: str | None, message: bytes) -> bytes:
    """A JSON-RPC notification or request of the hub as a line."""
    value = orjson.loads(message)
    return encode(HubEvent(session_id, value["method"], value.get("params", {}), request_id, value.get("id")))


def error(ident: str | None, failure: TabhubError) -> bytes:
    return encode(Error(ident, Failure(failure.code, failure.text(), failure.details())))
