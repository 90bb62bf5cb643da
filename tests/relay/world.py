"""A relay node inside the test's event loop, on a free port, and tokens for it."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from tabhub.http.server import HttpServer
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import DEFAULTS
from tabhub.relay.bus.interface import Bus
from tabhub.relay.engines.endpoint import RelayHttp
from tabhub.relay.engines.metadata import RelayUrl
from tabhub.relay.keyring import Keyring
from tabhub.relay.node import Node
from tabhub.relay.revocations import Revocations
from tabhub.relay.routes import App
from tabhub.relay.run import listen, running
from tabhub.trust.jwt import Rules, issue, read_keys

SECRET = "0123456789abcdef" * 4
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
KEY = read_keys(SECRET.encode())[0]


def token(user: str = "ann", *, ttl: float = 600, ident: str | None = None, **more: Any) -> str:
    """A valid token of a user."""
    name = ident or str(uuid.uuid4())
    return issue(KEY, user, now=time.time(), ttl=ttl, token_id=name, rules=Rules(), **more)


def other_signature(access: str) -> str:
    """The same ES256 token with its second valid signature: s replaced by n - s."""
    head, _, encoded = access.rpartition(".")
    raw = base64.urlsafe_b64decode(encoded + "==")
    s = (_P256_ORDER - int.from_bytes(raw[32:])).to_bytes(32)
    return f"{head}.{base64.urlsafe_b64encode(raw[:32] + s).rstrip(b'=').decode()}"


@dataclass(frozen=True, slots=True)
class RunningRelay:
    """A running node."""

    node: Node
    port: int
    server: HttpServer

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
    http: Callable[[Node, int, WriteBatch], RelayHttp] | None = None,
    **limits: Any,
) -> AsyncIterator[RunningRelay]:
    """Start a node with these limits, and stop it cleanly; `http` creates its HTTP endpoint."""
    keyring = Keyring(env={"TABHUB_RELAY_KEY": key}, clock=time.monotonic)  # clock: the product's own, passed on
    chosen = replace(DEFAULTS, **limits)
    made = bus if bus is not None else Bus(f"node-{uuid.uuid4().hex}")
    node = Node(made, keyring, limits=chosen, rules=rules, revocations=revocations)
    sock = listen("127.0.0.1", 0)
    port: int = sock.getsockname()[1]
    batch = WriteBatch()
    made_http = http(node, port, batch) if http is not None else RelayHttp(node, RelayUrl("http", port), batch)
    app = App(node, made_http, port=port)
    with sock:
        async with running(node, app, sock, batch) as server:
            yield RunningRelay(node, port, server)
