"""Typed settings: the keys of `config.json`, what each means, and how a text becomes a value.

Owns the keys, their types and defaults. Knows nothing of files: it turns a decoded JSON object into a `Config`, and the
text of `tabhub config set KEY VALUE` into a path and a value. An invalid value is rejected with its key; an unknown key
is reported with the nearest known one and not removed, so that a typo never silently changes what is allowed.

A key is written with dots: `port`, `limits.call_timeout`, `permissions.default`, `permissions.<plugin>.permission`,
`permissions.<plugin>.tools.<tool>`, `permissions.clients.<client>.…` (the same for one token's client),
`settings.<plugin>.<key>`, `sites.<pattern>`, `pages.modelContext`. A plugin's name may itself contain dots (a domain
does).
"""

# ruff: noqa: RUF009 - the settings are dataclass fields

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from tabhub.config import permissions as permission_settings
from tabhub.config import sites as site_settings
from tabhub.config.agent import AgentSettings
from tabhub.config.permissions import PermissionSettings
from tabhub.config.setting_types import (
    READERS,
    Choice,
    Guarding,
    RelaySettings,
    camel,
    from_text,
    json_or_text,
    mapping,
    number,
    setting,
    settings_of,
)
from tabhub.config.sites import SiteSetting
from tabhub.errors import SetupError
from tabhub.limits import DEFAULTS, Limits

_LIMITS = {f.name: f for f in fields(Limits)}


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The `pages` section of the config file: which pages may offer tools, and how."""

    allowed_origins: tuple[str, ...] = setting(
        ("*",), "origins", 'origins whose pages may offer tools, or `["*"]` for all'
    )
    model_context: bool = setting(True, "bool", "give pages a `document.modelContext` where the browser has none")
    trust_read_only: bool = setting(
        False, "bool", "trust pages about which of their tools only read, and ask for no approval of those"
    )

    def allow(self, origin: str) -> bool:
        """Whether pages of an origin may offer tools; `https://*.example.com` allows all subdomains of example.com."""
        wide = [allowed.partition("*.") for allowed in self.allowed_origins if "://*." in allowed]
        below = any(origin.startswith(scheme) and origin.endswith(f".{host}") for scheme, _, host in wide)
        return below or "*" in self.allowed_origins or origin in self.allowed_origins


@dataclass(frozen=True, slots=True)
class ApprovalSettings:
    """The `approvals` section of the config file: how a person is asked."""

    elicitation: bool = setting(
        True, "bool", "also request approvals through the agent's own MCP client, where it supports elicitation"
    )


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a person can set."""

    port: int = setting(9515, "port", "port the hub listens on, on this machine only")
    launch: Choice = setting(
        "never", "choice", "start a browser of the hub's own: always, never, or auto (when none has connected)"
    )
    headless: Choice = setting("auto", "choice", "that browser without a window; auto: where there is no display")
    browser: str | None = setting(None, "path", "program of the browser to start; unset uses the first one found")
    files_dir: str | None = setting(None, "path", "folder that tools write files to; unset is `files` in the home")
    files_anywhere: bool = setting(
        False, "bool", "let tools write and upload files of this machine outside that folder"
    )
    file_urls: bool = setting(False, "bool", "let agents open file: URLs, and so read files of this machine")
    tools: str = setting(
        "default",
        "selection",
        "tools listed to agents that name none: default, core, all, or families such as core,network",
    )
    catalogue_tokens: int = setting(
        8_000,
        "tokens",
        "room for tools of pages, plugins and servers in the default listing; agents find the others by searching",
    )
    audit_arguments: bool = setting(
        False, "bool", "write the arguments of calls to the audit log, not only their digest"
    )
    log_messages: bool = setting(False, "bool", "log the messages between hub and browsers that connect from then on")
    show_disabled: bool = setting(False, "bool", "list tools that are off, marked [Disabled], instead of hiding them")
    skip_permissions: bool = setting(False, "bool", "treat every `ask` as `auto`: no approvals are requested")
    approval_timeout: float = setting(120.0, "seconds", "how long a call waits for approval; then it is denied")
    dataflow: Guarding = setting(
        "ask", "guard", "an agent that read one site and acts on another: off, warn (log it), or ask"
    )
    suggest_sites: bool = setting(
        True, "bool", "suggest in the panel to keep agents off sensitive sites, until you have decided"
    )
    require_tokens: bool = setting(
        True,
        "bool",
        "agents need their own token (`tabhub setup`, `tabhub token`); `false` admits those of version 0.1.0",
    )
    keep_tabs: bool = setting(False, "bool", "leave the tabs of a session open when it ends, instead of closing them")
    read_leased_tabs: bool = setting(True, "bool", "let agents read tabs that another session holds; never act in them")
    local_plugins: tuple[str, ...] = setting((), "paths", "folders that each hold one plugin")
    local_plugin_dirs: tuple[str, ...] = setting((), "paths", "folders whose sub-folders hold plugins")
    plugin_registry: str | None = setting(
        None, "address", "npm registry to install plugins from; unset uses npm's own setting"
    )
    upstream_hosts: tuple[str, ...] = setting(
        (), "hosts", "private hosts and networks that external MCP servers may be on"
    )
    relays: tuple[RelaySettings, ...] = setting(
        (), "relays", "relays whose browsers the hub uses too, each with `url` and `tokenFile`"
    )
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    permissions: PermissionSettings = field(default_factory=PermissionSettings)
    sites: tuple[SiteSetting, ...] = ()
    pages: PageSettings = PageSettings()
    approvals: ApprovalSettings = ApprovalSettings()
    agent: AgentSettings = field(default_factory=AgentSettings)
    limits: Limits = DEFAULTS
    extra: Mapping[str, Any] = field(default_factory=dict)
    """The values of unknown keys, by dotted key."""
    problems: tuple[str, ...] = ()
    """A message for each such key."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Config:
        """Parse a decoded config file; an invalid value raises SetupError, an unknown key becomes a problem."""
        read: dict[str, Any] = {}
        unknown = _Unknown()
        for key, value in values.items():
            if key in _TOP_LEVEL:
                known = _TOP_LEVEL[key]
                read[known.field] = READERS[known.kind](key, value)
            elif key in _SECTIONS:
                read[key] = _SECTIONS[key](mapping(key, value), unknown)
            else:
                unknown.add("", key, value, [*_TOP_LEVEL, *_SECTIONS])
        return cls(**read, extra=unknown.values, problems=tuple(unknown.problems))

    @classmethod
    def known_keys(cls) -> dict[str, str]:
        """Every key `config set` accepts, with its meaning; `<…>` stands for a name."""
        known = {key: each.meaning for key, each in _TOP_LEVEL.items()}
        known["permissions.default"] = (
            "permission of tools without one of their own: off, ask or auto; unset asks for what acts in your browser"
        )
        known["permissions.<plugin>.permission"] = "permission of a plugin, origin or `mcp__<server>`: off, ask or auto"
        known["permissions.<plugin>.tools.<tool>"] = "permission of one tool: off, ask or auto"
        known["permissions.clients.<client>.default"] = (
            "the same for the client whose token has that name; `<plugin>` and `<tool>` can be set so, too"
        )
        known["sites.<pattern>"] = (
            "what agents may do on a site: block, read, ask or act, or an object with a level for each agent "
            "(`tabhub site`)"
        )
        known["settings.<plugin>.<key>"] = "a plugin's own setting"
        for section, table in _TABLES.items():
            known.update({f"{section}.{key}": each.meaning for key, each in table.items()})
        known.update({f"limits.{name}": str(spec.metadata["doc"]) for name, spec in _LIMITS.items()})
        return known

    def with_environment(self, env: Mapping[str, str]) -> Config:
        """The settings overridden by the environment: TABHUB_PORT or PORT, TABHUB_LAUNCH, the skip flag."""
        config = self
        for name in ("PORT", "TABHUB_PORT"):
            if env.get(name):
                config = replace(config, port=from_text("port", name, env[name]))
        if env.get("TABHUB_LAUNCH"):
            config = replace(config, launch=from_text("choice", "TABHUB_LAUNCH", env["TABHUB_LAUNCH"]))
        skip = "TABHUB_DANGEROUSLY_SKIP_PERMISSIONS"
        if env.get(skip):
            config = replace(config, skip_permissions=from_text("bool", skip, env[skip]) or self.skip_permissions)
        return config

    def values(self) -> dict[str, Any]:
        """The settings in force, defaults included, as the config file would write them."""
        values: dict[str, Any] = {key: _plain(getattr(self, each.field)) for key, each in _TOP_LEVEL.items()}
        values["settings"] = {name: dict(own) for name, own in self.settings.items()}
        values["permissions"] = self.permissions.values()
        values["sites"] = {entry.written: entry.value() for entry in self.sites}
        for section, table in _TABLES.items():
            own = getattr(self, section)
            values[section] = {key: _plain(getattr(own, each.field)) for key, each in table.items()}
        values["limits"] = {name: getattr(self.limits, name) for name in _LIMITS}
        return values


def convert(key: str, text: str) -> tuple[tuple[str, ...], Any]:
    """The path that `config set KEY TEXT` writes to in the file, and the value it writes."""
    path = locate(key)
    if path[0] in _TOP_LEVEL:
        return path, _plain(from_text(_TOP_LEVEL[path[0]].kind, key, text))
    if path[0] == "limits":
        value = from_text("number", key, text)
        Limits.parse({path[1]: value})
        return path, value
    if path[0] in _TABLES:
        return path, _plain(from_text(_TABLES[path[0]][path[1]].kind, key, text))
    if path[0] == "permissions":
        level = permission_settings.permission(key, text.strip())
        _refuse_site_off(path, level)
        return path, level
    if path[0] == "sites":
        value = json_or_text(text.strip())
        site_settings.levels(path[1], value)
        return path, value
    return path, json_or_text(text)


def _refuse_site_off(path: tuple[str, ...], level: str) -> None:
    """`off` for an origin would only cover the tools that its own pages offer, which nobody means who writes it."""
    origin = path[-2] if path[-1] == "permission" else ""
    if level == "off" and origin.startswith(("http://", "https://")):
        raise SetupError(
            f"{'.'.join(path)} covers only the tools that the pages of {origin} offer themselves: agents would still "
            "read the site and act there.",
            hint=f"To keep agents off the site: tabhub site block {origin}. To switch off only its own tools, use "
            "Tools in the panel.",
        )


def locate(key: str) -> tuple[str, ...]:
    """The path of a known key in the file, or SetupError naming the nearest known one."""
    head, _, rest = key.partition(".")
    if head in _TOP_LEVEL and not rest:
        return (head,)
    if head == "limits" and _snake(rest) in _LIMITS:
        return (head, _snake(rest))
    if rest in _TABLES.get(head, ()):
        return (head, rest)
    if head == "permissions" and (found := permission_settings.locate(rest)):
        return (head, *found)
    if head == "sites" and rest:
        site_settings.SitePattern.parse(rest)
        return (head, rest)
    if head == "settings" and len(steps := rest.split(".")) > 1 and all(steps):
        return (head, *steps)
    raise SetupError(
        f"{key!r} is not a setting.{_nearest(key, Config.known_keys())}",
        hint="`tabhub config set --help` lists the settings.",
    )


class _Unknown:
    """The unknown keys, collected while parsing."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.problems: list[str] = []

    def add(self, section: str, key: str, value: Any, known: Iterable[str]) -> None:
        path = f"{section}.{key}" if section else key
        self.values[path] = value
        self.problems.append(f"{path!r} is not a setting and has no effect.{_nearest(key, known, section)}")


def _nearest(key: str, known: Iterable[str], section: str = "") -> str:
    import difflib

    spelled = {camel(name).lower(): name for name in known}
    close = difflib.get_close_matches(camel(key).lower(), spelled, n=1, cutoff=0.6)
    if not close:
        return ""
    found = spelled[close[0]]
    return f" Did you mean {(section + '.' + found if section else found)!r}?"


def _read_limits(values: Mapping[str, Any], unknown: _Unknown) -> Limits:
    numbers: dict[str, Any] = {}
    for key, value in values.items():
        name = _snake(key)
        if name not in _LIMITS:
            unknown.add("limits", key, value, _LIMITS)
        elif name in numbers:
            raise SetupError(f"limits.{name} is written twice, as {name!r} and {key!r}.", hint="Remove one of them.")
        else:
            numbers[name] = number(f"limits.{name}", value)
    return Limits.parse(numbers)


def _read_settings(values: Mapping[str, Any], _unknown: _Unknown) -> dict[str, Mapping[str, Any]]:
    return {plugin: dict(mapping(f"settings.{plugin}", value)) for plugin, value in values.items()}


def _read_table(section: str, values: Mapping[str, Any], unknown: _Unknown) -> Any:
    table = _TABLES[section]
    for key in values.keys() - table.keys():
        unknown.add(section, key, values[key], table)
    read = {
        each.field: READERS[each.kind](f"{section}.{key}", values[key]) for key, each in table.items() if key in values
    }
    return _TABLE_TYPES[section](**read)


def _plain(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return [item.values() if isinstance(item, RelaySettings) else item for item in value]


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


_TOP_LEVEL = settings_of(Config)
_TABLE_TYPES: Mapping[str, type[Any]] = {"pages": PageSettings, "approvals": ApprovalSettings, "agent": AgentSettings}
_TABLES = {section: settings_of(table) for section, table in _TABLE_TYPES.items()}
"""Sections with fixed keys, by name."""
_SECTIONS: Mapping[str, Callable[[Mapping[str, Any], _Unknown], Any]] = {
    "settings": _read_settings,
    "permissions": lambda values, unknown: permission_settings.read(values, unknown.add),
    "sites": lambda values, _unknown: site_settings.read(values),
    "limits": _read_limits,
    **{section: partial(_read_table, section) for section in _TABLES},
}
