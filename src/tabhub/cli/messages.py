"""MCP messages as the bridge needs to see them: which era, which headers, whose answer.

Owns reading a line from the client and the shape of the errors the bridge answers itself. It does no I/O.
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_HEADER_SAFE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")

HUB_GONE = -32000
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603


@dataclass(frozen=True, slots=True)
class Message:
    """One line from the client."""

    raw: bytes
    method: str | None
    ids: tuple[Any, ...]
    """The ids that are owed an answer: one for a request, any number for a batch."""
    params: dict[str, Any]
    version: str | None
    """The protocol version the message itself names (2026-07-28 and later): then it stands for itself."""

    @property
    def modern(self) -> bool:
        """Whether the message belongs to no session."""
        return self.version is not None

    def headers(self) -> dict[str, str]:
        """The HTTP headers a message that stands for itself repeats its routing facts in."""
        if self.version is None or self.method is None:
            return {}
        headers = {"MCP-Protocol-Version": header_value(self.version), "Mcp-Method": header_value(self.method)}
        name = self.params.get(NAMED_BY.get(self.method, ""))
        if isinstance(name, str):
            headers["Mcp-Name"] = header_value(name)
        return headers


class NotJson(ValueError):
    """The line is not JSON."""


def read_message(line: bytes) -> Message:
    """Read one line; NotJson when it is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None
    if isinstance(value, list):
        owed = tuple(m["id"] for m in value if isinstance(m, dict) and "id" in m and "method" in m)
        return Message(line, None, owed, {}, None)
    if not isinstance(value, dict):
        return Message(line, None, (None,), {}, None)
    method = value.get("method")
    params = value.get("params")
    params = params if isinstance(params, dict) else {}
    meta = params.get("_meta")
    version = meta.get(VERSION_KEY) if isinstance(meta, dict) else None
    known = isinstance(method, str)
    ident = value.get("id")
    ident = ident if isinstance(ident, str | int) and not isinstance(ident, bool) else None  # others are no ids
    # An answer to the hub is owed none; what is neither request nor answer is for the hub to judge.
    unanswered = "id" not in value if known else "result" in value or "error" in value
    owed = () if unanswered else (ident,)
    return Message(line, method if known else None, owed, params, version if isinstance(version, str) else None)


def header_value(text: str) -> str:
    """A text as an HTTP header: as it is, or in base64 where it would not survive."""
    if _HEADER_SAFE.fullmatch(text) and not (text.startswith("=?base64?") and text.endswith("?=")):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def answers(data: bytes, owed: tuple[Any, ...]) -> bool:
    """Whether a message from the hub is the answer to one of these ids."""
    try:
        value = json.loads(data)
    except ValueError:
        return False
    if not isinstance(value, dict) or "method" in value:
        return False
    return any(type(value.get("id")) is type(ident) and value.get("id") == ident for ident in owed)


def failure(ident: Any, code: int, message: str, **data: Any) -> bytes:
    """A JSON-RPC error of the bridge's own."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data:
        error["data"] = data
    return json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}).encode()


def refused(body: bytes, ident: Any, status: int) -> bytes:
    """The hub's refusal of a request as that request's answer."""
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return failure(ident, HUB_GONE, f"The hub answered with HTTP status {status}.", outcome="unknown")
    if isinstance(value, dict) and value.get("jsonrpc") == "2.0" and isinstance(error.get("code"), int):
        # The hub may have refused before it read the id.
        return json.dumps({"jsonrpc": "2.0", "id": ident, "error": error}).encode()
    data = {key: item for key, item in error.items() if key not in ("message", "code")}
    code = error.get("code")
    return failure(ident, code if isinstance(code, int) else HUB_GONE, error["message"], **data)


def one_line(body: bytes) -> bytes:
    """A JSON text on one line: line breaks in JSON stand only between its parts."""
    return body.replace(b"\r", b" ").replace(b"\n", b" ").strip()
