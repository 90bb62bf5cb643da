"""The built-in browser tools.

`make_toolbox` makes what they share, `bind_tools` returns all of them, ready to be registered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tabhub.browser.actions import Activity
from tabhub.browser.awake_tabs import AwakeTabs
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.families import SPECS
from tabhub.browser.files.downloads import Downloads
from tabhub.browser.files.folder import Folder
from tabhub.browser.files.hidden_downloads import HiddenDownloads, ReportDownload, no_report
from tabhub.browser.intercepted_requests import Interceptions
from tabhub.browser.record.recorder import Recorder
from tabhub.browser.record.tracing import TabTraces
from tabhub.browser.secrets.fields import ReadFields, read_secret_fields
from tabhub.browser.secrets.text import SecretText
from tabhub.browser.style_sheets import StyleSheets
from tabhub.browser.tab_overrides import TabOverrides
from tabhub.browser.tool_spec import PluginSite, TabChoice, Toolbox, everything, no_plugins
from tabhub.browser.tools.reading.page_changes import PageChanges
from tabhub.core.sessions import Session
from tabhub.core.tools import Runner, Tool
from tabhub.links.browsers import Browsers
from tabhub.trust.value_mask import ValueMask
from tabhub.trust.visibility import View


def make_toolbox(
    browsers: Browsers,
    choice: TabChoice,
    files_dir: Path | None,
    *,
    files_anywhere: bool = False,
    hub_facts: Callable[[], dict[str, Any]] = dict,
    file_urls: bool = False,
    plugins: Callable[[], Sequence[PluginSite]] = no_plugins,
    secrets: SecretText | None = None,
    view: Callable[[Session], View] = everything,
    read_fields: ReadFields = read_secret_fields,
    report_download: ReportDownload = no_report,
) -> Toolbox:
    """What all tools share. `choice` knows which tab a session uses. Without `files_dir` no tool uses files.

    `view` is what calls of a session may show. `report_download` records downloads that were deleted because the
    agent that caused them is kept off their site.
    """
    watch = TabWatch(browsers)
    network = TabOverrides(browsers, watch, "network")
    folder = Folder(files_dir, files_anywhere)
    hidden, downloads = HiddenDownloads(browsers, watch, report_download), Downloads(browsers, watch, folder)
    awake, record = AwakeTabs(browsers, watch), Recorder(browsers, watch)
    box = Toolbox(
        browsers,
        watch,
        choice,
        folder,
        activity=Activity(browsers, watch, awake, downloads, hidden, choice.report_closed),
        awake=awake,
        downloads=downloads,
        hidden_downloads=hidden,
        record=record,
        network_overrides=network,
        interceptions=Interceptions(browsers, watch, network, record),
        emulation=TabOverrides(browsers, watch, "emulation"),
        style_sheets=StyleSheets(browsers, watch),
        traces=TabTraces(browsers, watch),
        secrets=secrets or SecretText(None, ValueMask(), time.time),
        hub_facts=hub_facts,
        changes=PageChanges(browsers.limits.change_tokens),
        file_urls=file_urls,
        read_fields=read_fields,
        plugins=plugins,
        view=view,
    )
    for part in (box.network_overrides, box.interceptions, box.record, box.emulation, box.style_sheets, box.traces):
        choice.on_session_end(part.end_session)
    return box


def bind_tools(box: Toolbox) -> list[tuple[Tool, Runner]]:
    """All built-in tools."""
    return [spec.bind(box) for spec in SPECS]


def browser_tools(
    browsers: Browsers, choice: TabChoice, files_dir: Path | None, **more: Any
) -> list[tuple[Tool, Runner]]:
    """All built-in tools with a toolbox of their own; for `more` see `make_toolbox`."""
    return bind_tools(make_toolbox(browsers, choice, files_dir, **more))
