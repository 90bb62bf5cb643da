"""`tabhub plugin create` and `tabhub plugin dev`, for authors of plugins.

The hub itself watches local plugins; `dev` adds the folder to them and reports the result of each save.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from tabhub.cli.command import Command, option
from tabhub.cli.hub.client import find_hub
from tabhub.cli.plugin.command import home_and_config, tell_hub
from tabhub.cli.terminal import count, paint, safe, show_error
from tabhub.client_errors import HubDownError

_POLL = 1.0
"""Seconds between polls, for changes without a notification of the system."""

if TYPE_CHECKING:
    from argparse import Namespace

    from tabhub.plugins.discovery import Stamp


def create(args: Namespace) -> int:
    from tabhub.plugins.scaffold import create as make

    folder = Path(args.dir or args.name).expanduser()
    plugin = make(folder, args.name, args.url, python=args.python, title=args.title)
    print(f"{folder} holds {safe(plugin.display_name)}, with {count(len(plugin.tools), 'tool')} to begin with.")
    print(f"Test it:  {'pytest ' + str(folder) if args.python else f'cd {folder} && node --test'}")
    print(f"Use it:   tabhub plugin dev {folder}")
    return 0


def dev(args: Namespace) -> int:
    """Use a folder and report each reload, until interrupted."""
    import asyncio

    from tabhub.plugins.discovery import load, stamp_of

    folder = Path(args.folder).expanduser().absolute()
    stamp = stamp_of(folder)  # before loading, so that a later save counts as a change
    plugin = load(folder, "local")
    added = _use(folder)
    try:
        if not tell_hub():
            raise HubDownError(find_hub().address)
        words = f"{safe(plugin.display_name)} is in use, with {count(len(plugin.tools), 'tool')}."
        print(f"{words} Every save counts at once.")
        print(paint("Ctrl+C ends it." + (" The plugin then goes out of use." if added else ""), "dim"), flush=True)
        asyncio.run(_follow(folder, stamp))
    except KeyboardInterrupt:
        print()
    finally:
        if added:
            _unuse(folder)
            tell_hub()
    return 0


async def _follow(folder: Path, before: Stamp) -> None:
    import asyncio

    from tabhub.errors import TabhubError
    from tabhub.plugins.discovery import load, stamp_of
    from tabhub.plugins.watch import Watcher

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
    """Add the folder to localPlugins; False if it was there."""
    from tabhub.store.config_file import set_value

    home, config = home_and_config()
    if any(Path(text).expanduser() == folder for text in config.local_plugins):
        return False
    if any(Path(text).expanduser() == folder.parent for text in config.local_plugin_dirs):
        return False
    set_value(home, "localPlugins", json.dumps([*config.local_plugins, str(folder)]))
    return True


def _unuse(folder: Path) -> None:
    from tabhub.store.config_file import set_value

    home, config = home_and_config()
    set_value(home, "localPlugins", json.dumps([text for text in config.local_plugins if text != str(folder)]))


CREATE = Command(
    "Create a working plugin with a test",
    create,
    option("name", metavar="NAME", help="its name: lower-case letters, digits and hyphens"),
    option("--url", required=True, metavar="PATTERN", help="the pages it is for: https://*.example.com/*"),
    option("--title", metavar="TEXT", help="what people call the web app"),
    option("--dir", metavar="FOLDER", help="where to put it; else a folder of its name here"),
    option("--python", action="store_true", help="tools in Python and one JavaScript file for the page"),
    examples=(("tabhub plugin create my-app --url 'https://my.example.com/*'", ""),),
)
DEV = Command(
    "Use a plugin's folder and reload it when files change",
    dev,
    option("folder", nargs="?", default=".", metavar="FOLDER", help="the plugin's folder; else this one"),
)
