"""Which elements of a page a person can act on, found by a script in the page, and which of them a snapshot has."""

from __future__ import annotations

import json
import re
from collections import Counter

KINDS = {
    **dict.fromkeys(("link",), "link"),
    **dict.fromkeys(("button", "menuitem", "tab", "switch", "summary", "DisclosureTriangle"), "button"),
    **dict.fromkeys(
        ("textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "slider", "spinbutton", "file"), "field"
    ),
}
"""The kind of an element, by its role."""

TRUTH = r"""
const hidden = "[aria-hidden=true], [inert]";
const shown = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length && !e.closest(hidden);
const inside = (e) => (e.innerText ?? "").trim() || e.textContent.trim() || e.querySelector("img")?.alt;
const written = (e) => inside(e) || e.value || e.placeholder || e.title || "";
const name = (e) => (e.getAttribute("aria-label") || written(e)).replace(/\s+/g, " ").trim().slice(0, 80);
const found = [];
const add = (kind, selector) => {
  for (const e of document.querySelectorAll(selector))
    if (shown(e)) found.push([kind, kind === "field" ? "" : name(e)]);
};
add("link", "a[href], area[href]");
add("button", "button, summary, input[type=button], input[type=submit], input[type=reset]");
add("field", "input:not([type=hidden], [type=button], [type=submit], [type=reset]), select, textarea");
return JSON.stringify(found.slice(args.from, args.from + args.most));
"""
"""The body of a function that lists a part of the visible links, buttons and fields, with their names."""

_TABHUB = re.compile(r'^[ \-~+>]*([a-z]+)(?: ("(?:[^"\\]|\\.)*"))? \[ref=', re.MULTILINE)
_PLAYWRIGHT = re.compile(r"^ *- '?([a-z]+)(?: (\".*?\"))?[^\n]*?\[ref=\w+\]", re.MULTILINE)
_DEVTOOLS = re.compile(r"^ *uid=\S+ (\w+)(?: (\".*?\"))?", re.MULTILINE)
_CLIPPED = 40
"""As many characters of a name are compared: servers shorten long ones in different ways."""


def listed(snapshot: str, server: str) -> list[tuple[str, str]]:
    """The elements that a snapshot offers to act on: kind and name."""
    pattern = _TABHUB if server == "Tabhub" else _DEVTOOLS if "DevTools" in server else _PLAYWRIGHT
    found = []
    for role, quoted in pattern.findall(snapshot):
        if role in KINDS:
            found.append((KINDS[role], _plain(quoted)))
    return found


def _plain(quoted: str) -> str:
    try:
        return " ".join(str(json.loads(quoted or '""')).split())
    except ValueError:
        return quoted.strip('"')


def missing(truth: list[tuple[str, str]], shown: list[tuple[str, str]], *, names: bool) -> list[tuple[str, str]]:
    """What the page has and the snapshot does not; by kind and name, or only by kind."""

    def key(one: tuple[str, str]) -> tuple[str, str]:
        kind, name = one
        return (kind, name[:_CLIPPED].strip().lower() if names and kind != "field" else "")

    left = Counter(map(key, truth)) - Counter(map(key, shown))
    return sorted(left.elements())
