"""Reading a plugin's folder: `package.json` with its `opentabs` part, and `dist/` with what was built.

That is `tools.json`, `adapter.iife.js` and, where `tools.json` names a `preScriptFile`, `pre-script.iife.js`.

Owns the checks on what a package says of itself; everything in it is a stranger's word. What is wrong with the package
as a whole refuses it (PluginError); what is wrong with one tool or the icon leaves out that alone and is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from tabhub.core import match_patterns as patterns
from tabhub.core import schema_bounds as schemas
from tabhub.core.descriptions import one_line, strip_hidden, strip_schema
from tabhub.core.tools import compile_schema
from tabhub.errors import BadInput, ParseError, PluginError
from tabhub.plugins import icons
from tabhub.plugins.model import (
    FIELD_KINDS,
    Field,
    FieldKind,
    Plugin,
    PluginSource,
    PluginTool,
    is_tool_name,
    name_of_package,
)
from tabhub.wire import strict_json as strict

MB = 1024 * 1024
MANIFEST = "package.json"
TOOLS = "dist/tools.json"
ADAPTER = "dist/adapter.iife.js"
PRE_SCRIPT = "dist/pre-script.iife.js"
_LARGEST = {MANIFEST: MB, TOOLS: 8 * MB, ADAPTER: 5 * MB, PRE_SCRIPT: 5 * MB}
_MOST_TOOLS = 500
_MOST_PATTERNS = 100
_MOST_FIELDS = 50
_WORDS = 2_000
_LABEL = 100
_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
_SECRET = ("token", "secret", "password", "apikey", "api_key", "credential")


def read_package(folder: Path, source: PluginSource = "local") -> Plugin:
    manifest = _object(folder, MANIFEST)
    package, version = manifest.get("name"), manifest.get("version")
    if not isinstance(package, str) or not package:
        raise PluginError(f"{folder / MANIFEST} has no name.")
    name = name_of_package(package)
    own = manifest.get("opentabs", manifest.get("tabhub"))
    if not isinstance(own, Mapping):
        raise PluginError(
            f"{folder / MANIFEST} has no `opentabs` part, so it is not a plugin.",
            hint="The part holds displayName, description and urlPatterns.",
        )
    listed = _json(folder, TOOLS)
    extra = listed if isinstance(listed, Mapping) else {}
    adapter = _read(folder, ADAPTER).decode("utf-8", "replace")
    if not adapter.strip():
        raise PluginError(f"{folder / ADAPTER} is empty.", hint="Rebuild the plugin.")
    problems: list[str] = []
    svg = extra.get("iconSvg") or own.get("iconSvg")
    sdk = extra.get("sdkVersion")
    return build(
        name=name,
        version=version if isinstance(version, str) else "",
        own=own,
        tools=extra.get("tools") if isinstance(listed, Mapping) else listed,
        settings=own.get("configSchema", extra.get("configSchema")),
        adapter=adapter,
        pre_script=_pre_script(folder, problems) if extra.get("preScriptFile") else None,
        icon=svg if isinstance(svg, str) else None,
        source=source,
        path=str(folder),
        package=package,
        sdk_version=one_line(sdk) if isinstance(sdk, str) else None,
        problems=problems,
    )


def build(
    *,
    name: str,
    version: str,
    own: Mapping[str, Any],
    tools: Any,
    settings: Any,
    adapter: str,
    icon: str | None,
    source: PluginSource,
    path: str,
    package: str | None,
    sdk_version: str | None,
    problems: list[str],
    pre_script: str | None = None,
) -> Plugin:
    """A plugin from its decoded parts, each checked."""
    display, words, homepage = own.get("displayName"), own.get("description"), own.get("homepage")
    if not isinstance(display, str) or not one_line(display):
        raise PluginError(f"{name}: displayName must be a text.")
    fields = read_fields(name, settings)
    found = _patterns(name, "urlPatterns", own.get("urlPatterns", []))
    if not found and not any(field.kind == "url" for field in fields):
        raise PluginError(f"{name}: urlPatterns must name at least one site.")
    if homepage is not None and (not isinstance(homepage, str) or patterns.of_address(homepage) is None):
        problems.append("the homepage is ignored: it is not a web URL")
        homepage = None
    if icon is not None and (why := icons.trouble(icon)) is not None:
        problems.append(f"the icon is left out: {why}")
        icon = None
    return Plugin(
        name=name,
        display_name=one_line(display),
        version=one_line(version, 50) or "0.0.0",
        description=_words(words) if isinstance(words, str) else "",
        url_patterns=found,
        exclude_patterns=_patterns(name, "excludePatterns", own.get("excludePatterns") or []),
        homepage=homepage,
        icon_svg=icon,
        adapter=adapter,
        pre_script=pre_script,
        tools=_tools(name, tools, problems),
        fields=fields,
        source=source,
        path=path,
        package=package,
        sdk_version=sdk_version,
        problems=tuple(problems),
    )


def _pre_script(folder: Path, problems: list[str]) -> str | None:
    """The script for before the page's own. The name of the file is settled, whatever the package says."""
    try:
        return _read(folder, PRE_SCRIPT).decode("utf-8", "replace")
    except PluginError as error:
        problems.append(f"the script that runs before its pages is left out: {error.message}")
        return None


def read_fields(name: str, schema: Any) -> tuple[Field, ...]:
    """The settings a plugin takes, from its configSchema."""
    if schema is None:
        return ()
    if not isinstance(schema, Mapping) or len(schema) > _MOST_FIELDS:
        raise PluginError(f"{name}: configSchema must be an object of at most {_MOST_FIELDS} settings.")
    return tuple(_field(name, str(key), value) for key, value in schema.items())


def _field(name: str, key: str, value: Any) -> Field:
    where = f"{name}: configSchema.{key[:60]}"
    if not key.isidentifier() or key.startswith("__"):
        raise PluginError(f"{where} must be a plain name of letters, digits and _.")
    kind = value.get("type") if isinstance(value, Mapping) else None
    if kind not in FIELD_KINDS:
        raise PluginError(f"{where}.type must be one of {', '.join(FIELD_KINDS)}.")
    options = value.get("options", [])
    if not isinstance(options, list) or not all(isinstance(item, str) for item in options):
        raise PluginError(f"{where}.options must be a list of texts.")
    if kind == "select" and not options:
        raise PluginError(f"{where} is a select without options.")
    label, words, hint = value.get("label"), value.get("description"), value.get("placeholder")
    secret = value.get("secret")
    return Field(
        key=key,
        kind=cast("FieldKind", kind),
        label=one_line(label, _LABEL) if isinstance(label, str) and label else key,
        description=_words(words) if isinstance(words, str) else None,
        required=value.get("required") is True,
        placeholder=one_line(hint, _LABEL) if isinstance(hint, str) else None,
        options=tuple(options),
        secret=secret if isinstance(secret, bool) else kind == "string" and any(w in key.lower() for w in _SECRET),
    )


def _tools(plugin: str, raw: Any, problems: list[str]) -> tuple[PluginTool, ...]:
    if not isinstance(raw, list):
        raise PluginError(f"{plugin}: the tools must be a list.", hint="dist/tools.json holds [...] or {tools: [...]}.")
    kept: dict[str, PluginTool] = {}
    for index, item in enumerate(raw[:_MOST_TOOLS]):
        try:
            tool = _tool(item)
            if tool.name in kept:
                raise PluginError("another tool has its name")
        except PluginError as error:
            named = item.get("name") if isinstance(item, Mapping) else None
            shown = one_line(named) if isinstance(named, str) else f"number {index + 1}"
            problems.append(f"the tool {shown} is left out: {error.message}")
        else:
            kept[tool.name] = tool
    if len(raw) > _MOST_TOOLS:
        problems.append(f"{len(raw) - _MOST_TOOLS} tools above {_MOST_TOOLS} are left out")
    return tuple(kept.values())


def _tool(raw: Any) -> PluginTool:
    if not isinstance(raw, Mapping):
        raise PluginError("it is not an object")
    name, title, words = raw.get("name"), raw.get("displayName"), raw.get("description")
    if not isinstance(name, str) or not is_tool_name(name):
        raise PluginError("its name is not letters, digits, _ and -")
    if not isinstance(words, str) or not words.strip():
        raise PluginError("it has no description")
    given = raw.get("input_schema", raw.get("inputSchema"))
    output = raw.get("output_schema", raw.get("outputSchema"))
    if not isinstance(given, Mapping) or given.get("type", "object") != "object":
        raise PluginError("its input schema is not that of an object")
    if (why := schemas.find_problem(given)) is not None:
        raise PluginError(why)
    try:
        compile_schema(given)
    except BadInput as error:
        raise PluginError(error.message) from None
    hints, group = raw.get("annotations"), raw.get("group")
    hints = hints if isinstance(hints, Mapping) else {}
    return PluginTool(
        name=name,
        title=one_line(title) if isinstance(title, str) and title.strip() else name,
        description=_words(words, given),
        input_schema=strip_schema(given),
        output_schema=output if isinstance(output, Mapping) else None,
        annotations={hint: hints[hint] for hint in _HINTS if isinstance(hints.get(hint), bool)},
        group=one_line(group) if isinstance(group, str) else None,
    )


def _patterns(name: str, key: str, raw: Any) -> tuple[str, ...]:
    if not isinstance(raw, list) or len(raw) > _MOST_PATTERNS or not all(isinstance(item, str) for item in raw):
        raise PluginError(f"{name}: {key} must be a list of at most {_MOST_PATTERNS} match patterns.")
    for item in raw:
        if (why := patterns.problem(item)) is not None:
            raise PluginError(f"{name}: {key}: {why}.")
    return tuple(raw)


def _words(text: str, *schemas: Mapping[str, Any]) -> str:
    words = text.strip()
    return strip_hidden(words if len(words) <= _WORDS else f"{words[: _WORDS - 1]}…", *schemas)


def _object(folder: Path, name: str) -> Mapping[str, Any]:
    value = _json(folder, name)
    if not isinstance(value, Mapping):
        raise PluginError(f"{folder / name} must hold one JSON object.")
    return value


def _json(folder: Path, name: str) -> Any:
    try:
        return strict.decode(_read(folder, name))
    except ParseError as error:
        raise PluginError(f"{folder / name} is not valid JSON: {error.message}") from None


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST[name] + 1)
    except FileNotFoundError:
        hint = "Build the plugin: `npm run build` in its folder."
        if name == MANIFEST:
            hint = "Name the folder of a plugin. A new one: tabhub plugin create NAME --url PATTERN"
        raise PluginError(f"{path} is missing.", hint=hint) from None
    except OSError as error:
        raise PluginError(f"{path} cannot be read: {error.strerror}.") from None
    if len(data) > _LARGEST[name]:
        raise PluginError(f"{path} is larger than {_LARGEST[name] // MB} MB.")
    return data
