"""The types of settings: how each is declared, validated, and parsed from what a person typed.

Owns the error messages. It knows no setting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, cast, get_args

from tabhub.errors import SetupError

Choice = Literal["auto", "never", "always"]
Guarding = Literal["off", "warn", "ask"]
_BOOLEANS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
_LARGEST = 1e15
_SELECTION = re.compile(r"[A-Za-z, -]{1,500}")
_ADDRESS = re.compile(r"https?://[^\s/?#@]+[^\s?#@]*")
_HOST = re.compile(r"[A-Za-z0-9.:_-]{1,253}(/[0-9]{1,3})?")
_ORIGIN = re.compile(r"\*|file://|https?://[^\s/?#@]+")
_RELAY = re.compile(r"wss?://[^\s?#@]+")
_PATH = re.compile(r"[^\0]+", re.DOTALL)
_REFERENCE = re.compile(r"\$\{[^{}]{1,300}\}")


class Setting(NamedTuple):
    """One key of the config file."""

    field: str
    kind: str
    """The name of its reader in READERS."""
    meaning: str


def setting(default: Any, kind: str, meaning: str) -> Any:
    """A field of a settings dataclass that is a key of the config file."""
    return field(default=default, metadata={"setting": (kind, meaning)})


def settings_of(section: type[Any]) -> dict[str, Setting]:
    """The settings of a dataclass, by their keys in the config file."""
    return {camel(f.name): Setting(f.name, *f.metadata["setting"]) for f in fields(section) if f.metadata}


def camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def mapping(path: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SetupError(f"{path} must be an object, not {shown(value)}.", hint='Write it as {"…": …}.')
    return value


def number(path: str, value: Any) -> int | float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SetupError(f"{path} must be a number, not {shown(value)}.")
    if not abs(value) <= _LARGEST:  # false for NaN as well
        raise SetupError(f"{path} must be a number below {_LARGEST:g}, not {shown(value)}.")
    return value


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """A relay whose browsers the hub uses too, and the file that holds the token for it."""

    url: str
    token_file: str

    def values(self) -> dict[str, str]:
        return {"url": self.url, "tokenFile": self.token_file}


Reader = Callable[[str, Any], Any]


def _checked(valid: Callable[[Any], bool], wanted: str, hint: str | None = None) -> Reader:
    """Accepts what is valid; the error says what is wanted."""

    def read(path: str, value: Any) -> Any:
        if not valid(value):
            raise SetupError(f"{path} must be {wanted}, not {shown(value)}.", hint=hint)
        return value

    return read


def _optional(reader: Reader) -> Reader:
    return lambda path, value: None if value is None else reader(path, value)


def _one_of(*choices: str) -> Reader:
    return _checked(lambda value: value in choices, f"one of {', '.join(choices)}")


def _list_of(valid: Callable[[str], object], wanted: str, hint: str, *, lower: bool = False) -> Reader:
    def is_list(value: Any) -> bool:
        return isinstance(value, (list, tuple)) and all(isinstance(item, str) and valid(item) for item in value)

    check = _checked(is_list, f"a list of {wanted}", hint)
    return lambda path, value: tuple(item.lower() if lower else item for item in check(path, value))


def _whole(low: int, high: float) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _text(pattern: re.Pattern[str]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _seconds(path: str, value: Any) -> float:
    seconds = number(path, value)
    if seconds <= 0:
        raise SetupError(f"{path} must be a number of seconds above 0, not {shown(value)}.")
    return float(seconds)


def _reference(path: str, value: Any) -> str | None:
    if value is not None and not _text(_REFERENCE)(value):
        # The value may be the secret itself: it is not shown.
        hint = "Write ${NAME} and set the variable NAME, or ${keyring:SERVICE/USER}."
        raise SetupError(f"{path} must be a reference to the key, not the key itself.", hint=hint)
    return cast("str | None", value)


def _relays(path: str, value: Any) -> tuple[RelaySettings, ...]:
    hint = 'Write it as [{"url": "wss://relay.example", "tokenFile": "~/relay.token"}].'
    if not isinstance(value, (list, tuple)):
        raise SetupError(f"{path} must be a list of relays, not {shown(value)}.", hint=hint)
    for item in value:
        if not isinstance(item, Mapping) or item.keys() != {"url", "tokenFile"}:
            raise SetupError(f"{path}: each relay has a `url` and a `tokenFile`; this is {shown(item)}.", hint=hint)
        if not _text(_RELAY)(item["url"]):
            raise SetupError(f"{path}: {shown(item['url'])} is not the URL of a relay.", hint=hint)
        if not _text(_PATH)(item["tokenFile"]):
            raise SetupError(f"{path}: `tokenFile` must be a path.", hint=hint)
    return tuple(RelaySettings(item["url"], item["tokenFile"]) for item in value)


READERS: Mapping[str, Reader] = {
    "port": _checked(_whole(1, 65535), "a whole number from 1 to 65535"),
    "number": number,
    "count": _checked(_whole(1, _LARGEST), "a whole number above 0"),
    "tokens": _checked(_whole(0, _LARGEST), "a whole number of tokens, 0 for none"),
    "seconds": _seconds,
    "bool": _checked(lambda value: isinstance(value, bool), "true or false"),
    "choice": _one_of(*get_args(Choice)),
    "guard": _one_of(*get_args(Guarding)),
    "provider": _one_of("openai", "anthropic"),
    "format": _one_of("native", "xml"),
    "path": _optional(_checked(_text(_PATH), "a path")),
    "paths": _list_of(bool, "paths", 'Write it as ["…", "…"].'),
    "address": _optional(
        _checked(
            _text(_ADDRESS),
            "a URL",
            "Use a URL such as https://api.example/v1, without a user name, password or query.",
        )
    ),
    "selection": _checked(_text(_SELECTION), "terms separated by commas", "Example: core,network or all,-emulation."),
    "origins": _list_of(
        _ORIGIN.fullmatch,
        "origins",
        'Write it as ["https://shop.example", "http://localhost:8080"], or ["*"] for all.',
        lower=True,
    ),
    "hosts": _list_of(
        _HOST.fullmatch,
        "hosts and networks",
        'Write it as ["wiki.corp.example", "192.168.1.20", "10.0.0.0/8"].',
        lower=True,
    ),
    "name": _optional(
        _checked(lambda value: isinstance(value, str) and 0 < len(value) <= 200 and value.isprintable(), "a name")
    ),
    "reference": _reference,
    "relays": _relays,
}


def from_text(kind: str, key: str, text: str) -> Any:
    typed = text.strip()
    value: Any = typed
    if kind == "bool":
        value = _BOOLEANS.get(typed.lower(), typed)
    elif kind in ("port", "number", "seconds", "count", "tokens", "relays"):
        value = json_or_text(typed)
    elif kind in ("path", "address", "name", "reference"):
        value = typed or None
    elif kind in ("paths", "origins", "hosts"):
        value = json_or_text(typed) if typed.startswith("[") else [typed]
    return READERS[kind](key, value)


def json_or_text(text: str) -> Any:
    """The value of a JSON text such as `5`, `true` or `{"a": 1}`; any other text itself."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
