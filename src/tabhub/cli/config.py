"""`tabhub config`: show and change settings, rotate the secret.

Owns the command. Keys and their meaning: `tabhub.config.settings`; the file: `tabhub.store.config_file`.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from tabhub.cli.command import JSON, Command, Group, option
from tabhub.cli.hub.client import Hub, decode, find_hub, request
from tabhub.cli.terminal import nearest, paint, print_json, show_warning
from tabhub.client_errors import CliError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from tabhub.store.home import Home


def _home() -> Home:
    from tabhub.store.home import Home

    return Home.find()


def show(args: Namespace) -> int:
    from tabhub.config.settings import Config
    from tabhub.store import config_file as config
    from tabhub.store import secret

    home = _home()
    values: dict[str, Any] = config.show(home, os.environ)
    known = secret.read(home) if args.show_secret else find_hub().secret
    if known and not args.show_secret:
        known = mask(known)
    for problem in config.load(home).problems:
        show_warning(problem)
    if args.json:
        return print_json({**values, "secret": known, "home": str(home.root)})
    defaults = _flat(Config().values())
    for key, value in _flat(values).items():
        changed = key not in defaults or defaults[key] != value
        text = f"{key} = {json.dumps(value, ensure_ascii=False)}"
        print(paint(text, "bold") + "  (changed)" if changed else text)
    print(f"secret = {known}" if known else "secret = (made at the first start)")
    print(paint(f"\nFile: {home.config}", "dim"))
    return 0


def mask(secret: str) -> str:
    """The secret, masked: its first and last characters."""
    return f"{secret[:4]}…{secret[-4:]}" if len(secret) >= 16 else "…"


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            flat.update(_flat(value, f"{prefix}{key}."))
        elif not isinstance(value, dict):
            flat[prefix + key] = value
    return flat


def set_value(args: Namespace) -> int:
    from tabhub.config.settings import convert
    from tabhub.errors import SetupError
    from tabhub.store import config_file as config

    key, value = args.key, args.value
    if value is None:
        key, equals, value = key.partition("=")
        if not equals:
            raise CliError(f"No value for '{key}'.", f"Write: tabhub config set {key} VALUE", exit_code=2)
    hub = find_hub()
    try:
        convert(key, value)
    except SetupError as error:
        raise CliError(error.message, error.hint, exit_code=2) from None
    if key == "tools":
        _check_selection(value)
    config.set_value(_home(), key, value)
    print(f"{key} = {value}")
    _look_at_tool(key)
    _tell(hub, restart=key in ("port", "launch", "headless", "browser"))
    return 0


def _check_selection(value: str) -> None:
    from argparse import ArgumentTypeError

    from tabhub.cli.setup.command import selection

    try:
        selection(value)
    except ArgumentTypeError as error:
        raise CliError(str(error), exit_code=2) from None


def _look_at_tool(key: str) -> None:
    """Warn about a permission for a built-in tool that does not exist."""
    named = re.fullmatch(r"permissions\.(?:clients\.[^.]+\.)?browser\.tools\.(.+)", key)
    if named is None:
        return
    from tabhub.browser.families import FAMILIES

    known = [tool for family in FAMILIES.values() for tool in family]
    if named[1] not in known:
        near = nearest(named[1], known)
        meant = f" Did you mean '{near}'?" if near else ""
        show_warning(f"There is no built-in tool '{named[1]}', so this has no effect.{meant}")


def reset(args: Namespace) -> int:
    from tabhub.store import config_file as config

    home = _home()
    hub = find_hub()
    existed = home.config.exists()
    config.reset(home, args.key)
    if args.key:
        print(f"{args.key} is back to its default.")
    else:
        print("All settings are back to their defaults." + (f" The old file: {home.config}.bak" if existed else ""))
    _tell(hub, restart=False)
    return 0


def show_path(_args: Namespace) -> int:
    print(_home().config)
    return 0


def rotate_secret(args: Namespace) -> int:
    """Create a new secret; the old one stops working at once."""
    from tabhub.store import secret

    hub = find_hub()  # before: the running hub still wants the old one
    new = secret.rotate(_home())
    print(f"The secret is new: {new if args.show_secret else mask(new)}")
    _tell(hub, restart=False)
    print("Reconnect the MCP clients: tabhub setup CLIENT --write (not needed with --stdio).")
    return 0


def _tell(hub: Hub, *, restart: bool) -> None:
    """Reload the running hub and report whether it worked."""
    if hub.pid is None or hub.secret is None:
        return
    if restart:
        print("The running hub takes it over at its next start: tabhub stop && tabhub start --background")
        return
    try:
        answer = request(hub, "POST", "/reload", body=b"{}", timeout=10.0)
    except CliError as error:
        show_warning(f"The running hub did not reload: {error.message} The change takes effect when it restarts.")
        return
    if answer.status == 200:
        said = decode(answer)
        problem = said.get("error") if isinstance(said, dict) else None
        if problem:
            show_warning(f"The running hub keeps its last good settings: {problem}")
        elif waiting := said.get("needsRestart") if isinstance(said, dict) else None:
            print(f"The running hub takes it over at its next start (changed since this one: {', '.join(waiting)}).")
        else:
            print("The running hub has taken it over.")
    elif answer.status == 429:
        wait = answer.headers.get("retry-after", "60")
        show_warning(f"The running hub was reloaded too often. Try again in {wait} s, or restart it.")
    else:
        show_warning(f"The running hub answered {answer.status}: restart it to take the change over.")


def _set_arguments(parser: ArgumentParser) -> None:
    from tabhub.config.settings import Config

    parser.add_argument("key", metavar="KEY", help="the setting, with dots: limits.call_timeout")
    parser.add_argument("value", metavar="VALUE", nargs="?", help="its value (KEY=VALUE works too)")
    known = Config.known_keys()
    room = max(len(key) for key in known if not key.startswith("limits."))
    listed = [f"  {key.ljust(room)}  {doc}" for key, doc in known.items()]
    parser.epilog = "Settings:\n" + "\n".join(listed) + f"\n\n{parser.epilog or ''}"


COMMAND = Group(
    "Show and change settings; rotate the secret.",
    {
        "show": Command(
            "Show the settings in force",
            show,
            JSON,
            option("--show-secret", action="store_true", help="do not mask the secret"),
            examples=(("tabhub config show --json --show-secret | jq -r .secret", "the secret, for a script"),),
        ),
        "set": Command(
            "Change a setting",
            set_value,
            _set_arguments,
            examples=(
                ("tabhub config set limits.call_timeout 60", ""),
                ("tabhub config set permissions.browser.tools.browser_execute_script off", ""),
            ),
        ),
        "reset": Command(
            "Reset one setting, or all, to the default",
            reset,
            option("key", metavar="KEY", nargs="?", help="only this setting"),
        ),
        "path": Command("Print the path of the config file", show_path),
        "rotate-secret": Command(
            "Create a new secret; the old one stops working at once",
            rotate_secret,
            option("--show-secret", action="store_true", help="print the new secret in full"),
        ),
    },
    examples=(
        ("tabhub config show", "what is set"),
        ("tabhub config set port 9600", "change it"),
        ("tabhub config rotate-secret", "invalidate the old secret"),
    ),
)
