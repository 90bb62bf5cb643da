"""`tabhub setup --migrate`: named tokens instead of the secret that all clients of version 0.1.0 share.

Owns which settings files are searched, and what is replaced in them. A file that cannot be read or changed is reported;
the secret is retired in any case, because a client that was not found is refused with a message that says what to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tabhub.cli.hub.client import find_hub
from tabhub.cli.hub.settings import reload_hub
from tabhub.cli.setup.clients import Client, Server, clients
from tabhub.cli.setup.merge import Merged, find, merge, rewrite
from tabhub.cli.terminal import paint, show_warning
from tabhub.client_errors import CliError
from tabhub.errors import JsoncError, TomlError
from tabhub.store import old_secret
from tabhub.store.audit_reader import lines_backward
from tabhub.store.home import Home
from tabhub.trust.tokens import UNNAMED

_HEX = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_LINES = 20_000


def migrate(server: Callable[[str, str], Server], token: Callable[[str], str]) -> None:
    """Replace the shared secret by tokens wherever it is found, then retire it.

    `server` is the hub for a client of a name and token, `token` gives that client's token.
    """
    hub, home = find_hub(), Home.find()
    if hub.pid is not None and not home.person_key.exists():
        raise CliError(
            "The running hub is of an older version, which accepts the shared secret everywhere.",
            "Restart the hub first: tabhub stop && tabhub start --background",
        )
    old_secret.separate(home)
    secret = old_secret.kept_hash(home)
    replaced = 0
    for name, client, path in _files():
        try:
            merged = _replace(name, client, path, secret, server, token)
        except CliError as error:
            show_warning(f"{error.message} {error.hint or ''}".strip())
            continue
        if merged is not None:
            replaced += 1
            print(f"{paint(client.title, 'bold')} has the token {name!r} now: {path}")
            print(f"  Backup: {merged.backup}. {client.restart}")
    others = _unnamed_clients(home)
    old_secret.retire(home)
    reload_hub(hub)
    if others:
        print("Clients that called tools without a token of their own:")
        for client_name, when in others.items():
            print(f"  {client_name}, last on {when}")
        print("Those that were not replaced above need a token: tabhub token create NAME")
    if secret is None and not replaced:
        return print("There is no shared secret, and every client has its own token.")
    print("The shared secret opens nothing any more. `tabhub token list` shows the tokens.")


def _files() -> Iterator[tuple[str, Client, Path]]:
    """The settings files there are: the person's, and those of the project in this folder."""
    for name, client in clients().items():
        for path in dict.fromkeys((client.path(project=False), client.path(project=True))):
            if path.is_file():
                yield name, client, path


def _replace(
    name: str,
    client: Client,
    path: Path,
    secret: str | None,
    server: Callable[[str, str], Server],
    token: Callable[[str], str],
) -> Merged | None:
    """Put the client's token where the file has the secret, or into an entry that runs our stdio server without one."""

    def change(_target: Path, text: str) -> str:
        if not any(old_secret.hash_of(found) == secret for found in _HEX.findall(text)):
            return text
        own = token(name)
        return _HEX.sub(lambda found: own if old_secret.hash_of(found[0]) == secret else found[0], text)

    merged = rewrite(path, change)
    if merged is not None:
        return merged
    try:
        entry = find(client, path.read_text("utf-8"))
    except (OSError, ValueError, JsoncError, TomlError):
        return None  # nothing of ours can be in it
    env = entry.get(client.env_key) if entry is not None else None
    env = env if isinstance(env, dict) else {}
    if entry is None or not _needs_name(entry, env):
        return None
    options = _words(entry)[_words(entry).index("--stdio") + 1 :]
    ours = server(name, token(name))
    command = Server(ours.url, ours.token, (*ours.command, *map(str, options)), env)
    return merge(path, client, client.entry(command, stdio=True))


def _words(entry: dict[str, Any]) -> list[Any]:
    command, args = entry.get("command"), entry.get("args", [])
    return [*(command if isinstance(command, list) else [command]), *(args if isinstance(args, list) else [])]


def _needs_name(entry: dict[str, Any], env: dict[str, Any]) -> bool:
    """Whether an entry runs the stdio server of this home's hub without saying whose it is."""
    words = _words(entry)
    place = Path(str(env.get("TABHUB_HOME", "~/.tabhub"))).expanduser()
    return "--stdio" in words and "--as" not in words and "TABHUB_TOKEN" not in env and place == Home.find().root


def _unnamed_clients(home: Home) -> dict[str, str]:
    """What clients without a token of their own called themselves, and when they called last."""
    found: dict[str, str] = {}
    for line in islice(lines_backward(home.audit), _LINES):
        try:
            call = json.loads(line)
        except ValueError:
            continue  # a torn line, as after a crash
        if not isinstance(call, dict) or call.get("via", "cli") == "cli" or call.get("tokenName", UNNAMED) != UNNAMED:
            continue
        if "client" in call:
            found.setdefault(str(call["client"])[:100], str(call.get("timestamp", "")))
    return found
