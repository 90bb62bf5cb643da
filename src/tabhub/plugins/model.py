"""A plugin once read: its manifest, tools, settings and scripts; all immutable.

Owns the data and the rules for names. It reads no files and knows no browsers.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tabhub.errors import PluginError

PluginSource = Literal["local", "npm", "python"]
FieldKind = Literal["url", "string", "number", "boolean", "select"]

_RESERVED_NAMES = (
    "browser clients config default extension hub mcp opentabs page plugin plugins system tabhub tool tools upstream "
    "website"
)
_RESERVED = frozenset(_RESERVED_NAMES.split())
"""Names with another meaning in tool names, settings or permissions."""
PREFIXES = ("opentabs-plugin-", "tabhub-plugin-")
_OFFICIAL = "@opentabs-dev"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MAX_NAME = 50
_PACKAGE = re.compile(r"(@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*")
_MAX_TOOL = 64
_HASH = 10


@dataclass(frozen=True, slots=True)
class PluginTool:
    """One tool as its plugin defines it."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, bool] = field(default_factory=dict)
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """One setting of a plugin."""

    key: str
    kind: FieldKind
    label: str
    description: str | None = None
    required: bool = False
    placeholder: str | None = None
    options: tuple[str, ...] = ()
    secret: bool = False
    send_to: tuple[str, ...] = ()
    """Where requests may have a secret: origins, and keys of `url` settings for the origins that the person set."""
    send_in: tuple[str, ...] = ()
    """Which parts of a request may have it: names of headers in lower case, `url` and `body`."""

    @property
    def is_stored_apart(self) -> bool:
        """Whether its value is a stored secret. A URL decides on which pages the plugin works, so it is not one."""
        return self.secret and self.kind != "url"

    def schema(self) -> dict[str, Any]:
        """As in a manifest and in the panel."""
        facts: dict[str, Any] = {"type": self.kind, "label": self.label}
        more = {
            "description": self.description,
            "required": self.required,
            "placeholder": self.placeholder,
            "options": list(self.options),
            "secret": self.secret,
            "sendTo": list(self.send_to),
            "sendIn": list(self.send_in),
        }
        return facts | {name: value for name, value in more.items() if value}


@dataclass(frozen=True, slots=True)
class Plugin:
    """One plugin as its package defines it."""

    name: str
    display_name: str
    version: str
    description: str
    url_patterns: tuple[str, ...]
    adapter: str
    """The script that runs in the page's own world."""
    tools: tuple[PluginTool, ...]
    pre_script: str | None = None
    """The script that runs in that world before the page's own."""
    exclude_patterns: tuple[str, ...] = ()
    homepage: str | None = None
    icon_svg: str | None = None
    fields: tuple[Field, ...] = ()
    source: PluginSource = "local"
    path: str = ""
    """Its folder, or the name of its Python package."""
    package: str | None = None
    sdk_version: str | None = None
    problems: tuple[str, ...] = ()
    """What was left out, and why."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A plugin that could not be loaded, and why."""

    path: str
    error: str


def check_name(name: str) -> str:
    """Return the name if a plugin may have it."""
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise PluginError(
            f"{name[:80]!r} is not a plugin name: lower-case letters, digits and single hyphens, "
            f"at most {_MAX_NAME} of them."
        )
    if name in _RESERVED:
        raise PluginError(
            f"A plugin cannot be named {name!r}: the name is reserved.", hint="Rename its package and rebuild it."
        )
    return name


def name_of_package(package: str) -> str:
    """The plugin name for a package name; PluginError if it is not the package of a plugin."""
    if len(package) > 214 or not _PACKAGE.fullmatch(package) or ".." in package:
        raise PluginError(f"{package[:100]!r} is not the name of a package.")
    scope, slash, bare = package.rpartition("/")
    for prefix in PREFIXES:
        if bare.startswith(prefix):
            own = bare.removeprefix(prefix)
            return check_name(own if not slash or scope == _OFFICIAL else f"{scope[1:]}-{own}")
    raise PluginError(
        f"{package!r} is not a plugin: its name must be {PREFIXES[0]}<name> or @scope/{PREFIXES[0]}<name>."
    )


def packages_of(name: str) -> tuple[str, ...]:
    """The packages that a name given by a person may mean: the package itself, or those with that short name."""
    if "/" in name or name.startswith(PREFIXES):
        name_of_package(name)
        return (name,)
    check_name(name)
    return (f"{_OFFICIAL}/{PREFIXES[0]}{name}", *(f"{prefix}{name}" for prefix in PREFIXES))


def agents_name(plugin: str, tool: str) -> str:
    """The name of a plugin's tool for agents: `<plugin>_<tool>`, shortened with a hash if it is too long.

    A plugin's name contains no underscore, so the first one separates the two, and no two tools share a name.
    """
    name = f"{plugin}_{tool}"
    if len(name) <= _MAX_TOOL:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH]
    return f"{name[: _MAX_TOOL - _HASH - 2]}_h{digest}"
