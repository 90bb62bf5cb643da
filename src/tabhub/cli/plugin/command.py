"""`tabhub plugin`: find, install, update and remove plugins, set them up, and write your own.

Owns the command's texts. plugins/ installs on disk; a running hub is asked to reload.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import JSON, Command, Group, LazyCommand, option
from tabhub.cli.hub.client import fetch, find_hub
from tabhub.cli.terminal import count, cut, line, paint, print_json, safe, show_warning, width
from tabhub.client_errors import CliError, HubDownError

if TYPE_CHECKING:
    from argparse import Namespace

    from tabhub.config.settings import Config
    from tabhub.plugins.discovery import Discovered
    from tabhub.plugins.install import Installer
    from tabhub.plugins.model import Plugin
    from tabhub.store.home import Home


def home_and_config() -> tuple[Home, Config]:
    from tabhub.store import config_file as config
    from tabhub.store.home import Home

    home = Home.find()
    return home, config.load(home, os.environ)


def installer() -> Installer:
    from tabhub.plugins.install import Installer
    from tabhub.plugins.npm import find_registry

    home, config = home_and_config()
    home.ensure()
    return Installer(home.plugins, lambda: find_registry(config.plugin_registry, os.environ))


def discovered() -> Discovered:
    """All plugins on disk."""
    from tabhub.plugins.discovery import Discovery

    home, config = home_and_config()
    return Discovery(home.plugins).look(config)


def named(name: str) -> Plugin:
    from tabhub.cli.terminal import nearest

    found = {plugin.name: plugin for plugin in discovered().plugins}
    if name not in found:
        near = nearest(name, list(found))
        hint = f"Did you mean '{near}'?" if near else "`tabhub plugin list` shows what there is."
        raise CliError(f"There is no plugin named '{name}'.", hint)
    return found[name]


def tell_hub() -> bool:
    """Let the running hub reload its plugins; False if no hub is running."""
    hub = find_hub()
    if hub.pid is None:
        return False
    try:
        fetch("/reload", {}, hub=hub, timeout=30.0)
    except HubDownError:
        return False
    return True


def search(args: Namespace) -> int:
    from dataclasses import asdict

    tool = installer()
    found = tool.search(" ".join(args.words))
    if args.json:
        return print_json([asdict(each) for each in found])
    if not found:
        print("No plugin fits these words.")
        return 0
    there = {each.package for each in tool.installed()}
    room = max(len(each.package) for each in found)
    for each in found:
        mark = " (installed)" if each.package in there else ""
        left = f"{safe(each.package).ljust(room)}  {safe(each.version)}{mark}  "
        columns = width()
        print(left + cut(safe(line(each.description)), columns and columns - len(left)))
    print(paint("\nInstall one: tabhub plugin install NAME", "dim"))
    return 0


def list_plugins(args: Namespace) -> int:
    found = discovered()
    states = _states()
    if args.json:
        shown = {
            "plugins": [{**_facts(plugin), **states.get(plugin.name, {})} for plugin in found.plugins],
            "failed": [{"path": failure.path, "error": failure.error} for failure in found.failures],
            "problems": list(found.problems),
        }
        return print_json(shown)
    for plugin in found.plugins:
        state = states.get(plugin.name, {}).get("tabState")
        more = f", tabs: {state}" if state else ""
        print(paint(safe(plugin.display_name), "bold"), f"({plugin.name} {safe(plugin.version)})")
        print(f"  {count(len(plugin.tools), 'tool')}, {plugin.source}{more}  {safe(plugin.path)}")
    if not found.plugins and not found.failures:
        print("No plugins. Find one with `tabhub plugin search`, or write one: `tabhub plugin create`.")
    for failure in found.failures:
        show_warning(f"{failure.path}: {failure.error}")
    for problem in found.problems:
        show_warning(problem)
    return 0


def _states() -> dict[str, dict[str, Any]]:
    """The plugins' tab states from the running hub; empty if none is running."""
    hub = find_hub()
    if hub.pid is None:
        return {}
    try:
        health = fetch("/health", hub=hub)
    except CliError:
        return {}
    details = health.get("pluginDetails", ())
    return {each["name"]: {"tabState": each["tabState"], "tabs": each["tabs"]} for each in details}


def _facts(plugin: Plugin) -> dict[str, Any]:
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
        "settings": {field.key: field.facts() for field in plugin.fields},
        "tools": [tool.name for tool in plugin.tools],
    }


def install(args: Namespace) -> int:
    plugin = installer().install(args.name, args.version)
    for problem in plugin.problems:
        show_warning(f"{plugin.name}: {problem}")
    print(f"Installed {safe(plugin.display_name)} {safe(plugin.version)} with {count(len(plugin.tools), 'tool')}.")
    print("It is active now." if tell_hub() else "It becomes active when the hub starts: tabhub start")
    if any(field.required for field in plugin.fields):
        print(f"It wants settings: tabhub plugin configure {plugin.name}")
    return 0


def update(args: Namespace) -> int:
    """Update plugins, or list available updates."""
    tool = installer()
    if args.check or not args.name:
        found, problems = tool.updates()
        for problem in problems:
            show_warning(problem)
        if not found:
            print("All plugins from the registry have their newest version.")
            return 1 if problems else 0
        for each in found:
            print(f"{each.name}  {safe(each.version)} -> {safe(each.newest)}")
        if args.check:
            return 0
        names = [each.name for each in found]
    else:
        names = [args.name]
    for name in names:
        plugin, before = tool.update(name)
        print(f"{name}: {before} is the newest." if plugin is None else f"{name}: {before} -> {plugin.version}")
    tell_hub()
    return 0


def remove(args: Namespace) -> int:
    """Remove an installed plugin, or stop using a local one."""
    from pathlib import Path

    from tabhub.store.config_file import set_value

    home, config = home_and_config()
    local = [p for p in discovered().plugins if p.source == "local" and p.name == args.name]
    listed = [text for text in config.local_plugins if local and Path(text).expanduser() == Path(local[0].path)]
    if listed:
        set_value(home, "localPlugins", json.dumps([text for text in config.local_plugins if text not in listed]))
        print(f"{args.name} is no longer used. Its folder remains: {local[0].path}")
    else:
        known = installer().remove(args.name)
        print(f"Removed {known.name} ({safe(known.package)}).")
    tell_hub()
    return 0


def inspect(args: Namespace) -> int:
    from pathlib import Path

    from tabhub.plugins.discovery import load
    from tabhub.plugins.model import agents_name

    folder = Path(args.name).expanduser()
    plugin = load(folder, "local") if folder.is_dir() else named(args.name)
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
        return print_json({**_facts(plugin), "tools": tools, "problems": list(plugin.problems)})
    print(paint(safe(plugin.display_name), "bold"), f"({plugin.name} {safe(plugin.version)})")
    print(safe(plugin.description))
    for title, texts in (("Pages", plugin.url_patterns), ("Except", plugin.exclude_patterns)):
        if texts:
            print(f"{title}: {', '.join(texts)}")
    if plugin.pre_script is not None:
        print("It also runs a script in these pages before their own.")
    for field in plugin.fields:
        print(f"Setting {field.key} ({field.kind}{', required' if field.required else ''}): {safe(field.label)}")
    for tool in plugin.tools:
        print(f"  {agents_name(plugin.name, tool.name)}  {safe(line(tool.description))}")
    for problem in plugin.problems:
        show_warning(problem)
    return 0


COMMAND = Group(
    summary="Find, install and set up plugins for web apps; write your own.",
    commands={
        "search": Command(
            "Search the registry for plugins",
            search,
            option("words", nargs="*", metavar="WORD", help="what to look for"),
            JSON,
        ),
        "list": Command("List installed plugins, and those that failed to load", list_plugins, JSON),
        "install": Command(
            "Install a plugin",
            install,
            option("name", metavar="NAME", help="a plugin's name, a package (also name@version), or a .tgz file"),
            option("--version", metavar="V", help="the version, instead of the newest"),
            details="No script of the package is run. The registry is npm's own, or the setting pluginRegistry.",
        ),
        "update": Command(
            "Update plugins from the registry",
            update,
            option("name", nargs="?", metavar="NAME", help="only this plugin"),
            option("--check", action="store_true", help="only show available updates"),
        ),
        "remove": Command("Remove a plugin", remove, option("name", metavar="NAME", help="the plugin's name")),
        "configure": LazyCommand("Show and set a plugin's settings", "tabhub.cli.plugin.settings"),
        "inspect": Command(
            "Show a plugin's tools and settings",
            inspect,
            option("name", metavar="NAME|FOLDER", help="a plugin's name, or its folder"),
            JSON,
        ),
        "create": LazyCommand("Create a working plugin with a test", "tabhub.cli.plugin.author", "CREATE"),
        "dev": LazyCommand("Use a plugin's folder and reload it when files change", "tabhub.cli.plugin.author", "DEV"),
    },
    examples=(
        ("tabhub plugin search jira", "what there is"),
        ("tabhub plugin install jira", "install it"),
        ("tabhub plugin configure jira instanceUrl.work=https://jira.example.com", "set it up"),
        ("tabhub plugin create my-app --url 'https://my.example.com/*'", "write one"),
    ),
)
