"""The built-in tools of a relay: without those that need files or an extension on the same machine.

Owns which are left out. A relay serves many people: none may read or write files on its disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from tabhub.browser import browser_tools
from tabhub.browser.tool_spec import TabChoice
from tabhub.core.registry import Entry
from tabhub.core.tools import Tool
from tabhub.links.browsers import Browsers

LEFT_OUT = frozenset(
    {
        "browser_upload_file",  # reads files of the hub's machine
        "browser_save_pdf",  # writes a file
        "browser_performance_trace",  # writes a file
        "extension_reload",  # allowed only to a hub on the same machine
        "plugin_list_tabs",  # a relay has no plugins
    }
)
_FILE_PARAMS = ("filePath", "overwrite")
_FILE_SENTENCE = re.compile(r"; [^;]*filePath[^;.]*\.")


def relay_tools(browsers: Browsers, choice: TabChoice, facts: Callable[[], dict[str, Any]]) -> Iterator[Entry]:
    for tool, run in browser_tools(browsers, choice, None, hub_facts=facts):
        if tool.name not in LEFT_OUT:
            yield Entry(_without_files(tool), run)


@lru_cache(maxsize=1000)
def _without_files(tool: Tool) -> Tool:
    """The tool without its parameters for files; cached for all users."""
    properties = tool.input_schema.get("properties", {})
    if not any(name in properties for name in _FILE_PARAMS):
        return tool
    kept = {name: value for name, value in properties.items() if name not in _FILE_PARAMS}
    description = _FILE_SENTENCE.sub(".", tool.description)
    return tool.changed(input_schema={**tool.input_schema, "properties": kept}, description=description)
