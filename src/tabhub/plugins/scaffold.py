"""New plugins from the files in `templates/`: an npm package (plain JavaScript, no build step) or a Python file.

A template contains `{{name}}` for a value, and `{{title_json}}` for a value as a JSON string, which is also a string
literal of JavaScript and Python.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path

from tabhub.core import match_patterns as patterns
from tabhub.errors import PluginError
from tabhub.plugins.discovery import load
from tabhub.plugins.model import Plugin, check_name

_NPM = ("package.json", "dist/tools.json", "dist/adapter.iife.js", "test/adapter.test.mjs", "README.md")
_PYTHON = ("plugin.py", "page.js", "test_plugin.py", "README.md")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def create(folder: Path, name: str, pattern: str, *, python: bool = False, title: str | None = None) -> Plugin:
    """Write a new plugin to a folder that is empty or does not exist, and load it."""
    check_name(name)
    if (why := patterns.problem(pattern)) is not None:
        raise PluginError(f"{why[0].upper()}{why[1:]}.", hint="Write it as https://*.example.com/*")
    if folder.exists() and any(folder.iterdir()):
        raise PluginError(f"{folder} already exists and is not empty.", hint="Choose another folder with --dir.")
    title = title or name.replace("-", " ").title()
    values = {
        "name": name,
        "title": title,
        "description": f"Reads pages of {title}.",
        "pattern": pattern,
        "folder": folder.name,
    }
    values |= {f"{key}_json": json.dumps(value, ensure_ascii=False) for key, value in values.items()}
    templates = files("tabhub.plugins") / "templates" / ("python" if python else "npm")
    try:
        for path in _PYTHON if python else _NPM:
            template = (templates / f"{Path(path).name}.tmpl").read_text("utf-8")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(_PLACEHOLDER.sub(lambda found: values[found[1]], template), "utf-8")
    except OSError as error:
        raise PluginError(f"The plugin could not be written to {folder}: {error.strerror}.") from None
    return load(folder, "local")
