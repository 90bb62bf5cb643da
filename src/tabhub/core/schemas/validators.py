"""Validators of JSON Schemas: compiled when first needed, and shared by equal schemas.

Owns compiling. A compiled schema takes many times the memory of its text, and most tools are never called. Whether
validating against a schema is fast is schema_bounds'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import jsonschema_rs
import orjson

from tabhub.errors import BadInput

_MAX_SCHEMA = 200_000
_PATTERNS = jsonschema_rs.RegexOptions(size_limit=200_000, dfa_size_limit=200_000)


def compile_schema(schema: Mapping[str, Any]) -> jsonschema_rs.Validator:
    """Compile a JSON Schema with linear-time patterns and without following external references."""
    if len(orjson.dumps(schema)) > _MAX_SCHEMA:
        raise BadInput(f"The schema is larger than {_MAX_SCHEMA} bytes.")
    try:
        return jsonschema_rs.Draft202012Validator(
            dict(schema), pattern_options=_PATTERNS, retriever=_refuse_reference, validate_formats=False
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError, TypeError) as error:
        raise BadInput(f"The schema is not valid JSON Schema: {error}") from None


def _refuse_reference(uri: str) -> Any:
    raise ValueError(f"references out of the schema are not followed: {uri}")


class CompiledSchema:
    """A validator, and its check as a function."""

    __slots__ = ("__weakref__", "is_valid", "validator")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.validator = compile_schema(schema)
        self.is_valid: Callable[[Any], bool] = self.validator.is_valid


_IN_USE: WeakValueDictionary[bytes, CompiledSchema] = WeakValueDictionary()
"""By the text of the schema."""


def shared_validator(schema: Mapping[str, Any]) -> CompiledSchema:
    """The compiled schema, the same one for equal schemas while one of them is used."""
    text = orjson.dumps(schema)
    compiled = _IN_USE.get(text)
    if compiled is None:
        compiled = _IN_USE[text] = CompiledSchema(schema)
    return compiled


class LazyValidator:
    """The validator of one schema, which is known to be valid."""

    __slots__ = ("_compiled", "_schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._compiled: CompiledSchema | None = None

    def is_valid(self, value: Any) -> bool:
        if self._compiled is None:
            self._compiled = shared_validator(self._schema)
        return self._compiled.is_valid(value)
