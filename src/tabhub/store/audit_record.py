"""What the audit log keeps of a call, and how anything becomes a line of JSON that is not too long.

Owns the fields of a record, and the forms of records that cannot be encoded as they are or are longer than a line may
be. Writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import orjson

from tabhub.errors import TabhubError
from tabhub.trust.redact import clean, redact

_MESSAGE = 2000
_DEPTH = 64
_INT = 2**63


class CallError(msgspec.Struct):
    """Why a call failed."""

    code: int
    message: str
    category: str


class CallRecord(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """What the log keeps of one call; its arguments only if the person set it so."""

    timestamp: str = ""
    """Set when the record is written."""
    tool: str
    plugin: str
    source: str
    success: bool
    duration_ms: float
    session: str
    client: str
    via: str
    """How the call came in."""
    token_name: str | None = None
    args_digest: str
    what: str = ""
    """What the call did, in words that follow "wants to"."""
    waited_ms: int | None = None
    """Milliseconds that it waited for people, which `duration_ms` leaves out."""
    tab_id: int | None = None
    origin: str | None = None
    sites: tuple[str, ...] | None = None
    """All sites it worked on or read something of, if that is more than `origin`, the last it worked on."""
    frames: tuple[str, ...] | None = None
    """The sites of frames that it acted in, or was not allowed to act in, where they are not the tab's."""
    approval: Any = None
    """An Approval, or what the error of a refused call says of it."""
    arguments: Mapping[str, Any] | None = None
    error: CallError | None = None
    outcome: str | None = None


def call_error(error: TabhubError) -> CallError:
    return CallError(error.code, clean(redact(error.message), _MESSAGE), error.category)


def as_json(record: CallRecord) -> dict[str, Any]:
    """The fields by their names in the log, as JSON can hold them."""
    fields = msgspec.structs.fields(record)
    entry = {field.encode_name: getattr(record, field.name) for field in fields}
    for name in ("error", "approval"):
        entry[name] = msgspec.to_builtins(entry[name])
    return {name: json_value(value) for name, value in entry.items() if value is not None}


def shortened(entry: dict[str, Any], longest: int) -> dict[str, Any]:
    """An entry that fits: without its arguments, and then with its longest texts cut."""
    short = {**entry, "arguments": {"leftOut": "longer than an audit line may be"}} if "arguments" in entry else entry
    if len(orjson.dumps(short)) < longest:
        return short
    room = max(longest // (len(short) * 8), 16)
    return {
        key: clean(value if isinstance(value, str) else str(value), room)
        if isinstance(value, (str, dict, list))
        else value
        for key, value in short.items()
    }


def json_value(value: Any, depth: int = 0) -> Any:
    """Any value as JSON can hold it: stray surrogates spelled out, huge numbers and unknown things as text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if value is None or isinstance(value, (bool, float)):
        return value
    if isinstance(value, int) and -_INT <= value < _INT:
        return value
    if depth < _DEPTH and isinstance(value, Mapping):
        return {json_value(str(key)): json_value(item, depth + 1) for key, item in value.items()}
    if depth < _DEPTH and isinstance(value, (list, tuple)):
        return [json_value(item, depth + 1) for item in value]
    return json_value(repr(value)[:_MESSAGE]) if depth < _DEPTH else "…"
