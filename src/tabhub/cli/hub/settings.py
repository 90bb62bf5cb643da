"""The home folder and settings of this user, and the request that makes a running hub reload them."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from tabhub.cli.hub.client import Hub, fetch, find_hub
from tabhub.client_errors import HubDownError
from tabhub.config.settings import Config
from tabhub.store import config_file
from tabhub.store.home import Home


def home_and_config() -> tuple[Home, Config]:
    """The home and the settings in force, with those of the environment."""
    home = Home.find()
    return home, config_file.load(home, os.environ)


def post_if_running(path: str, body: dict[str, Any], hub: Hub | None = None) -> dict[str, Any] | None:
    """The running hub's answer to a POST; None if no hub is running."""
    hub = hub or find_hub()
    if hub.pid is None:
        return None
    with contextlib.suppress(HubDownError):
        answer: dict[str, Any] = fetch(path, body, hub=hub, timeout=30.0)
        return answer
    return None


def reload_hub(hub: Hub | None = None) -> dict[str, Any] | None:
    """Make the running hub reload its settings and plugins; None if no hub is running."""
    return post_if_running("/reload", {}, hub)
