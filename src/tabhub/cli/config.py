"""`tabhub config`: show and change settings, rotate the extension's key. What they mean: `tabhub.config.settings`."""

from __future__ import annotations

import json
import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.hub.client import find_hub
from tabhub.cli.hub.settings import apply_changes, home_and_config
from tabhub.cli.terminal import nearest, paint, print_json, show_warning
from tabhub.client_errors import UsageError
from tabhub.config.settings import Config, convert
from tabhub.errors import SetupError
from tabhub.store import config_file, extension_key
from tabhub.store.home import Home


def show(args: Namespace) -> None:
    home, config = home_and_config()
    values = config_file.show(home, os.environ)
    for problem in config.problems:
        show_warning(problem)
    if args.json:
        return print_json({**values, "home": str(home.root)})
    defaults = _flat(Config().values())
    for key, value in _flat(values).items():
        text = f"{key} = {json.dumps(value, ensure_ascii=False)}"
        print(text if defaults.get(key, ...) == value else paint(text, "bold") + "  (changed)")
    print(paint(f"\nFile: {home.config}", "dim"))


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            flat.update(_flat(value, f"{prefix}{key}."))
        elif not isinstance(value, dict):
            flat[prefix + key] = value
    return flat


def set_value(args: Namespace) -> None:
    key, value = args.key, args.value
    if value is None:
        key, equals, value = key.partition("=")
        if not equals:
            raise UsageError(f"No value for '{key}'.", f"Write: tabhub config set {key} VALUE")
    hub = find_hub()
    try:
        convert(key, value)
        if key == "tools":
            from tabhub.cli.setup.command import selection

            selection(value)
    except SetupError as error:
        raise UsageError(error.message, error.hint) from None
    except ArgumentTypeError as error:
        raise UsageError(str(error)) from None
    config_file.set_value(Home.find(), key, value)
    print(f"{key} = {value}")
    _check_tool(key)
    apply_changes(hub)


def _check_tool(key: str) -> None:
    """Warn about a permission for a built-in tool that does not exist."""
    named = re.fullmatch(r"permissions\.(?:clients\.[^.]+\.)?browser\.tools\.(.+)", key)
    if named is None:
        return
    from tabhub.browser.families import FAMILIES

    known = [tool for family in FAMILIES.values() for tool in family]
    if named[1] not in known:
        near = nearest(named[1], known)
        suggestion = f" Did you mean '{near}'?" if near else ""
        show_warning(f"There is no built-in tool '{named[1]}', so this has no effect.{suggestion}")


def reset(args: Namespace) -> None:
    home, hub = Home.find(), find_hub()
    existed = home.config.exists()
    config_file.reset(home, args.key)
    if args.key:
        print(f"{args.key} is back to its default.")
    else:
        print("All settings are back to their defaults." + (f" The old file: {home.config}.bak" if existed else ""))
    apply_changes(hub)


def show_path(_args: Namespace) -> None:
    print(Home.find().config)


def rotate_secret(_args: Namespace) -> None:
    hub = find_hub()  # before: until it reloads, the running hub proves that it knows the old key
    extension_key.rotate(Home.find())
    print("The extension has a new key; browsers reconnect with it. Agents' tokens are not affected.")
    apply_changes(hub)


def _set_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="the setting, with dots: limits.call_timeout")
    parser.add_argument("value", metavar="VALUE", nargs="?", help="its value (KEY=VALUE works too)")
    known = Config.known_keys()
    room = max(len(key) for key in known if not key.startswith("limits."))
    listed = [f"  {key.ljust(room)}  {doc}" for key, doc in known.items()]
    parser.epilog = "Settings:\n" + "\n".join(listed) + f"\n\n{parser.epilog or ''}"


COMMAND = Group(
    {
        "show": Command(
            show,
            JSON,
            summary="Show the settings in force",
            examples=(("tabhub config show --json | jq .port", "one of them, for a script"),),
        ),
        "set": Command(
            set_value,
            _set_arguments,
            summary="Change a setting",
            examples=(
                ("tabhub config set limits.call_timeout 60", ""),
                ("tabhub config set permissions.browser.tools.browser_execute_script off", ""),
            ),
        ),
        "reset": Command(
            reset,
            option("key", metavar="KEY", nargs="?", help="reset only this setting"),
            summary="Reset one setting, or all, to the default",
        ),
        "path": Command(show_path, summary="Print the path of the config file"),
        "rotate-secret": Command(
            rotate_secret,
            summary="Create a new key for the extension; the old one stops working at once",
        ),
    },
    examples=(
        ("tabhub config show", "all settings"),
        ("tabhub config set port 9600", "change one"),
        ("tabhub config rotate-secret", "give the extension a new key"),
    ),
)
