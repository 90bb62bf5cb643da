"""The `permissions` section of the config file: what each plugin, tool and client may do.

Owns the values off, ask and auto, and how the section is parsed. Their meaning for a call is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from tabhub.config.setting_types import mapping, shown
from tabhub.errors import SetupError

Permission = Literal["off", "ask", "auto"]

PERMISSIONS: tuple[Permission, ...] = ("off", "ask", "auto")
CLIENTS = "clients"
"""Below `permissions`, the settings of single clients; no plugin may have this name."""
Unknown = Callable[[str, str, Any, Iterable[str]], None]
"""Records an unknown key: the section, the key, its value, and the known keys."""


@dataclass(frozen=True, slots=True)
class PluginPermission:
    """What one plugin, or source of tools, may do: as a whole, and per tool."""

    permission: Permission | None = None
    tools: Mapping[str, Permission] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    """The `permissions` of the config file."""

    default: Permission | None = None
    """Of tools without a permission; None: it depends on the tool and the browser."""
    plugins: Mapping[str, PluginPermission] = field(default_factory=dict)
    clients: Mapping[str, PermissionSettings] = field(default_factory=dict)
    """By the name of a token, the permissions of its client."""

    def values(self) -> dict[str, Any]:
        values: dict[str, Any] = {} if self.default is None else {"default": self.default}
        for name, plugin in self.plugins.items():
            entry: dict[str, Any] = {} if plugin.permission is None else {"permission": plugin.permission}
            values[name] = entry | ({"tools": dict(plugin.tools)} if plugin.tools else {})
        if self.clients:
            values[CLIENTS] = {name: own.values() for name, own in self.clients.items()}
        return values


def read(values: Mapping[str, Any], unknown: Unknown, above: str = "permissions") -> PermissionSettings:
    default: Permission | None = None
    plugins: dict[str, PluginPermission] = {}
    clients: dict[str, PermissionSettings] = {}
    for name, value in values.items():
        path = f"{above}.{name}"
        if name == "default":
            default = permission(path, value)
        elif name != CLIENTS:
            plugins[name] = _read_plugin(path, mapping(path, value), unknown)
        elif above != "permissions":
            raise SetupError(f"{path} is not allowed: a client has no clients.")
        else:
            for client, own in mapping(path, value).items():
                clients[client] = read(mapping(f"{path}.{client}", own), unknown, f"{path}.{client}")
    return PermissionSettings(default, plugins, clients)


def _read_plugin(path: str, values: Mapping[str, Any], unknown: Unknown) -> PluginPermission:
    whole: Permission | None = None
    tools: dict[str, Permission] = {}
    for key, inner in values.items():
        if key == "permission":
            whole = permission(f"{path}.permission", inner)
        elif key == "tools":
            entries = mapping(f"{path}.tools", inner).items()
            tools = {tool: permission(f"{path}.tools.{tool}", level) for tool, level in entries}
        else:
            unknown(path, key, inner, ("permission", "tools"))
    return PluginPermission(whole, tools)


def permission(path: str, value: Any) -> Permission:
    if value not in PERMISSIONS:
        raise SetupError(f"{path} must be off, ask or auto, not {shown(value)}.")
    return cast("Permission", value)


def locate(rest: str) -> tuple[str, ...] | None:
    """The path of a key below `permissions`; None if it is not valid."""
    first, _, own = rest.partition(".")
    if first == CLIENTS:
        client, _, own = own.partition(".")
        found = locate(own) if client and own.partition(".")[0] != CLIENTS else None
        return (CLIENTS, client, *found) if found else None
    plugin, _, tool = rest.rpartition(".tools.")
    if rest == "default":
        return (rest,)
    if plugin and tool and "." not in tool:
        return (plugin, "tools", tool)
    if rest.removesuffix(".permission") not in ("", "default", rest):
        return (rest.removesuffix(".permission"), "permission")
    return None
