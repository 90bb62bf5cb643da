"""Running a relay node: options, listening socket, TLS, log and signals.

Owns the process. `serve` returns when the node has ended. Without a certificate it serves only this machine, or a proxy
that terminates TLS.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from tabhub.errors import SetupError
from tabhub.http.server import HttpServer
from tabhub.http.write_batch import WriteBatch
from tabhub.limits import DEFAULTS, Limits
from tabhub.platform.event_loop import freeze_startup_objects, new_event_loop
from tabhub.relay.bus.interface import VARIABLE, Bus
from tabhub.relay.certificate import Certificate
from tabhub.relay.draining import REFUSE_AFTER
from tabhub.relay.engines.endpoint import RelayHttp
from tabhub.relay.engines.metadata import RelayUrl, read_url
from tabhub.relay.keyring import Keyring
from tabhub.relay.node import Node
from tabhub.relay.revocations import Revocations, default_file
from tabhub.relay.routes import AdminApp, App
from tabhub.relay.signals import Signal, Signals
from tabhub.trust.jwt import AUDIENCE, Rules
from tabhub.trust.redact import redact
from tabhub.wire import urls as addresses

log = logging.getLogger("tabhub.relay")

_GRACE = 5
_DRAIN_STEP = 0.1
"""Seconds between two steps of draining."""
_CERTIFICATE_CHECK = 10.0
"""Seconds after which a renewed certificate is noticed without a signal."""


@dataclass(frozen=True, slots=True)
class RelayOptions:
    """Options of the command line."""

    port: int
    host: str = "127.0.0.1"
    key_file: Path | None = None
    jwks_url: str | None = None
    revoked_file: Path | None = None
    bus: str | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    audience: str = AUDIENCE
    issuer: str | None = None
    admin_host: str = "127.0.0.1"
    admin_port: int | None = None
    """Where status and metrics are served; None for nowhere."""
    public_url: str | None = None
    """The URL clients use, if it differs from the address the node listens on."""
    auth_servers: tuple[str, ...] = ()
    """Token issuers, for OAuth clients."""
    audit_file: Path | None = None
    limits: Limits = DEFAULTS
    read_limits: Callable[[], Limits] | None = None
    """Reads the limits again, when the process gets SIGHUP."""
    on_ready: Callable[[str, str | None], None] | None = None
    """Called with the node's URL and that of its admin port."""


class JsonLines(logging.Formatter):
    """One JSON object per line, secrets redacted."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": redact(record.getMessage()),
            **getattr(record, "facts", {}),
        }
        if record.exc_info:
            facts["error"] = redact(self.formatException(record.exc_info))
        return redact(orjson.dumps(facts, default=str).decode())


def check_transport(options: RelayOptions) -> None:
    """Refuse to send tokens unencrypted over a network."""
    if (options.tls_cert is None) != (options.tls_key is None):
        raise SetupError("Give both --tls-cert and --tls-key, or neither.")
    if options.tls_cert is None and not addresses.names_this_machine(options.host) and not options.behind_proxy:
        raise SetupError(
            f"On {options.host} a relay needs TLS: tokens would cross the network unencrypted.",
            hint="Give --tls-cert and --tls-key, or --behind-proxy if a reverse proxy terminates TLS.",
        )


def make_bus(url: str | None, node: str) -> Bus:
    """The bus at this URL; without one, that of a single node."""
    if url is None:
        return Bus(node)
    if not url.startswith(("nats://", "tls://")):
        raise SetupError(f"Invalid --bus {url[:40]!r}.", hint="Use a URL that starts with nats:// or tls://")
    from tabhub.relay.bus.nats import NatsBus

    return NatsBus(url, node)


def make_node(options: RelayOptions) -> Node:
    keyring = Keyring(file=options.key_file, jwks_url=options.jwks_url, env=os.environ, clock=time.monotonic)
    rules = Rules(options.audience, options.issuer, options.limits.relay_token)
    bus = make_bus(options.bus, f"node-{uuid.uuid4().hex}")
    revoked = options.revoked_file or (default_file(options.key_file) if options.key_file is not None else None)
    return Node(
        bus, keyring, limits=options.limits, rules=rules, revocations=Revocations(revoked, options.limits.relay_revoked)
    )


def make_http(node: Node, options: RelayOptions, port: int, batch: WriteBatch) -> RelayHttp:
    scheme = "https" if options.tls_cert is not None or options.behind_proxy else "http"
    public_url = read_url("--public-url", options.public_url) if options.public_url is not None else None
    auth_servers = [read_url("--auth-server", server) for server in options.auth_servers]
    url = RelayUrl(scheme, port, public_url)
    return RelayHttp(
        node,
        url,
        batch,
        auth_servers=auth_servers,
        audit_file=options.audit_file,
        behind_proxy=options.behind_proxy,
        session_secret=shared_secret(options.bus),
    )


def shared_secret(bus: str | None) -> bytes:
    """What all nodes of a relay have and its clients do not: the credentials of the bus."""
    token = os.environ.get(VARIABLE, "")
    logins = {part.strip().rpartition("@")[0].rpartition("//")[2] for part in (bus or "").split(",")}
    return orjson.dumps([token, sorted(logins)])


def read_certificate(options: RelayOptions) -> Certificate | None:
    if options.tls_cert is None or options.tls_key is None:
        return None
    return Certificate(options.tls_cert, options.tls_key)


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise SetupError(
            f"Port {port} on {host} cannot be used: {error.strerror}.",
            hint="Stop the program that uses it, or choose another --port.",
        ) from None
    sock.set_inheritable(False)
    return sock


def serve(options: RelayOptions) -> int:
    check_transport(options)
    _log()
    node = make_node(options)
    with ExitStack() as stack:
        sock = stack.enter_context(listen(options.host, options.port))
        admin = None
        if options.admin_port is not None:
            admin = stack.enter_context(listen(options.admin_host, options.admin_port))
        runner = stack.enter_context(asyncio.Runner(loop_factory=new_event_loop))
        runner.run(_serve(options, node, sock, admin))
    return 0


async def _serve(options: RelayOptions, node: Node, sock: socket.socket, admin: socket.socket | None) -> None:
    port: int = sock.getsockname()[1]
    batch = WriteBatch()
    http = make_http(node, options, port, batch)
    app = App(node, http, port=None if options.behind_proxy else _local_port(options.host, sock))
    certificate = read_certificate(options)
    signals = Signals()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(running(node, app, sock, batch, certificate))
        if admin is not None:
            figures = AdminApp(node, http.engines, port=_local_port(options.admin_host, admin))
            server = HttpServer(figures, node.limits, batch)
            await server.start([admin])
            stack.push_async_callback(server.stop, 0.0)
        freeze_startup_objects()
        if options.on_ready is not None:
            url = f"{'ws' if certificate is None else 'wss'}://{_host(options.host)}:{port}"
            admin_url = f"http://{_host(options.admin_host)}:{admin.getsockname()[1]}" if admin is not None else None
            options.on_ready(url, admin_url)
        while (signal := await signals.next()) is Signal.RELOAD:
            await _reload(node, options, certificate)
        if signal is Signal.DRAIN:
            await _drain(node, http, signals)


async def _reload(node: Node, options: RelayOptions, certificate: Certificate | None) -> None:
    """Read everything again that may change while the node runs; what is invalid stays as it was."""
    if certificate is not None:
        certificate.reload()
    if options.read_limits is not None:
        try:
            node.change_limits(options.read_limits())
        except SetupError as error:
            log.error("invalid limits, the previous ones stay in use: %s", error.text())
    await node.reload()
    log.info("reloaded")


async def _drain(node: Node, http: RelayHttp, signals: Signals) -> None:
    """Close connections gradually and let running calls finish, for a limited time or until the next signal to stop."""
    until = node.clock() + REFUSE_AFTER + node.limits.relay_drain
    node.drain()
    while node.clock() < until:
        idle = http.engines.end_idle()
        if node.drain_step() and idle:
            break
        if await signals.next(_DRAIN_STEP) in (Signal.STOP, Signal.DRAIN):
            break


def _local_port(host: str, sock: socket.socket) -> int | None:
    """The port that a Host header must name. Clients of a loopback address are on this machine: only a web page would
    use another name for it."""
    return sock.getsockname()[1] if addresses.names_this_machine(host) else None


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@asynccontextmanager
async def running(
    node: Node, app: App, sock: socket.socket, batch: WriteBatch, certificate: Certificate | None = None
) -> AsyncIterator[HttpServer]:
    """Serve until the end of the block."""
    server = HttpServer(app, node.limits, batch)
    await node.start()
    if certificate is not None:
        node.spawn(_watch(certificate))
    await server.start([sock], certificate.context if certificate is not None else None)
    try:
        yield server
    finally:
        node.shut_down()  # which notifies clients before their connections are closed
        await server.stop(_GRACE)
        await node.stop()


async def _watch(certificate: Certificate) -> None:
    while True:
        await asyncio.sleep(_CERTIFICATE_CHECK)
        certificate.reload()


def _log() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers[:] = [handler]
