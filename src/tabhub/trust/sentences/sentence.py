"""The sentence of a call: who wants to do what, the same in the panel, notifications, terminal, REST and audit log.

Pure: from the tool, its arguments and the elements that were found for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tabhub.trust.actions import KINDS, PRIVATE
from tabhub.trust.redact import clean, redact_value
from tabhub.trust.sentences.elements import Elements, cut, quoted
from tabhub.trust.sentences.words import PHRASES, Told, fields

_MOST_ARGUMENTS = 3
_MOST_STEPS = 3
_STEP = 60
_VALUE = 40
_LONGEST = 300
_CAMEL = re.compile(r"([a-z])([A-Z])")
_NOTHING: Elements = {}
_HARMLESS = frozenset(
    {
        *("browser_open_tab", "browser_go_back", "browser_go_forward", "browser_focus_tab", "browser_scroll"),
        *("browser_hover_element", "browser_notify", "browser_release_tab", "browser_create_tab_group"),
        *("browser_add_tabs_to_group", "browser_remove_tabs_from_group", "browser_update_tab_group"),
    }
)
"""Tools that change nothing in a page and give nothing away."""
_DOING = {
    "run": "running",
    "put": "putting",
    "set": "setting",
    "drag": "dragging",
    "stop": "stopping",
    "trace": "tracing",
}
"""Verbs whose last letter is doubled."""


class ToolWords(NamedTuple):
    """What a sentence needs of a tool."""

    name: str
    title: str
    kind: str
    """Of its source: page, plugin, browser, upstream or hub."""
    source: str
    """Its source as a person knows it: a site, plugin or server."""


Act = tuple[ToolWords, Mapping[str, Any]]
"""A tool and its arguments."""


def phrase(
    tool: ToolWords, arguments: Mapping[str, Any], elements: Elements = _NOTHING, *, at: str = "", private: bool = False
) -> str:
    """What a call does, in words that follow "wants to"; `private` leaves out what was typed."""
    known = PHRASES.get(tool.name) if tool.kind in ("browser", "hub") else None
    if isinstance(known, str):
        return known
    if known is not None:
        return cut_phrase(known(Told(tool.name, arguments, elements, at, private)))
    given = "" if private else _in_words(arguments)
    return cut_phrase(f"{_use(tool)} with {given}") if given else _use(tool)


@lru_cache(maxsize=2000)
def _use(tool: ToolWords) -> str:
    """What a call of another's tool does."""
    of = f" of {clean(tool.source, 100)}" if tool.source else ""
    return f"use {quoted(tool.title or _plain(tool.name.removeprefix(f'{tool.source}_')))}{of}"


def cut_phrase(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def steps_of(
    tool: ToolWords, arguments: Mapping[str, Any], steps: Sequence[Act], elements: Elements = _NOTHING
) -> list[str]:
    """The steps of a batch or the fields of a form, in order; empty for a call that does one thing."""
    if len(steps) > 1:
        return [phrase(step, given, elements, at=f"{number}/") for number, (step, given) in enumerate(steps)]
    if tool.name == "browser_fill_form" and len(listed := fields(Told(tool.name, arguments, elements, "", False))) > 1:
        return listed
    return []


def sentence(agent: str, phrase: str) -> str:
    return f"{agent} wants to {phrase}"


def doing(phrase: str) -> str:
    """The phrase as what happens now: "clicking" instead of "click"."""
    verb, space, rest = phrase.partition(" ")
    first, dash, last = verb.rpartition("-")
    if last in _DOING:
        last = _DOING[last]
    elif last.endswith("e") and not last.endswith("ee"):
        last = f"{last[:-1]}ing"
    else:
        last = f"{last}ing"
    return f"{first}{dash}{last}{space}{rest}"


def batch_phrase(steps: Sequence[Act], *, private: bool) -> str:
    """A batch in one line: its first steps."""
    if len(steps) == 1:
        return phrase(*steps[0], private=private)
    listed = [cut(phrase(step, given, private=private), _STEP) for step, given in steps[:_MOST_STEPS]]
    more = f", and {len(steps) - _MOST_STEPS} more" if len(steps) > _MOST_STEPS else ""
    return cut_phrase(f"do {len(steps)} things: {', '.join(listed)}{more}")


def is_harmless(tool: str, *, read_only: bool) -> bool:
    """Whether a person may allow a call of a built-in tool by its sentence alone, without a look at the page."""
    return tool in _HARMLESS or (read_only and KINDS.get(tool, "") not in (*PRIVATE, ""))


def _in_words(arguments: Mapping[str, Any]) -> str:
    """The first arguments with their values."""
    shown = [
        f"{clean(_plain(name), 30)} {_value(name, value)}"
        for name, value in arguments.items()
        if name != "tabId" and value not in (None, "", [], {})
    ]
    more = f" and {len(shown) - _MOST_ARGUMENTS} more" if len(shown) > _MOST_ARGUMENTS else ""
    return f"{', '.join(shown[:_MOST_ARGUMENTS])}{more}"


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return f"({len(value)} {'entry' if len(value) == 1 else 'entries'})"
    if isinstance(value, Mapping):
        return f"({len(value)} {'value' if len(value) == 1 else 'values'})"
    shown = cut(redact_value(name, str(value)), _VALUE)
    return shown if isinstance(value, int | float) else f'"{shown}"'


def _plain(name: str) -> str:
    """A name such as `mcp__files__read_text` as words."""
    words = name.rpartition("__")[2].replace("_", " ").replace("-", " ")
    return _CAMEL.sub(lambda found: f"{found[1]} {found[2].lower()}", words).strip() or name
