"""The built-in tools as a relay offers them: without those that need files or an extension on the same machine.

Owns what is left out. A relay serves many people: nothing of theirs is written to its disk, and nothing on it is theirs
to read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import lru_cache
from typing import Any

from tabhub.browser import browser_tools
from tabhub.browser.tool_spec import TabChoice
from tabhub.core.registry import Entry
from tabhub.core.tools import Tool
from tabhub.links.browsers import Browsers

LEFT_OUT = frozenset(
    {
        "browser_upload_file",  # gives files of the hub's machine
        "browser_save_pdf",  # always writes one
        "browser_performance_trace",  # so does this
        "extension_reload",  # only a hub beside the extension may
        "plugin_list_tabs",  # a relay has no plugins
    }
)
_OF_FILES = ("filePath", "overwrite")
_WORDS = re.compile(r"; [^;]*filePath[^;.]*\.")


def relay_tools(browsers: Browsers, choice: TabChoice, facts: Callable[[], dict[str, Any]]) -> Iterator[Entry]:
    """The tools, ready to be registered."""
    for tool, run in browser_tools(browsers, choice, None, hub_facts=facts):
        if tool.name not in LEFT_OUT:
            yield Entry(_without_files(tool), run)


@lru_cache(maxsize=1000)
def _without_files(tool: Tool) -> Tool:
    """The tool without its arguments for files, made once for all users."""
    properties = tool.input_schema.get("properties", {})
    if not any(name in properties for name in _OF_FILES):
        return tool
    kept = {name: value for name, value in properties.items() if name not in _OF_FILES}
    values = {field.name: getattr(tool, field.name) for field in fields(tool) if field.init}
    values["input_schema"] = {**tool.input_schema, "properties": kept}
    values["description"] = _WORDS.sub(".", tool.description)
    return Tool(**values)
