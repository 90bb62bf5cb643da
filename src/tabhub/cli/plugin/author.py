"""`tabhub plugin create` and `tabhub plugin dev`, for authors of plugins.

The hub itself watches local plugins; `dev` adds the folder to them and reports the result of each save.
"""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from pathlib import Path

from tabhub.cli.command import Command, option
from tabhub.cli.hub.client import find_hub
from tabhub.cli.hub.settings import home_and_config, reload_hub
from tabhub.cli.terminal import count, paint, safe, show_error
from tabhub.client_errors import HubDownError
from tabhub.errors import TabhubError
from tabhub.plugins import scaffold
from tabhub.plugins.discovery import Stamp, load, stamp_of
from tabhub.plugins.watch import Watcher
from tabhub.store.config_file import set_value

_POLL = 1.0
"""Seconds between polls, for changes that the system does not report."""


def create(args: Namespace) -> None:
    folder = Path(args.dir or args.name).expanduser()
    plugin = scaffold.create(folder, args.name, args.url, python=args.python, title=args.title)
    print(f"Created {safe(plugin.display_name)} in {folder}, with {count(len(plugin.tools), 'example tool')}.")
    print(f"Test it:  {'pytest ' + str(folder) if args.python else f'cd {folder} && node --test'}")
    print(f"Use it:   tabhub plugin dev {folder}")


def dev(args: Namespace) -> None:
    folder = Path(args.folder).expanduser().absolute()
    stamp = stamp_of(folder)  # before loading, so that a later save counts as a change
    plugin = load(folder, "local")
    added = _use(folder)
    try:
        if reload_hub() is None:
            raise HubDownError(find_hub().address)
        tools = count(len(plugin.tools), "tool")
        print(f"{safe(plugin.display_name)} is in use, with {tools}. It is reloaded on every save.")
        print(paint("Stop with Ctrl+C." + (" The plugin is then no longer used." if added else ""), "dim"), flush=True)
        asyncio.run(_follow(folder, stamp))
    except KeyboardInterrupt:
        print()
    finally:
        if added:
            home, config = home_and_config()
            set_value(home, "localPlugins", json.dumps([used for used in config.local_plugins if used != str(folder)]))
            reload_hub()


async def _follow(folder: Path, before: Stamp) -> None:
    def changed() -> None:
        nonlocal before
        now = stamp_of(folder)
        if now == before:
            return
        watcher.watch([folder])  # a build may have recreated its folder
        before = now
        try:
            plugin = load(folder, "local")
        except TabhubError as error:
            show_error(error.message, error.hint)
            return
        print(f"{paint('loaded', 'green')} {plugin.name} {safe(plugin.version)}: {count(len(plugin.tools), 'tool')}")
        for problem in plugin.problems:
            show_error(problem)

    watcher = Watcher(changed)
    watcher.watch([folder])
    watcher.start()
    try:
        while True:
            await asyncio.sleep(_POLL)
            changed()
    finally:
        watcher.stop()


def _use(folder: Path) -> bool:
    """Add the folder to localPlugins; False if it is already used."""
    home, config = home_and_config()
    used = {Path(text).expanduser() for text in config.local_plugins}
    if folder in used or folder.parent in {Path(text).expanduser() for text in config.local_plugin_dirs}:
        return False
    set_value(home, "localPlugins", json.dumps([*config.local_plugins, str(folder)]))
    return True


CREATE = Command(
    create,
    option("name", metavar="NAME", help="the plugin's name: lower-case letters, digits and hyphens"),
    option("--url", required=True, metavar="PATTERN", help="URL pattern of its pages: https://*.example.com/*"),
    option("--title", metavar="TEXT", help="display name of the web app"),
    option("--dir", metavar="FOLDER", help="folder to create (default: ./NAME)"),
    option("--python", action="store_true", help="tools in Python and one JavaScript file for the page"),
    examples=(("tabhub plugin create my-app --url 'https://my.example.com/*'", ""),),
)
DEV = Command(
    dev,
    option("folder", nargs="?", default=".", metavar="FOLDER", help="the plugin's folder (default: this one)"),
)
