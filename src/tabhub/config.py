"""Typed settings: what `config.json` may say, what each key means, and how a text becomes a value.

Owns the keys, their kinds and defaults. Knows nothing of files: it turns a decoded JSON object into a `Config`, and
the text of `tabhub config set KEY VALUE` into a place and a value. A wrong value is refused with its key; an unknown
key is reported with the nearest known one and kept, so that a typing error never silently changes what is allowed.

A key is written with dots: `port`, `limits.call_timeout`, `permissions.default`, `permissions.<plugin>.permission`,
`permissions.<plugin>.tools.<tool>`, `settings.<plugin>.<key>`, `pages.modelContext`. A plugin's name may itself hold
dots (a domain does).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, cast

from tabhub.errors import SetupError
from tabhub.limits import DEFAULTS, Limits

Permission = Literal["off", "ask", "auto"]
Choice = Literal["auto", "never", "always"]

PERMISSIONS: tuple[Permission, ...] = ("off", "ask", "auto")
DEFAULT_PERMISSION: Permission = "auto"
_CHOICES = ("auto", "never", "always")
_WORDS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}
_LARGEST = 1e15
_LIMITS = {f.name: f for f in fields(Limits)}


def _is(kind: str, doc: str) -> dict[str, str]:
    return {"kind": kind, "doc": doc}


@dataclass(frozen=True, slots=True)
class PluginPermission:
    """What one plugin, or source of tools, may do: as a whole, and tool by tool."""

    permission: Permission | None = None
    tools: Mapping[str, Permission] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    """The `permissions` of the config file."""

    default: Permission = DEFAULT_PERMISSION
    plugins: Mapping[str, PluginPermission] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The `pages` of the config file: which pages may offer tools, and how."""

    allowed_origins: tuple[str, ...] = ("*",)
    model_context: bool = True

    def allow(self, origin: str) -> bool:
        """Whether pages of an origin may offer tools; `https://*.example.com` allows all below example.com."""
        wide = [allowed.partition("*.") for allowed in self.allowed_origins if "://*." in allowed]
        below = any(origin.startswith(scheme) and origin.endswith(f".{host}") for scheme, _, host in wide)
        return below or "*" in self.allowed_origins or origin in self.allowed_origins


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a person can set."""

    port: int = field(default=9515, metadata=_is("port", "port the hub listens on, on this machine only"))
    launch: Choice = field(
        default="never",
        metadata=_is("choice", "start a browser of the hub's own: always, never, or auto (when none has connected)"),
    )
    headless: Choice = field(
        default="auto", metadata=_is("choice", "that browser without a window; auto: where there is no display")
    )
    browser: str | None = field(
        default=None, metadata=_is("path", "program of the browser to start; unset takes the first one found")
    )
    files_dir: str | None = field(
        default=None, metadata=_is("path", "folder that tools write files to; unset is `files` in the home")
    )
    file_urls: bool = field(
        default=False, metadata=_is("bool", "let agents open file: addresses, and so read files of this machine")
    )
    audit_arguments: bool = field(
        default=False, metadata=_is("bool", "keep the arguments of calls in the audit log, not only their digest")
    )
    show_disabled: bool = field(
        default=False, metadata=_is("bool", "list tools that are off, marked [Disabled], instead of leaving them out")
    )
    skip_permissions: bool = field(
        default=False, metadata=_is("bool", "treat every `ask` as `auto`: nobody is asked any more")
    )
    local_plugins: tuple[str, ...] = field(default=(), metadata=_is("paths", "folders that each hold one plugin"))
    local_plugin_dirs: tuple[str, ...] = field(
        default=(), metadata=_is("paths", "folders whose sub-folders hold plugins")
    )
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    permissions: PermissionSettings = PermissionSettings()
    pages: PageSettings = PageSettings()
    limits: Limits = DEFAULTS
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What the file says under keys nobody knows, by dotted key."""
    problems: tuple[str, ...] = ()
    """One sentence for each such key."""

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Config:
        """Read a decoded config file; a wrong value raises SetupError, an unknown key becomes a problem."""
        read: dict[str, Any] = {}
        unknown = _Unknown()
        for key, value in values.items():
            if key in _SIMPLE:
                name, kind = _SIMPLE[key]
                read[name] = _READERS[kind](key, value)
            elif key in _SECTIONS:
                read[key] = _SECTIONS[key](_mapping(key, value), unknown)
            else:
                unknown.add("", key, value, [*_SIMPLE, *_SECTIONS])
        return cls(**read, extra=unknown.kept, problems=tuple(unknown.problems))

    @classmethod
    def known_keys(cls) -> dict[str, str]:
        """Every key `config set` takes, with what it means; `<…>` stands for a name."""
        known = {_camel(f.name): str(f.metadata["doc"]) for f in fields(cls) if f.metadata}
        known["permissions.default"] = "permission of tools without one of their own: off, ask or auto"
        known["permissions.<plugin>.permission"] = "permission of all tools of a plugin: off, ask or auto"
        known["permissions.<plugin>.tools.<tool>"] = "permission of one tool: off, ask or auto"
        known["settings.<plugin>.<key>"] = "a plugin's own setting"
        known.update({f"pages.{key}": doc for key, (_, _, doc) in _PAGES.items()})
        known.update({f"limits.{name}": str(spec.metadata["doc"]) for name, spec in _LIMITS.items()})
        return known

    def with_environment(self, env: Mapping[str, str]) -> Config:
        """The same settings with the environment in their place: TABHUB_PORT or PORT, TABHUB_LAUNCH, the skip flag."""
        config = self
        for name in ("PORT", "TABHUB_PORT"):
            if env.get(name):
                config = replace(config, port=_from_text("port", name, env[name]))
        if env.get("TABHUB_LAUNCH"):
            config = replace(config, launch=_from_text("choice", "TABHUB_LAUNCH", env["TABHUB_LAUNCH"]))
        skip = "TABHUB_DANGEROUSLY_SKIP_PERMISSIONS"
        if env.get(skip):
            config = replace(config, skip_permissions=_from_text("bool", skip, env[skip]) or self.skip_permissions)
        return config

    def values(self) -> dict[str, Any]:
        """The settings in force, defaults included, as the config file would write them."""
        shown: dict[str, Any] = {key: _plain(getattr(self, name)) for key, (name, _) in _SIMPLE.items()}
        shown["settings"] = {name: dict(values) for name, values in self.settings.items()}
        shown["permissions"] = {"default": self.permissions.default}
        for name, plugin in self.permissions.plugins.items():
            entry: dict[str, Any] = {} if plugin.permission is None else {"permission": plugin.permission}
            shown["permissions"][name] = entry | ({"tools": dict(plugin.tools)} if plugin.tools else {})
        shown["pages"] = {key: _plain(getattr(self.pages, name)) for key, (name, _, _) in _PAGES.items()}
        shown["limits"] = {name: getattr(self.limits, name) for name in _LIMITS}
        return shown


def convert(key: str, text: str) -> tuple[tuple[str, ...], Any]:
    """Where `config set KEY TEXT` writes in the file, and the value it writes."""
    path = locate(key)
    if path[0] in _SIMPLE:
        return path, _plain(_from_text(_SIMPLE[path[0]][1], key, text))
    if path[0] == "limits":
        value = _from_text("number", key, text)
        Limits.parse({path[1]: value})
        return path, value
    if path[0] == "pages":
        return path, _plain(_from_text(_PAGES[path[1]][1], key, text))
    if path[0] == "permissions":
        return path, _permission(key, text.strip())
    return path, _json_or_text(text)


def locate(key: str) -> tuple[str, ...]:
    """The place of a known key in the file, or SetupError naming the nearest known one."""
    head, _, rest = key.partition(".")
    if head in _SIMPLE and not rest:
        return (head,)
    if head == "limits" and _snake(rest) in _LIMITS:
        return (head, _snake(rest))
    if head == "pages" and rest in _PAGES:
        return (head, rest)
    if head == "permissions":
        plugin, _, tool = rest.rpartition(".tools.")
        if rest == "default":
            return (head, rest)
        if plugin and tool and "." not in tool:
            return (head, plugin, "tools", tool)
        if rest.removesuffix(".permission") not in ("", "default", rest):
            return (head, rest.removesuffix(".permission"), "permission")
    if head == "settings" and len(steps := rest.split(".")) > 1 and all(steps):
        return (head, *steps)
    raise SetupError(
        f"{key!r} is not a setting.{_nearest(key, Config.known_keys())}",
        hint="`tabhub config set --help` lists the settings.",
    )


class _Unknown:
    """The keys nobody knows, collected while reading."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.problems: list[str] = []

    def add(self, section: str, key: str, value: Any, known: Iterable[str]) -> None:
        path = f"{section}.{key}" if section else key
        self.kept[path] = value
        self.problems.append(f"{path!r} is not a setting and has no effect.{_nearest(key, known, section)}")


def _nearest(key: str, known: Iterable[str], section: str = "") -> str:
    import difflib

    spelled = {_camel(name).lower(): name for name in known}
    close = difflib.get_close_matches(_camel(key).lower(), spelled, n=1, cutoff=0.6)
    if not close:
        return ""
    found = spelled[close[0]]
    return f" Did you mean {(section + '.' + found if section else found)!r}?"


def _read_limits(values: Mapping[str, Any], unknown: _Unknown) -> Limits:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        name = _snake(key)
        if name not in _LIMITS:
            unknown.add("limits", key, value, _LIMITS)
        elif name in kept:
            raise SetupError(f"limits.{name} is written twice, as {name!r} and {key!r}.", hint="Remove one of them.")
        else:
            kept[name] = _number(f"limits.{name}", value)
    return Limits.parse(kept)


def _read_permissions(values: Mapping[str, Any], unknown: _Unknown) -> PermissionSettings:
    default = DEFAULT_PERMISSION
    plugins: dict[str, PluginPermission] = {}
    for name, value in values.items():
        path = f"permissions.{name}"
        if name == "default":
            default = _permission(path, value)
            continue
        whole: Permission | None = None
        tools: dict[str, Permission] = {}
        for key, inner in _mapping(path, value).items():
            if key == "permission":
                whole = _permission(f"{path}.permission", inner)
            elif key == "tools":
                entries = _mapping(f"{path}.tools", inner).items()
                tools = {tool: _permission(f"{path}.tools.{tool}", level) for tool, level in entries}
            else:
                unknown.add(path, key, inner, ("permission", "tools"))
        plugins[name] = PluginPermission(whole, tools)
    return PermissionSettings(default, plugins)


def _read_settings(values: Mapping[str, Any], _unknown: _Unknown) -> dict[str, Mapping[str, Any]]:
    return {plugin: dict(_mapping(f"settings.{plugin}", value)) for plugin, value in values.items()}


def _read_pages(values: Mapping[str, Any], unknown: _Unknown) -> PageSettings:
    for key in values.keys() - _PAGES.keys():
        unknown.add("pages", key, values[key], _PAGES)
    known = {
        name: _READERS[kind](f"pages.{key}", values[key]) for key, (name, kind, _) in _PAGES.items() if key in values
    }
    return PageSettings(**known)


def _mapping(path: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SetupError(f"{path} must be an object, not {_shown(value)}.", hint='Write it as {"…": …}.')
    return value


def _permission(path: str, value: Any) -> Permission:
    if value not in PERMISSIONS:
        raise SetupError(f"{path} must be off, ask or auto, not {_shown(value)}.")
    return cast("Permission", value)


def _number(path: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SetupError(f"{path} must be a number, not {_shown(value)}.")
    if not abs(value) <= _LARGEST:  # so that not-a-number fails too
        raise SetupError(f"{path} must be a number below {_LARGEST:g}, not {_shown(value)}.")
    return value


def _port(path: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise SetupError(f"{path} must be a whole number from 1 to 65535, not {_shown(value)}.")
    return value


def _bool(path: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise SetupError(f"{path} must be true or false, not {_shown(value)}.")
    return value


def _choice(path: str, value: Any) -> str:
    if value not in _CHOICES:
        raise SetupError(f"{path} must be one of {', '.join(_CHOICES)}, not {_shown(value)}.")
    return str(value)


def _path(path: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value or "\0" in value:
        raise SetupError(f"{path} must be a path, not {_shown(value)}.")
    return value


def _paths(path: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) and item for item in value):
        raise SetupError(f"{path} must be a list of paths, not {_shown(value)}.", hint='Write it as ["…", "…"].')
    return tuple(value)


def _origins(path: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(o, str) and _ORIGIN.fullmatch(o) for o in value):
        hint = 'Write it as ["https://shop.example", "http://localhost:8080"], or ["*"] for all.'
        raise SetupError(f"{path} must be a list of origins, not {_shown(value)}.", hint=hint)
    return tuple(item.lower() for item in value)


_ORIGIN = re.compile(r"\*|file://|https?://[^\s/?#@]+")
_PAGES: Mapping[str, tuple[str, str, str]] = {
    "allowedOrigins": ("allowed_origins", "origins", 'origins whose pages may offer tools, or `["*"]` for all'),
    "modelContext": ("model_context", "bool", "give pages a `document.modelContext` where the browser has none"),
}
_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "port": _port,
    "number": _number,
    "bool": _bool,
    "choice": _choice,
    "path": _path,
    "paths": _paths,
    "origins": _origins,
}
_SECTIONS: Mapping[str, Callable[[Mapping[str, Any], _Unknown], Any]] = {
    "settings": _read_settings,
    "permissions": _read_permissions,
    "pages": _read_pages,
    "limits": _read_limits,
}


def _from_text(kind: str, key: str, text: str) -> Any:
    """What a person typed, as a value of that kind."""
    typed = text.strip()
    value: Any = typed
    if kind == "bool":
        value = _WORDS.get(typed.lower(), typed)
    elif kind in ("port", "number"):
        value = _json_or_text(typed)
    elif kind == "path":
        value = typed or None
    elif kind in ("paths", "origins"):
        value = _json_or_text(typed) if typed.startswith("[") else [typed]
    return _READERS[kind](key, value)


def _json_or_text(text: str) -> Any:
    """JSON where it is JSON, else the text itself: `5`, `true` and `{"a": 1}` mean what they look like."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


_SIMPLE: Mapping[str, tuple[str, str]] = {
    _camel(f.name): (f.name, str(f.metadata["kind"])) for f in fields(Config) if f.metadata
}
