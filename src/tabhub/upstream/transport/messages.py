"""The messages of external servers: parsing them, and the stream in which the SDK's session receives them.

Owns the one leniency of parsing: a lone surrogate, as JavaScript servers send when they cut text inside a character,
becomes a replacement character. Everything else that is not a message is refused. Results are made valid before the
session sees them (core.results), because it refuses others as a whole.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from contextvars import Context, copy_context
from typing import Any

import anyio
import mcp_types as types
from anyio.abc import ObjectReceiveStream
from mcp.shared.message import SessionMessage

from tabhub.core.resources import GET, READ
from tabhub.core.results.resource_results import valid_answer
from tabhub.core.results.valid_results import valid_result

_CALL = "tools/call"
_ESCAPES = re.compile(
    rb"\\\\"  # a backslash that is written out; what follows it is text
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole character
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def read_message(data: bytes) -> types.JSONRPCMessage:
    """ValueError if it is not a message."""
    try:
        return types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        whole = _ESCAPES.sub(lambda found: rb"\ufffd" if found["lone"] else found[0], data)
        return types.jsonrpc_message_adapter.validate_json(whole, by_name=False)


def write_message(message: types.JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _valid(method: str, params: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """A result as MCP defines it; a question instead of one stays as it is."""
    if result.get("resultType", "complete") != "complete":
        return result
    if method == _CALL:
        protocol = {key: result[key] for key in ("resultType",) if key in result}
        return protocol | valid_result(result)
    uri = params.get("uri")
    return valid_answer(method, result, uri if isinstance(uri, str) else "")


class ReceivedMessages(ObjectReceiveStream[SessionMessage]):
    """Received messages in order, for the SDK's session.

    The session handles each in the context of the call that it was received for.
    """

    def __init__(self) -> None:
        self._messages: deque[tuple[Context, SessionMessage]] = deque()
        self._changed = asyncio.Event()
        self._closed = False
        self.last_context: Context | None = None
        self._expected: dict[str, tuple[str, dict[str, Any]]] = {}
        """The requests whose results are made valid, by id."""

    def expect(self, message: types.JSONRPCMessage) -> None:
        """A message is sent."""
        if isinstance(message, types.JSONRPCRequest) and message.method in (_CALL, READ, GET):
            self._expected[str(message.id)] = (message.method, message.params or {})
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._expected.pop(str((message.params or {}).get("requestId")), None)

    def put(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            expected = self._expected.pop(str(message.id), None)
            if expected is not None and isinstance(message, types.JSONRPCResponse):
                message.result = _valid(*expected, message.result)
        self._messages.append((copy_context(), SessionMessage(message)))
        self._changed.set()

    def close(self) -> None:
        """The server sends nothing more."""
        self._closed = True
        self._changed.set()

    async def receive(self) -> SessionMessage:
        while not self._messages:
            if self._closed:
                raise anyio.EndOfStream
            self._changed.clear()
            await self._changed.wait()
        self.last_context, message = self._messages.popleft()
        return message

    async def aclose(self) -> None:
        self.close()
