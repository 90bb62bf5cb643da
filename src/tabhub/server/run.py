"""Running the hub: sockets, locks, logging and signals around the app.

Owns the process. `serve` returns when the hub has ended.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import logging.handlers
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabhub import __version__
from tabhub.config.setting_types import RelaySettings
from tabhub.errors import SetupError
from tabhub.links.launch.extension_files import install_extension
from tabhub.links.launch.installed_browsers import FoundBrowser, find_browsers
from tabhub.platform.event_loop import freeze_startup_objects, new_event_loop, stop_signal
from tabhub.platform.files import write_atomic
from tabhub.platform.locks import try_lock
from tabhub.server.managed_browser import Managed
from tabhub.store import extension_key, old_secret
from tabhub.store.config_file import ConfigFile
from tabhub.store.home import DOWNLOADS, Home
from tabhub.trust.redact import redact
from tabhub.trust.value_mask import ValueMask

if TYPE_CHECKING:
    from tabhub.http.server import HttpServer
    from tabhub.server.hub import Hub

log = logging.getLogger("tabhub")

_LOG_BYTES = 5 * 1024 * 1024
_GRACE = 5


@dataclass(frozen=True, slots=True)
class StartOptions:
    """Options of the command line; None means: as configured."""

    port: int | None = None
    launch: bool | None = None
    headless: bool | None = None
    home: str | None = None
    relay: tuple[str, str] | None = None
    """URL and token file of a relay to connect to in addition to the configured ones."""
    background_child: bool = False
    on_ready: Callable[[dict[str, Any]], None] | None = None


def serve(options: StartOptions) -> int:
    home = Home(Path(options.home)) if options.home else Home.find()
    home.ensure()
    mask = ValueMask()
    _log_to(home, mask, foreground=not options.background_child)
    with try_lock(home.lock) as acquired:
        # Two hubs on one home would share a key and an audit log.
        if not acquired:
            raise SetupError(
                f"A hub already runs on {home.root}{_describe_running_hub(home)}.",
                hint="Stop it with `tabhub stop`, or set TABHUB_HOME to another folder.",
            )
        if old_secret.separate(home):
            log.warning("the secret that agents have opens tool calls only, from now on; the extension has its own key")
        config_file = ConfigFile(home, os.environ)
        config = config_file.current
        sockets = listen(options.port if options.port is not None else config.port)
        port: int = sockets[0].getsockname()[1]
        key = extension_key.load_or_create(home)
        more_relays: tuple[RelaySettings, ...] = ()
        if options.relay is not None:
            from tabhub.links.relays import read_token

            more_relays = (RelaySettings(*options.relay),)
            read_token(more_relays[0])  # so that a mistake is reported here, and not in the log
        for problem in config.problems:
            log.warning("config.json: %s", problem)
        launch = {None: config.launch, True: "always", False: "never"}[options.launch]
        managed: Managed | None = None
        if launch != "never":
            configured = {"always": True, "never": False}.get(config.headless)
            managed = Managed(
                home,
                _browser(config.browser),
                port=port,
                key=key,
                downloads=home.files_folder(config.files_dir) / DOWNLOADS,
                headless=configured if options.headless is None else options.headless,
                only_if_needed=launch == "auto",
            )

        def make_hub() -> Hub:
            from tabhub.server.hub import Hub  # takes long to load

            install_extension(home.extension, key=key, port=port)
            return Hub(
                home,
                port=port,
                config_file=config_file,
                extension_key=key,
                managed=managed,
                more_relays=more_relays,
                mask=mask,
            )

        def announce(hub: Hub) -> dict[str, Any]:
            return _announce(home, hub, port, managed)

        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(_serve(make_hub, managed, sockets, announce, options.on_ready))
        finally:
            home.hub_json.unlink(missing_ok=True)
    return 0


async def _serve(
    make_hub: Callable[[], Hub],
    managed: Managed | None,
    sockets: list[socket.socket],
    announce: Callable[[Hub], dict[str, Any]],
    ready: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Run the hub until a signal ends it. Its browser starts while the hub is loaded, and waits in the queue of the
    sockets if it is faster."""
    stop = stop_signal()
    try:
        if managed is not None:
            for each in sockets:
                each.listen()
            await managed.spawn()
        hub = make_hub()
        hub.bridge.bind()
        facts = announce(hub)
        server = await start_up(hub, sockets)
    except BaseException:
        if managed is not None:
            await managed.stop()
        raise
    freeze_startup_objects()
    if ready is not None:
        ready(facts)
    await stop.wait()
    await shut_down(hub, server)


async def start_up(hub: Hub, sockets: list[socket.socket]) -> HttpServer:
    from tabhub.http.server import HttpServer

    server = HttpServer(hub.guard, hub.engine.limits, hub.batch)
    await hub.start()
    await server.start(sockets)
    return server


async def shut_down(hub: Hub, server: HttpServer) -> None:
    hub.closing()
    await server.stop(_GRACE)
    await hub.stop()


def _browser(chosen: str | None) -> FoundBrowser:
    env = {**os.environ, "TABHUB_BROWSER": chosen} if chosen and "TABHUB_BROWSER" not in os.environ else os.environ
    return find_browsers(env)[0]


def _announce(home: Home, hub: Hub, port: int, managed: Managed | None) -> dict[str, Any]:
    """Write hub.json, from which the command line learns where the hub listens."""
    facts = {
        "pid": os.getpid(),
        "port": port,
        "startedAt": time.time(),
        "version": __version__,
        "url": f"http://127.0.0.1:{port}",
        "socket": hub.bridge.path,
    }
    write_atomic(home.hub_json, json.dumps(facts))
    skipped = hub.settings.current.skip_permissions
    if skipped:
        log.warning("permissions are skipped: agents act without asking, except for tools that are off")
    notices = hub.health.notices()
    for notice in notices:
        log.warning("%s", notice)
    browser = managed.name if managed is not None else None
    return {**facts, "home": str(home.root), "browser": browser, "skipPermissions": skipped, "notices": notices}


def listen(port: int) -> list[socket.socket]:
    """Sockets on both loopback addresses, and nowhere else."""
    first = _bind(socket.AF_INET, "127.0.0.1", port)
    port = first.getsockname()[1]
    sockets = [first]
    if socket.has_ipv6:
        try:
            sockets.append(_bind(socket.AF_INET6, "::1", port))
        except OSError as error:
            # A machine without IPv6 has no clients there.
            log.info("not listening on ::1: %s", error)
    return sockets


def _bind(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family is socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        if family is socket.AF_INET6 and error.errno != errno.EADDRINUSE:
            raise
        raise SetupError(
            f"Port {port} on {host} cannot be used: {error.strerror}.",
            hint="Stop the program that uses it, or choose another port: tabhub start --port N",
        ) from None
    sock.set_inheritable(False)
    return sock


def _describe_running_hub(home: Home) -> str:
    try:
        facts = json.loads(home.hub_json.read_text("utf-8"))
        return f" (pid {facts['pid']}, port {facts['port']}, version {facts['version']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


class _RedactingFormatter(logging.Formatter):
    """Keeps secrets out of the log."""

    def __init__(self, layout: str, mask: ValueMask) -> None:
        super().__init__(layout)
        self._mask = mask

    def format(self, record: logging.LogRecord) -> str:
        return redact(self._mask.text(super().format(record)))


def _log_to(home: Home, mask: ValueMask, *, foreground: bool) -> None:
    """Log to the home's file; in the foreground warnings go to the terminal too."""
    formatter = _RedactingFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s", mask)
    file = logging.handlers.RotatingFileHandler(home.hub_log, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    file.setFormatter(formatter)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    root.handlers[:] = [file]
    if foreground:
        terminal = logging.StreamHandler(sys.stderr)
        terminal.setLevel(logging.WARNING)
        terminal.setFormatter(_RedactingFormatter("%(levelname)s: %(message)s", mask))
        root.addHandler(terminal)
