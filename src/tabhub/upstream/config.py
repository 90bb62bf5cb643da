"""The configuration of external servers as people paste it: JSON in the form that MCP clients share.

Owns what is accepted and the error messages, which name the server and the field. Pure: it reads no file, no
environment and no store. Values may hold references to secrets (upstream.secrets); they are kept as references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tabhub.errors import InvalidServerConfig
from tabhub.store.upstream_servers import Server
from tabhub.wire import urls

_WRAPPERS = ("mcpServers", "servers")
_RESERVED = frozenset({"browser", "hub", "default", "clients", "unknown"})
"""Names with another meaning in permission settings."""
_MAX_SERVERS = 200
_MAX_NAME = 100
_MAX_TEXT = 10_000
_MAX_ITEMS = 200
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
_URL_KEYS = ("url", "serverUrl", "httpUrl")
_HTTP_TYPES = frozenset({"http", "streamable-http", "streamableHttp", "streamable_http", "remote"})
_STDIO_TYPES = frozenset({"stdio", "local"})
_OAUTH_KEYS = ("clientId", "clientSecret", "scope")
_EXAMPLE = 'Write it as {"name": {"url": "https://…/mcp"}} or {"name": {"command": "…", "args": ["…"]}}.'


def read(value: Any) -> list[Server]:
    """The servers of a pasted configuration, without ids; InvalidServerConfig says what is wrong and where."""
    servers = _unwrapped(value)
    if not servers:
        raise InvalidServerConfig("The configuration contains no server.", hint=_EXAMPLE)
    if len(servers) > _MAX_SERVERS:
        raise InvalidServerConfig(f"The configuration names {len(servers)} servers; {_MAX_SERVERS} is the maximum.")
    return [read_server(name, entry) for name, entry in servers.items()]


def _unwrapped(given: Any) -> Mapping[str, Any]:
    value: Mapping[str, Any] = given
    if not isinstance(value, Mapping):
        raise InvalidServerConfig(f"The configuration must be an object of servers, not {_kind(value)}.", hint=_EXAMPLE)
    if _is_server(value):
        raise InvalidServerConfig("The server has no name.", hint=_EXAMPLE)
    if isinstance(value.get("mcp"), Mapping) and not _is_server(value["mcp"]):
        value = value["mcp"]
    for wrapper in _WRAPPERS:
        inner = value.get(wrapper)
        if isinstance(inner, Mapping) and not _is_server(inner):
            return inner
        if inner is not None and not isinstance(inner, Mapping):
            raise InvalidServerConfig(f"`{wrapper}` must be an object of servers, not {_kind(inner)}.", hint=_EXAMPLE)
    return value


def _is_server(value: Any) -> bool:
    return isinstance(value, Mapping) and any(isinstance(value.get(key), str) for key in (*_URL_KEYS, "command"))


def _check_name(name: str) -> None:
    if not name.strip() or name != name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidServerConfig(
            f"{name[:120]!r} cannot be a server's name: it must have 1 to {_MAX_NAME} visible characters."
        )
    if name.lower() in _RESERVED:
        raise InvalidServerConfig(
            f"A server cannot be named {name!r}: the hub uses that name itself.", hint="Choose another."
        )


def read_server(name: str, entry: Any) -> Server:
    _check_name(name)
    if not isinstance(entry, Mapping):
        raise InvalidServerConfig(f"{name}: the entry must be an object, not {_kind(entry)}.", hint=_EXAMPLE)
    kind = entry.get("type", entry.get("transport"))
    if kind == "sse":
        raise InvalidServerConfig(
            f"{name}.type: servers that speak only the deprecated SSE transport are not supported.",
            hint="Most support Streamable HTTP as well, often at /mcp: use that URL with type http.",
        )
    if kind is not None and kind not in _HTTP_TYPES | _STDIO_TYPES:
        raise InvalidServerConfig(f"{name}.type must be http or stdio, not {str(kind)[:60]!r}.")
    given = [key for key in _URL_KEYS if entry.get(key) is not None]
    command = entry.get("command")
    if given and command is not None:
        raise InvalidServerConfig(f"{name} has both `{given[0]}` and `command`.", hint="Remove one of them.")
    enabled = _flag(name, entry, "enabled", default=not _flag(name, entry, "disabled", default=False))
    off = _strings(name, entry, "disabledTools")
    if command is not None or kind in _STDIO_TYPES:
        command, args = _command(name, command, entry)
        env = {**_table(name, entry, "environment"), **_table(name, entry, "env")}
        cwd = entry.get("cwd")
        if cwd is not None and (not isinstance(cwd, str) or not cwd or "\0" in cwd):
            raise InvalidServerConfig(f"{name}.cwd must be a folder, not {_kind(cwd)}.")
        return Server(
            id="", name=name, enabled=enabled, command=command, args=args, env=env, cwd=cwd, disabled_tools=off
        )
    if not given:
        raise InvalidServerConfig(f"{name}.url is missing.", hint=_EXAMPLE)
    url = _read_url(f"{name}.{given[0]}", entry[given[0]])
    headers, oauth = _read_headers(name, entry), _read_oauth(name, entry)
    return Server(id="", name=name, enabled=enabled, url=url, headers=headers, oauth=oauth, disabled_tools=off)


def _read_url(where: str, url: Any) -> str:
    """A Streamable HTTP URL; transport.address_guard decides whether its host may be reached."""
    if not isinstance(url, str) or not 0 < len(url) <= _MAX_TEXT or not url.isprintable() or " " in url:
        raise InvalidServerConfig(f"{where} must be a URL, not {_kind(url)}.")
    parts = urls.split(url)
    if parts is None:
        raise InvalidServerConfig(f"{where} is not a valid URL: its host or its port cannot be parsed.")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidServerConfig(f"{where} must begin with http:// or https:// and name a host, not {url[:60]!r}.")
    if parts.username is not None or parts.password is not None:
        raise InvalidServerConfig(f"{where} must not contain a user or password.", hint="Put them into `headers`.")
    return url


def _read_headers(name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    headers = {**_table(name, entry, "http_headers"), **_table(name, entry, "headers")}
    for header, value in headers.items():
        if not _HEADER.fullmatch(header):
            raise InvalidServerConfig(f"{name}.headers: {header[:60]!r} is not the name of a header.")
        if not value.isprintable() or not value.isascii():
            raise InvalidServerConfig(f"{name}.headers.{header} may contain printable ASCII only.")
    return headers


def _read_oauth(name: str, entry: Mapping[str, Any]) -> dict[str, str]:
    """The OAuth client that the person registered for the hub."""
    oauth = _table(name, entry, "oauth")
    if unknown := [key for key in oauth if key not in _OAUTH_KEYS]:
        raise InvalidServerConfig(
            f"{name}.oauth.{unknown[0][:60]} is not known.", hint=f"The keys are {', '.join(_OAUTH_KEYS)}."
        )
    if oauth and not oauth.get("clientId"):
        raise InvalidServerConfig(f"{name}.oauth.clientId is missing; the other keys need it.")
    return oauth


def _command(name: str, command: Any, entry: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    args = _strings(name, entry, "args")
    if isinstance(command, list):  # some clients write command and arguments as one list
        words = _strings(name, {"command": command}, "command")
        command, args = (words[0] if words else ""), (*words[1:], *args)
    if not isinstance(command, str) or not command.strip() or "\0" in command or len(command) > _MAX_TEXT:
        raise InvalidServerConfig(f"{name}.command must be the program to start, not {_kind(command)}.", hint=_EXAMPLE)
    return command, args


def _strings(name: str, entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = entry.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > 10 * _MAX_ITEMS or not all(_is_string(item) for item in value):
        raise InvalidServerConfig(f"{name}.{key} must be a list of strings.")
    return tuple(value)


def _table(name: str, entry: Mapping[str, Any], key: str) -> dict[str, str]:
    value = entry.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping) or len(value) > _MAX_ITEMS:
        raise InvalidServerConfig(
            f"{name}.{key} must be an object with at most {_MAX_ITEMS} strings, not {_kind(value)}."
        )
    for inner, item in value.items():
        # The value may be a secret: never show it.
        if not inner or "\0" in inner or "=" in inner or not _is_string(item):
            raise InvalidServerConfig(f"{name}.{key}.{inner[:60]} must be a string, not {_kind(item)}.")
    return dict(value)


def _is_string(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and "\0" not in value


def _flag(name: str, entry: Mapping[str, Any], key: str, *, default: bool) -> bool:
    value = entry.get(key, default)
    if not isinstance(value, bool):
        raise InvalidServerConfig(f"{name}.{key} must be true or false, not {_kind(value)}.")
    return value


def _kind(value: Any) -> str:
    """The type of a value, for messages that must not repeat the value."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "something else")
