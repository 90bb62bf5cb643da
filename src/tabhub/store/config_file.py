"""The config file: read, changed key by key, and reloaded while the hub runs; an invalid file never replaces settings.

Owns `config.json` as text. The meaning of keys is config.settings'; applying a change is up to the caller.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Mapping
from typing import Any

from tabhub.config.settings import Config, convert, locate
from tabhub.errors import ParseError, SetupError
from tabhub.platform.files import read_trusted, write_atomic
from tabhub.platform.locks import locked
from tabhub.store.home import Home
from tabhub.wire import strict_json as strict

_LARGEST = 4 * 1024 * 1024
_REPAIR = "Correct it, or restore the defaults with: tabhub config reset (the old file is kept as config.json.bak)."


def load(home: Home, env: Mapping[str, str] | None = None) -> Config:
    """The settings of the file with defaults; `env` adds overrides of the environment."""
    config = _parse(home, _read(home) or {})
    return config if env is None else config.with_environment(env)


def show(home: Home, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The settings in force, defaults included, by the keys of the file; unknown keys unchanged."""
    config = load(home, env)
    return {**config.values(), **{key: value for key, value in config.extra.items() if "." not in key}}


def is_set(home: Home, key: str) -> bool:
    """Whether the file has a value for a key of its top level."""
    return key in (_read(home) or {})


def set_value(home: Home, key: str, text: str) -> Config:
    """Set one key from text; the file changes only if all of it is valid afterwards."""
    return set_at(home, *convert(key, text))


def set_at(home: Home, path: tuple[str, ...], value: Any) -> Config:
    """Set the value at a path, None to remove it; the file changes only if all of it is valid afterwards."""
    home.ensure()
    with locked(home.root / "config.lock"):
        values = _read(home) or {}
        if value is None:
            _remove(values, path)
            return _write(home, values)
        place = values
        for step in path[:-1]:
            inner = place.setdefault(step, {})
            if not isinstance(inner, dict):
                raise SetupError(
                    f"{'.'.join(path)} cannot be set: {step!r} is not an object in {home.config}.",
                    hint=f"Remove it first: tabhub config reset {'.'.join(path[: path.index(step) + 1])}",
                )
            place = inner
        place[path[-1]] = value
        return _write(home, values)


def change_section(home: Home, section: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Config:
    """Replace a section by what `change` makes of it; the file changes only if all of it is valid afterwards."""
    home.ensure()
    with locked(home.root / "config.lock"):
        values = _read(home) or {}
        _parse(home, values)
        changed = change(values.get(section, {}))
        others = {key: value for key, value in values.items() if key != section}
        return _write(home, {**values, section: changed} if changed else others)


def set_plugin_settings(home: Home, plugin: str, settings: Mapping[str, Any]) -> Config:
    """Set all settings of one plugin; the file changes only if all of it is valid afterwards."""
    return set_at(home, ("settings", plugin), dict(settings) or None)


def reset(home: Home, key: str | None = None) -> Config:
    """Restore the default of one key (also an unknown one), or of all; the old file is kept as `config.json.bak`."""
    home.ensure()
    with locked(home.root / "config.lock"):
        if key is None:
            if home.config.exists():
                write_atomic(home.config.with_name("config.json.bak"), home.config.read_bytes())
            return _write(home, {})
        values = _read(home) or {}
        if key in values or key in ("settings", "permissions", "sites", "pages", "approvals", "limits"):
            values.pop(key, None)
        else:
            _remove(values, _place(values, key))
        return _write(home, values)


class ConfigFile:
    """The file while the hub runs: an invalid one is reported and the last valid settings stay in force."""

    def __init__(self, home: Home, env: Mapping[str, str] | None = None) -> None:
        """Raises SetupError for an invalid file, because the permissions in it are unknown."""
        self._home = home
        self._env = dict(env or {})
        self._seen = home.config.exists()
        self.current = load(home, self._env)
        self.error: str | None = None

    def reload(self) -> tuple[Config, str | None]:
        """The settings in force, and what is wrong with the file if they are the last valid ones."""
        try:
            values = _read(self._home)
            if values is None and self._seen:
                raise SetupError(f"{self._home.config} was deleted.", hint="Restore the defaults: tabhub config reset")
            self.current = _parse(self._home, values or {}).with_environment(self._env)
        except SetupError as error:
            self.error = f"{error.text()} The previous settings stay in force."
        else:
            self._seen = values is not None
            self.error = None
        return self.current, self.error


def _read(home: Home) -> dict[str, Any] | None:
    """The file's object; None if there is no file."""
    path = home.config
    # The group may write: on many systems the umask creates such files, for a group of one.
    raw = read_trusted(path, _LARGEST, writable_by=stat.S_IWOTH)
    if raw is None:
        return None
    try:
        values = strict.decode(raw)
    except ParseError as error:
        raise SetupError(f"{path} is broken. {_where(raw) or error.message}", hint=_REPAIR) from None
    if not isinstance(values, dict):
        raise SetupError(f"{path} is broken: it must hold one JSON object.", hint=_REPAIR)
    return values


def _where(raw: bytes) -> str | None:
    """Line and column for a person's editor, if the standard parser finds the same error."""
    if not raw.strip():
        return "It is empty."
    try:
        json.loads(raw)
    except json.JSONDecodeError as error:
        return f"Not valid JSON: {error.msg}, line {error.lineno} column {error.colno}."
    except (ValueError, RecursionError):
        return None
    return None


def _parse(home: Home, values: dict[str, Any]) -> Config:
    try:
        return Config.parse(values)
    except SetupError as error:
        hint = f"{error.hint} {_REPAIR}" if error.hint else _REPAIR
        raise SetupError(f"{home.config}: {error.message.rstrip('.')}.", hint=hint) from None


def _write(home: Home, values: dict[str, Any]) -> Config:
    config = _parse(home, values)
    write_atomic(home.config, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
    return config


def _place(values: dict[str, Any], key: str) -> tuple[str, ...]:
    """The path of a key: a known one by its meaning, an unknown one step by step."""
    steps = tuple(key.split("."))
    if _holds(values, steps):
        return steps
    path = locate(key)
    if path[0] == "limits" and not _holds(values, path):
        spelled = {name.replace("_", "").lower(): name for name in values.get("limits", {})}
        return (path[0], spelled.get(path[1].replace("_", ""), path[1]))
    return path


def _holds(values: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(values, dict) or step not in values:
            return False
        values = values[step]
    return True


def _remove(values: dict[str, Any], path: tuple[str, ...]) -> None:
    """Remove one key, and the objects it leaves empty."""
    if not _holds(values, path):
        return
    if len(path) == 1:
        del values[path[0]]
        return
    inner = values[path[0]]
    _remove(inner, path[1:])
    if not inner:
        del values[path[0]]
