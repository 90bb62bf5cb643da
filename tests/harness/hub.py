"""A complete hub in the event loop of the test, on a free port, with a temporary home."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabhub.server.hub import Hub
from tabhub.server.run import listen, shut_down, start_up
from tabhub.store import secret as secrets_store
from tabhub.store.config_file import ConfigFile
from tabhub.store.home import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The port and secret of a hub, in this process or another."""

    port: int
    secret: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def bearer(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningHub(Address):
    """A hub in this process."""

    hub: Hub
    home: Home


@asynccontextmanager
async def running_hub(folder: Path, **settings: Any) -> AsyncIterator[RunningHub]:
    """Start a hub with these settings in config.json, and shut it down cleanly.

    Fake browsers count as the person's own, where acting needs approval by default. Here it needs none, unless a test
    sets `permissions`.
    """
    home = Home(folder / "home")
    home.ensure()
    home.config.write_text(json.dumps(without_approvals(settings)))
    sockets = listen(0)
    port: int = sockets[0].getsockname()[1]
    secret = secrets_store.load_or_create(home)
    hub = Hub(home, port=port, config_file=ConfigFile(home), secret=secret)
    server = await start_up(hub, sockets)
    try:
        yield RunningHub(hub=hub, port=port, secret=secret, home=home)
    finally:
        await shut_down(hub, server)
        for sock in sockets:
            sock.close()


def without_approvals(settings: dict[str, Any]) -> dict[str, Any]:
    """Add settings that ask for no approvals, unless these say otherwise; `permissions=None` keeps the defaults."""
    permissions = settings.get("permissions", {})
    filled: dict[str, Any] = {"dataflow": "off", **settings}
    if permissions is None:
        del filled["permissions"]
    else:
        filled["permissions"] = {"default": "auto", **permissions}
    return filled
