"""The form of an input schema that every model API and client accepts.

Clients pass the schemas of tools on to OpenAI, Azure, Gemini, Anthropic and others, and one schema that an API refuses
makes it refuse all tools of the request. So listings show what all of them accept (`ALLOWED` and the rules in
tests/check_tool_schemas.py): a type everywhere, `items` on arrays, no references, `anyOf` only below the top. What this
cannot express is said in a description. Arguments are validated against the original schema, never against this one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

import orjson

from tabhub.wire.param_headers import MARK as HEADER_MARK

Schema = dict[str, Any]

MAX_DEPTH = 10
PROPERTY_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
ALLOWED: Mapping[str, frozenset[str]] = {
    "any": frozenset({"type", "title", "description", "default", HEADER_MARK}),
    "string": frozenset({"enum", "format", "minLength", "maxLength", "pattern"}),
    "number": frozenset({"minimum", "maximum"}),
    "integer": frozenset({"minimum", "maximum"}),
    "boolean": frozenset(),
    "null": frozenset(),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "object": frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties"}),
}
"""The keywords that may stand beside each type."""
TYPES = ALLOWED.keys() - {"any"}
FORMATS = frozenset({"date-time"})
_MAX_EXPANSION = 16_000
"""How many bytes longer than twice its length a schema may become by following references."""
_MAX_HINT = 200
_TYPE_OF = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", list: "array"}
_IMPLIED = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties", "propertyNames")),
    ("array", ("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems")),
    ("string", ("pattern", "minLength", "maxLength", "format")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
"""The type that a schema without one is meant for, by its keywords."""
_HINTED = (
    "contentEncoding",
    "contentMediaType",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "multipleOf",
    "patternProperties",
    "propertyNames",
)
"""Keywords that are said in the description instead."""
_ANY_TYPE = ("string", "number", "boolean", "object", "array")


def portable(schema: Mapping[str, Any]) -> Schema:
    """The schema as it is listed, an object; idempotent."""
    arguments = {keyword: value for keyword, value in schema.items() if keyword not in ("enum", "const")}
    return _tidy(_flat(_Writer(schema).write({**arguments, "type": "object"}, 0)))


class _Writer:
    """Writes one schema; its references have been resolved to plain pointers."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._open: list[str] = []
        """The references that are being followed: one to itself is cut off."""
        self._left = _MAX_EXPANSION + 2 * len(orjson.dumps(root))

    def write(self, node: Any, depth: int) -> Schema:
        if not isinstance(node, Mapping):
            return _anything()
        if depth > MAX_DEPTH or self._left < 0:
            return _stub(node)
        own = _typed(node, self._own(node, depth))
        if own.get("type") == "object":
            conditional = [*(node.get(word) for word in ("if", "then", "else")), *_values(node, "dependentSchemas")]
            fields = [
                self.write({"type": "object", **each}, depth) for each in conditional if isinstance(each, Mapping)
            ]
            own = _with_fields(own, fields)
        for part in [self._referred(node, depth), *(self.write(each, depth) for each in _list(node, "allOf"))]:
            own = _both(part, own) if part is not None else own
        for keyword in ("anyOf", "oneOf"):
            if branches := [self.write(each, depth) for each in _list(node, keyword) if each is not False]:
                own = _with_branches(own, branches)
        return own if "type" in own or "anyOf" in own else {**_anything(), **own}

    def _referred(self, node: Mapping[str, Any], depth: int) -> Schema | None:
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return None
        target = _target(self._root, reference)
        if reference in self._open:
            return _stub(target if isinstance(target, Mapping) else {})
        self._open.append(reference)
        try:
            return self.write(target, depth)
        finally:
            self._open.pop()

    def _own(self, node: Mapping[str, Any], depth: int) -> Schema:
        """The keywords of the schema itself, with its parts written; its type may be missing or several."""
        own: Schema = {}
        for keyword, value in node.items():
            if keyword == "properties" and isinstance(value, Mapping):
                own[keyword] = {name: self.write(part, depth + 1) for name, part in value.items() if part is not False}
            elif keyword == "items" or (keyword == "additionalProperties" and isinstance(value, Mapping) and value):
                own[keyword] = self.write(value, depth + 1)
            elif keyword == "const":
                own["enum"] = [value]
            elif keyword in _PLAIN and not (keyword == "format" and value not in FORMATS):
                own[keyword] = value
                self._left -= len(keyword) + len(value if isinstance(value, str) else orjson.dumps(value)) + 6
        if "prefixItems" in node:
            kinds = [self.write(part, depth + 1) for part in _list(node, "prefixItems")]
            own["items"] = _one_of([*kinds, *([own["items"]] if isinstance(node.get("items"), Mapping) else ())])
        return _hinted(own, {keyword: node[keyword] for keyword in _HINTED if keyword in node})


_PLAIN = frozenset(
    {"type", "enum", "title", "description", "default", "required", "minimum", "maximum", HEADER_MARK}
).union(*ALLOWED.values()) - {"properties", "items", "additionalProperties"}


def _list(node: Mapping[str, Any], keyword: str) -> list[Any]:
    value = node.get(keyword)
    return value if isinstance(value, list) else []


def _values(node: Mapping[str, Any], keyword: str) -> list[Any]:
    value = node.get(keyword)
    return list(value.values()) if isinstance(value, Mapping) else []


def _target(root: Mapping[str, Any], reference: str) -> Any:
    found: Any = root
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name)
        else:
            found = (
                found[int(name)] if isinstance(found, list) and name.isdecimal() and int(name) < len(found) else None
            )
    return found


def _anything() -> Schema:
    return {"anyOf": [_stub({"type": name}) for name in _ANY_TYPE]}


def _stub(node: Mapping[str, Any]) -> Schema:
    """A schema of which only the type is said."""
    kind = node.get("type")
    kind = kind if isinstance(kind, str) and kind in TYPES else "object"
    return {"type": kind, "items": {"type": "string"}} if kind == "array" else {"type": kind}


def _typed(node: Mapping[str, Any], own: Schema) -> Schema:
    """The schema with one type, or with one branch for each of its types; without, if it says nothing of it."""
    if isinstance(own.get("enum"), list):
        return _choices(own)
    given = own.get("type")
    if isinstance(given, list):
        kinds = [kind for kind in dict.fromkeys(given) if kind in TYPES]
        if "number" in kinds and "integer" in kinds:
            kinds.remove("integer")
        return _one_of((_of_type(own, kind) for kind in kinds), own) if kinds else _without(own, "type")
    if not isinstance(given, str):
        given = next((kind for kind, keywords in _IMPLIED if any(keyword in node for keyword in keywords)), None)
    return _of_type(own, given, texts=True) if given is not None and given in TYPES else _without(own, "type")


def _of_type(own: Schema, kind: str, *, texts: bool = False) -> Schema:
    """The keywords that concern one type."""
    kept = ALLOWED[kind] | (ALLOWED["any"] if texts else frozenset())
    fresh = {"type": kind} | {keyword: value for keyword, value in own.items() if keyword in kept and keyword != "type"}
    if kind == "array" and "items" not in fresh:
        fresh["items"] = _anything()
    return fresh


def _choices(own: Schema) -> Schema:
    """An enum by the types of its values: only texts may be enumerated."""
    by_type: dict[str, list[Any]] = {} if own["enum"] else {"null": []}
    for value in own["enum"]:
        by_type.setdefault(_TYPE_OF.get(type(value), "object"), []).append(value)
    if "number" in by_type:
        by_type["number"] += by_type.pop("integer", [])
    if len(by_type) == 1:
        return next(_choice(kind, values, own) for kind, values in by_type.items())
    return _one_of((_choice(kind, values, {}) for kind, values in by_type.items()), own)


def _choice(kind: str, values: list[Any], own: Mapping[str, Any]) -> Schema:
    stub = _stub({"type": kind}) | {keyword: own[keyword] for keyword in ALLOWED["any"] - {"type"} if keyword in own}
    if kind == "string" and "" not in values:
        return {**stub, "enum": list(dict.fromkeys(values))}
    if kind == "integer" and sorted(values) == list(range(min(values), max(values) + 1)):
        return {**stub, "minimum": min(values), "maximum": max(values)}
    return stub if kind == "null" or (kind == "boolean" and len(values) > 1) else _hinted(stub, {"one of": values})


def _one_of(branches: Iterable[Schema], own: Mapping[str, Any] | None = None) -> Schema:
    """Any of the branches, with the texts of a schema they come from."""
    texts = {keyword: own[keyword] for keyword in ALLOWED["any"] - {"type"} if own and keyword in own}
    several: list[Schema] = []
    for branch in branches:
        nested = set(branch) == {"anyOf"}
        for each in branch["anyOf"] if nested else [branch]:
            if set(each) == {"type", "enum"} and (
                alike := next((a for a in several if set(a) == {"type", "enum"}), None)
            ):
                alike["enum"] = list(dict.fromkeys([*alike["enum"], *each["enum"]]))
            elif each not in several:
                several.append(dict(each))
    if len(several) == 1:
        return {**several[0], **texts}
    return {**texts, "anyOf": several} if several else {**_anything(), **texts}


def _both(one: Schema, other: Schema) -> Schema:
    """What fits both; where they say the same thing differently, the second is kept."""
    if "type" not in other and "anyOf" not in other:
        return {**one, **other}
    if one.get("type") != "object" or other.get("type") != "object":
        return {**one, **other} if one.get("type") == other.get("type") and "type" in one else {**_texts(one), **other}
    properties = dict(one.get("properties", {}))
    for name, part in other.get("properties", {}).items():
        properties[name] = _both(properties[name], part) if name in properties else part
    merged = {**one, **other}
    if properties:
        merged["properties"] = properties
    if required := [*dict.fromkeys([*one.get("required", ()), *other.get("required", ())])]:
        merged["required"] = required
    return merged


def _texts(schema: Schema) -> Schema:
    return {keyword: schema[keyword] for keyword in ("title", "description") if keyword in schema}


def _with_branches(own: Schema, branches: list[Schema]) -> Schema:
    """A schema of which one of several more must hold as well."""
    if "type" not in own and "anyOf" not in own:
        return _one_of(branches, own)
    if own.get("type") != "object" or any(branch.get("type") != "object" for branch in branches):
        return own
    if not own.get("properties"):
        return _one_of((_both({k: v for k, v in own.items() if k == "required"}, branch) for branch in branches), own)
    return _with_fields(own, branches)


def _with_fields(own: Schema, parts: Iterable[Schema]) -> Schema:
    """An object with the properties of several more, none of them required."""
    more: dict[str, Schema] = {}
    for part in parts:
        for name, field in part.get("properties", {}).items():
            if name not in own.get("properties", {}):
                more[name] = _one_of([more[name], field]) if name in more else field
    return {**own, "properties": {**own.get("properties", {}), **more}} if more else own


def _flat(whole: Schema) -> Schema:
    """The schema of arguments: an object with properties; what its branches have in common is required."""
    branches = [branch for branch in whole.pop("anyOf", ()) if branch.get("type") == "object"]
    fields = _with_fields({"type": "object", **whole}, branches)
    if branches and (common := set.intersection(*(set(branch.get("required", ())) for branch in branches))):
        fields["required"] = [*dict.fromkeys([*fields.get("required", ()), *sorted(common)])]
    return {"type": "object", "properties": {}, **{k: v for k, v in fields.items() if k not in ("default", "type")}}


def _tidy(schema: Schema) -> Schema:
    """Properties only under names that every API takes, the others named in the description; only they are required."""
    fresh = dict(schema)
    if "properties" in fresh:
        properties = fresh["properties"]
        fresh["properties"] = {n: _tidy(part) for n, part in properties.items() if PROPERTY_NAME.fullmatch(n)}
        if odd := [name for name in properties if name not in fresh["properties"]]:
            fresh = _hinted(fresh, {"also": odd})
    if "required" in fresh:
        fresh["required"] = [name for name in fresh["required"] if name in fresh.get("properties", ())]
        if not fresh["required"]:
            del fresh["required"]
    for keyword in ("items", "additionalProperties"):
        if keyword in fresh:
            fresh[keyword] = _tidy(fresh[keyword])
    if "anyOf" in fresh:
        fresh["anyOf"] = [_tidy(branch) for branch in fresh["anyOf"]]
    return fresh


def _hinted(own: Schema, hints: Mapping[str, Any]) -> Schema:
    """The schema with facts that its keywords cannot express in its description."""
    said: list[str] = []
    for name, value in hints.items():
        if name not in own:
            said.append(f"{name}: {value if isinstance(value, str) else orjson.dumps(value).decode()}")
    if not said:
        return own
    text = "; ".join(said)
    text = f"({text[:_MAX_HINT]}…)" if len(text) > _MAX_HINT else f"({text})"
    description = own.get("description")
    return {**own, "description": f"{description} {text}" if isinstance(description, str) and description else text}


def _without(own: Schema, keyword: str) -> Schema:
    return {name: value for name, value in own.items() if name != keyword}
