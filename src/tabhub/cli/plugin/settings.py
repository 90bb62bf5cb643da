"""`tabhub plugin configure`: show and set the settings of one plugin.

Owns how they are written on the command line: `key=value`, and `key.instance=address` for a site with several
instances. A running hub checks and stores them; without one the same checks are made here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import JSON, Command, option
from tabhub.cli.hub.client import fetch, find_hub
from tabhub.cli.plugin.command import home_and_config, named
from tabhub.cli.terminal import paint, print_json, safe
from tabhub.client_errors import CliError, HubDownError

if TYPE_CHECKING:
    from argparse import Namespace

    from tabhub.plugins.model import Field, Plugin


def configure(args: Namespace) -> int:
    """Set the given values, then print all settings."""
    from tabhub.plugins import settings

    plugin = named(args.name)
    home, config = home_and_config()
    stored = dict(config.settings.get(plugin.name, {}))
    if args.values:
        given = _given(plugin, stored, args.values)
        if not _told_hub(plugin.name, given):
            from tabhub.store.config_file import set_plugin_settings

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
    return 0


def _told_hub(plugin: str, given: dict[str, Any]) -> bool:
    """Set the values through the running hub; False if none is running."""
    hub = find_hub()
    if hub.pid is None:
        return False
    try:
        fetch("/plugin-settings", {"plugin": plugin, "settings": given}, hub=hub, timeout=30.0)
    except HubDownError:
        return False
    return True


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
            raise CliError(f"'{word}' is not KEY=VALUE.", "An empty value takes a setting back: KEY=", exit_code=2)
        key, dot, instance = key.partition(".")
        field = fields.get(key)
        if dot and field is not None and field.kind == "url":
            there = given.get(key, stored.get(key))
            sites = dict(there) if isinstance(there, dict) else {}
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
            return text  # refused with the plugin's own words
    return text


COMMAND = Command(
    "Show and set a plugin's settings",
    configure,
    option("name", metavar="NAME", help="the plugin's name"),
    option("values", nargs="*", metavar="KEY=VALUE", help="settings to change (default: show them)"),
    JSON,
    details=(
        "KEY=VALUE sets a setting, KEY= takes it back. A setting of type url takes several sites, each with a name of\n"
        "yours: KEY.work=https://… KEY.home=https://…; agents then choose with `instance`."
    ),
    examples=(
        ("tabhub plugin configure jira", "what can be set, and what is"),
        ("tabhub plugin configure jira instanceUrl.work=https://jira.example.com", "name a site"),
    ),
)
