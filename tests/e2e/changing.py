"""Settings of a running hub changed as `tabhub config` changes them, without a process for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2

from tabhub.store import config_file as config
from tabhub.store.home import Home
from tests.e2e.live import LiveHub


def change(hub: LiveHub, settings: Mapping[str, str | None]) -> None:
    """Write settings, or take out those that are None, and have the hub read them."""
    home = Home(hub.home)
    for key, value in settings.items():
        if value is None:
            config.reset(home, key)
        else:
            config.set_value(home, key, value)
    answer = httpx2.post(f"{hub.url}/reload", headers=hub.bearer, timeout=30, verify=False)
    said: dict[str, Any] = answer.json()
    assert answer.status_code == 200, said
    assert not said.get("error"), said
