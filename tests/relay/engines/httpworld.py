"""A relay node that serves MCP over HTTP, and its clients: the official one, and raw requests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tabhub.http.write_batch import WriteBatch
from tabhub.relay.engines.endpoint import RelayHttp
from tabhub.relay.engines.engine import RelayEngine
from tabhub.relay.engines.metadata import RelayUrl
from tabhub.relay.node import Node
from tests.harness.agent import Agent
from tests.harness.fake_extension import tab
from tests.harness.hub import Address
from tests.links.test_relay_link import FarBrowser
from tests.relay.world import RunningRelay, running_relay, token

META = "/.well-known/oauth-protected-resource"


@dataclass(slots=True)
class HttpRelay:
    """A node and its HTTP endpoint."""

    relay: RunningRelay
    http: RelayHttp

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.relay.port}"

    @property
    def ws(self) -> str:
        return self.relay.url

    def agent(self, access: str | None = None, **more: Any) -> Agent:
        """A raw client of the handshake era."""
        return Agent(self.address(access), **more)

    def address(self, access: str | None = None) -> Address:
        """The relay's address with this token."""
        return Address(port=self.relay.port, token=access or token())

    def client(self, access: str | None = None, **headers: str) -> httpx2.AsyncClient:
        """An HTTP client with a token; without one if it is ""."""
        given = {"Authorization": f"Bearer {token() if access is None else access}"} if access != "" else {}
        return httpx2.AsyncClient(verify=False, base_url=self.url, headers={**given, **headers}, timeout=30)

    def engines(self, user: str = "ann") -> list[RelayEngine]:
        """A user's engines."""
        return list(self.http.engines.of(user))


@dataclass(slots=True)
class _Made:
    http: list[RelayHttp] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)

    def make(self, node: Node, port: int, batch: WriteBatch) -> RelayHttp:
        made = RelayHttp(node, RelayUrl("http", port, self.more.get("public_url")), batch, **self.more.get("http", {}))
        self.http.append(made)
        return made


@asynccontextmanager
async def http_relay(
    *,
    public_url: str | None = None,
    auth_servers: tuple[str, ...] = (),
    audit_file: Path | None = None,
    behind_proxy: bool = False,
    **more: Any,
) -> AsyncIterator[HttpRelay]:
    """Start a node with MCP over HTTP; `more` is passed to the node."""
    given = {"auth_servers": auth_servers, "audit_file": audit_file, "behind_proxy": behind_proxy}
    made = _Made(more={"public_url": public_url, "http": given})
    async with running_relay(http=made.make, **more) as relay:
        yield HttpRelay(relay, made.http[0])


@asynccontextmanager
async def sdk(url: str, access: str, mode: str = "legacy", *, path: str = "/mcp", **more: Any) -> AsyncIterator[Client]:
    """The official client with a token; `legacy` is the handshake era."""
    headers = {"Authorization": f"Bearer {access}"}
    async with (
        httpx2.AsyncClient(verify=False, headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{url}{path}", http_client=http), mode=mode, **more) as client,
    ):
        yield client


def browser(base: str, access: str | None = None, instance: str = "far", **state: Any) -> FarBrowser:
    """A fake browser with one tab, in which others can be opened and closed."""
    made = FarBrowser(base, access or token(), instance, **state)
    made.answers |= {"createTab": tab(90, "about:blank"), "closeTab": {"closed": True}}
    return made
