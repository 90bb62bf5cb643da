"""What all typed messages share: their base classes, bounded field types and the one way a value becomes a message.

A message from outside is decoded strictly as JSON first (strict_json), then converted to its struct here. Fields that
a struct does not know are ignored in what the hub receives and refused in what the hub sends, so that a test that
decodes the hub's own messages finds a field nobody declared.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

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


T = TypeVar("T", bound=msgspec.Struct)


def convert(name: str, value: Any, kind: type[T]) -> T:
    """A decoded JSON value as a struct, or InvalidParams naming the message and the field."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"{name}: {error}") from None
