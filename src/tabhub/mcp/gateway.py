"""The finder's two tools at work, and the gateway: a surface that has only these.

Owns how a call of them runs. Their definitions and the form of what was found are core.listing.finder's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import orjson

from tabhub.calls.engine import Caller, Engine
from tabhub.core.listing.catalogue import Catalogue, Catalogues, with_session
from tabhub.core.listing.finder import ALIASES, CALL, LIST, NAMES, describe_found
from tabhub.core.listing.pages import encode_page
from tabhub.core.listing.profiles import EVERYTHING, Profiles
from tabhub.core.listing.relevance import Situation
from tabhub.core.listing.search import ToolIndex
from tabhub.core.sessions import Session
from tabhub.core.tools import ToolResult
from tabhub.errors import InvalidArguments, InvalidParams, UnknownTool

CallTool = Callable[[Caller, str, dict[str, Any]], Coroutine[Any, Any, ToolResult]]


@dataclass(eq=False)
class Finder:
    """`tabhub_list_tools` and `tabhub_call`; the names of OpenTabs answer as aliases."""

    engine: Engine
    catalogues: Catalogues
    situation: Callable[[Session | None], Situation]

    def has(self, name: str) -> bool:
        return name in NAMES

    def takes_session(self, name: str) -> bool:
        return ALIASES.get(name, name) == CALL.name

    async def call(self, caller: Caller, name: str, arguments: dict[str, Any], run: CallTool) -> ToolResult:
        """Run one of the two; `run` calls the tool that an agent names."""
        name = ALIASES.get(name, name)
        if name == LIST.name:
            if not LIST.accepts(arguments):
                raise LIST.invalid(arguments)
            return await self._list_tools(arguments, caller.session)
        arguments.pop("session", None)  # for clients that negotiate a session, it says nothing new
        if not CALL.accepts(arguments):
            raise CALL.invalid(arguments)
        wanted, given = arguments["name"], arguments.get("arguments", {})
        if caller.via == "mcp":
            caller.via = "gateway"
        try:
            return await run(caller, wanted, given)
        except InvalidArguments as error:
            tool = self.engine.registry.by_name[wanted].tool
            error.hint = f"{error.hint or ''} The schema of {tool.name}: {tool.schema.listed.decode()}".strip()
            raise

    async def _list_tools(self, arguments: dict[str, Any], session: Session) -> ToolResult:
        agent = session.token
        catalogue = self.catalogues.of(EVERYTHING, agent)
        query, plugin = arguments.get("query"), arguments.get("plugin")
        if query is not None and query.strip():
            situation = self.situation(session)
            found = (await _index(catalogue)).search(
                query, plugin=plugin, used=self.catalogues.uses.of(agent), near=situation.is_near
            )
        else:
            found = [tool for tool in catalogue.tools() if plugin is None or tool.source.key == plugin]
        answer = describe_found(
            arguments,
            found,
            lambda: {tool.source.key for tool in catalogue.tools()},
            catalogue.disabled,
            self.engine.limits,
        )
        return ToolResult.text(orjson.dumps(answer).decode())


async def _index(catalogue: Catalogue) -> ToolIndex:
    while (index := catalogue.index()) is None:  # noqa: ASYNC110 - nothing to wait for
        await asyncio.sleep(0)  # lets other calls run
    return index


_STATELESS_CALL = orjson.dumps(with_session(orjson.loads(CALL.wire)))


@dataclass(eq=False)
class GatewaySurface:
    """Two tools that reach all."""

    path = "/mcp/gateway"

    engine: Engine
    finder: Finder
    profiles: Profiles

    def page(
        self,
        cursor: str | None,
        *,
        stateless: bool,
        tools: str | None = None,
        agent: str | None = None,
        session: Session | None = None,
    ) -> bytes:
        if cursor is not None:
            raise InvalidParams("The list has one page: there is no cursor to go on from.")
        call = _STATELESS_CALL if stateless else CALL.wire
        return encode_page("tools", (LIST.wire, call), None, stateless=stateless)

    def listed(self, session: Session, tools: str | None) -> object:
        return ()  # always the same

    def structured(self, tools: str | None) -> bool:
        return tools is not None and self.profiles.select(tools).structured

    def takes_session(self, name: str) -> bool:
        return self.finder.takes_session(name)

    async def call(self, caller: Caller, name: str, arguments: dict[str, Any]) -> ToolResult:
        if not self.finder.has(name):
            raise UnknownTool(
                f"There is no tool named {name[:200]!r} at the gateway.",
                hint=f"It has {LIST.name} and {CALL.name}; run other tools with {CALL.name}.",
            )
        return await self.finder.call(caller, name, arguments, self.engine.call)
