"""What all typed messages share: base classes, bounded field types, and the conversion of values to messages.

A message from outside is decoded strictly as JSON first (strict_json), then converted to its struct here. Fields that
a struct does not know are ignored in what the hub receives and refused in what the hub sends, so that a test that
decodes the hub's own messages finds undeclared fields.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar, get_args

import msgspec

from tabhub.errors import InvalidParams

TabId = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
"""A tab as the browser numbers it."""
FrameId = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]
Object = dict[str, Any]


class Received(msgspec.Struct, rename="camel"):
    """A message, or part of one, that the hub receives."""


class Sent(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A message, or part of one, that the hub sends."""


def items_of(kind: type[msgspec.Struct]) -> msgspec.Meta:
    """For a list that is not converted, because each item is checked by itself: one that is invalid costs no other."""
    return msgspec.Meta(extra_json_schema={"items": {"$ref": f"#/$defs/{kind.__name__}"}}, extra={"item": kind})


def received(name: str, summary: str, /, **fields: Any) -> type[msgspec.Struct]:
    """A struct from a table of fields.

    A type is a required field, `T | None` an optional one, `[T]` a list that may be missing, and any other value a
    default.
    """
    return msgspec.defstruct(name, map(_field, fields.items()), bases=(Received,), namespace={"__doc__": summary})


def sent(name: str, summary: str, /, **fields: Any) -> type[msgspec.Struct]:
    return msgspec.defstruct(name, map(_field, fields.items()), bases=(Sent,), namespace={"__doc__": summary})


def _field(item: tuple[str, Any]) -> tuple[str, Any] | tuple[str, Any, Any]:
    name, value = item
    if type(None) in get_args(value):
        return name, value, None
    if isinstance(value, list):
        return name, list[value[0]], []  # type: ignore[valid-type]
    return (name, type(value), value) if isinstance(value, bool | int | float | str) else (name, value)


T = TypeVar("T", bound=msgspec.Struct)


def convert(name: str, value: Any, kind: type[T]) -> T:
    """A decoded JSON value as a struct, or InvalidParams naming the message and the field."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"{name}: {error}") from None
