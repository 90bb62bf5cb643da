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
from tabhub.store import extension_key
from tabhub.store.config_file import ConfigFile
from tabhub.store.home import Home
from tabhub.store.tokens import client_token

AGENT = "test"
"""The name of the token that tests use as an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The port and keys of a hub, in this process or another."""

    port: int
    token: str
    """An agent's."""
    extension_key: str = ""
    person_key: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    @property
    def bearer(self) -> dict[str, str]:
        """What an agent sends."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def person(self) -> Address:
        """The same hub, for the person's own requests."""
        return Address(port=self.port, token=self.person_key, extension_key=self.extension_key)


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
    key = extension_key.load_or_create(home)
    hub = Hub(home, port=port, config_file=ConfigFile(home), extension_key=key)
    server = await start_up(hub, sockets)
    try:
        yield RunningHub(
            hub=hub,
            home=home,
            port=port,
            token=agent_token(home),
            extension_key=key,
            person_key=hub.person_key.value,
        )
    finally:
        await shut_down(hub, server)
        for sock in sockets:
            sock.close()


def agent_token(home: Home) -> str:
    """The token of the tests' agent, also in a home that has been used before."""
    return client_token(home, AGENT, 1.0)[0]


def without_approvals(settings: dict[str, Any]) -> dict[str, Any]:
    """Add settings that require no approvals, unless these set permissions; `permissions=None` keeps the defaults."""
    permissions = settings.get("permissions", {})
    filled: dict[str, Any] = {"dataflow": "off", **settings}
    if permissions is None:
        del filled["permissions"]
    else:
        filled["permissions"] = {"default": "auto", **permissions}
    return filled
