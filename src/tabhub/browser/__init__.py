"""The built-in browser tools, one file a family, written against one small interface to a tab.

`browser_tools` gives all of them, ready to be registered; `open_tab` is what a session's first tab is opened with.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tabhub.browser import script, see, status, tabs
from tabhub.browser.files import Folder
from tabhub.browser.spec import Spec, TabChoice, Toolbox
from tabhub.browser.tab import Page, open_tab
from tabhub.browser.watch import Watch
from tabhub.hub.tools import Runner, Tool
from tabhub.links.browsers import Browsers

__all__ = ["Page", "browser_tools", "open_tab"]

SPECS: tuple[Spec, ...] = (*tabs.TOOLS, *see.TOOLS, *script.TOOLS, *status.TOOLS)


def browser_tools(
    browsers: Browsers,
    choice: TabChoice,
    files_dir: Path,
    *,
    files_anywhere: bool = False,
    hub_facts: Callable[[], dict[str, Any]] = dict,
    file_urls: bool = False,
) -> list[tuple[Tool, Runner]]:
    """All built-in tools. `choice` knows which tab a session works on."""
    box = Toolbox(browsers, Watch(browsers), choice, Folder(files_dir, files_anywhere), hub_facts, file_urls)
    return [spec.bind(box) for spec in SPECS]
