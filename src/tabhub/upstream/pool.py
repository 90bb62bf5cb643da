"""All external servers of a hub: one connection each, started and stopped as their records say.

Owns loading the SDK (in a thread, once, and only when a server is in use) and opening connections. It stores and
registers nothing: its owner is notified of listings and changes.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tabhub.limits import Limits
from tabhub.store.upstream_servers import Server
from tabhub.upstream.launch_plan import ConnectionPlan, make_plan
from tabhub.upstream.server_connection import ServerConnection
from tabhub.upstream.tools import ToolListing
from tabhub.upstream.transport.address_guard import AddressGuard

if TYPE_CHECKING:
    from tabhub.upstream.sdk_session import SdkSession

Authorize = Callable[[ServerConnection, ConnectionPlan], Any]
"""Gives the authorization of a server's requests (upstream.oauth.Login), or None."""


class Pool:
    """The external servers."""

    def __init__(
        self,
        limits: Limits,
        *,
        hosts: Callable[[], Collection[str]],
        listed: Callable[[ServerConnection, ToolListing], Awaitable[None]],
        changed: Callable[[ServerConnection], None],
        resources_changed: Callable[[ServerConnection], None],
        updated: Callable[[ServerConnection, str], None],
        authorize: Authorize,
    ) -> None:
        self._limits = limits
        self._listed = listed
        self._changed = changed
        self._resources_changed = resources_changed
        self._updated = updated
        self._authorize = authorize
        self.guard = AddressGuard(hosts)
        self._connections: dict[str, ServerConnection] = {}
        self._sdk: asyncio.Future[Any] | None = None

    def get(self, name: str) -> ServerConnection | None:
        return self._connections.get(name)

    def all(self) -> list[ServerConnection]:
        return [self._connections[name] for name in sorted(self._connections)]

    async def apply_servers(self, servers: Iterable[Server], asked: Collection[str] = ()) -> None:
        """Start connections of new and enabled servers, stop those of removed and disabled ones."""
        wanted = {server.name: server for server in servers}
        ending = []
        for name, connection in list(self._connections.items()):
            server = wanted.get(name)
            if server is None or not server.same_way(connection.server):
                ending.append(self._connections.pop(name))
            else:
                connection.replace_record(server)
                if not server.enabled and connection.state != "off":
                    ending.append(connection)
        for name, server in wanted.items():
            if name not in self._connections:
                callbacks = (self._listed, self._changed, self._resources_changed, self._updated)
                self._connections[name] = ServerConnection(server, self._open, self._limits, *callbacks)
        if ending:
            await asyncio.gather(*(connection.stop() for connection in ending))
        for connection in self._connections.values():
            if connection.server.enabled and connection.state == "off":
                connection.start(login=connection.server.name in asked)

    async def stop(self) -> None:
        await asyncio.gather(*(connection.stop() for connection in self._connections.values()))

    @asynccontextmanager
    async def _open(self, connection: ServerConnection) -> AsyncIterator[SdkSession]:
        plan = await asyncio.to_thread(make_plan, connection.server)
        sdk = await self._load()
        login = self._authorize(connection, plan)
        async with sdk.open_session(plan, connection, self.guard, self._limits, login) as session:
            yield session

    async def _load(self) -> Any:
        if self._sdk is None or (self._sdk.done() and self._sdk.exception() is not None):
            self._sdk = asyncio.ensure_future(asyncio.to_thread(importlib.import_module, "tabhub.upstream.sdk_session"))
        return await asyncio.shield(self._sdk)
