"""A surface: which tools an endpoint shows and how it calls them. `/mcp` shows all or a selection, the gateway two.

Also owns how a failed call reads to an agent, the same on every surface.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tabhub.calls.engine import Caller, Engine
from tabhub.core.listing.catalogue import Catalogues, takes_session
from tabhub.core.listing.profiles import Profiles
from tabhub.core.tools import ToolResult
from tabhub.errors import TabhubError


class Surface(Protocol):
    """What an MCP endpoint offers."""

    path: str

    def page(self, cursor: str | None, *, stateless: bool, tools: str | None = None, agent: str | None = None) -> bytes:
        """One page of tools/list for an agent, encoded; `tools` is the selection the connection asked for."""

    def takes_session(self, name: str) -> bool:
        """Whether the tool accepts a `session` handle from stateless clients."""

    async def call(self, caller: Caller, name: str, arguments: dict[str, Any]) -> ToolResult: ...


class FullSurface:
    """Every tool, or those of the selection a connection or the settings name."""

    path = "/mcp"

    def __init__(self, engine: Engine, catalogues: Catalogues, profiles: Profiles, usual: Callable[[], str]) -> None:
        self._engine = engine
        self._catalogues = catalogues
        self._profiles = profiles
        self._usual = usual
        self.call = engine.call

    def page(self, cursor: str | None, *, stateless: bool, tools: str | None = None, agent: str | None = None) -> bytes:
        selection = self._profiles.select(self._usual() if tools is None else tools)
        return self._catalogues.of(selection, agent).page(cursor, stateless=stateless)

    def takes_session(self, name: str) -> bool:
        entry = self._engine.registry.by_name.get(name)
        return entry is not None and takes_session(entry.tool)


def failure_result(error: TabhubError) -> ToolResult:
    """A failed call as a tool result the agent can read and act on."""
    return ToolResult.of(
        [{"type": "text", "text": error.text()}], is_error=True, meta={"tabhub/error": error.details()}
    )
