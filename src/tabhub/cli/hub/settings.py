"""The home folder and settings of this user, and the request that makes a running hub reload them."""

from __future__ import annotations

import contextlib
import os
from typing import Any

from tabhub.cli.hub.client import Hub, fetch, find_hub
from tabhub.cli.terminal import show_warning
from tabhub.client_errors import CliError, HubDownError
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


def apply_changes(hub: Hub | None = None) -> None:
    """Make the running hub reload its settings, and print what came of it."""
    try:
        answer = reload_hub(hub)
    except CliError as error:
        hint = f" {error.hint}" if error.hint else ""
        show_warning(f"The running hub did not reload: {error.message}{hint} It will when it restarts.")
        return
    if answer is not None and (waiting := answer.get("needsRestart")):
        print(f"Restart the hub to change {', '.join(waiting)}: tabhub stop && tabhub start --background")
    elif answer is not None:
        print("The running hub has reloaded its settings.")


def reload_hub(hub: Hub | None = None) -> dict[str, Any] | None:
    """Make the running hub reload its settings and plugins; None if no hub is running."""
    return post_if_running("/reload", {}, hub)
