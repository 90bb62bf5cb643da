"""A plugin's settings: validated against its declaration, and the URL patterns and instances that follow from them.

Owns validation, instances and masking of secrets. The values are stored in the config file, where a secret has only a
mask: its value is a stored secret, which no page and no plugin receives. A `url` setting is one URL, or a map of names
to URLs: each name is an instance of the site.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tabhub.core import match_patterns as patterns
from tabhub.errors import InvalidPluginSettings
from tabhub.plugins.model import Field, Plugin

MASK = "••••••••"
_INSTANCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,49}")
_ONLY = "default"
_MAX_LENGTH = 8_192
_MAX_INSTANCES = 100


@dataclass(frozen=True, slots=True)
class Setup:
    """A plugin's settings in force, and the URL patterns and instances they result in."""

    url_patterns: tuple[str, ...]
    homepage: str | None
    instances: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The patterns of each of several sites."""
    values: Mapping[str, Any] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    def patterns_of(self, instance: str | None) -> tuple[str, ...]:
        return self.instances.get(instance or "", self.url_patterns)

    def instance_of(self, url: str) -> str | None:
        """The instance of a URL: the one with the most specific matching pattern."""
        parsed = [(patterns.parse(text), name) for name, texts in self.instances.items() for text in texts]
        matching = [(pattern.specificity, name) for pattern, name in parsed if pattern and pattern.matches(url)]
        return max(matching, key=lambda match: match[0])[1] if matching else None


def resolve(plugin: Plugin, values: Mapping[str, Any]) -> Setup:
    """The stored values in force; invalid ones are skipped and reported."""
    known = {item.key: item for item in plugin.fields}
    problems = [f"settings.{plugin.name}.{key} is not a setting of the plugin" for key in values.keys() - known.keys()]
    good: dict[str, Any] = {}
    derived: dict[str, list[str]] = {}
    homepage = plugin.homepage
    for key, item in known.items():
        if values.get(key) is None:
            if item.required:
                problems.append(f"settings.{plugin.name}.{key} is required and not set")
            continue
        if item.is_stored_apart:
            continue  # pages and other plugins could read it
        try:
            good[key] = _value(item, values[key])
        except InvalidPluginSettings as error:
            problems.append(f"settings.{plugin.name}.{key}: {error.message}")
            continue
        for name, url in good[key].items() if item.kind == "url" else ():
            derived.setdefault(name, []).append(str(patterns.of_address(url)))
            homepage = homepage or url
    instances = {name: tuple(found) for name, found in derived.items()}
    own = dict.fromkeys((*plugin.url_patterns, *(text for found in derived.values() for text in found)))
    return Setup(tuple(own), homepage, instances, good, tuple(sorted(problems)))


def check(plugin: Plugin, stored: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values to store after a change; all problems are reported at once. None resets a value."""
    known = {item.key: item for item in plugin.fields}
    wrong: list[dict[str, str]] = []
    merged = {key: value for key, value in stored.items() if key in known}
    for key, value in given.items():
        item = known.get(key)
        if item is None:
            problem = f"{plugin.display_name} has no such setting (it has: {', '.join(known) or 'none'})"
            wrong.append({"field": key[:100], "problem": problem})
        elif value is None:
            merged.pop(key, None)
        elif item.secret and value == MASK:
            continue  # the panel sends the mask back unchanged
        else:
            try:
                _value(item, value)
                merged[key] = value
            except InvalidPluginSettings as error:
                wrong.append({"field": key, "problem": error.message})
    missing = {key for key, item in known.items() if item.required and key not in merged}
    missing -= {each["field"] for each in wrong}
    wrong += [{"field": key, "problem": "it is required"} for key in known if key in missing]
    if wrong:
        listed = "; ".join(f"{each['field']}: {each['problem']}" for each in wrong)
        raise InvalidPluginSettings(
            f"The settings do not fit {plugin.display_name}: {listed}.",
            hint=f"Nothing was changed. `tabhub plugin configure {plugin.name}` lists the settings.",
            data={"errors": wrong},
        )
    return merged


def masked(plugin: Plugin, values: Mapping[str, Any]) -> dict[str, Any]:
    hidden = {item.key for item in plugin.fields if item.secret}
    return {key: MASK if key in hidden and value not in (None, "") else value for key, value in values.items()}


def clear_secrets(plugin: Plugin, values: Mapping[str, Any]) -> dict[str, Any]:
    """The secrets among the values that are not stored apart yet."""
    apart = [item.key for item in plugin.fields if item.is_stored_apart]
    return {key: values[key] for key in apart if values.get(key) not in (None, MASK)}


def _value(item: Field, value: Any) -> Any:
    """The checked value; a `url` always as a map of instances."""
    if item.kind == "url":
        return _urls(value)
    text = isinstance(value, str) and len(value) <= _MAX_LENGTH
    valid, expected = {
        "boolean": (isinstance(value, bool), "true or false"),
        "number": (type(value) in (int, float) and math.isfinite(value), "a number"),
        "string": (text, f"a text of at most {_MAX_LENGTH} characters"),
        "select": (value in item.options, f"one of {', '.join(item.options)}"),
    }[item.kind]
    if not valid:
        raise InvalidPluginSettings(f"it must be {expected}")
    return value


def _urls(value: Any) -> dict[str, str]:
    given = {_ONLY: value} if isinstance(value, str) else value
    if not isinstance(given, Mapping) or len(given) > _MAX_INSTANCES:
        raise InvalidPluginSettings("it must be a URL, or an object of instance names and their URLs")
    for name, url in given.items():
        if not isinstance(name, str) or not _INSTANCE.fullmatch(name):
            raise InvalidPluginSettings(
                f"{str(name)[:60]!r} is not an instance name: letters, digits, spaces and . _ -"
            )
        if not isinstance(url, str) or len(url) > _MAX_LENGTH or not _is_site(url):
            raise InvalidPluginSettings(f"the URL of {name!r} must be a web URL such as https://example.com")
    return dict(given)


def _is_site(url: str) -> bool:
    try:
        pattern = patterns.of_address(url)
    except ValueError:  # for example an invalid port or IPv6 address
        return False
    return pattern is not None and patterns.problem(pattern) is None and "@" not in url
