"""What agents are shown of a definition that others wrote: tools of pages, plugins and external servers.

Owns which keywords of a schema are kept, and the rule for hidden characters (trust.hidden_text): in a text for readers
they are written out, anywhere else (names, keys, enums, defaults) they refuse the definition. Whether validating
against a schema is fast is schema_bounds'; whether it is valid JSON Schema is core.tools'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tabhub.core.schemas.bounds import find_problem
from tabhub.core.schemas.references import LISTS, MAPS, SINGLE, resolved
from tabhub.core.schemas.validators import compile_schema
from tabhub.errors import BadInput
from tabhub.trust.hidden_text import escape_hidden, find_hidden
from tabhub.wire.param_headers import MARK as HEADER_MARK

_TEXTS = frozenset({"title", "description", "$comment"})
_SCHEMAS = SINGLE | {"contentSchema"}
_VALUES = frozenset(
    {
        "$id",
        "$ref",
        "$schema",
        "const",
        "contentEncoding",
        "contentMediaType",
        "default",
        "dependentRequired",
        "deprecated",
        "enum",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "nullable",
        "pattern",
        "readOnly",
        "required",
        "type",
        "uniqueItems",
        "writeOnly",
        HEADER_MARK,
    }
)
_IN_VALUES = "\n\t\r"
"""Control characters that a value may need, such as the separator of a table; JSON writes them out."""


def checked_name(name: str, what: str = "name") -> str:
    """The name, or BadInput if it has hidden characters."""
    return _checked(name, f"its {what}", "")


def shown_text(text: str, longest: int | None = None) -> str:
    """A text for readers: hidden characters written out, and cut to this many characters."""
    shown = escape_hidden(text if longest is None else text[: 4 * longest])
    return shown if longest is None or len(shown) <= longest else f"{shown[: longest - 1]}…"


def shown_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of JSON Schema in a schema, its texts readable; BadInput if anything else has hidden characters."""
    shown: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _TEXTS:
            if isinstance(value, str):
                shown[keyword] = escape_hidden(value)
        elif keyword in _SCHEMAS:
            shown[keyword] = _subschema(value)
        elif keyword in LISTS:
            shown[keyword] = [_subschema(each) for each in value] if isinstance(value, list) else []
        elif keyword in MAPS:
            members = value.items() if isinstance(value, Mapping) else ()
            shown[keyword] = {_checked(name, f"`{keyword}`", ""): _subschema(each) for name, each in members}
        elif keyword in _VALUES:
            _check_value(value, f"`{keyword}`")
            shown[keyword] = value
    return shown


def shown_output_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An output schema; one that cannot be used says only that the result is an object."""
    try:
        plain = resolved(schema)
        if find_problem(plain) is not None:
            return {"type": "object"}
        compile_schema(plain)
    except BadInput:
        return {"type": "object"}
    return shown_schema(plain)


def shown_annotations(value: Mapping[str, Any]) -> dict[str, Any]:
    """Annotations, icons or `_meta`, which have texts anywhere; BadInput if a key has hidden characters."""
    return {_checked(str(key), "a key of its annotations", ""): _annotation(each) for key, each in value.items()}


def _annotation(value: Any) -> Any:
    if isinstance(value, str):
        return escape_hidden(value)
    if isinstance(value, Mapping):
        return shown_annotations(value)
    return [_annotation(each) for each in value] if isinstance(value, list | tuple) else value


def _subschema(value: Any) -> Any:
    if isinstance(value, Mapping):
        return shown_schema(value)
    return [_subschema(each) for each in value] if isinstance(value, list) else value is not False


def _check_value(value: Any, where: str) -> None:
    if isinstance(value, str):
        _checked(value, where, _IN_VALUES)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            _checked(str(key), where, "")
            _check_value(each, where)
    elif isinstance(value, list):
        for each in value:
            _check_value(each, where)


def _checked(text: str, where: str, allowed: str) -> str:
    hidden = find_hidden(text, allowed)
    if hidden is not None:
        raise BadInput(f"{where} contains a hidden character (U+{ord(hidden):04X})")
    return text
