"""Plugins written in Python: the manifest and the tools here, the page side in one JavaScript file beside it.

    from tabhub.plugins.author import define

    plugin = define(name="notes", display_name="Notes", description="Reads and writes notes.",
                    url_patterns=["https://notes.example/*"], page="notes.js")

    @plugin.tool(properties={"text": {"type": "string"}}, required=["text"])
    def add_note() -> None:
        \"\"\"Add a note.\"\"\"

A package names `plugin` under the entry point group `tabhub.plugins`; a folder names it in its own `plugin.py`. The
function's body is never run: its name and docstring are the tool's, and the page side has a function of that name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tabhub.errors import PluginError
from tabhub.plugins import manifest, pageside
from tabhub.plugins.model import Plugin, PluginSource, check_name

_LARGEST = 5 * 1024 * 1024


class Definition:
    """A plugin while its tools are being defined."""

    def __init__(
        self, name: str, version: str, own: dict[str, Any], settings: Any, icon: str | None, page: Path
    ) -> None:
        self.name = check_name(name)
        self.version = version
        self.page = page
        self._own = own
        self._settings = settings
        self._icon = icon
        self._tools: list[dict[str, Any]] = []

    def tool(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        properties: Mapping[str, Any] | None = None,
        required: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
        output: Mapping[str, Any] | None = None,
        read_only: bool = False,
        idempotent: bool = False,
        destructive: bool = False,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Define a tool by a function's name and docstring; its input by properties, or by a whole JSON Schema."""
        given: dict[str, Any] = {"type": "object", "properties": dict(properties or {}), "additionalProperties": False}
        if required:
            given["required"] = list(required)

        def defined(function: Callable[..., Any]) -> Callable[..., Any]:
            called = name or function.__name__
            self._tools.append(
                {
                    "name": called,
                    "displayName": title or called.replace("_", " ").capitalize(),
                    "description": description or (function.__doc__ or "").strip(),
                    "input_schema": dict(schema) if schema is not None else given,
                    "output_schema": dict(output) if output is not None else None,
                    "annotations": {
                        hint: True
                        for hint, enabled in (
                            ("readOnlyHint", read_only),
                            ("idempotentHint", idempotent),
                            ("destructiveHint", destructive),
                        )
                        if enabled
                    },
                }
            )
            return function

        return defined

    def build(self, source: PluginSource, path: str, package: str | None = None) -> Plugin:
        try:
            with self.page.open("rb") as file:
                page = file.read(_LARGEST + 1)
        except OSError as error:
            raise PluginError(f"{self.name}: its page side {self.page} cannot be read: {error.strerror}.") from None
        if len(page) > _LARGEST:
            raise PluginError(f"{self.name}: its page side {self.page} is larger than {_LARGEST} bytes.")
        facts = {"displayName": self._own["displayName"], "version": self.version}
        names = [each["name"] for each in self._tools]
        return manifest.build(
            name=self.name,
            version=self.version,
            own=self._own,
            tools=list(self._tools),
            settings=self._settings,
            adapter=pageside.adapter(self.name, facts, names, page.decode("utf-8", "replace")),
            icon=self._icon,
            source=source,
            path=path,
            package=package,
            sdk_version=None,
            problems=[],
        )


def define(
    *,
    name: str,
    display_name: str,
    description: str,
    url_patterns: Sequence[str],
    page: str | Path,
    version: str = "0.1.0",
    exclude_patterns: Sequence[str] = (),
    homepage: str | None = None,
    icon_svg: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Definition:
    """Begin a plugin. `page` is the JavaScript file, relative to the file that calls this."""
    beside = Path(sys._getframe(1).f_code.co_filename).resolve().parent
    own: dict[str, Any] = {
        "displayName": display_name,
        "description": description,
        "urlPatterns": list(url_patterns),
        "excludePatterns": list(exclude_patterns),
    }
    if homepage is not None:
        own["homepage"] = homepage
    return Definition(name, version, own, settings, icon_svg, beside / page)
