"""A surface: which tools an endpoint shows and how it calls them. `/mcp` shows a selection, the gateway two.

Also owns how a failed call reads to an agent, the same on every surface.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from tabhub.calls.engine import Caller, Engine
from tabhub.core.listing.catalogue import Catalogues, takes_session
from tabhub.core.listing.finder import LIST
from tabhub.core.listing.profiles import Profiles
from tabhub.core.listing.relevance import Situation
from tabhub.core.sessions import Session
from tabhub.core.tools import ToolResult
from tabhub.errors import TabhubError
from tabhub.mcp.gateway import Finder

_OWN = ("browser_", "tabhub_", "opentabs_")


class Surface(Protocol):
    """What an MCP endpoint offers. `tools` is the selection the connection asked for."""

    path: str

    def page(
        self,
        cursor: str | None,
        *,
        stateless: bool,
        tools: str | None = None,
        agent: str | None = None,
        session: Session | None = None,
    ) -> bytes:
        """One page of tools/list for an agent, encoded."""

    def listed(self, session: Session, tools: str | None) -> object:
        """What a session is listed now: equal while its listing has not changed. None if that is not known."""

    def structured(self, tools: str | None) -> bool:
        """Whether answers are data instead of text."""

    def takes_session(self, name: str) -> bool:
        """Whether the tool accepts a `session` handle from stateless clients."""

    async def call(self, caller: Caller, name: str, arguments: dict[str, Any]) -> ToolResult: ...


class FullSurface:
    """The tools of the selection that a connection or the settings name; all of them can be called."""

    path = "/mcp"

    def __init__(
        self,
        engine: Engine,
        catalogues: Catalogues,
        profiles: Profiles,
        usual: Callable[[], str],
        situation: Callable[[Session | None], Situation],
    ) -> None:
        """`usual` is the selection of connections that name none; `situation` is what a session's listing depends
        on."""
        self._engine = engine
        self._catalogues = catalogues
        self._profiles = profiles
        self._usual = usual
        self._situation = situation
        self._finder = Finder(engine, catalogues, situation)

    def page(
        self,
        cursor: str | None,
        *,
        stateless: bool,
        tools: str | None = None,
        agent: str | None = None,
        session: Session | None = None,
    ) -> bytes:
        selection = self._profiles.select(self._usual() if tools is None else tools)
        catalogue = self._catalogues.of(selection, agent)
        if not selection.finder:
            return catalogue.page(cursor, stateless=stateless)
        return catalogue.page(cursor, stateless=stateless, situation=self._situation(session))

    def listed(self, session: Session, tools: str | None) -> object:
        selection = self._profiles.select(self._usual() if tools is None else tools)
        if not selection.finder:
            return None
        chosen = self._catalogues.of(selection, session.token).chosen(self._situation(session))
        # How many tools are not listed is no reason to list again: clients pay for that with their prompt caches.
        return tuple(tool.definition for tool in chosen if tool.name != LIST.name)

    def structured(self, tools: str | None) -> bool:
        return self._profiles.select(self._usual() if tools is None else tools).structured

    def takes_session(self, name: str) -> bool:
        if self._finder.has(name):
            return self._finder.takes_session(name)
        entry = self._engine.registry.by_name.get(name)
        return entry is not None and takes_session(entry.tool)

    def call(self, caller: Caller, name: str, arguments: dict[str, Any]) -> Coroutine[Any, Any, ToolResult]:
        if not name.startswith(_OWN):
            self._catalogues.uses.note(caller.session.token, name)
        elif self._finder.has(name):
            return self._finder.call(caller, name, arguments, self._run_found)
        return self.run(caller, name, arguments)

    def run(self, caller: Caller, name: str, arguments: dict[str, Any]) -> Coroutine[Any, Any, ToolResult]:
        """Call a tool of the registry."""
        return self._engine.call(caller, name, arguments)

    def _run_found(self, caller: Caller, name: str, arguments: dict[str, Any]) -> Coroutine[Any, Any, ToolResult]:
        """Call a tool for an agent that found it."""
        if not name.startswith(_OWN):
            self._catalogues.uses.note(caller.session.token, name)
        return self.run(caller, name, arguments)


def failure_result(error: TabhubError) -> ToolResult:
    """A failed call as a tool result the agent can read and act on."""
    return ToolResult.of(
        [{"type": "text", "text": error.text()}], is_error=True, meta={"tabhub/error": error.details()}
    )
