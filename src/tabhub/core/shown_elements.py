"""The elements that a person was shown when they approved a call.

A call acts on these only: an element that was replaced or renamed since is another one. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

TargetKey = tuple[tuple[str, str], ...]
"""A target by the arguments that name it."""


class ShownElement(NamedTuple):
    """One element as it was shown."""

    role: str
    name: str
    ref: str | None
    """Its ref, which the element of no other document has; None if a step before may replace the element."""

    @property
    def text(self) -> str:
        return f'{self.role} "{self.name}"' if self.name else self.role


ShownElements = Mapping[TargetKey, ShownElement]
NOTHING_SHOWN: ShownElements = MappingProxyType({})


def target_key(target: Mapping[str, Any]) -> TargetKey:
    return tuple(sorted((name, str(value)) for name, value in target.items()))
