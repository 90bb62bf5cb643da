"""A relay node inside the test's own event loop, on a free port, and tokens for it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import uvicorn

from tabhub.limits import DEFAULTS
from tabhub.relay.bus.interface import Bus, MemoryBus
from tabhub.relay.keyring import Keyring
from tabhub.relay.node import Node
from tabhub.relay.revocations import Revocations
from tabhub.relay.routes import App, Route
from tabhub.relay.run import RelayOptions, listen, uvicorn_config
from tabhub.trust.jwt import Rules, issue, read_keys

SECRET = "0123456789abcdef" * 4
KEY = read_keys(SECRET.encode())[0]


def token(user: str = "ann", *, ttl: float = 600, ident: str | None = None, **more: Any) -> str:
    """A valid token of a user's."""
    name = ident or str(uuid.uuid4())
    return issue(KEY, user, now=time.time(), ttl=ttl, token_id=name, rules=Rules(), **more)


@dataclass(frozen=True, slots=True)
class RunningRelay:
    """A node that serves."""

    node: Node
    port: int
    server: uvicorn.Server

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"


@asynccontextmanager
async def running_relay(
    *,
    bus: Bus | None = None,
    revocations: Revocations | None = None,
    rules: Rules | None = None,
    key: str = SECRET,
    routes: Callable[[Node, int], Mapping[str, Route]] | None = None,
    **limits: Any,
) -> AsyncIterator[RunningRelay]:
    """Start a node with these limits, and end it in order; `routes` are made for it and its port."""
    keyring = Keyring(env={"TABHUB_RELAY_KEY": key}, clock=time.monotonic)  # clock: the product's own, handed over
    chosen = replace(DEFAULTS, **limits)
    made = bus if bus is not None else MemoryBus(f"node-{uuid.uuid4().hex}")
    node = Node(made, keyring, limits=chosen, rules=rules, revocations=revocations)
    sock = listen("127.0.0.1", 0)
    port: int = sock.getsockname()[1]
    app = App(node, port=port, routes=routes(node, port) if routes is not None else None)
    server = uvicorn.Server(uvicorn_config(app, chosen, RelayOptions(port=port)))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[sock])
    try:
        yield RunningRelay(node, port, server)
    finally:
        node.shut_down()
        for listener in server.servers:
            listener.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        if tasks := list(server.server_state.tasks):
            _, late = await asyncio.wait(tasks, timeout=30)
            assert not late, f"still running after the relay's end: {late}"
        await server.lifespan.shutdown()
        sock.close()
