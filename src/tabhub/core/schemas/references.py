"""The parts of a JSON Schema (2020-12), and which of them its identifiers and references name.

Owns walking a schema, and rewriting `$ref`, `$id`, `$anchor` and `$dynamicRef` to plain pointers (`#/$defs/a`), so that
whoever checks, shows or compiles a schema sees the same parts. Nothing outside the schema is ever read. How much work
validation is, is schema_bounds'.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urldefrag, urljoin

from tabhub.errors import BadInput

LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAPS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
SINGLE = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
MAX_DEPTH = 40
_IDENTIFIERS = frozenset({"$anchor", "$dynamicAnchor", "$id"})
_BASE = "https://schema.invalid/"
"""The base URI of a schema without `$id`, to which relative identifiers are joined."""
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def parts(node: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The subschemas of a schema: the keyword, the step of their pointer, and the subschema."""
    for keyword, value in node.items():
        if keyword in SINGLE:
            yield keyword, f"/{keyword}", value
        elif keyword in LISTS:
            for index, item in enumerate(value if isinstance(value, list) else ()):
                yield keyword, f"/{keyword}/{index}", item
        elif keyword in MAPS:
            for name, item in value.items() if isinstance(value, Mapping) else ():
                yield keyword, f"/{keyword}/{str(name).replace('~', '~0').replace('/', '~1')}", item


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same schema with plain pointers as its only references; BadInput if a reference leads out of it."""
    references = _References(schema)
    return references.rewritten("", schema) if references.needed else schema


class _References:
    """The parts of one schema by pointer, and those with identifiers."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.needed = False
        """Whether anything but plain pointers is used; a schema that is nested too deeply is left to schema_bounds."""
        self._base: dict[str, str] = {}
        self._resources: dict[str, str] = {}
        self._anchors: dict[tuple[str, str], str] = {}
        self._dynamic: dict[str, dict[str, str]] = {}
        """By the name of a dynamic anchor, the parts that have it by the URI of their resource."""
        waiting: list[tuple[str, Any, str, int]] = [("", schema, _BASE, 0)]
        while waiting:
            pointer, node, base, depth = waiting.pop()
            if depth > MAX_DEPTH:
                self.needed = False
                return
            if isinstance(node, Mapping):
                self.needed = self.needed or not _IDENTIFIERS.isdisjoint(node) or "$dynamicRef" in node
                base = self._identified(pointer, node, base)
                waiting += [(pointer + step, part, base, depth + 1) for _, step, part in parts(node)]
            self._base[pointer] = base

    def _identified(self, pointer: str, node: Mapping[str, Any], base: str) -> str:
        """Note the identifiers of a part; returns the base URI inside it."""
        if "$id" in node:
            base, fragment = _joined(base, node["$id"])
            if fragment or (pointer and node.get("$schema", _DIALECT) != _DIALECT):
                raise BadInput(f"the schema contains one with the $id {node['$id'][:100]!r}, which is not supported")
        if ("$id" in node or not pointer) and self._resources.setdefault(base, pointer) != pointer:
            raise BadInput(f"the schema uses the $id {node['$id'][:100]!r} twice")
        for keyword in ("$anchor", "$dynamicAnchor"):
            if keyword in node:
                name = node[keyword]
                if not isinstance(name, str) or self._anchors.setdefault((base, name), pointer) != pointer:
                    raise BadInput(f"the schema has an invalid {keyword}: {str(name)[:100]!r}")
                if keyword == "$dynamicAnchor":
                    self._dynamic.setdefault(name, {})[base] = pointer
        return base

    def rewritten(self, pointer: str, node: Any) -> Any:
        """A part with its own parts, without identifiers."""
        if not isinstance(node, Mapping):
            return node
        inner = {step: self.rewritten(pointer + step, part) for _, step, part in parts(node)}
        fresh: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword in SINGLE:
                fresh[keyword] = inner[f"/{keyword}"]
            elif keyword in LISTS and isinstance(value, list):
                fresh[keyword] = [inner[f"/{keyword}/{index}"] for index in range(len(value))]
            elif keyword in MAPS and isinstance(value, Mapping):
                rewritten = (inner[step] for kind, step, _ in parts({keyword: value}))
                fresh[keyword] = dict(zip(value, rewritten, strict=True))
            elif keyword not in _IDENTIFIERS and keyword not in ("$ref", "$dynamicRef"):
                fresh[keyword] = value
        references = [_pointer_reference(target) for target in self._targets(pointer, node)]
        if references:
            fresh["$ref"] = references[0]
        if references[1:]:
            fresh["allOf"] = [*fresh.get("allOf", ()), *({"$ref": each} for each in references[1:])]
        return fresh

    def _targets(self, pointer: str, node: Mapping[str, Any]) -> Iterator[str]:
        if "$ref" in node:
            yield self._target(pointer, node["$ref"])
        if "$dynamicRef" in node:
            yield self._dynamic_target(pointer, node["$dynamicRef"])

    def _target(self, pointer: str, reference: Any) -> str:
        uri, fragment = _joined(self._base[pointer], reference)
        resource = self._resources.get(uri)
        if resource is None:
            raise BadInput(f"the schema refers to another document: {reference[:100]!r}")
        plain = not fragment or fragment.startswith("/")
        target = resource + fragment if plain else self._anchors.get((uri, fragment))
        if target not in self._base:
            raise BadInput(f"the schema refers to {reference[:100]!r}, which is not a part of it")
        return target

    def _dynamic_target(self, pointer: str, reference: Any) -> str:
        """A dynamic reference leads to the outermost resource with that anchor: the schema itself, if it has one."""
        target = self._target(pointer, reference)
        alike = self._dynamic.get(_joined(self._base[pointer], reference)[1], {})
        if target not in alike.values() or len(alike) == 1:
            return target
        if (outermost := alike.get(self._base[""])) is None:
            raise BadInput(f"the schema has several meanings for the $dynamicRef {reference[:100]!r}")
        return outermost


def _joined(base: str, reference: Any) -> tuple[str, str]:
    """The URI that a reference names, and its fragment."""
    if not isinstance(reference, str):
        raise BadInput(f"the schema has an invalid reference: {str(reference)[:100]!r}")
    if reference.startswith("#"):  # urljoin joins nothing to a URN
        return base, unquote(reference[1:])
    try:
        uri, fragment = urldefrag(urljoin(base, reference))
    except ValueError:
        raise BadInput(f"the schema has an invalid reference: {reference[:100]!r}") from None
    return uri, unquote(fragment)


def _pointer_reference(pointer: str) -> str:
    return "#" + quote(pointer, safe="/~$")
