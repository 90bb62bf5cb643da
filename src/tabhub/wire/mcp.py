"""MCP on the wire, both eras: versions, headers, envelopes and the fixed answers.

Owns what differs between the revisions with a handshake (2025-03-26 to 2025-11-25) and the stateless one (2026-07-28).
Knows nothing of HTTP servers or tools: headers and messages are passed in.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import orjson

from tabhub.errors import BadInput, HeaderMismatch, InvalidParams, InvalidRequest, TabhubError, UnsupportedVersion
from tabhub.wire.jsonrpc import Request

HANDSHAKE_VERSIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
LATEST_HANDSHAKE = HANDSHAKE_VERSIONS[-1]
STATELESS = "2026-07-28"
SUPPORTED = (*HANDSHAKE_VERSIONS, STATELESS)

META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT = "io.modelcontextprotocol/clientInfo"
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
META_SERVER = "io.modelcontextprotocol/serverInfo"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose parameter of that name the Mcp-Name header repeats."""

CAPABILITY_OF = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""Requests a server may send to a client, and the capability each requires."""

LISTS = ("tools", "resources", "prompts")
"""The kinds of lists whose changes are notified."""
RESOURCE_UPDATED = "notifications/resources/updated"
LIST_CHANGED = {kind: f"notifications/{kind}/list_changed" for kind in LISTS}

LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_NAME = 200
"""Characters of a client's name that are looked at; fewer are shown."""
_B64_OPEN, _B64_CLOSE = "=?base64?", "?="


class Envelope(msgspec.Struct):
    """The `_meta` of a stateless request."""

    client: str
    capabilities: Mapping[str, Any]
    log_level: str | None
    progress_token: str | int | None


def client_name(info: Any) -> str:
    """A client's name and version as one short line."""
    name, version = (info.get("name"), info.get("version")) if type(info) is dict else (None, None)
    return _name_line(name[:_NAME] if type(name) is str else "", version[:_NAME] if type(version) is str else "")


@lru_cache(maxsize=256)
def _name_line(name: str, version: str) -> str:
    if not name.strip():
        return "unknown"
    line = f"{name} {version}" if version else name
    return (line if line.isprintable() else "".join(c for c in line if c.isprintable()))[:100]


def progress_token(params: Mapping[str, Any]) -> str | int | None:
    """The token for progress notifications, if the agent wants any."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str) or type(token) is int else None


def read_envelope(request: Request, version: str, headers: Mapping[bytes, bytes] | None) -> Envelope:
    """Check a stateless request against its headers, in the order the revision gives, and read its envelope.

    The bridge has no headers: it passes None.
    """
    params, meta = request.params, request.params.get("_meta")
    if not isinstance(meta, dict):
        raise InvalidParams(f"params._meta must be an object with {META_VERSION} and {META_CAPABILITIES}.")
    named_version, capabilities = meta.get(META_VERSION), meta.get(META_CAPABILITIES)
    if (named_version is None and META_VERSION not in meta) or (capabilities is None and META_CAPABILITIES not in meta):
        missing = [key for key in (META_VERSION, META_CAPABILITIES) if key not in meta]
        raise InvalidParams(f"params._meta lacks {', '.join(missing)}.")
    if named_version != version:
        raise HeaderMismatch("The MCP-Protocol-Version header and params._meta name different versions.")
    if headers is not None:
        method = headers.get(b"mcp-method", b"").decode("latin-1")
        if method != request.method and method.strip(" \t") != request.method:
            raise HeaderMismatch("The Mcp-Method header is missing or is not the method of the body.")
        named = NAMED.get(request.method)
        if named is not None:
            value = params.get(named)
            if value is not None and header_value(headers.get(b"mcp-name")) != value:
                raise HeaderMismatch(f"The Mcp-Name header is missing or is not the `{named}` of the body.")
    if version != STATELESS:
        raise UnsupportedVersion(version, SUPPORTED)
    if not isinstance(capabilities, dict):
        raise InvalidParams(f"params._meta[{META_CAPABILITIES!r}] must be an object.")
    level = meta.get(META_LOG_LEVEL)
    return Envelope(
        client_name(meta.get(META_CLIENT)),
        capabilities,
        level if level in LOG_LEVELS else None,
        progress_token(params) if "progressToken" in meta else None,
    )


def read_listen(request: Request) -> tuple[str, ...]:
    """The lists whose changes a `subscriptions/listen` subscribes to."""
    wanted = request.params.get("notifications")
    if not isinstance(wanted, dict):
        raise InvalidParams("`notifications` must be an object.")
    return tuple(kind for kind in LISTS if wanted.get(f"{kind}ListChanged") is True)


def read_followed(request: Request) -> list[str]:
    """The resources whose changes a `subscriptions/listen` subscribes to."""
    wanted = request.params["notifications"].get("resourceSubscriptions", [])
    if not isinstance(wanted, list) or not all(isinstance(uri, str) for uri in wanted):
        raise InvalidParams("`notifications.resourceSubscriptions` must be a list of URIs.")
    return list(dict.fromkeys(wanted))


def acknowledged(kinds: Sequence[str], uris: Sequence[str] = ()) -> dict[str, Any]:
    """The acknowledgement of a subscription: what it covers."""
    covered: dict[str, Any] = {f"{kind}ListChanged": True for kind in kinds}
    return {"notifications": covered | ({"resourceSubscriptions": list(uris)} if uris else {})}


def header_value(raw: bytes | None) -> str | None:
    """A header's text, decoded if it has the base64 form for text that does not fit a header."""
    if raw is None:
        return None
    text = raw.decode("latin-1")
    if text[:1].isalnum() and text[-1:].isalnum():
        return text
    text = text.strip(" \t")
    if not (text.startswith(_B64_OPEN) and text.endswith(_B64_CLOSE)):
        return text
    payload = text[len(_B64_OPEN) : -len(_B64_CLOSE)]
    try:
        decoded = base64.b64decode(payload, validate=True)
        if base64.b64encode(decoded).decode() != payload:
            return None
        return decoded.decode("utf-8")
    except ValueError:  # not base64, or not UTF-8
        return None


def refuse_doubled(headers: Sequence[tuple[bytes, bytes]], names: frozenset[bytes]) -> None:
    """Refuse one of `names` sent twice, since readers would disagree on which counts."""
    seen: set[bytes] = set()
    for name, _ in headers:
        if name in seen and name in names:
            raise HeaderMismatch(f"The {name.decode('latin-1')} header appears more than once.")
        seen.add(name)


ROUTING_HEADERS = frozenset({b"mcp-protocol-version", b"mcp-method", b"mcp-name", b"mcp-session-id"})


def negotiate(requested: Any) -> str:
    """The handshake version to answer `initialize` with."""
    if not isinstance(requested, str):
        raise InvalidParams("`protocolVersion` must be a string.")
    return requested if requested in HANDSHAKE_VERSIONS else LATEST_HANDSHAKE


def initialize_payload(
    version: str, server: Mapping[str, Any], capabilities: Mapping[str, Any], instructions: str
) -> bytes:
    return orjson.dumps(
        {
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": server,
            "instructions": instructions,
        }
    )


def stateless_payload(payload: bytes) -> bytes:
    """An encoded result object marked complete, as the stateless revision requires."""
    return b'{"resultType":"complete"}' if payload == b"{}" else b'{"resultType":"complete",%b' % payload[1:]


def error_status(error: TabhubError) -> int:
    """The HTTP status of an error of the stateless revision."""
    if error.code == -32601:
        return 404
    if isinstance(error, InvalidRequest | BadInput):
        return 400
    return 200
