"""JSON Schemas: shared by equal texts, and compiled to validators when first needed.

Owns compiling. Whether validating against a schema is fast is schema_bounds'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakValueDictionary

import jsonschema_rs
import orjson

from tabhub.core.schemas.portable import portable
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


class Schema:
    """A schema as its text, one object for equal texts; what is derived from it is made when it is needed.

    Thousands of tools are listed and few are called: a decoded schema takes five times the memory of its text, and a
    compiled one more.
    """

    __slots__ = ("__weakref__", "_compiled", "_listed", "checked", "text")

    def __init__(self, text: bytes) -> None:
        # Copied: what orjson returns keeps the whole kilobytes that it wrote into.
        self.text = memoryview(text).tobytes()
        self.checked = False
        """Whether it is known to be valid, as those of others must be."""
        self._listed: bytes | None = None
        self._compiled: CompiledSchema | None = None

    @classmethod
    def of(cls, schema: Mapping[str, Any]) -> Schema:
        return cls.of_text(orjson.dumps(schema))

    @classmethod
    def of_text(cls, text: bytes) -> Schema:
        shared = _IN_USE.get(text)
        if shared is None:
            shared = cls(text)
            _IN_USE[shared.text] = shared
        return shared

    @classmethod
    def known(cls, text: bytes) -> Schema | None:
        """The schema of this text if it is in use and known to be valid."""
        shared = _IN_USE.get(text)
        return shared if shared is not None and shared.checked else None

    def value(self) -> dict[str, Any]:
        """The schema decoded, a new object each time."""
        decoded: dict[str, Any] = orjson.loads(self.text)
        return decoded

    @property
    def listed(self) -> bytes:
        """The schema as agents are shown it (core.schemas.portable), encoded."""
        if self._listed is None:
            listed = orjson.dumps(portable(self.value()))
            self._listed = self.text if listed == self.text else memoryview(listed).tobytes()
        return self._listed

    @property
    def compiled(self) -> CompiledSchema:
        if self._compiled is None:
            self._compiled = CompiledSchema(self.value())
        return self._compiled

    def is_valid(self, value: Any) -> bool:
        return self.compiled.is_valid(value)


_IN_USE: WeakValueDictionary[bytes, Schema] = WeakValueDictionary()
"""By text."""
