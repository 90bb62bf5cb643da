"""`tabhub plugin configure`: show and set the settings of one plugin.

Owns how they are written on the command line: `key=value`, and `key.instance=address` for a site with several
instances. A running hub checks and stores them; without one the same checks are made here.
"""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from tabhub.cli.command import JSON, Command, option
from tabhub.cli.hub.settings import home_and_config, post_if_running
from tabhub.cli.plugin.command import named
from tabhub.cli.terminal import paint, print_json, safe
from tabhub.client_errors import UsageError
from tabhub.plugins import settings
from tabhub.plugins.model import Field, Plugin
from tabhub.store.config_file import set_plugin_settings


def configure(args: Namespace) -> None:
    """Set the given values, then print all settings."""
    plugin = named(args.name)
    home, config = home_and_config()
    stored = dict(config.settings.get(plugin.name, {}))
    if args.values:
        given = _given(plugin, stored, args.values)
        if post_if_running("/plugin-settings", {"plugin": plugin.name, "settings": given}) is None:
            set_plugin_settings(home, plugin.name, settings.check(plugin, stored, given))
        stored = dict(home_and_config()[1].settings.get(plugin.name, {}))
    shown = settings.masked(plugin, stored)
    if args.json:
        schema = {field.key: field.facts() for field in plugin.fields}
        return print_json({"plugin": plugin.name, "settings": shown, "schema": schema})
    if not plugin.fields:
        print(f"{safe(plugin.display_name)} has no settings.")
    for field in plugin.fields:
        _show(field, shown.get(field.key))


def _show(field: Field, value: Any) -> None:
    kind = f"one of {', '.join(field.options)}" if field.options else field.kind
    print(paint(field.key, "bold"), f"({kind}{', required' if field.required else ''})", safe(field.label))
    if isinstance(value, dict):
        for name, url in value.items():
            print(f"  {safe(str(name))} = {safe(str(url))}")
    else:
        print(f"  {'not set' if value is None else safe(json.dumps(value, ensure_ascii=False))}")


def _given(plugin: Plugin, stored: dict[str, Any], words: list[str]) -> dict[str, Any]:
    """The values of arguments such as `key=value`, `key.work=https://…` and `key=` (reset)."""
    fields = {field.key: field for field in plugin.fields}
    given: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals:
            raise UsageError(f"'{word}' is not KEY=VALUE.", "To remove a setting, leave the value empty: KEY=")
        key, dot, instance = key.partition(".")
        field = fields.get(key)
        if dot and field is not None and field.kind == "url":
            before = given.get(key, stored.get(key))
            sites = dict(before) if isinstance(before, dict) else {}
            sites.pop(instance, None)
            given[key] = {**sites, instance: text} if text else sites or None
        else:
            given[f"{key}{dot}{instance}"] = _value(field, text)
    return given


def _value(field: Field | None, text: str) -> Any:
    if not text:
        return None
    if field is not None and field.kind in ("number", "boolean"):
        try:
            return json.loads(text)
        except ValueError:
            return text  # rejected with the plugin's own message
    return text


COMMAND = Command(
    configure,
    option("name", metavar="NAME", help="the plugin's name"),
    option("values", nargs="*", metavar="KEY=VALUE", help="settings to change (default: show them)"),
    JSON,
    details=(
        "KEY=VALUE changes a setting, KEY= removes it. A setting of type url can have several sites, each with a name\n"
        "you choose: KEY.work=https://… KEY.home=https://…; agents then choose with `instance`."
    ),
    examples=(
        ("tabhub plugin configure jira", "show its settings"),
        ("tabhub plugin configure jira instanceUrl.work=https://jira.example.com", "add a site named work"),
    ),
)
