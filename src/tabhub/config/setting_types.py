"""The types of settings: how each is validated, and parsed from what a person typed.

Owns the error messages. It knows no setting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal

from tabhub.config.relay import RelaySettings
from tabhub.errors import SetupError

Choice = Literal["auto", "never", "always"]
_CHOICES = ("auto", "never", "always")
Guarding = Literal["off", "warn", "ask"]
_GUARDING = ("off", "warn", "ask")
_BOOLEANS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
_LARGEST = 1e15
_SELECTION = re.compile(r"[A-Za-z, -]{1,500}")
_ADDRESS = re.compile(r"https?://[^\s/?#@]+[^\s?#@]*")
_HOST = re.compile(r"[A-Za-z0-9.:_-]{1,253}(/[0-9]{1,3})?")
_ORIGIN = re.compile(r"\*|file://|https?://[^\s/?#@]+")
_RELAY = re.compile(r"wss?://[^\s?#@]+")
_REFERENCE = re.compile(r"\$\{[^{}]{1,300}\}")


def mapping(path: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SetupError(f"{path} must be an object, not {shown(value)}.", hint='Write it as {"…": …}.')
    return value


def number(path: str, value: Any) -> int | float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SetupError(f"{path} must be a number, not {shown(value)}.")
    if not abs(value) <= _LARGEST:  # so that not-a-number fails too
        raise SetupError(f"{path} must be a number below {_LARGEST:g}, not {shown(value)}.")
    return value


def _port(path: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise SetupError(f"{path} must be a whole number from 1 to 65535, not {shown(value)}.")
    return value


def _bool(path: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SetupError(f"{path} must be true or false, not {shown(value)}.")
    return value


def _choice(path: str, value: Any) -> str:
    if value not in _CHOICES:
        raise SetupError(f"{path} must be one of {', '.join(_CHOICES)}, not {shown(value)}.")
    return str(value)


def _guard(path: str, value: Any) -> str:
    if value not in _GUARDING:
        raise SetupError(f"{path} must be one of {', '.join(_GUARDING)}, not {shown(value)}.")
    return str(value)


def _seconds(path: str, value: Any) -> float:
    seconds = number(path, value)
    if seconds <= 0:
        raise SetupError(f"{path} must be a number of seconds above 0, not {shown(value)}.")
    return float(seconds)


def _path(path: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value:
        raise SetupError(f"{path} must be a path, not {shown(value)}.")
    return value


def _address(path: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        raise SetupError(
            f"{path} must be a URL, not {shown(value)}.",
            hint="Use a URL such as https://api.example/v1, without a user name, password or query.",
        )
    return value


def _paths(path: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item for item in value):
        raise SetupError(f"{path} must be a list of paths, not {shown(value)}.", hint='Write it as ["…", "…"].')
    return tuple(value)


def _origins(path: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(o, str) and _ORIGIN.fullmatch(o) for o in value):
        hint = 'Write it as ["https://shop.example", "http://localhost:8080"], or ["*"] for all.'
        raise SetupError(f"{path} must be a list of origins, not {shown(value)}.", hint=hint)
    return tuple(item.lower() for item in value)


def _hosts(path: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(h, str) and _HOST.fullmatch(h) for h in value):
        hint = 'Write it as ["wiki.corp.example", "192.168.1.20", "10.0.0.0/8"].'
        raise SetupError(f"{path} must be a list of hosts and networks, not {shown(value)}.", hint=hint)
    return tuple(item.lower() for item in value)


def _selection(path: str, value: Any) -> str:
    if not isinstance(value, str) or not _SELECTION.fullmatch(value):
        hint = "Write it as core,network or all,-emulation."
        raise SetupError(f"{path} must be terms separated by commas, not {shown(value)}.", hint=hint)
    return value


def _name(path: str, value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable()):
        raise SetupError(f"{path} must be a name, not {shown(value)}.")
    return value


def _reference(path: str, value: Any) -> str | None:
    if value is not None and not (isinstance(value, str) and _REFERENCE.fullmatch(value)):
        # What was typed may be the secret itself: it is not shown.
        hint = "Write ${NAME} and set the variable NAME, or ${keyring:SERVICE/USER}."
        raise SetupError(f"{path} must be a reference to the key, not the key itself.", hint=hint)
    return value


def _relays(path: str, value: Any) -> tuple[RelaySettings, ...]:
    hint = 'Write it as [{"url": "wss://relay.example", "tokenFile": "~/relay.token"}].'
    if not isinstance(value, (list, tuple)):
        raise SetupError(f"{path} must be a list of relays, not {shown(value)}.", hint=hint)
    for item in value:
        if not isinstance(item, Mapping) or item.keys() != {"url", "tokenFile"}:
            raise SetupError(f"{path}: each relay has a `url` and a `tokenFile`; this is {shown(item)}.", hint=hint)
        if not isinstance(item["url"], str) or not _RELAY.fullmatch(item["url"]):
            raise SetupError(f"{path}: {shown(item['url'])} is not the URL of a relay.", hint=hint)
        if _path(f"{path}.tokenFile", item["tokenFile"]) is None:
            raise SetupError(f"{path}: `tokenFile` must be a path.", hint=hint)
    return tuple(RelaySettings(item["url"], item["tokenFile"]) for item in value)


def _count(path: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
        raise SetupError(f"{path} must be a whole number above 0, not {shown(value)}.")
    return value


def _one_of(*choices: str) -> Callable[[str, Any], str]:
    def read(path: str, value: Any) -> str:
        if value not in choices:
            raise SetupError(f"{path} must be one of {', '.join(choices)}, not {shown(value)}.")
        return str(value)

    return read


READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "port": _port,
    "number": number,
    "bool": _bool,
    "choice": _choice,
    "guard": _guard,
    "seconds": _seconds,
    "path": _path,
    "address": _address,
    "paths": _paths,
    "selection": _selection,
    "origins": _origins,
    "hosts": _hosts,
    "name": _name,
    "reference": _reference,
    "count": _count,
    "relays": _relays,
    "provider": _one_of("openai", "anthropic"),
    "format": _one_of("native", "xml"),
}


def from_text(kind: str, key: str, text: str) -> Any:
    typed = text.strip()
    value: Any = typed
    if kind == "bool":
        value = _BOOLEANS.get(typed.lower(), typed)
    elif kind in ("port", "number", "seconds", "count", "relays"):
        value = json_or_text(typed)
    elif kind in ("path", "address", "name", "reference"):
        value = typed or None
    elif kind in ("paths", "origins", "hosts"):
        value = json_or_text(typed) if typed.startswith("[") else [typed]
    return READERS[kind](key, value)


def json_or_text(text: str) -> Any:
    """JSON if it is JSON, else the text itself: `5`, `true` and `{"a": 1}` mean what they look like."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def shown(value: Any) -> str:
    """A value as an error message shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
