"""Reading a plugin's folder: `package.json` with its `opentabs` part, and the build output in `dist/`.

The output is `tools.json`, `adapter.iife.js` and, if `tools.json` has a `preScriptFile`, `pre-script.iife.js`.

Owns the validation of packages, which are untrusted. A fault of the whole package raises PluginError; a faulty tool or
icon is left out and reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args
from urllib.parse import urlsplit

from tabhub.core import match_patterns as patterns
from tabhub.core.definitions import shown_output_schema, shown_schema, shown_text
from tabhub.core.descriptions import one_line
from tabhub.core.origins import origin_of
from tabhub.core.schemas import bounds as schemas
from tabhub.core.schemas.references import resolved
from tabhub.core.schemas.validators import compile_schema
from tabhub.errors import BadInput, ParseError, PluginError
from tabhub.plugins import icons
from tabhub.plugins.model import Field, FieldKind, Plugin, PluginSource, PluginTool, name_of_package
from tabhub.wire import strict_json as strict
from tabhub.wire.urls import names_this_machine

MB = 1024 * 1024
MANIFEST = "package.json"
TOOLS = "dist/tools.json"
ADAPTER = "dist/adapter.iife.js"
PRE_SCRIPT = "dist/pre-script.iife.js"
_MAX_SIZES = {MANIFEST: MB, TOOLS: 8 * MB, ADAPTER: 5 * MB, PRE_SCRIPT: 5 * MB}
_MAX_TOOLS = 500
_MAX_PATTERNS = 100
_MAX_FIELDS = 50
_MAX_DESCRIPTION = 2_000
_MAX_ORIGINS = 20
_MAX_LABEL = 100
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_TOOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_HEADER = re.compile(r"[A-Za-z0-9_-]{1,60}")
_SECRET = ("token", "secret", "password", "apikey", "api_key", "credential")


def read_package(folder: Path, source: PluginSource = "local") -> Plugin:
    manifest = _json(folder, MANIFEST)
    if not isinstance(manifest, Mapping):
        raise PluginError(f"{folder / MANIFEST} must contain one JSON object.")
    package, version = manifest.get("name"), manifest.get("version")
    if not isinstance(package, str) or not package:
        raise PluginError(f"{folder / MANIFEST} has no name.")
    name = name_of_package(package)
    about = manifest.get("opentabs", manifest.get("tabhub"))
    if not isinstance(about, Mapping):
        raise PluginError(
            f"{folder / MANIFEST} has no `opentabs` part, so it is not a plugin.",
            hint="The part has displayName, description and urlPatterns.",
        )
    listed = _json(folder, TOOLS)
    extra = listed if isinstance(listed, Mapping) else {"tools": listed}
    adapter = _read(folder, ADAPTER).decode("utf-8", "replace")
    if not adapter.strip():
        raise PluginError(f"{folder / ADAPTER} is empty.", hint="Rebuild the plugin.")
    plugin = build(
        name,
        about,
        tools=extra.get("tools"),
        settings=about.get("configSchema", extra.get("configSchema")),
        adapter=adapter,
        icon=extra.get("iconSvg") or about.get("iconSvg"),
    )
    problems, pre_script = plugin.problems, None
    if extra.get("preScriptFile"):  # only whether there is one: its path is fixed
        try:
            pre_script = _read(folder, PRE_SCRIPT).decode("utf-8", "replace")
        except PluginError as error:
            problems = (*problems, f"the script that runs before its pages is left out: {error.message}")
    return replace(
        plugin,
        version=_line(version, 50) or plugin.version,
        pre_script=pre_script,
        source=source,
        path=str(folder),
        package=package,
        sdk_version=_line(extra.get("sdkVersion")) or None,
        problems=problems,
    )


def build(name: str, about: Mapping[str, Any], *, tools: Any, settings: Any, adapter: str, icon: Any) -> Plugin:
    """A plugin from the parts of its package, each validated; its version and origin are set by the caller."""
    display_name, homepage = _line(about.get("displayName")), about.get("homepage")
    if not display_name:
        raise PluginError(f"{name}: displayName must be a text.")
    fields = read_fields(name, settings)
    url_patterns = _patterns(name, "urlPatterns", about.get("urlPatterns", []))
    if not url_patterns and not any(field.kind == "url" for field in fields):
        raise PluginError(f"{name}: urlPatterns must name at least one site.")
    problems: list[str] = []
    if homepage is not None and (not isinstance(homepage, str) or patterns.of_address(homepage) is None):
        problems.append("the homepage is ignored: it is not a web URL")
        homepage = None
    svg = icon if isinstance(icon, str) else None
    if svg is not None and (why := icons.find_problem(svg)) is not None:
        problems.append(f"the icon is left out: {why}")
        svg = None
    if local := [host for item in url_patterns if (host := patterns.local_host(item)) is not None]:
        hosts = ", ".join(dict.fromkeys(local))
        problems.append(f"it works on {hosts}: on whatever runs there, on this machine or in its network")
    kept = _tools(name, tools, problems)
    return Plugin(
        name=name,
        display_name=display_name,
        version="0.0.0",
        description=_description(about.get("description")) or "",
        url_patterns=url_patterns,
        exclude_patterns=_patterns(name, "excludePatterns", about.get("excludePatterns") or []),
        homepage=homepage,
        icon_svg=svg,
        adapter=adapter,
        tools=kept,
        fields=fields,
        problems=tuple(problems),
    )


def read_fields(name: str, schema: Any) -> tuple[Field, ...]:
    """The settings of a plugin, from its configSchema."""
    if schema is None:
        return ()
    if not isinstance(schema, Mapping) or len(schema) > _MAX_FIELDS:
        raise PluginError(f"{name}: configSchema must be an object of at most {_MAX_FIELDS} settings.")
    return tuple(_field(name, str(key), value) for key, value in schema.items())


def _field(name: str, key: str, value: Any) -> Field:
    where = f"{name}: configSchema.{key[:60]}"
    if not key.isidentifier() or key.startswith("__"):
        raise PluginError(f"{where} must be a plain name of letters, digits and _.")
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind not in get_args(FieldKind):
        raise PluginError(f"{where}.type must be one of {', '.join(get_args(FieldKind))}.")
    options = value.get("options", [])
    if not isinstance(options, list) or not all(isinstance(item, str) for item in options):
        raise PluginError(f"{where}.options must be a list of texts.")
    if kind == "select" and not options:
        raise PluginError(f"{where} is a select without options.")
    secret = value.get("secret")
    is_secret = secret if isinstance(secret, bool) else kind == "string" and any(w in key.lower() for w in _SECRET)
    send_to = _send_to(where, value.get("sendTo"))
    send_in = _send_in(where, value.get("sendIn"))
    if send_to and not (is_secret and kind == "string"):
        raise PluginError(f"{where}.sendTo is for secret settings of type string.")
    return Field(
        key=key,
        kind=cast("FieldKind", kind),
        label=_line(value.get("label"), _MAX_LABEL) or key,
        description=_description(value.get("description")),
        required=value.get("required") is True,
        placeholder=_line(value.get("placeholder"), _MAX_LABEL) or None,
        options=tuple(options),
        secret=is_secret,
        send_to=send_to,
        send_in=send_in if send_to else (),
    )


def _send_to(where: str, raw: Any) -> tuple[str, ...]:
    """Exact origins, or keys of `url` settings."""
    if raw is None:
        return ()
    if not isinstance(raw, list) or len(raw) > _MAX_ORIGINS or not all(isinstance(item, str) for item in raw):
        raise PluginError(f"{where}.sendTo must be a list of at most {_MAX_ORIGINS} origins or keys of url settings.")
    for item in raw:
        if item.isidentifier():
            continue
        host = urlsplit(item).hostname if origin_of(item) == item and "*" not in item else None
        if host is None or not (item.startswith("https://") or names_this_machine(host)):
            raise PluginError(
                f"{where}.sendTo: {item[:100]!r} must be an exact origin such as https://api.example.com "
                "(http only for this machine), or the key of a url setting."
            )
    return tuple(dict.fromkeys(raw))


def _send_in(where: str, raw: Any) -> tuple[str, ...]:
    """Names of headers, `url` and `body`."""
    given = ["Authorization"] if raw is None else raw
    if not isinstance(given, list) or len(given) > _MAX_ORIGINS or not all(isinstance(item, str) for item in given):
        raise PluginError(f"{where}.sendIn must be a list of names of headers, `url` and `body`.")
    for item in given:
        if not _HEADER.fullmatch(item):
            raise PluginError(f"{where}.sendIn: {item[:60]!r} is neither the name of a header nor `url` or `body`.")
    return tuple(dict.fromkeys(item.lower() for item in given))


def _tools(plugin: str, raw: Any, problems: list[str]) -> tuple[PluginTool, ...]:
    if not isinstance(raw, list):
        raise PluginError(f"{plugin}: the tools must be a list.", hint="dist/tools.json is [...] or {tools: [...]}.")
    kept: dict[str, PluginTool] = {}
    for number, item in enumerate(raw[:_MAX_TOOLS], 1):
        try:
            tool = _tool(item)
            if tool.name in kept:
                raise PluginError("another tool has its name")
            kept[tool.name] = tool
        except PluginError as error:
            shown = _line(item.get("name")) if isinstance(item, Mapping) else ""
            problems.append(f"the tool {shown or f'number {number}'} is left out: {error.message}")
    if len(raw) > _MAX_TOOLS:
        problems.append(f"{len(raw) - _MAX_TOOLS} tools above {_MAX_TOOLS} are left out")
    return tuple(kept.values())


def _tool(raw: Any) -> PluginTool:
    if not isinstance(raw, Mapping):
        raise PluginError("it is not an object")
    name, description = raw.get("name"), raw.get("description")
    if not isinstance(name, str) or not _TOOL.fullmatch(name):
        raise PluginError("its name is not letters, digits, _ and -")
    if not isinstance(description, str) or not description.strip():
        raise PluginError("it has no description")
    given = raw.get("input_schema", raw.get("inputSchema"))
    output = raw.get("output_schema", raw.get("outputSchema"))
    if not isinstance(given, Mapping) or given.get("type", "object") != "object":
        raise PluginError("its input schema is not that of an object")
    try:
        given = resolved(given)
        if (why := schemas.find_problem(given)) is not None:
            raise PluginError(why)
        compile_schema(given)
        schema = shown_schema(given)
        shown_output = shown_output_schema(output) if isinstance(output, Mapping) else None
    except BadInput as error:
        raise PluginError(error.message) from None
    hints = raw.get("annotations")
    hints = hints if isinstance(hints, Mapping) else {}
    return PluginTool(
        name=name,
        title=_line(raw.get("displayName")) or name,
        description=_description(description) or "",
        input_schema=schema,
        output_schema=shown_output,
        annotations={hint: hints[hint] for hint in _HINTS if isinstance(hints.get(hint), bool)},
        group=_line(raw.get("group")) or None,
    )


def _patterns(name: str, key: str, raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, list) or len(raw) > _MAX_PATTERNS or not all(isinstance(item, str) for item in raw):
        raise PluginError(f"{name}: {key} must be a list of at most {_MAX_PATTERNS} match patterns.")
    for item in raw:
        if (why := patterns.problem(item)) is not None:
            raise PluginError(f"{name}: {key}: {why}.")
    return tuple(raw)


def _line(value: Any, *most: int) -> str:
    """A text in one line; empty if there is none."""
    return one_line(value, *most) if isinstance(value, str) else ""


def _description(value: Any) -> str | None:
    return shown_text(value.strip(), _MAX_DESCRIPTION) if isinstance(value, str) else None


def _json(folder: Path, name: str) -> Any:
    try:
        return strict.decode(_read(folder, name))
    except ParseError as error:
        raise PluginError(f"{folder / name} is not valid JSON: {error.message}") from None


def _read(folder: Path, name: str) -> bytes:
    try:
        return read_bounded(folder / name, _MAX_SIZES[name])
    except FileNotFoundError:
        hint = "Build the plugin: `npm run build` in its folder."
        if name == MANIFEST:
            hint = "Name the folder of a plugin. A new one: tabhub plugin create NAME --url PATTERN"
        raise PluginError(f"{folder / name} is missing.", hint=hint) from None


def read_bounded(path: Path, most: int) -> bytes:
    """The content of a file of at most this size; FileNotFoundError if there is none."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise PluginError(f"{path} cannot be read: {error.strerror}.") from None
    if len(data) > most:
        raise PluginError(f"{path} is larger than {most // MB} MB.")
    return data
