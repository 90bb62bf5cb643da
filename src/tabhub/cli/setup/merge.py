"""Put our server into a client's settings file, or take it out, without losing anything else that is in it.

Owns reading, checking, backing up and replacing that file. A file that cannot be parsed is not changed.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tabhub.cli.setup import jsonc, toml_table
from tabhub.cli.setup.clients import NAME, TRANSPORT_KEYS, Client
from tabhub.client_errors import CliError
from tabhub.errors import JsoncError, TomlError
from tabhub.platform.files import write_atomic

_LARGEST = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Merged:
    """What was done to a file."""

    added: bool
    backup: Path | None
    mode: int


def merge(path: Path, client: Client, entry: dict[str, Any]) -> Merged | None:
    """Set our entry in the file; all other values stay unchanged. None if the file is up to date."""
    added = False

    def change(target: Path, text: str) -> str:
        nonlocal added
        new, added = (_toml if client.toml else _json)(target, text, client, entry)
        return new

    done = rewrite(path, change)
    return done and replace(done, added=added)


def remove(path: Path, client: Client) -> Merged | None:
    """Remove our entry from the file; None if it has no such entry."""

    def change(target: Path, text: str) -> str:
        try:
            if find(client, text) is None:
                return text
            if client.toml:
                return toml_table.remove_table(text, client.section, NAME)
            before = jsonc.parse(text)
            new = jsonc.remove_member(text, (client.section, NAME))
            del before[client.section][NAME]
            if jsonc.parse(new) != before:
                raise _refused(target, "it is written in a way that cannot be changed safely")
        except (JsoncError, TomlError) as error:
            raise _refused(target, f"{error}") from None
        return new

    return rewrite(path, change)


def find(client: Client, text: str) -> dict[str, Any] | None:
    """Our entry in the text of a client's settings; raises JsoncError or TomlError."""
    values = toml_table.read(text) if client.toml else jsonc.parse(text) if text.strip() else {}
    section = values.get(client.section) if isinstance(values, dict) else None
    entry = section.get(NAME) if isinstance(section, dict) else None
    return entry if isinstance(entry, dict) else None


def rewrite(path: Path, change: Callable[[Path, str], str]) -> Merged | None:
    """Change the text of a file, with a backup; None if it stays the same."""
    target = Path(os.path.realpath(path))  # settings are often links into a folder of dotfiles
    text, mode = _read(target)
    old = text.removeprefix("\ufeff")
    bom = text[: len(text) - len(old)]
    new = change(target, old)
    if new == old:
        return None
    owner = target.stat() if target.exists() else None
    backup = _back_up(target, mode) if owner is not None else None
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomic(target, bom + new, mode)
    if owner is not None and owner.st_uid != os.geteuid():
        os.chown(target, owner.st_uid, owner.st_gid)
    return Merged(backup is None, backup, mode)


def _read(path: Path) -> tuple[str, int]:
    try:
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    except FileNotFoundError:
        return "", 0o600
    except OSError as error:
        raise CliError(f"Cannot read {path}: {error.strerror}.", "Nothing was changed.") from None
    if len(raw) > _LARGEST:
        raise _refused(path, "it is too large to be a settings file")
    try:
        return raw.decode("utf-8"), mode
    except UnicodeDecodeError:
        raise _refused(path, "it is not UTF-8 text") from None


def _refused(path: Path, why: str) -> CliError:
    return CliError(
        f"{path} was not changed: {why}.",
        "Correct the file, or add the settings by hand: the same command without --write prints them.",
    )


def _merged_entry(old: object, entry: dict[str, Any]) -> dict[str, Any]:
    """Our entry, with what the person added to the existing one."""
    if not isinstance(old, dict):
        return entry
    merged = {key: value for key, value in old.items() if key not in TRANSPORT_KEYS or key in entry}
    for key, value in entry.items():
        before = old.get(key)
        merged[key] = {**before, **value} if isinstance(value, dict) and isinstance(before, dict) else value
    return merged


def _json(path: Path, text: str, client: Client, entry: dict[str, Any]) -> tuple[str, bool]:
    if not text.strip():
        return json.dumps({client.section: {NAME: entry}}, indent=2, ensure_ascii=False) + "\n", True
    try:
        before = jsonc.parse(text)
        if not isinstance(before, dict):
            raise _refused(path, "it does not contain a JSON object")
        section = before.get(client.section, {})
        if not isinstance(section, dict):
            raise _refused(path, f'its "{client.section}" is not an object')
        old = section.get(NAME)
        wanted = _merged_entry(old, entry)
        new = text if old == wanted else jsonc.set_member(text, (client.section, NAME), wanted)
        after = jsonc.parse(new)
    except JsoncError as error:
        raise _refused(path, f"it is not valid JSON: {error}") from None
    if after != {**before, client.section: {**section, NAME: wanted}}:  # checked once more before anything is written
        raise _refused(path, "it is written in a way that cannot be changed safely")
    return new, old is None


def _toml(path: Path, text: str, client: Client, entry: dict[str, Any]) -> tuple[str, bool]:
    try:
        section = toml_table.read(text).get(client.section, {})
        old = section.get(NAME) if isinstance(section, dict) else None
        wanted = _merged_entry(old, entry)
        new = text if old == wanted else toml_table.set_table(text, client.section, NAME, wanted)
    except TomlError as error:
        raise _refused(path, f"{error}") from None
    return new, old is None


def _back_up(path: Path, mode: int) -> Path:
    """Copy the file into its folder, never over an earlier backup."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (f"{path.name}.backup-{stamp}{f'-{number}' if number else ''}" for number in itertools.count())
    backup = next(path.with_name(name) for name in names if not path.with_name(name).exists())
    write_atomic(backup, path.read_bytes(), mode)
    return backup
