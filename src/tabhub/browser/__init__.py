"""The built-in browser tools.

`browser_tools` returns all of them, ready to be registered; `open_tab` opens a session's first tab.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tabhub.browser.actions import Activity
from tabhub.browser.driver.page import Page, open_tab
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.files import Folder, NoFolder
from tabhub.browser.intercepted_requests import Interceptions
from tabhub.browser.record.recorder import Recorder
from tabhub.browser.record.tracing import TabTraces
from tabhub.browser.style_sheets import StyleSheets
from tabhub.browser.tab_overrides import TabOverrides
from tabhub.browser.tool_spec import PluginSite, TabChoice, Toolbox, ToolSpec, no_plugins
from tabhub.browser.tools.acting import batch, click, dialogs, drag, forms, keyboard, mouse, scroll, upload, wait
from tabhub.browser.tools.inspecting import analyze, console, emulation, har, intercept, network, performance, throttle
from tabhub.browser.tools.managing import (
    bookmarks,
    cookies,
    downloads,
    extension,
    groups,
    history,
    notify,
    plugins,
    sessions,
    status,
    storage,
    tabs,
    windows,
)
from tabhub.browser.tools.reading import content, css, elements, find, pdf, resources, screenshot, script, snapshot
from tabhub.core.tools import Runner, Tool
from tabhub.links.browsers import Browsers

__all__ = ["Page", "browser_tools", "open_tab"]

SPECS: tuple[ToolSpec, ...] = (
    *tabs.TOOLS,
    *groups.TOOLS,
    *windows.TOOLS,
    *snapshot.TOOLS,
    *find.TOOLS,
    *content.TOOLS,
    *elements.TOOLS,
    *screenshot.TOOLS,
    *pdf.TOOLS,
    *click.TOOLS,
    *keyboard.TOOLS,
    *forms.TOOLS,
    *scroll.TOOLS,
    *drag.TOOLS,
    *upload.TOOLS,
    *dialogs.TOOLS,
    *mouse.TOOLS,
    *batch.TOOLS,
    *wait.TOOLS,
    *script.TOOLS,
    *console.TOOLS,
    *resources.TOOLS,
    *network.TOOLS,
    *har.TOOLS,
    *intercept.TOOLS,
    *throttle.TOOLS,
    *storage.TOOLS,
    *cookies.TOOLS,
    *history.TOOLS,
    *bookmarks.TOOLS,
    *downloads.TOOLS,
    *emulation.TOOLS,
    *css.TOOLS,
    *performance.TOOLS,
    *status.TOOLS,
    *sessions.TOOLS,
    *notify.TOOLS,
    *extension.TOOLS,
    *plugins.TOOLS,
    *analyze.TOOLS,
)


def browser_tools(
    browsers: Browsers,
    choice: TabChoice,
    files_dir: Path | None,
    *,
    files_anywhere: bool = False,
    hub_facts: Callable[[], dict[str, Any]] = dict,
    file_urls: bool = False,
    plugins: Callable[[], Sequence[PluginSite]] = no_plugins,
) -> list[tuple[Tool, Runner]]:
    """All built-in tools. `choice` knows which tab a session uses. Without `files_dir` no tool uses files."""
    watch = TabWatch(browsers)
    lasting = TabOverrides(browsers, watch, "network")
    activity, record = Activity(browsers, watch), Recorder(browsers, watch)
    box = Toolbox(
        browsers,
        watch,
        choice,
        Folder(files_dir, files_anywhere) if files_dir is not None else NoFolder(),
        activity=activity,
        record=record,
        network_overrides=lasting,
        interceptions=Interceptions(browsers, watch, lasting, record),
        emulation=TabOverrides(browsers, watch, "emulation"),
        style_sheets=StyleSheets(browsers, watch),
        traces=TabTraces(browsers, watch),
        hub_facts=hub_facts,
        file_urls=file_urls,
        plugins=plugins,
    )
    parts = (box.network_overrides, box.interceptions, box.record, box.emulation, box.style_sheets, box.traces)
    for part in parts:
        choice.on_session_end(part.end_session)
    return [spec.bind(box) for spec in SPECS]
