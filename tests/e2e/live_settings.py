"""Change settings of a running hub like `tabhub config`, without starting a process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2

from tabhub.store import config_file as config
from tabhub.store.home import Home
from tests.e2e.live import LiveHub


def change(hub: LiveHub, settings: Mapping[str, str | None]) -> None:
    """Write settings, or reset those that are None, and reload the hub."""
    home = Home(hub.home)
    for key, value in settings.items():
        if value is None:
            config.reset(home, key)
        else:
            config.set_value(home, key, value)
    reload(hub)


def set_sites(hub: LiveHub, sites: Mapping[str, str] | None) -> None:
    """Set the site rules."""
    config.set_at(Home(hub.home), ("sites",), sites)
    reload(hub)


def reload(hub: LiveHub) -> None:
    answer = httpx2.post(f"{hub.url}/reload", headers=hub.person.bearer, timeout=30, verify=False)
    output: dict[str, Any] = answer.json()
    assert answer.status_code == 200, output
    assert not output.get("error"), output


@contextmanager
def without_approvals(hub: LiveHub) -> Iterator[None]:
    """Let agents do what disturbs others: sessions of earlier tests may still hold tabs."""
    change(hub, {"skipPermissions": "true"})
    try:
        yield
    finally:
        change(hub, {"skipPermissions": None})
