"""The commands of `tabhub plugin` that find, install, update, remove and configure plugins.

Owns the command's texts and how settings are written: `key=value`, and `key.instance=address` for a site with several
instances. plugins/ installs on disk; a running hub reloads, and checks and stores settings.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tabhub.cli.command import JSON, Command, option
from tabhub.cli.hub.client import fetch, find_hub
from tabhub.cli.hub.settings import home_and_config, post_if_running, reload_hub
from tabhub.cli.terminal import count, line, nearest, paint, print_json, print_row, safe, show_warning
from tabhub.client_errors import CliError, UsageError
from tabhub.plugins import settings
from tabhub.plugins.discovery import Discovered, Discovery, load
from tabhub.plugins.install import Installer
from tabhub.plugins.model import Field, Plugin, agents_name
from tabhub.plugins.npm import find_registry
from tabhub.plugins.secret_settings import write_settings
from tabhub.store.config_file import set_value
from tabhub.store.named_secrets import SecretStore, system_keyring


def _installer() -> Installer:
    home, config = home_and_config()
    home.ensure()
    return Installer(home.plugins, lambda: find_registry(config.plugin_registry, os.environ))


def _discovered() -> Discovered:
    home, config = home_and_config()
    return Discovery(home.plugins).look(config)


def _named(name: str) -> Plugin:
    found = {plugin.name: plugin for plugin in _discovered().plugins}
    if name not in found:
        near = nearest(name, list(found))
        hint = f"Did you mean '{near}'?" if near else "`tabhub plugin list` lists the installed plugins."
        raise CliError(f"There is no plugin named '{name}'.", hint)
    return found[name]


def search(args: Namespace) -> None:
    installer = _installer()
    found = installer.search(" ".join(args.words))
    if args.json:
        return print_json([asdict(package) for package in found])
    if not found:
        return print("No matching plugins.")
    installed = {record.package for record in installer.installed()}
    room = max(len(package.package) for package in found)
    for package in found:
        mark = " (installed)" if package.package in installed else ""
        print_row(f"{safe(package.package).ljust(room)}  {safe(package.version)}{mark}  ", package.description)
    print(paint("\nInstall one: tabhub plugin install NAME", "dim"))


def list_plugins(args: Namespace) -> None:
    found = _discovered()
    states = _states()
    if args.json:
        shown = {
            "plugins": [{**_describe(plugin), **states.get(plugin.name, {})} for plugin in found.plugins],
            "failed": [{"path": failure.path, "error": failure.error} for failure in found.failures],
            "problems": list(found.problems),
        }
        return print_json(shown)
    for plugin in found.plugins:
        state = states.get(plugin.name, {}).get("tabState")
        tabs = f", tabs: {state}" if state else ""
        print(paint(safe(plugin.display_name), "bold"), f"({plugin.name} {safe(plugin.version)})")
        print(f"  {count(len(plugin.tools), 'tool')}, {plugin.source}{tabs}  {safe(plugin.path)}")
    if not found.plugins and not found.failures:
        print("No plugins. Find one with `tabhub plugin search`, or write one: `tabhub plugin create`.")
    for problem in (*(f"{failure.path}: {failure.error}" for failure in found.failures), *found.problems):
        show_warning(problem)


def _states() -> dict[str, dict[str, Any]]:
    """The plugins' tab states from the running hub; empty if none is running."""
    hub = find_hub()
    try:
        details = fetch("/health", hub=hub).get("pluginDetails", ()) if hub.pid is not None else ()
    except CliError:
        return {}
    return {plugin["name"]: {"tabState": plugin["tabState"], "tabs": plugin["tabs"]} for plugin in details}


def _describe(plugin: Plugin) -> dict[str, Any]:
    return {
        "name": plugin.name,
        "displayName": plugin.display_name,
        "version": plugin.version,
        "description": plugin.description,
        "source": plugin.source,
        "path": plugin.path,
        "package": plugin.package,
        "urlPatterns": list(plugin.url_patterns),
        "excludePatterns": list(plugin.exclude_patterns),
        "homepage": plugin.homepage,
        "preScript": plugin.pre_script is not None,
        "settings": {field.key: field.schema() for field in plugin.fields},
        "tools": [tool.name for tool in plugin.tools],
    }


def install(args: Namespace) -> None:
    plugin = _installer().install(args.name, args.version)
    for problem in plugin.problems:
        show_warning(f"{plugin.name}: {problem}")
    print(f"Installed {safe(plugin.display_name)} {safe(plugin.version)} with {count(len(plugin.tools), 'tool')}.")
    running = reload_hub() is not None
    print("It is active now." if running else "It becomes active when the hub starts: tabhub start")
    if any(field.required for field in plugin.fields):
        print(f"It has required settings: tabhub plugin configure {plugin.name}")


def update(args: Namespace) -> int:
    installer = _installer()
    names = [args.name]
    if args.check or not args.name:
        found, problems = installer.updates()
        for problem in problems:
            show_warning(problem)
        if not found:
            print("All plugins from the registry are up to date.")
            return 1 if problems else 0
        for available in found:
            print(f"{available.name}  {safe(available.version)} -> {safe(available.newest)}")
        if args.check:
            return 0
        names = [available.name for available in found]
    for name in names:
        plugin, before = installer.update(name)
        print(f"{name}: {before} is up to date." if plugin is None else f"{name}: {before} -> {plugin.version}")
    reload_hub()
    return 0


def remove(args: Namespace) -> None:
    home, config = home_and_config()
    local = [p for p in _discovered().plugins if p.source == "local" and p.name == args.name]
    listed = [text for text in config.local_plugins if local and Path(text).expanduser() == Path(local[0].path)]
    if listed:
        set_value(home, "localPlugins", json.dumps([text for text in config.local_plugins if text not in listed]))
        print(f"{args.name} is no longer used. Its folder remains: {local[0].path}")
    else:
        removed = _installer().remove(args.name)
        print(f"Removed {removed.name} ({safe(removed.package)}).")
    reload_hub()


def inspect(args: Namespace) -> None:
    folder = Path(args.name).expanduser()
    plugin = load(folder, "local") if folder.is_dir() else _named(args.name)
    if args.json:
        tools = [
            {
                "name": agents_name(plugin.name, tool.name),
                "title": tool.title,
                "description": tool.description,
                "inputSchema": tool.input_schema,
                "annotations": dict(tool.annotations),
            }
            for tool in plugin.tools
        ]
        return print_json({**_describe(plugin), "tools": tools, "problems": list(plugin.problems)})
    print(paint(safe(plugin.display_name), "bold"), f"({plugin.name} {safe(plugin.version)})")
    print(safe(plugin.description))
    for title, texts in (("Pages", plugin.url_patterns), ("Except", plugin.exclude_patterns)):
        if texts:
            print(f"{title}: {', '.join(texts)}")
    if plugin.pre_script is not None:
        print("It also runs a script in these pages before their own.")
    for field in plugin.fields:
        print(f"Setting {field.key} ({field.kind}{', required' if field.required else ''}): {safe(field.label)}")
        if field.send_to:
            print(f"  is sent to {', '.join(field.send_to)}, in: {', '.join(field.send_in)}")
    for tool in plugin.tools:
        print(f"  {agents_name(plugin.name, tool.name)}  {safe(line(tool.description))}")
    for problem in plugin.problems:
        show_warning(problem)


def configure(args: Namespace) -> None:
    plugin = _named(args.name)
    home, config = home_and_config()
    stored = dict(config.settings.get(plugin.name, {}))
    if args.values:
        given = _given(plugin, stored, args.values)
        if post_if_running("/plugin-settings", {"plugin": plugin.name, "settings": given}) is None:
            store = SecretStore(home, system_keyring())
            write_settings(home, store, plugin, settings.check(plugin, stored, given), time.time())
        stored = dict(home_and_config()[1].settings.get(plugin.name, {}))
    shown = settings.masked(plugin, stored)
    if args.json:
        schema = {field.key: field.schema() for field in plugin.fields}
        return print_json({"plugin": plugin.name, "settings": shown, "schema": schema})
    if not plugin.fields:
        print(f"{safe(plugin.display_name)} has no settings.")
    for field in plugin.fields:
        _show_setting(field, shown.get(field.key))


def _show_setting(field: Field, value: Any) -> None:
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
        with contextlib.suppress(ValueError):
            return json.loads(text)
    return text  # the plugin's settings reject what is neither


_NAME = option("name", metavar="NAME", help="the plugin's name")
SEARCH = Command(search, option("words", nargs="*", metavar="WORD", help="words to search for"), JSON)
LIST = Command(list_plugins, JSON)
INSTALL = Command(
    install,
    option("name", metavar="NAME", help="a plugin's name, a package (also name@version), or a .tgz file"),
    option("--version", metavar="V", help="the version to install (default: the newest)"),
    details="Scripts of the package are not run. The registry is npm's own, or the setting pluginRegistry.",
)
UPDATE = Command(
    update,
    option("name", nargs="?", metavar="NAME", help="update only this plugin"),
    option("--check", action="store_true", help="only show available updates"),
)
REMOVE = Command(remove, _NAME)
CONFIGURE = Command(
    configure,
    _NAME,
    option("values", nargs="*", metavar="KEY=VALUE", help="settings to change (default: show them)"),
    JSON,
    details=(
        "KEY=VALUE changes a setting, KEY= removes it. A setting of type url can have several sites, each\n"
        "with a name you choose: KEY.work=https://… KEY.home=https://…; agents then choose with `instance`."
    ),
    examples=(
        ("tabhub plugin configure jira", "show its settings"),
        ("tabhub plugin configure jira instanceUrl.work=https://jira.example.com", "add a site named work"),
    ),
)
INSPECT = Command(inspect, option("name", metavar="NAME|FOLDER", help="a plugin's name, or its folder"), JSON)
