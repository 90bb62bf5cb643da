"""Where the settings of plugins are written: secrets to the store of secrets, the rest to the config file.

Owns the names of those secrets, the origins that the person agreed to when a secret was set, and moving values that an
earlier version wrote to the config file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tabhub.plugins.model import Plugin
from tabhub.plugins.settings import MASK, clear_secrets
from tabhub.store.config_file import set_plugin_settings
from tabhub.store.home import Home
from tabhub.store.named_secrets import SecretStore


def write_settings(home: Home, store: SecretStore, plugin: Plugin, values: Mapping[str, Any], now: float) -> None:
    """Replace all settings of a plugin; a mask keeps the secret that is stored."""
    fresh = clear_secrets(plugin, values)
    agreed = {item.key: tuple(each for each in item.send_to if not each.isidentifier()) for item in plugin.fields}
    for key, value in fresh.items():
        store.set(secret_name(plugin, key), json.dumps(value), "plugin", agreed[key], now)
    set_plugin_settings(home, plugin.name, {**values, **dict.fromkeys(fresh, MASK)})
    for item in plugin.fields:
        if (
            item.is_stored_apart
            and values.get(item.key) is None
            and store.find(secret_name(plugin, item.key)) is not None
        ):
            store.remove(secret_name(plugin, item.key))


def secret_name(plugin: Plugin, key: str) -> str:
    return f"plugin/{plugin.name}/{key}"
