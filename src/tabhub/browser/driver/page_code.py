"""The code that runs in pages: read once from `js/`, and combined with its arguments into one expression.

Owns the safe encoding of arguments. What the code does is in its file.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import orjson


@cache
def source(name: str) -> str:
    return files("tabhub.browser").joinpath("js", f"{name}.js").read_text("utf-8").strip()


def literal(value: Any) -> str:
    """A value as a JavaScript expression.

    JSON.parse instead of an object literal, in which a `__proto__` key would set the prototype.
    """
    return f"JSON.parse({orjson.dumps(orjson.dumps(value).decode()).decode()})"


@cache
def _opening(name: str, library: str) -> str:
    shared = source(library) + "\n" if library else ""
    return f"(() => {{\n{shared}return (\n{source(name)}\n)("


def call(name: str, argument: dict[str, Any], library: str = "") -> str:
    """An expression that calls the function of `js/<name>.js`, with the names of a library file in its scope."""
    return f"{_opening(name, library)}{literal(argument)});\n}})()"
