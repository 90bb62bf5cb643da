"""The elements that a call names, and how a sentence refers to them.

Owns which arguments name elements, and the words for an element that was found, was not found, or was not looked for.
Finding them is calls.approvals'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import orjson

from tabhub.trust.redact import clean, redact
from tabhub.trust.secret_names import is_secret_name

TARGET_NAMES = ("selector", "ref", "text", "role", "label")
"""The parameters that name an element."""
FOCUS: Mapping[str, Any] = {}
"""The target of a call that names no element and acts on the one with the focus."""
Problem = Literal["", "missing", "several", "unchecked"]
_LONGEST = 80
_REF = re.compile(r"(f[0-9]{1,6})?[a-z][0-9]{1,7}")
_LABEL = re.compile(r'(\S+)(?: ("(?:[^"\\\x00-\x1f]|\\.)*"))?')
_PROBLEMS: Mapping[str, str] = {
    "missing": "not on the page now",
    "several": "several on the page match",
    "unchecked": "the page could not be checked",
}
_PLAIN = frozenset({"button", "link", "menuitem", "tab", "option", "textbox", "searchbox", "combobox", "generic", ""})
"""Roles that the sentence needs not say where there is a name."""
_ROLES = {"textbox": "text field", "searchbox": "search field", "combobox": "list", "generic": "element", "": "element"}


class NamedElement(NamedTuple):
    """An element by what a person sees of it."""

    role: str = ""
    name: str = ""
    secret: bool = False
    """Whether it is a field for secrets."""
    problem: Problem = ""
    """Why nothing is known of it."""


Elements = Mapping[str, NamedElement]
"""The elements of a call by the place of their target in its arguments."""


def targets(tool: str, arguments: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The targets that a built-in tool's arguments name, each with its place in them."""
    match tool:
        case "browser_fill_form":
            for number, field in enumerate(arguments.get("fields", ())):
                if isinstance(field, Mapping) and (target := _target(field)):
                    yield f"{at}{number}.", target
        case "browser_drag":
            for end in ("from", "to"):
                given = arguments.get(end)
                if isinstance(given, str):
                    yield f"{at}{end}.", {"ref" if _REF.fullmatch(given) else "selector": given}
                elif isinstance(given, Mapping) and (target := _target(given)):
                    yield f"{at}{end}.", target
        case "browser_type_text":
            yield at, _target(arguments, but="text") or FOCUS
        case "browser_press_key":
            yield at, _target(arguments) or FOCUS
        case "browser_select_option":
            if target := _target(arguments, but="label"):
                yield at, target
            elif isinstance(arguments.get("label"), str):
                yield at, {"label": arguments["label"]}
        case _:
            if target := _target(arguments):
                yield at, target


def _target(arguments: Mapping[str, Any], but: str = "") -> dict[str, Any]:
    return {name: arguments[name] for name in TARGET_NAMES if name != but and arguments.get(name)}


def refer(target: Mapping[str, Any], element: NamedElement | None) -> str:
    """The element in a sentence: its name in quotes, with its role where that matters."""
    if element is None or element.problem:
        shown = _wanted(target)
        return f"{shown} ({_PROBLEMS[element.problem]})" if element is not None else shown
    role = _ROLES.get(element.role, element.role)
    if not element.name:
        return f"{'an' if role[0] in 'aeiou' else 'a'} {role} without a name"
    shown = quoted(element.name)
    return shown if element.role in _PLAIN else f"the {role} {shown}"


def _wanted(target: Mapping[str, Any]) -> str:
    """What the agent called the element."""
    for name in ("text", "label"):
        if isinstance(given := target.get(name), str):
            return quoted(given)
    if "ref" in target:
        return f"element {clean(str(target['ref']), 20)}"
    if "selector" in target:
        return f"element {clean(str(target['selector']), _LONGEST)}"
    return f"the {clean(str(target['role']), 40)}" if "role" in target else "the focused element"


def labelled(label: str) -> NamedElement:
    """An element as tools call it: `button "Send" [e12]`."""
    found = _LABEL.match(label)
    if found is None:
        return NamedElement(problem="unchecked")
    try:
        return NamedElement(found[1], orjson.loads(found[2]) if found[2] else "")
    except ValueError:
        return NamedElement(found[1])


def takes_secrets(target: Mapping[str, Any], element: NamedElement | None) -> bool:
    """Whether what is typed there must not be shown."""
    if element is not None and not element.problem:
        return element.secret or is_secret_name(element.name)
    return any(is_secret_name(str(target[name])) for name in ("label", "selector", "text") if name in target)


def quoted(text: str, most: int = _LONGEST) -> str:
    return f'"{cut(redact(text), most)}"'


def cut(text: str, most: int) -> str:
    """The text as one safe line of at most so many characters."""
    line = clean(" ".join(text[: most * 8].split()), most * 8)
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
