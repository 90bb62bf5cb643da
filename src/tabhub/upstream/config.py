"""The configuration of external servers as people paste it: JSON in the form that MCP clients share.

Owns what is accepted and the error messages, which name the server and the field. Pure: it reads no file, no
environment and no store. Values may hold references to secrets (upstream.secrets); they are kept as references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tabhub.errors import InvalidServerConfig
from tabhub.wire import urls as addresses

WRAPPERS = ("mcpServers", "servers")
RESERVED = frozenset({"browser", "hub", "default", "clients", "unknown"})
"""Names that mean something else where permissions are set."""
MOST_SERVERS = 200
_LONGEST_NAME = 100
_LONGEST_TEXT = 10_000
_MOST_ITEMS = 200
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_ADDRESSES = ("url", "serverUrl", "httpUrl")
_HTTP = frozenset({"http", "streamable-http", "streamableHttp", "streamable_http", "remote"})
_STDIO = frozenset({"stdio", "local"})
OAUTH = ("clientId", "clientSecret", "scope")
_EXAMPLE = 'Write it as {"name": {"url": "https://…/mcp"}} or {"name": {"command": "…", "args": ["…"]}}.'


@dataclass(frozen=True, slots=True)
class Wanted:
    """One server as the person describes it."""

    name: str
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    oauth: Mapping[str, str] = field(default_factory=dict)
    """As what the hub is known at the server's login, where it may not register itself: see OAUTH."""
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    enabled: bool = True
    disabled_tools: tuple[str, ...] = ()


def read(value: Any) -> list[Wanted]:
    """The servers of a pasted configuration; InvalidServerConfig says what is wrong and where."""
    servers = _unwrapped(value)
    if not servers:
        raise InvalidServerConfig("The configuration names no server.", hint=_EXAMPLE)
    if len(servers) > MOST_SERVERS:
        raise InvalidServerConfig(f"The configuration names {len(servers)} servers; {MOST_SERVERS} are the most.")
    return [read_server(name, entry) for name, entry in servers.items()]


def _unwrapped(given: Any) -> Mapping[str, Any]:
    value: Mapping[str, Any] = given
    if not isinstance(value, Mapping):
        raise InvalidServerConfig(f"The configuration must be an object of servers, not {_kind(value)}.", hint=_EXAMPLE)
    if _is_server(value):
        raise InvalidServerConfig("The server has no name.", hint=_EXAMPLE)
    if isinstance(value.get("mcp"), Mapping) and not _is_server(value["mcp"]):
        value = value["mcp"]
    for wrapper in WRAPPERS:
        inner = value.get(wrapper)
        if isinstance(inner, Mapping) and not _is_server(inner):
            return inner
        if inner is not None and not isinstance(inner, Mapping):
            raise InvalidServerConfig(f"`{wrapper}` must be an object of servers, not {_kind(inner)}.", hint=_EXAMPLE)
    return value


def _is_server(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(value.get(key), str) for key in (*_ADDRESSES, "command"))


def read_name(name: str) -> str:
    if not name.strip() or name != name.strip() or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InvalidServerConfig(
            f"{name[:120]!r} cannot be a server's name: it must have 1 to {_LONGEST_NAME} visible characters."
        )
    if name.lower() in RESERVED:
        raise InvalidServerConfig(
            f"A server cannot be named {name!r}: the hub uses that name itself.", hint="Choose another."
        )
    return name


def read_server(name: str, entry: Any) -> Wanted:
    read_name(name)
    if not isinstance(entry, Mapping):
        raise InvalidServerConfig(f"{name}: the entry must be an object, not {_kind(entry)}.", hint=_EXAMPLE)
    kind = entry.get("type", entry.get("transport"))
    if kind == "sse":
        raise InvalidServerConfig(
            f"{name}.type: servers that speak only the deprecated SSE transport are not supported.",
            hint="Most support Streamable HTTP as well, often at /mcp: use that URL with type http.",
        )
    if kind is not None and kind not in _HTTP | _STDIO:
        raise InvalidServerConfig(f"{name}.type must be http or stdio, not {str(kind)[:60]!r}.")
    given = [key for key in _ADDRESSES if entry.get(key) is not None]
    command = entry.get("command")
    if given and command is not None:
        raise InvalidServerConfig(f"{name} has both `{given[0]}` and `command`.", hint="A server has one of them.")
    enabled = _flag(name, entry, "enabled", default=not _flag(name, entry, "disabled", default=False))
    off = _texts(name, entry, "disabledTools")
    if command is not None or kind in _STDIO:
        command, args = _command(name, command, entry)
        env = {**_table(name, entry, "environment"), **_table(name, entry, "env")}
        cwd = entry.get("cwd")
        if cwd is not None and (not isinstance(cwd, str) or not cwd or "\0" in cwd):
            raise InvalidServerConfig(f"{name}.cwd must be a folder, not {_kind(cwd)}.")
        return Wanted(name, command=command, args=args, env=env, cwd=cwd, enabled=enabled, disabled_tools=off)
    if not given:
        raise InvalidServerConfig(f"{name}.url is missing.", hint=_EXAMPLE)
    url = read_url(f"{name}.{given[0]}", entry[given[0]])
    headers, oauth = read_headers(name, entry), read_oauth(name, entry)
    return Wanted(name, url=url, headers=headers, oauth=oauth, enabled=enabled, disabled_tools=off)


def read_url(where: str, url: Any) -> str:
    """A Streamable HTTP URL; whether its host may be reached is decided by transport.address_guard."""
    if not isinstance(url, str) or not 0 < len(url) <= _LONGEST_TEXT or not url.isprintable() or " " in url:
        raise InvalidServerConfig(f"{where} must be a URL, not {_kind(url)}.")
    parts = addresses.split(url)
    if parts is None:
        raise InvalidServerConfig(f"{where} is not a valid URL: its host or its port cannot be parsed.")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidServerConfig(f"{where} must begin with http:// or https:// and name a host, not {url[:60]!r}.")
    if parts.username is not None or parts.password is not None:
        raise InvalidServerConfig(f"{where} must not hold a user or password.", hint="Put them into `headers`.")
    return url


def read_headers(name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    headers = {**_table(name, entry, "http_headers"), **_table(name, entry, "headers")}
    for header, value in headers.items():
        if not _HEADER.fullmatch(header):
            raise InvalidServerConfig(f"{name}.headers: {header[:60]!r} is not the name of a header.")
        if not value.isprintable() or not value.isascii():
            raise InvalidServerConfig(f"{name}.headers.{header} may hold printable ASCII only.")
    return headers


def read_oauth(name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    """The OAuth client a person registered by hand for the hub."""
    oauth = _table(name, entry, "oauth")
    strange = [key for key in oauth if key not in OAUTH]
    if strange:
        raise InvalidServerConfig(
            f"{name}.oauth.{strange[0][:60]} is not known.", hint=f"There are {', '.join(OAUTH)}."
        )
    if oauth and not oauth.get("clientId"):
        raise InvalidServerConfig(f"{name}.oauth.clientId is missing: the rest means nothing without it.")
    return oauth


def _command(name: str, command: Any, entry: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    args = _texts(name, entry, "args")
    if isinstance(command, list):  # some clients write command and arguments as one list
        words = _texts(name, {"command": command}, "command")
        command, args = (words[0] if words else ""), (*words[1:], *args)
    if not isinstance(command, str) or not command.strip() or "\0" in command or len(command) > _LONGEST_TEXT:
        raise InvalidServerConfig(f"{name}.command must be the program to start, not {_kind(command)}.", hint=_EXAMPLE)
    return command, args


def _texts(name: str, entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = entry.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > 10 * _MOST_ITEMS or not all(_text(item) for item in value):
        raise InvalidServerConfig(f"{name}.{key} must be a list of texts.")
    return tuple(value)


def _table(name: str, entry: Mapping[str, Any], key: str) -> dict[str, str]:
    value = entry.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > _MOST_ITEMS:
        raise InvalidServerConfig(f"{name}.{key} must be an object of at most {_MOST_ITEMS} texts, not {_kind(value)}.")
    for inner, item in value.items():
        # The value may be a secret: it is never repeated.
        if not inner or "\0" in inner or "=" in inner or not _text(item):
            raise InvalidServerConfig(f"{name}.{key}.{inner[:60]} must be a text, not {_kind(item)}.")
    return dict(value)


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_TEXT and "\0" not in value


def _flag(name: str, entry: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = entry.get(key, default)
    if not isinstance(value, bool):
        raise InvalidServerConfig(f"{name}.{key} must be true or false, not {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    """The type of a value, for messages that must not repeat the value."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "something else")
