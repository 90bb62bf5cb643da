"""Secrets of plugins: stored apart, and moved there from the config file of an earlier version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tabhub.plugins.manifest import read_package
from tabhub.plugins.model import Plugin
from tabhub.plugins.secret_settings import write_settings
from tabhub.plugins.settings import MASK, clear_secrets, resolve
from tabhub.store.home import Home
from tabhub.store.named_secrets import SecretStore
from tests.plugins.packages import folder

SCHEMA = {
    "site": {"type": "url", "label": "Site", "secret": True},
    "name": {"type": "string", "label": "Name"},
    "apiToken": {"type": "string", "label": "Token", "required": True},
}


@pytest.fixture
def plugin(tmp_path: Path) -> Plugin:
    return read_package(folder(tmp_path / "demo", configSchema=SCHEMA))


def test_secrets_are_written_to_the_store_only(tmp_path: Path, plugin: Plugin) -> None:
    home = Home(tmp_path / "home")
    store = SecretStore(home, None)
    values = {"site": "https://a.example", "name": "x", "apiToken": "s3cret"}
    assert clear_secrets(plugin, values) == {"apiToken": "s3cret"}
    write_settings(home, store, plugin, values, 1.0)
    stored = json.loads(home.config.read_text())["settings"][plugin.name]
    assert stored == {**values, "apiToken": MASK}
    assert clear_secrets(plugin, stored) == {}
    (kept,) = store.listed()
    assert store.value(kept) == '"s3cret"'
    setup = resolve(plugin, stored)
    assert setup.problems == ()
    assert dict(setup.values) == {"site": {"default": "https://a.example"}, "name": "x"}
    write_settings(home, store, plugin, stored, 2.0)
    assert store.value(store.listed()[0]) == '"s3cret"'
    write_settings(home, store, plugin, {"name": "x"}, 3.0)
    assert store.listed() == []


def test_a_secret_that_is_still_in_the_config_file_is_not_used(plugin: Plugin) -> None:
    assert "apiToken" not in resolve(plugin, {"apiToken": "s3cret"}).values
