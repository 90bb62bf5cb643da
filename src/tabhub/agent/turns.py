"""What passes between the loop, a model and a toolbox.

Owns the shapes: what a model is asked, what it says piece by piece, and what a toolbox offers. No provider's words, and
no I/O.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from tabhub.core.tools import Tool
from tabhub.store.conversations import Call, Message

Format = Literal["native", "xml"]


@dataclass(frozen=True, slots=True)
class Asking:
    """What a model is asked in one turn."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    """For calls in the provider's own form; empty when calls are part of the text."""


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of the model's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call that is complete."""

    call: Call


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens this turn has cost so far."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The model's answer ended because it was too long."""


Piece = Said | Called | Spent | Cut


class Model(Protocol):
    """A model behind some provider."""

    def turn(self, asking: Asking) -> AsyncIterator[Piece]:
        """One answer, piece by piece; raises ModelError."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool as a toolbox offers it."""

    tool: Tool
    disabled: bool = False


class Toolbox(Protocol):
    """Where the tools are."""

    async def offers(self) -> Sequence[Offer]: ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool and give its MCP result, also one that says `isError`; raises TabhubError when it cannot."""
        ...
