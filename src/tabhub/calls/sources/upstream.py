"""External MCP servers in the hub: their records, their tools in the registry, and how a person changes them.

Owns which servers there are and which of their tools are registered: from the cache at once, from the server when it
answers. Connections are in upstream.pool, calls in upstream.calls. Only the person may change servers, because a record
can name a command that runs on this machine: panel and person's key reach these methods, agents do not.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from tabhub.core.registry import Registry
from tabhub.core.resources import NO_RESOURCES, ChangeKind, ResourceDirectory, ServerResources
from tabhub.core.tools import Source
from tabhub.core.upstream_names import upstream_name
from tabhub.errors import InvalidParams, NotFound, TabhubError, UpstreamOffline
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.store.pins import PinStore
from tabhub.store.upstream_servers import Server, UpstreamStore
from tabhub.trust.redact import redact
from tabhub.upstream import config
from tabhub.upstream.calls import UpstreamCalls
from tabhub.upstream.launch_plan import ConnectionPlan
from tabhub.upstream.login_callbacks import PendingLogins
from tabhub.upstream.pool import Pool
from tabhub.upstream.secrets import has_reference
from tabhub.upstream.server_connection import ServerConnection, describe_connection
from tabhub.upstream.tools import ToolListing
from tabhub.wire import strict_json as strict

log = logging.getLogger("tabhub.upstream")

_MAX_DESCRIPTION = 2_000


@dataclass(eq=False)
class Upstreams:
    """All external servers of one hub."""

    folder: Path
    port: int
    limits: Limits
    registry: Registry
    browsers: Browsers
    pins: PinStore
    resources: ResourceDirectory
    allowed_hosts: Callable[[], Sequence[str]]
    list_changed: Callable[[ChangeKind], None]
    resource_updated: Callable[[str, str], None]
    subscribed_uris: Callable[[str], frozenset[str]]

    def __post_init__(self) -> None:
        self.store = UpstreamStore(self.folder / "mcp.json")
        self._servers = {server.name: server for server in self.store.servers()}
        self.calls = UpstreamCalls(self.limits)
        self.pool = Pool(
            self.limits,
            hosts=self.allowed_hosts,
            listed=self._listed,
            changed=self._changed,
            resources_changed=self._resources_changed,
            updated=lambda connection, uri: self.resource_updated(connection.server.name, uri),
            authorize=self._authorize,
        )
        self.logins = PendingLogins(self.folder / "mcp-logins", self.port, self._open_login_page)
        self.changes = 0
        """Counts changes of what the panel shows."""
        self._starting: asyncio.Task[None] | None = None
        self._change = asyncio.Lock()

    def enabled_servers(self) -> list[str]:
        return [server.name for server in self._servers.values() if server.enabled]

    def start(self) -> None:
        self._starting = asyncio.ensure_future(self._start())

    async def _start(self) -> None:
        await self.pool.apply_servers(self._servers.values())
        for server in self._servers.values():
            await self._register_tools(server)

    async def stop(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self.pool.stop()

    async def _listed(self, connection: ServerConnection, listed: ToolListing) -> None:
        server = self._servers.get(connection.server.name)
        if server is None or server.id != connection.server.id or server.cached_tools == listed.tools:
            return
        fresh = replace(server, cached_tools=listed.tools)
        await self._store([fresh])
        connection.replace_record(fresh)
        await self._register_tools(fresh)

    async def _register_tools(self, server: Server) -> None:
        """Register the enabled tools of a server, or remove them if it is disabled."""
        connection = self.pool.get(server.name)
        if connection is None or not server.enabled:
            self.registry.remove(Source("upstream", server.name))
            self._share(server.name, NO_RESOURCES)
            return
        self._share(server.name, connection.resources.current)
        self.subscriptions_changed(server.name)
        on = [tool for tool in server.cached_tools if tool.get("name") not in server.disabled_tools]
        # In a thread: compiling hundreds of schemas takes a while.
        entries = await asyncio.to_thread(self.calls.entries, connection, on)
        if self._servers.get(server.name) is server:
            for problem in self.registry.replace(Source("upstream", server.name), entries):
                log.warning("tool refused: %s", problem)

    def _resources_changed(self, connection: ServerConnection) -> None:
        if self.pool.get(connection.server.name) is connection and connection.server.enabled:
            self.changes += 1
            self._share(connection.server.name, connection.resources.current)

    def subscriptions_changed(self, name: str) -> None:
        """Agents have subscribed to other resources of a server, or it has a new connection."""
        if (connection := self.pool.get(name)) is not None:
            connection.subscriptions.set_wanted(self.subscribed_uris(name))

    def _share(self, name: str, resources: ServerResources) -> None:
        for kind in self.resources.replace(name, resources):
            self.list_changed(kind)

    def _changed(self, _connection: ServerConnection) -> None:
        self.changes += 1

    async def _store(self, fresh: Iterable[Server], removed: Sequence[str] = ()) -> None:
        named = {server.name: server for server in fresh}
        self._servers = {name: s for name, s in (self._servers | named).items() if name not in removed}
        after = tuple(self._servers.values())
        self.changes += 1
        await asyncio.to_thread(self.store.change, lambda _before: after)

    def _authorize(self, connection: ServerConnection, plan: ConnectionPlan) -> Any:
        """OAuth for servers with a URL, unless the person set their Authorization header."""
        if plan.url is None or any(header.lower() == "authorization" for header in plan.headers):
            return None
        from tabhub.upstream.oauth import Login  # the SDK is loaded by now

        return Login(connection, plan.url, self.logins, plan.oauth)

    async def _open_login_page(self, url: str) -> None:
        """Open the login page in a local browser, if one is connected; panel and terminal show it too."""
        for link in self.browsers.links():
            if link.local:
                try:
                    await link.request("createTab", {"url": url, "active": True})
                except TabhubError as error:
                    log.info("the login page could not be opened in a browser: %s", error.message)
                return

    def get(self, name: str) -> Server:
        found = self._servers.get(name)
        if found is None:
            names = ", ".join(sorted(self._servers)[:30])
            raise NotFound(
                f"There is no external server named {name[:100]!r}.",
                hint=f"Servers: {names}." if names else "Add one: tabhub mcp add NAME URL",
            )
        return found

    async def add(self, given: Any) -> list[dict[str, Any]]:
        """Add or replace servers from a pasted configuration, and wait for the first attempt to connect to each."""
        wanted = config.read(strict.decode(given, self.limits) if isinstance(given, str) else given)
        for each in wanted:
            await self._check_address(each)
        async with self._change:
            fresh = [merge(each, self._servers.get(each.name)) for each in wanted]
            await self._apply(fresh)
        connections = [connection for each in fresh if (connection := self.pool.get(each.name)) is not None]
        await self._wait_for(connection.settled() for connection in connections)
        return [self.describe(self.get(each.name)) for each in fresh if each.name in self._servers]

    async def _check_address(self, server: Server) -> None:
        """Refuse an address that must not be reached; a name that does not resolve now may do so later."""
        if server.url is None or has_reference(server.url):
            return
        parts = urlsplit(server.url)
        try:
            await self.pool.guard.resolve(parts.hostname or "", parts.port or 443)
        except UpstreamOffline as error:
            log.info("%s: %s", server.name, error.message)

    async def _apply(self, fresh: Sequence[Server]) -> None:
        """Store changed servers, connect to them and register their tools."""
        await self._store(fresh)
        # A person changed these, and may be sent to log in.
        await self.pool.apply_servers(self._servers.values(), asked={server.name for server in fresh})
        for server in fresh:
            await self._register_tools(server)

    async def _wait_for(self, attempts: Iterable[Awaitable[None]]) -> None:
        tasks = [asyncio.ensure_future(attempt) for attempt in attempts]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=self.limits.upstream_connect + 1)
            for task in late:
                task.cancel()

    async def set(
        self, name: str, *, enabled: bool | None = None, disabled: Sequence[str] | None = None
    ) -> dict[str, Any]:
        async with self._change:
            server = self.get(name)
            fresh = replace(
                server,
                enabled=server.enabled if enabled is None else enabled,
                disabled_tools=server.disabled_tools if disabled is None else tuple(dict.fromkeys(disabled)),
            )
            if fresh != server:
                await self._apply([fresh])
        connection = self.pool.get(name)
        if enabled and connection is not None:
            await self._wait_for([connection.settled()])
        return self.describe(self.get(name))

    async def refresh(self, name: str) -> dict[str, Any]:
        """List a server's tools again, connecting first if needed; the person may be asked to log in."""
        server = self.get(name)
        connection = self.pool.get(name)
        if not server.enabled or connection is None:
            raise InvalidParams(f"The server {name} is disabled.", hint=f"Enable it: tabhub mcp enable {name}")
        await self._wait_for([connection.refresh(login=True)])
        return self.describe(self.get(name))

    async def remove(self, name: str) -> None:
        async with self._change:
            server = self.get(name)
            await self._store((), removed=[name])
            await self.pool.apply_servers(self._servers.values())
            self.logins.forget(server.id)
            self.registry.remove(Source("upstream", name))
            self._share(name, NO_RESOURCES)
            self.pins.forget(Source("upstream", name).setting)
            log.info("external server %s (%s) was removed", name, server.id)

    def all(self) -> list[dict[str, Any]]:
        return [self.describe(self._servers[name]) for name in sorted(self._servers)]

    def describe(self, server: Server) -> dict[str, Any]:
        """A server and its state, without secrets."""
        connection = self.pool.get(server.name)
        return describe_record(server) | (describe_connection(connection) if connection else {"state": "off"})

    def brief(self) -> list[dict[str, Any]]:
        return [
            {"name": each["name"], "state": each["state"], "toolCount": len(each["tools"])}
            | ({"error": each["error"]} if "error" in each else {})
            for each in self.all()
        ]


def merge(wanted: Server, known: Server | None) -> Server:
    """The record of a server that the person added; one that replaces another keeps its id, and settings and cache
    where they still apply."""
    if known is None:
        return replace(wanted, id=os.urandom(8).hex())
    same_place = (known.url, known.command, known.args) == (wanted.url, wanted.command, wanted.args)
    return replace(
        wanted,
        id=known.id,
        disabled_tools=wanted.disabled_tools or known.disabled_tools,
        cached_tools=known.cached_tools if same_place else (),
    )


def describe_record(server: Server) -> dict[str, Any]:
    """The names of headers and variables, never their values."""
    facts: dict[str, Any] = {"id": server.id, "name": server.name, "enabled": server.enabled}
    if server.url is not None:
        parts = urlsplit(server.url)
        facts["url"] = urlunsplit(parts._replace(query="…" if parts.query else ""))
        facts["headers"] = sorted(server.headers)
        if server.oauth:
            facts["oauth"] = sorted(server.oauth)
    else:
        facts["command"] = redact(server.where)
        facts["env"] = sorted(server.env)
    facts["tools"] = [_describe_tool(server, tool) for tool in server.cached_tools]
    return facts


def _describe_tool(server: Server, tool: dict[str, Any]) -> dict[str, Any]:
    own = str(tool.get("name"))
    return {
        "name": upstream_name(server.name, own),
        "tool": own,
        "title": tool.get("title"),
        "description": str(tool.get("description") or "")[:_MAX_DESCRIPTION],
        "readOnly": (tool.get("annotations") or {}).get("readOnlyHint") is True,
        "enabled": own not in server.disabled_tools,
    }
