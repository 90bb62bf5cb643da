"""Kinds of action: what an approval that lasts covers, and what site rules distinguish.

Owns the table of kinds and which built-in tool belongs to which; every built-in tool belongs to exactly one. A tool of
a page, plugin or external server is a kind of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

READ = "read"

PHRASES: Mapping[str, str] = {
    READ: "read pages",
    "input": "click and type",
    "navigate": "open pages",
    "tabs": "arrange windows and tabs",
    "script": "run scripts",
    "files": "upload, download and save files",
    "storage": "use cookies and storage",
    "history": "use history and bookmarks",
    "emulation": "emulate devices and measure pages",
    "network": "record and change network requests",
    "notify": "show notifications",
    "extension": "control the extension",
}
"""By kind, what an agent does, as in "may always click and type on shop.example"."""

PRIVATE = frozenset({"storage", "history"})
"""Kinds that need approval in a person's own browser even for reading, and that no site rule allows."""
AROUND_SITES = frozenset({"navigate", "tabs", "notify", "extension"})
"""Kinds that act on the browser and not in a page: the site rule `read` leaves them to their own permission."""
LEASE_TOOLS = frozenset({"browser_release_tab", "browser_request_tab"})
"""Tools that only concern who holds a tab; they ask for the tab themselves."""
LEAVING = frozenset(
    {
        "browser_navigate_tab",
        "browser_go_back",
        "browser_go_forward",
        "browser_close_tab",
        "browser_release_tab",
    }
)
"""Tools by which a session gets out of its tab when that has arrived at a blocked site."""

_TOOLS: Mapping[str, tuple[str, ...]] = {
    READ: (
        "browser_list_tabs",
        "browser_get_tab_info",
        "browser_list_tab_groups",
        "browser_list_tabs_in_group",
        "browser_list_windows",
        "browser_snapshot",
        "browser_find",
        "browser_query_elements",
        "browser_get_tab_content",
        "browser_get_page_html",
        "browser_screenshot_tab",
        "browser_get_element_styles",
        "browser_wait_for",
        "browser_wait_for_element",
        "browser_wait_for_response",
        "browser_get_console_logs",
        "browser_clear_console_logs",
        "browser_list_resources",
        "browser_get_resource_content",
        "browser_get_network_requests",
        "browser_get_network_request",
        "browser_get_websocket_frames",
        "browser_export_har",
        "browser_get_connection_status",
        "browser_list_sessions",
        "plugin_list_tabs",
        "tabhub_read_result",
    ),
    "input": (
        "browser_click_element",
        "browser_hover_element",
        "browser_type_text",
        "browser_press_key",
        "browser_fill_form",
        "browser_select_option",
        "browser_scroll",
        "browser_drag",
        "browser_handle_dialog",
        "browser_mouse",
        "browser_act",
    ),
    "navigate": (
        "browser_open_tab",
        "browser_navigate_tab",
        "browser_go_back",
        "browser_go_forward",
        "browser_reload_tab",
        "browser_create_window",
        "plugin_analyze_site",
    ),
    "tabs": (
        "browser_focus_tab",
        "browser_close_tab",
        "browser_create_tab_group",
        "browser_add_tabs_to_group",
        "browser_remove_tabs_from_group",
        "browser_update_tab_group",
        "browser_update_window",
        "browser_close_window",
        "browser_release_tab",
        "browser_request_tab",
    ),
    "script": ("browser_execute_script",),
    "files": ("browser_upload_file", "browser_save_pdf", "browser_download_file", "browser_get_download_status"),
    "storage": (
        "browser_get_storage",
        "browser_set_storage",
        "browser_get_cookies",
        "browser_set_cookie",
        "browser_delete_cookies",
        "browser_clear_site_data",
    ),
    "history": (
        "browser_search_history",
        "browser_get_visits",
        "browser_get_recently_closed",
        "browser_restore_session",
        "browser_search_bookmarks",
        "browser_create_bookmark",
        "browser_list_bookmark_tree",
        "browser_list_downloads",
    ),
    "emulation": (
        "browser_emulate_device",
        "browser_set_geolocation",
        "browser_set_media_features",
        "browser_emulate_vision_deficiency",
        "browser_clear_emulation",
        "browser_force_pseudo_state",
        "browser_throttle_network",
        "browser_clear_network_throttle",
        "browser_get_css_coverage",
        "browser_performance_metrics",
        "browser_performance_trace",
    ),
    "network": (
        "browser_enable_network_capture",
        "browser_disable_network_capture",
        "browser_intercept_requests",
        "browser_fulfill_request",
        "browser_fail_request",
        "browser_stop_intercepting",
    ),
    "notify": ("browser_notify",),
    "extension": (
        "extension_reload",
        "extension_force_reconnect",
        "extension_get_state",
        "extension_get_logs",
        "extension_get_side_panel",
        "extension_check_adapter",
    ),
}
KINDS: Mapping[str, str] = {tool: kind for kind, tools in _TOOLS.items() for tool in tools}
"""The kind of each built-in tool."""
_OWN = {"page": "the page's tool", "plugin": "the plugin tool", "upstream": "the server tool"}


def kind_of(source: str, name: str) -> str:
    """The kind of a tool, by the kind of its source and its name there; a new built-in tool without one is its own."""
    return f"{source}:{name}" if source in _OWN else KINDS.get(name, name)


def phrase(kind: str) -> str:
    source, _, name = kind.partition(":")
    return f"use {_OWN[source]} {name}" if source in _OWN else PHRASES.get(kind, f"use {kind}")
