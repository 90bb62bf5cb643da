"""Console messages, exceptions and browser log entries as one kind of message.

Owns the conversion of CDP's description of logged values to text. It sends nothing and knows no tool.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tabhub.browser.driver.cdp_values import parse_int, parse_number, parse_object, parse_objects, parse_text, parse_url

EVENTS = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
LEVELS: Final = ("debug", "log", "info", "warning", "error")
_LEVEL = {"error": "error", "assert": "error", "warning": "warning", "info": "info", "debug": "debug"}
_LOG_LEVEL = {"verbose": "debug", "info": "info", "warning": "warning", "error": "error"}
_SILENT = ("clear", "endGroup", "profile", "profileEnd")
_STACKED = ("error", "warning", "assert", "trace")
_PLACE = re.compile(r"%([sdifoOc%])")
_MAX_ARGUMENTS, _MAX_FRAMES, _MAX_ITEMS, _MAX_PROPERTY, _MAX_DEPTH = 100, 5, 20, 300, 2


@dataclass(slots=True, eq=False)
class Message:
    """One message."""

    level: str
    text: str
    at: float
    """Wall time of the browser, in milliseconds."""
    source: str
    url: str = ""
    line: int = 0
    stack: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    """The URLs of its stack."""
    n: int = 0
    page: int = 1
    child: bool = False
    """Whether it comes from a frame in another process or a worker."""
    times: int = 1
    weight: int = 0

    def repeats(self, other: Message) -> bool:
        return (self.level, self.text, self.url, self.line) == (other.level, other.text, other.url, other.line)


def parse_message(method: str, params: dict[str, Any], most: int) -> Message | None:
    """The message of an event; None for events without text, such as console.clear."""
    if method == "Runtime.consoleAPICalled":
        made = _logged(params, most)
    elif method == "Runtime.exceptionThrown":
        made = _thrown(params, most)
    else:
        made = _entry(params, most)
    if made is not None:
        made.weight = 300 + len(made.text) + len(made.url) + sum(map(len, made.stack))
    return made


def _logged(params: dict[str, Any], most: int) -> Message | None:
    kind, args = parse_text(params.get("type"), 30), params.get("args")
    if kind in _SILENT:
        return None
    text = _cut(_joined(args, most), most)
    frames = list(_frames(params.get("stackTrace")))
    url, line = frames[0][1:3] if frames else ("", 0)
    stack = tuple(_shown(frame) for frame in frames[:_MAX_FRAMES]) if kind in _STACKED and len(frames) > 1 else ()
    at = parse_number(params.get("timestamp"))
    return Message(_LEVEL.get(kind, "log"), text, at, "console", url, line, stack, _places(frames))


def _thrown(params: dict[str, Any], most: int) -> Message | None:
    details = parse_object(params.get("exceptionDetails"))
    exception = details.get("exception")
    shown = format_value(exception) if isinstance(exception, dict) else ""
    prefix = parse_text(details.get("text"), 200)
    text = f"{prefix} {shown}".strip() if not shown.startswith(prefix) else shown
    frames = list(_frames(details.get("stackTrace")))
    url, line = parse_url(details.get("url")), parse_int(details.get("lineNumber")) + 1
    if frames and not url:
        url, line = frames[0][1:3]
    # The stack is part of an error's own description.
    at = parse_number(params.get("timestamp"))
    return Message("error", _cut(text, most), at, "exception", url, line, places=_places(frames))


def _entry(params: dict[str, Any], most: int) -> Message | None:
    entry = params.get("entry")
    if not isinstance(entry, dict):
        return None
    level = _LOG_LEVEL.get(parse_text(entry.get("level"), 20), "info")
    url, line = parse_url(entry.get("url")), entry.get("lineNumber")
    return Message(
        level,
        _cut(parse_text(entry.get("text"), most + 1), most),
        parse_number(entry.get("timestamp")),
        parse_text(entry.get("source"), 40) or "browser",
        url,
        parse_int(line) + 1 if type(line) in (int, float) else 0,
    )


def _joined(args: Any, most: int) -> str:
    """The values as a console shows them: the first may be a format string."""
    given = parse_objects(args)[:_MAX_ARGUMENTS]
    if len(given) < 2 or given[0].get("type") != "string" or type(given[0].get("value")) is not str:
        return " ".join(map(format_value, given))
    rest = iter(given[1:])

    def place(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        argument = next(rest, None)
        if argument is None:
            return found[0]
        return "" if found[1] == "c" else format_value(argument)

    text = _PLACE.sub(place, given[0]["value"][: most * 2])
    return " ".join([text, *map(format_value, rest)])


def format_value(remote: dict[str, Any]) -> str:
    kind, value = remote.get("type"), remote.get("value")
    if kind == "string":
        return value if type(value) is str else ""
    if kind == "undefined":
        return "undefined"
    if type(unusual := remote.get("unserializableValue")) is str:
        return unusual[:100]
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None and "value" in remote:
        return "null"
    if type(value) in (int, float):
        return str(value)
    return _described(remote)


def _described(remote: dict[str, Any]) -> str:
    description, preview = remote.get("description"), remote.get("preview")
    text = description if type(description) is str else str(remote.get("subtype") or remote.get("type") or "")
    if not isinstance(preview, dict) or preview.get("subtype") in ("error", "date", "regexp", "node"):
        return text[:_MAX_PROPERTY] if remote.get("type") == "function" else text
    return _preview(preview, text)


def _preview(preview: dict[str, Any], description: str, depth: int = 0) -> str:
    items: list[str] = []
    for entry in parse_objects(preview.get("entries"))[:_MAX_ITEMS]:
        pair = [_short(entry[name]) for name in ("key", "value") if isinstance(entry.get(name), dict)]
        items.append(" => ".join(pair))
    array = preview.get("subtype") in ("array", "typedarray")
    for item in parse_objects(preview.get("properties"))[:_MAX_ITEMS] if not items else ():
        shown = parse_text(item.get("value"), _MAX_PROPERTY)
        shown = f'"{shown}"' if item.get("type") == "string" else shown or str(item.get("type"))
        # CDP includes nested previews only for the rows of console.table.
        if isinstance(row := item.get("valuePreview"), dict) and depth < _MAX_DEPTH:
            shown = _preview(row, parse_text(row.get("description"), 100), depth + 1)
        items.append(shown if array else f"{parse_text(item.get('name'), 100)}: {shown}")
    if preview.get("overflow") is True:
        items.append("…")
    if array:
        return f"[{', '.join(items)}]"
    name = "" if description == "Object" else f"{description[:100]} "
    return f"{name}{{{', '.join(items)}}}"


def _short(preview: dict[str, Any]) -> str:
    text = parse_text(preview.get("description"), 100)
    return f'"{text}"' if preview.get("type") == "string" else text


def _frames(trace: Any) -> Iterator[tuple[str, str, int]]:
    for frame in parse_objects(parse_object(trace).get("callFrames"))[:_MAX_FRAMES]:
        name = parse_text(frame.get("functionName"), 100)
        yield name, parse_url(frame.get("url")), parse_int(frame.get("lineNumber")) + 1


def _places(frames: list[tuple[str, str, int]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(url for _, url, _ in frames if url))


def _shown(frame: tuple[str, str, int]) -> str:
    name, url, line = frame
    return f"{name or '(anonymous)'} {url[:300]}:{line}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more characters)"
