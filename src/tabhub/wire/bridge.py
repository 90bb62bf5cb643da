"""The daemon's messages: lines of JSON between the hub and a client on its socket.

Owns what a client may say, how strictly that is read, and how the hub's side is written. A REQUEST carries an MCP
method as its action. Ids are opaque: nothing is read out of them. Knows no socket, no session and no method; what is
out of turn is the server's to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from tabhub.errors import InvalidRequest, TabhubError
from tabhub.limits import Limits
from tabhub.wire import strict_json as strict

PROTOCOL = 1
"""The version of this protocol."""
ANSWER = "answer"
"""The event by which a client answers what the hub asked it."""
SURFACES = ("all", "gateway")

Surface = Literal["all", "gateway"]

_ID = 200
_NAME = 200
_SHORT_TEXT = 100
# A line that cannot be read may still say whose it is, if it begins as our own client writes it.
_BEGINNING = re.compile(rb'\{"type":"[A-Z]{1,20}","id":"([A-Za-z0-9:._-]{1,200})"')


@dataclass(frozen=True, slots=True)
class Register:
    """A client introduces itself, or comes back to the session it had."""

    client: str | None = None
    session_id: str | None = None
    token: str | None = None
    surface: Surface = "all"
    tools: str | None = None
    """The selection of tools to be shown."""
    agent_token: str | None = None
    """The client's named token, where agents need one or have one."""


@dataclass(frozen=True, slots=True)
class Request:
    """Something to do."""

    id: str
    session_id: str
    action: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cancel:
    """A request is taken back."""

    id: str


@dataclass(frozen=True, slots=True)
class Event:
    """A notification of the client, or its answer to a question of the hub."""

    session_id: str
    event: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Status:
    """How is the hub?"""

    id: str
    token: str | None = None


@dataclass(frozen=True, slots=True)
class Ping:
    """Is the hub there?"""

    id: str | None = None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """The client is done: its session may end."""


Message = Register | Request | Cancel | Event | Status | Ping | Disconnect


def read(line: bytes, limits: Limits) -> Message:
    """One line as a message, or the error that says what is wrong with it."""
    value = strict.decode(line, limits)
    if type(value) is not dict:
        raise InvalidRequest("A message must be an object with a `type`.")
    kind = value.get("type")
    reader = _READERS.get(kind) if type(kind) is str else None
    if reader is None:
        raise InvalidRequest(f"`type` must be one of {', '.join(_READERS)}, not {str(kind)[:50]!r}.")
    return reader(value)


def beginning_id(line: bytes) -> str | None:
    """The id a line begins with, for the error that answers a line which cannot be read."""
    found = _BEGINNING.match(line)
    return found[1].decode() if found is not None else None


def id_in(line: bytes, limits: Limits) -> str | None:
    """The id of a line that is no message of ours, as far as it has one."""
    try:
        value = strict.decode(line, limits)
    except TabhubError:
        return beginning_id(line)
    ident = value.get("id") if type(value) is dict else None
    return ident if type(ident) is str and 0 < len(ident) <= _ID else None


def _register(value: dict[str, Any]) -> Register:
    surface = value.get("surface", "all")
    if surface not in SURFACES:
        raise InvalidRequest(f"`surface` must be one of {', '.join(SURFACES)}.")
    name, version = _maybe(value, "client", _NAME), _maybe(value, "version", _NAME)
    client = None
    if name is not None:
        line = f"{name} {version}" if version else name
        client = "".join(c for c in line if c.isprintable()).strip()[:_SHORT_TEXT] or None
    session_id, token, tools = (
        _maybe(value, "sessionId", _ID),
        _maybe(value, "token", _NAME),
        _maybe(value, "tools", 500),
    )
    return Register(client, session_id, token, surface, tools, _maybe(value, "agentToken", _NAME))


def _request(value: dict[str, Any]) -> Request:
    return Request(_text(value, "id"), _text(value, "sessionId"), _text(value, "action"), _params(value))


def _event(value: dict[str, Any]) -> Event:
    return Event(_text(value, "sessionId"), _text(value, "event"), _params(value))


_READERS: dict[str, Callable[[dict[str, Any]], Message]] = {
    "REGISTER": _register,
    "REQUEST": _request,
    "CANCEL": lambda value: Cancel(_text(value, "id")),
    "EVENT": _event,
    "STATUS": lambda value: Status(_text(value, "id"), _maybe(value, "token", _NAME)),
    "PING": lambda value: Ping(_maybe(value, "id", _ID)),
    "DISCONNECT": lambda _value: Disconnect(),
}


def _text(value: dict[str, Any], name: str) -> str:
    found = _maybe(value, name, _ID)
    if found is None:
        raise InvalidRequest(f"`{name}` must be a string of 1 to {_ID} characters.")
    return found


def _maybe(value: dict[str, Any], name: str, longest: int) -> str | None:
    found = value.get(name)
    if found is None:
        return None
    if type(found) is not str or not 0 < len(found) <= longest:
        raise InvalidRequest(f"`{name}` must be a string of 1 to {longest} characters.")
    return found


def _params(value: dict[str, Any]) -> dict[str, Any]:
    params = value.get("params")
    if params is None:
        return {}
    if type(params) is not dict:
        raise InvalidRequest("`params` must be an object.")
    return params


# what the hub says


def registered(session_id: str, *, resumed: bool, initialized: bool, **facts: Any) -> bytes:
    """REGISTER_OK: the session, whether it is the one that was asked for, and whether it is past `initialize`."""
    known = {"sessionId": session_id, "resumed": resumed, "initialized": initialized, "protocol": PROTOCOL}
    return _line({"type": "REGISTER_OK", **known, **facts})


def response(ident: str, answer: bytes) -> bytes:
    """RESPONSE: the whole JSON-RPC answer to the request of that id; a result is spliced in as it is."""
    quoted = orjson.dumps(ident)
    head = b'{"jsonrpc":"2.0","id":%b,"result":' % quoted
    if answer.startswith(head):
        return b'{"type":"RESPONSE","id":%b,"success":true,"data":%b\n' % (quoted, answer[len(head) :])
    error = orjson.loads(answer)["error"]
    return _line({"type": "RESPONSE", "id": ident, "success": False, "error": error})


def event(session_id: str, request_id: str | None, message: bytes) -> bytes:
    """EVENT: a notification or a question of the hub, with the request it belongs to."""
    value = orjson.loads(message)
    line = {"type": "EVENT", "sessionId": session_id, "event": value["method"], "params": value.get("params", {})}
    if request_id is not None:
        line["id"] = request_id
    if "id" in value:
        line["ask"] = value["id"]
    return _line(line)


def status(ident: str, facts: dict[str, Any]) -> bytes:
    """STATUS_OK."""
    return _line({"type": "STATUS_OK", "id": ident, **facts})


def pong(ident: str | None) -> bytes:
    """PONG."""
    return _line({"type": "PONG"} if ident is None else {"type": "PONG", "id": ident})


def error(ident: str | None, failure: TabhubError) -> bytes:
    """ERROR: a line that was not taken; what it asked for was not done."""
    said = {"code": failure.code, "message": failure.text(), "data": failure.facts()}
    return _line({"type": "ERROR", "id": ident, "error": said})


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value) + b"\n"
