"""The interfaces between the agent loop, a model and a toolbox. Knows no provider and does no I/O."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tabhub.core.tools import Tool
from tabhub.store.conversations import Call, Message


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """The input of one turn."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    """For the provider's native tool calls; without them, calls and results are part of the messages' texts."""


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Tokens used by this turn so far."""

    tokens: int


@dataclass(frozen=True, slots=True)
class Truncated:
    """The response was cut off at the token limit."""


Piece = str | Call | TokenUsage | Truncated
"""A piece of the model's text, a tool call that is complete, or a fact about the response."""


class Model(Protocol):
    """A model behind some provider."""

    def turn(self, request: ModelRequest) -> AsyncIterator[Piece]:
        """Stream one response; raises ModelError."""
        ...


class Toolbox(Protocol):
    """Lists and runs tools."""

    async def list_tools(self) -> Sequence[Tool]: ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The MCP result, also with `isError`; raises TabhubError if the tool cannot be run."""
        ...
