"""Forwarding of messages that need no change except for their id.

Owns the shortcut for the two messages of an ordinary call: an agent's request with an integer id, and a browser's
result. If such a message is canonical JSON (encoding its value gives the same text), it has no duplicate keys, no
overlong numbers and nothing else parsers disagree about, and the position of its id is known: the id is replaced in the
text and the rest is forwarded as it came. Every other message is left to connections.py, with the value parsed here,
and nothing has changed. Both paths produce equivalent messages. Pure, as the rest of the relay's state.
"""

from __future__ import annotations

from typing import Any

import orjson

from tabhub.errors import RateLimited
from tabhub.limits import Limits
from tabhub.relay.records import Agent, Browser, Connection, Pending, Send, Tables, ToNode
from tabhub.relay.users import Users
from tabhub.wire import nodes
from tabhub.wire.jsonrpc import encode_failure
from tabhub.wire.relay import CONTROL, LARGE, RELAY_ONLY
from tabhub.wire.strict_json import DIGITS_WRITTEN, Parsed

Forwarded = tuple[Connection | None, int, bytes]
"""A message for a client of this node; or, with a connection, for the other side of it on another node."""

_BEGINNING = b'{"jsonrpc":"2.0","id":'
_AT_ID = len(_BEGINNING)
_QUOTES = 2
_NOT_FORWARDED = RELAY_ONLY.union(CONTROL)


class CanonicalReader:
    """Reads messages in canonical form."""

    __slots__ = ("_depth", "_flat", "_longest")

    def __init__(self, limits: Limits) -> None:
        # A text of this length cannot have too many keys, and no encoded number exceeds DIGITS_WRITTEN.
        self._longest = min(LARGE, limits.max_keys) if limits.max_digits > DIGITS_WRITTEN else 0
        self._depth = limits.max_depth
        # Too short to be nested too deep: each level takes two brackets.
        self._flat = 2 * limits.max_depth

    def read(self, data: bytes) -> dict[str, Any] | Parsed | None:
        """The value of a canonical text; Parsed for any other that was parsed; None if it was not."""
        size = len(data)
        if size > self._longest or not data.startswith(_BEGINNING):
            return None
        if size > self._flat and data.count(b"{") + data.count(b"[") > self._depth:
            return None
        try:
            value: dict[str, Any] = orjson.loads(data)
        except orjson.JSONDecodeError:
            return None
        encoded = orjson.dumps(value)
        return value if encoded == data else Parsed(value, encoded)


def request_id(value: dict[str, Any]) -> int | None:
    """The id of a request that only needs another id."""
    ident, method = value["id"], value.get("method")
    if type(ident) is int and type(method) is str and method and method not in _NOT_FORWARDED:
        keys = len(value)
        if keys == 3 or (keys == 4 and type(value.get("params")) is dict):
            return ident
    return None


def reply_id(value: dict[str, Any]) -> str | None:
    """The mapped id of a result."""
    ident = value["id"]
    return ident if type(ident) is str and len(value) == 3 and "result" in value else None


def map_request(mapped: str, own: int, data: bytes) -> bytes:
    """An agent's request under its mapped id; the agent's own id is `own` characters long."""
    return b'{"jsonrpc":"2.0","id":"%b"%b' % (mapped.encode(), data[_AT_ID + own :])


def unmap_reply(mapped: str, ident: int, data: bytes) -> bytes:
    """A browser's reply under the agent's own id. The mapped id ends in a number, so the text has no escapes in it."""
    return b'{"jsonrpc":"2.0","id":%d%b' % (ident, data[_AT_ID + _QUOTES + len(mapped) :])


class FastForward:
    """The shortcut for the connections of one node."""

    def __init__(self, tables: Tables, users: Users) -> None:
        self._users = users
        self._counts = tables.counts
        self.apply_limits(tables.limits)

    def apply_limits(self, limits: Limits) -> None:
        self._reader = CanonicalReader(limits)
        self._max_pending = limits.relay_calls
        self._timeout = limits.call_timeout_max

    def request(self, agent: Agent, data: bytes, now: float) -> Forwarded | Parsed | None:
        connection = agent.connection
        if connection is None or connection.refuses or len(connection.pending) >= self._max_pending:
            return None
        value = self._reader.read(data)
        if not isinstance(value, dict):
            return value
        ident = request_id(value)
        own = str(ident)
        mapped = f"{connection.ident}:{own}"
        if ident is None or mapped in connection.pending:
            return Parsed(value, data)
        wait = self._users.check_rate(agent, now)
        if wait is not None:
            self._counts.rate_limited += 1
            error = RateLimited("Too many messages.", retry_after=int(wait) + 1)
            return None, agent.client, encode_failure(ident, error)
        connection.pending[mapped] = Pending(ident, now + self._timeout)
        self._counts.forwarded += 1
        forwarded = map_request(mapped, len(own), data)
        browser = connection.browser
        if browser is not None:
            return None, browser.client, forwarded
        return connection, 0, forwarded

    def reply(self, browser: Browser, data: bytes) -> Forwarded | Parsed | None:
        value = self._reader.read(data)
        if not isinstance(value, dict):
            return value
        mapped = reply_id(value)
        connection = browser.connections.get(mapped.partition(":")[0]) if mapped is not None else None
        if mapped is None or connection is None:
            return Parsed(value, data)
        if connection.agent is None:
            return connection, 0, data
        return self._to_agent(connection, connection.agent, mapped, data) or Parsed(value, data)

    def remote_reply(self, connection: Connection, agent: Agent, data: bytes) -> Forwarded | Parsed | None:
        """A reply of a browser on another node."""
        value = self._reader.read(data)
        if not isinstance(value, dict):
            return value
        mapped = reply_id(value)
        return (mapped and self._to_agent(connection, agent, mapped, data)) or Parsed(value, data)

    def _to_agent(self, connection: Connection, agent: Agent, mapped: str, data: bytes) -> Forwarded | None:
        call = connection.pending.get(mapped)
        if call is None or type(call.ident) is not int:
            return None
        del connection.pending[mapped]
        self._counts.answered += 1
        return None, agent.client, unmap_reply(mapped, call.ident, data)


def effect_of(forwarded: Forwarded) -> Send | ToNode:
    connection, client, data = forwarded
    if connection is None or connection.node is None:
        return Send(client, data)
    kind = nodes.ToBrowser if connection.agent is not None else nodes.ToAgent
    return ToNode(connection.node, kind(connection.ident, data))
