"""The families of built-in tools, and the tools that make up the `core` profile.

Owns which tool belongs to which family. The tools themselves are in the files of their families.
"""

from __future__ import annotations

from collections.abc import Mapping

from tabhub.browser.tool_spec import ToolSpec
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
from tabhub.browser.tools.reading import (
    content,
    css,
    element_styles,
    find,
    pdf,
    resources,
    screenshot,
    script,
    snapshot,
)

_MODULES = {
    "tabs": (tabs,),
    "groups": (groups,),
    "windows": (windows,),
    "seeing": (snapshot, find, content, screenshot, pdf, element_styles),
    "acting": (click, keyboard, forms, scroll, drag, upload, dialogs, mouse, batch),
    "waiting": (wait,),
    "scripts": (script,),
    "console": (console, resources),
    "network": (network, har, intercept, throttle),
    "storage": (storage, cookies),
    "history": (history, bookmarks, downloads),
    "emulation": (emulation, css, performance),
    "sessions": (status, sessions),
    "person": (notify,),
    "extension": (extension,),
    "plugins": (analyze, plugins),
}
_SPECS: Mapping[str, tuple[ToolSpec, ...]] = {
    family: tuple(spec for module in modules for spec in vars(module).values() if isinstance(spec, ToolSpec))
    for family, modules in _MODULES.items()
}
SPECS: tuple[ToolSpec, ...] = tuple(spec for specs in _SPECS.values() for spec in specs)
FAMILIES: Mapping[str, tuple[str, ...]] = {
    **{family: tuple(spec.tool.name for spec in specs) for family, specs in _SPECS.items()},
    "hub": ("tabhub_read_result",),
}

CORE: tuple[str, ...] = (
    "browser_list_tabs",
    "browser_open_tab",
    "browser_close_tab",
    "browser_navigate_tab",
    "browser_go_back",
    "browser_reload_tab",
    "browser_snapshot",
    "browser_find",
    "browser_get_tab_content",
    "browser_screenshot_tab",
    "browser_click_element",
    "browser_type_text",
    "browser_fill_form",
    "browser_select_option",
    "browser_press_key",
    "browser_scroll",
    "browser_upload_file",
    "browser_handle_dialog",
    "browser_act",
    "browser_list_downloads",
    "browser_wait_for",
    "browser_execute_script",
    "browser_get_console_logs",
    "browser_get_network_requests",
    "browser_get_connection_status",
    "tabhub_read_result",
)
"""At most 26 tools, small enough to be listed whole in any agent's context."""
