"""Plugins written in Python: the manifest and the tools in Python, their code in one JavaScript file next to it.

    from tabhub.plugins.author import define

    plugin = define(name="notes", display_name="Notes", description="Reads and writes notes.",
                    url_patterns=["https://notes.example/*"], page="notes.js")

    @plugin.tool(properties={"text": {"type": "string"}}, required=["text"])
    def add_note() -> None:
        \"\"\"Add a note.\"\"\"

A package exports `plugin` under the entry point group `tabhub.plugins`; a folder defines it in `plugin.py`. The body of
the function is never run: its name and docstring are the tool's, and the JavaScript file has a function of that name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from tabhub.errors import PluginError
from tabhub.plugins import manifest
from tabhub.plugins.model import Plugin, PluginSource, check_name

_MAX_PAGE = 5 * 1024 * 1024


@dataclass(slots=True)
class Definition:
    """A plugin while its tools are being defined."""

    name: str
    version: str
    about: dict[str, Any]
    """Its part of a manifest."""
    settings: Mapping[str, Any] | None
    icon: str | None
    page: Path
    tools: list[dict[str, Any]] = field(default_factory=list)

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
        own = {"type": "object", "properties": dict(properties or {}), "additionalProperties": False}
        own |= {"required": list(required)} if required else {}
        hints = {"readOnlyHint": read_only, "idempotentHint": idempotent, "destructiveHint": destructive}

        def define_tool(function: Callable[..., Any]) -> Callable[..., Any]:
            tool_name = name or function.__name__
            self.tools.append(
                {
                    "name": tool_name,
                    "displayName": title or tool_name.replace("_", " ").capitalize(),
                    "description": description or (function.__doc__ or "").strip(),
                    "input_schema": dict(schema) if schema is not None else own,
                    "output_schema": dict(output) if output is not None else None,
                    "annotations": {hint: True for hint, enabled in hints.items() if enabled},
                }
            )
            return function

        return define_tool

    def build(self, source: PluginSource, path: str, package: str | None = None) -> Plugin:
        try:
            page = manifest.read_bounded(self.page, _MAX_PAGE).decode("utf-8", "replace")
        except FileNotFoundError:
            raise PluginError(f"{self.name}: its page file {self.page} is missing.") from None
        names = [tool["name"] for tool in self.tools]
        about = {"displayName": self.about["displayName"], "version": self.version, "name": self.name, "tools": names}
        before, _, after = files("tabhub.plugins").joinpath("page_adapter.js").read_text("utf-8").partition("__PAGE__")
        plugin = manifest.build(
            self.name,
            self.about,
            tools=list(self.tools),
            settings=self.settings,
            adapter=before.replace("__ABOUT__", json.dumps(about)) + page + after,
            icon=self.icon,
        )
        return replace(plugin, version=self.version or "0.0.0", source=source, path=path, package=package)


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
    folder = Path(sys._getframe(1).f_code.co_filename).resolve().parent
    about = {
        "displayName": display_name,
        "description": description,
        "urlPatterns": list(url_patterns),
        "excludePatterns": list(exclude_patterns),
        "homepage": homepage,
    }
    return Definition(check_name(name), version, about, settings, icon_svg, folder / page)
