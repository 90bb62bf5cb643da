"""What each built-in tool does, in words that follow "wants to": the table behind sentence.py.

A phrase is a text, or a function of the call where its arguments matter. It begins with a verb.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from tabhub.trust.placeholders import fill, has_placeholder
from tabhub.trust.redact import redact_url
from tabhub.trust.sentences.elements import Elements, cut, quoted, refer, takes_secrets, targets

_TEXT = 120
_URL = 160


class Told(NamedTuple):
    """A call to be put into words."""

    tool: str
    arguments: Mapping[str, Any]
    elements: Elements
    at: str
    """The place of the call's targets among `elements`: of a step, inside those of its batch."""
    private: bool
    """Whether to leave out what was typed, and what URLs have after their path."""

    def element(self, place: str = "") -> str:
        for each, target in targets(self.tool, self.arguments, self.at):
            if each == self.at + place:
                return refer(target, self.elements.get(each))
        return "the page"

    def typed(self, value: Any, place: str = "") -> str:
        """What is typed into a field."""
        if self.private:
            return "text"
        for each, target in targets(self.tool, self.arguments, self.at):
            if each == self.at + place and takes_secrets(target, self.elements.get(each)):
                return "a hidden text"
        if isinstance(value, bool):
            return "on" if value else "off"
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if has_placeholder(shown):
            return f'"{cut(fill(shown, lambda kind, name: f"[stored {kind} {name}]"), _TEXT)}"'
        return quoted(shown, _TEXT)

    def url(self, name: str = "url") -> str:
        given = str(self.arguments.get(name, ""))
        if self.private:
            given = given.partition("?")[0].partition("#")[0]
        return cut(redact_url(given), _URL)


Phrase = str | Callable[[Told], str]


def _click(call: Told) -> str:
    verb = {2: "double-click", 3: "triple-click"}.get(call.arguments.get("count", 1), "click")
    button = call.arguments.get("button", "left")
    held = "+".join(map(str, call.arguments.get("modifiers", ())))
    verb = verb if button == "left" else f"{button}-{verb}"
    return f"{verb} {call.element()}{f' holding {cut(held, 40)}' if held else ''}"


def _type(call: Told) -> str:
    enter = " and press Enter" if call.arguments.get("submit") else ""
    verb = "replace the text of" if call.arguments.get("clear") else ""
    text = call.typed(call.arguments.get("text", ""))
    if verb:
        return f"{verb} {call.element()} with {text}{enter}"
    return f"type {text} into {call.element()}{enter}"


def _press(call: Told) -> str:
    held = [str(each) for each in call.arguments.get("modifiers", ())]
    return f"press {cut('+'.join([*held, str(call.arguments.get('key', ''))]), 40)} in {call.element()}"


def fields(call: Told) -> list[str]:
    """The fields of a form, each with what is filled in."""
    given = call.arguments.get("fields", ())
    return [
        f"{call.element(f'{number}.')}: {call.typed(field['value'], f'{number}.')}"
        for number, field in enumerate(given)
        if isinstance(field, Mapping) and "value" in field
    ]


def _fill(call: Told) -> str:
    given = call.arguments.get("fields", ())
    if len(given) == 1 and isinstance(given[0], Mapping) and "value" in given[0]:
        return f"fill {call.typed(given[0]['value'], '0.')} into {call.element('0.')}"
    return f"fill in {len(given)} fields"


def _select(call: Told) -> str:
    arguments = call.arguments
    named = any(name in arguments for name in ("ref", "selector", "text", "role"))
    option = arguments.get("value", arguments.get("label") if named else "")
    if named and isinstance(arguments.get("label"), list | str) and "value" not in arguments:
        option = arguments["label"]
    return f"choose {call.typed(option)} in {call.element()}"


def _scroll(call: Told) -> str:
    if any(name in call.arguments for name in ("ref", "selector", "text", "role", "label")):
        return f"scroll to {call.element()}"
    way = call.arguments.get("position") or call.arguments.get("direction", "down")
    return f"scroll {'to the ' if 'position' in call.arguments else ''}{cut(str(way), 20)}"


def _upload(call: Told) -> str:
    paths = call.arguments.get("paths", ())
    names = ", ".join(cut(str(path).replace("\\", "/").rpartition("/")[2], 60) for path in list(paths)[:3])
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return f"upload {names}{more} to {call.element()}"


def _action(call: Told) -> Any:
    """What a tool with an `action` is to do; in a batch, where that names the tool, it is called `do`."""
    return call.arguments.get("do", call.arguments.get("action"))


def _dialog(call: Told) -> str:
    if _action(call) != "accept":
        return "dismiss the page's dialog"
    answer = call.arguments.get("promptText")
    return f"accept the page's dialog{f' with {call.typed(answer)}' if answer else ''}"


def _mouse(call: Told) -> str:
    verbs = {"move": "move the mouse to", "down": "press the mouse at", "up": "release the mouse at"}
    verbs |= {"click": "click at", "wheel": "turn the mouse wheel at"}
    verb = verbs.get(str(_action(call)), "use the mouse at")
    return f"{verb} the point {_number(call, 'x')}, {_number(call, 'y')}"


def _end(call: Told, name: str) -> str:
    """Where a drag begins or ends."""
    given = call.arguments.get(name)
    if isinstance(given, Mapping) and "x" in given:
        return f"the point {cut(str(given['x']), 12)}, {cut(str(given.get('y')), 12)}"
    return call.element(f"{name}.")


def _number(call: Told, name: str) -> str:
    return cut(str(call.arguments.get(name, "?")), 12)


def _open(call: Told) -> str:
    return f"open {call.url()} in a new tab" if call.arguments.get("url") else "open a new tab"


def _window(call: Told) -> str:
    return f"open {call.url()} in a new window" if call.arguments.get("url") else "open a new window"


def _script(call: Told) -> str:
    code = str(call.arguments.get("code", "")).strip()
    return "run JavaScript in the page" if call.private or not code else f"run JavaScript in the page: {quoted(code)}"


def _named(verb: str, name: str, rest: str = "") -> Phrase:
    """A verb and the text of one argument, which is left out where calls are private."""
    plain = f"{verb}{'' if rest in ('', ':') else ' '}{rest}"

    def phrase(call: Told) -> str:
        value = call.arguments.get(name)
        return verb if value in (None, "") or call.private else f"{plain} {quoted(str(value))}"

    return phrase


def _at(verb: str, rest: str = "", name: str = "url") -> Phrase:
    """A verb and the URL of one argument."""
    return lambda call: f"{verb} {call.url(name)}{rest}" if call.arguments.get(name) else verb.rpartition(" ")[0]


def _on(verb: str) -> Phrase:
    return lambda call: f"{verb} {call.element()}"


def _tabs(verb: str, rest: str) -> Phrase:
    def phrase(call: Told) -> str:
        ids = call.arguments.get("tabIds", ())
        count = len(ids) if isinstance(ids, Sequence) else 1
        return f"{verb} {'a tab' if count == 1 else f'{count} tabs'} {rest}"

    return phrase


PHRASES: Mapping[str, Phrase] = {
    "browser_list_tabs": "list the open tabs",
    "browser_get_tab_info": "look at a tab's title and URL",
    "browser_open_tab": _open,
    "browser_navigate_tab": _at("go to"),
    "browser_go_back": "go back to the page before",
    "browser_go_forward": "go forward to the next page",
    "browser_reload_tab": "reload the page",
    "browser_focus_tab": "bring the tab to the front",
    "browser_close_tab": "close the tab",
    "browser_list_tab_groups": "list the tab groups",
    "browser_create_tab_group": _tabs("put", "into a new group"),
    "browser_add_tabs_to_group": _tabs("add", "to a group"),
    "browser_remove_tabs_from_group": _tabs("take", "out of the group"),
    "browser_update_tab_group": _named("change a tab group", "title", "to"),
    "browser_list_tabs_in_group": "list the tabs of a group",
    "browser_list_windows": "list the windows",
    "browser_create_window": _window,
    "browser_update_window": "change a window's size or position",
    "browser_close_window": "close a window with its tabs",
    "browser_snapshot": "read the page",
    "browser_find": _named("search the page", "text", "for"),
    "browser_query_elements": "look up elements of the page",
    "browser_get_tab_content": "read the page",
    "browser_get_page_html": "read the page's HTML",
    "browser_screenshot_tab": "take a screenshot of the page",
    "browser_save_pdf": "save the page as a PDF",
    "browser_get_element_styles": _on("read the styles of"),
    "browser_click_element": _click,
    "browser_hover_element": _on("move the mouse onto"),
    "browser_type_text": _type,
    "browser_press_key": _press,
    "browser_fill_form": _fill,
    "browser_select_option": _select,
    "browser_scroll": _scroll,
    "browser_drag": lambda call: f"drag {_end(call, 'from')} to {_end(call, 'to')}",
    "browser_upload_file": _upload,
    "browser_handle_dialog": _dialog,
    "browser_mouse": _mouse,
    "browser_act": lambda call: f"do {len(call.arguments.get('actions', ()))} things in the page",
    "browser_wait_for": "wait for the page",
    "browser_wait_for_element": "wait for an element of the page",
    "browser_wait_for_response": "wait for a response",
    "browser_execute_script": _script,
    "browser_get_console_logs": "read the page's console messages",
    "browser_clear_console_logs": "clear the page's console messages",
    "browser_list_resources": "list the page's resources",
    "browser_get_resource_content": _at("read the resource"),
    "browser_enable_network_capture": "record the page's network requests",
    "browser_disable_network_capture": "stop recording network requests",
    "browser_get_network_requests": "read the page's network requests",
    "browser_get_network_request": "read a network request of the page",
    "browser_get_websocket_frames": "read the page's WebSocket messages",
    "browser_export_har": "export the page's network requests",
    "browser_intercept_requests": "intercept the page's network requests",
    "browser_fulfill_request": "answer an intercepted request itself",
    "browser_fail_request": "block an intercepted request",
    "browser_stop_intercepting": "stop intercepting network requests",
    "browser_throttle_network": "slow down the page's network",
    "browser_clear_network_throttle": "stop slowing down the network",
    "browser_get_storage": _named("read the page's storage", "key", "for"),
    "browser_set_storage": _named("write to the page's storage", "key", ":"),
    "browser_get_cookies": _at("read the cookies of"),
    "browser_set_cookie": lambda call: f"set the cookie {quoted(str(call.arguments.get('name', '')))} of {call.url()}",
    "browser_delete_cookies": _at("delete cookies of"),
    "browser_clear_site_data": _at("delete what is stored of", name="origin"),
    "browser_search_history": _named("search the browsing history", "query", "for"),
    "browser_get_visits": _at("list the visits of"),
    "browser_get_recently_closed": "list recently closed tabs",
    "browser_restore_session": "reopen a closed tab or window",
    "browser_search_bookmarks": _named("search the bookmarks", "query", "for"),
    "browser_create_bookmark": _at("bookmark"),
    "browser_list_bookmark_tree": "list the bookmarks",
    "browser_download_file": _at("download"),
    "browser_list_downloads": "list the downloads",
    "browser_get_download_status": "look at a download",
    "browser_emulate_device": "show the page as on another device",
    "browser_set_geolocation": "pretend to be at another place",
    "browser_set_media_features": "change the page's media features",
    "browser_emulate_vision_deficiency": "show the page as with a vision deficiency",
    "browser_clear_emulation": "end the emulation of a device",
    "browser_force_pseudo_state": _on("force a CSS state of"),
    "browser_get_css_coverage": "measure which CSS the page uses",
    "browser_performance_metrics": "measure the page's performance",
    "browser_performance_trace": "trace the page's performance",
    "browser_get_connection_status": "check the connection",
    "browser_list_sessions": "list its own sessions",
    "browser_release_tab": "release the tab",
    "browser_request_tab": _named("take over a tab that another agent uses", "reason", ":"),
    "browser_notify": _named("show a notification", "title", ":"),
    "extension_reload": "reload the Tabhub extension",
    "extension_force_reconnect": "reconnect the Tabhub extension",
    "extension_get_state": "read the state of the Tabhub extension",
    "extension_get_logs": "read the logs of the Tabhub extension",
    "extension_get_side_panel": "look at the state of the Tabhub panel",
    "extension_check_adapter": _named("check the adapter of the plugin", "plugin"),
    "plugin_analyze_site": _at("analyze the site"),
    "plugin_list_tabs": "list the tabs of plugins",
    "tabhub_read_result": "read the rest of a result",
}
"""By tool, what a call of it does."""
