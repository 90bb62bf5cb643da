"""Names of page tools: from a site, a tab and a page's own tool name to what agents call it, and back.

Owns `PageKey`, the labels made of origins, the numbers of tabs and the table of names (seed 000's ToolNamer). A name is
`website_tool_<domain>_tab<N>_<tool>`, or without the tab `website_tool_<domain>_<tool>`. Where that would be ambiguous
(unusual hosts and tool names, too long, or in use) a hash of the key is added, the same in every run. Knows no tabs,
and of tools only their names.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

PREFIX, PROMPT_PREFIX = "website_tool_", "website_prompt_"
LONGEST = 64
_HASH = 10
_SUFFIX = re.compile(r"_h[0-9a-f]{10,}$")
_TAB = re.compile(r"_tab[0-9]+_")
_PLAIN_TOOL = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN_HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)*")
_SITES_PER_TAB = 200


@dataclass(frozen=True, slots=True)
class PageKey:
    """What one name means: a tool of a site, in one of its tabs (`number`) or in the best one (None).

    `frame` is set only where another frame of the same site in the same tab has the name already.
    """

    origin: str
    number: int | None
    tool: str
    frame: int | None = None


@lru_cache(maxsize=4096)
def site_of(origin: str) -> tuple[str, bool]:
    """The label of an origin, and whether it identifies the origin.

    The usual case is https on the default port, and plain http on this machine or with a port, as developers use it.
    """
    if origin == "file://":
        return "file", True
    parts = urlsplit(origin)
    host, port = parts.hostname or "", parts.port
    host_label = re.sub(r"[^a-z0-9-]+", "_", host.lower()).strip("_") or "site"
    local = host == "localhost" or host.endswith(".localhost") or host.startswith("127.")
    usual = parts.scheme == ("https" if port is None and not local else "http")
    label = host_label if port is None else f"{host_label}_{port}"
    # A host name never ends in a number, so `name_8080` can only be a port; `file` is the label of files.
    plain = bool(_PLAIN_HOST.fullmatch(host)) and usual and label != "file"
    return label, plain


def domain_of(origin: str) -> str:
    """The site as a person knows it: its host, and its port if it has one."""
    return origin.partition("://")[2] or origin.partition(":")[0]


def _parts(key: PageKey) -> tuple[str, str, str, bool]:
    """Site, tab and tool as parts of a name, and whether they identify the key."""
    site, plain = site_of(key.origin)
    tab = "" if key.number is None else f"_tab{key.number}"
    tool = key.tool
    if not _PLAIN_TOOL.fullmatch(tool):
        tool = re.sub(r"[^A-Za-z0-9_-]+", "_", tool).strip("_") or "tool"
        plain = False
    # The first `_tab<N>_` must be the tab's, and a suffix that looks like a hash must be one.
    ambiguous = _TAB.search(f"_{site}_" if tab else f"_{site}_{tool}") or _SUFFIX.search(f"_{tool}")
    return site, tab, tool, plain and not ambiguous and key.frame is None


def plain_name(key: PageKey) -> str | None:
    """The name without a hash, or None if that would be ambiguous."""
    site, tab, tool, plain = _parts(key)
    name = f"{PREFIX}{site}{tab}_{tool}"
    return name if plain and len(name) <= LONGEST else None


def hashed_name(key: PageKey, digits: int = _HASH) -> str:
    """The name with a hash of the whole key, as readable as the length allows."""
    site, tab, tool, _ = _parts(key)
    frame = "" if key.frame is None else str(key.frame)
    number = "" if key.number is None else str(key.number)
    text = "\0".join((key.origin, number, frame, key.tool)).encode("utf-8", "surrogatepass")
    suffix = f"_h{hashlib.sha256(text).hexdigest()[:digits]}"
    room = LONGEST - len(PREFIX) - len(tab) - 1 - len(suffix)
    tool = tool[: max(room - len(site), room // 2, 1)]
    return f"{PREFIX}{site[: max(room - len(tool), 1)]}{tab}_{tool}{suffix}"


def prompt_name(origin: str, prompt: str) -> str:
    """What agents call a page's prompt, in any tab; the same for no other."""
    key = PageKey(origin, None, prompt)
    return PROMPT_PREFIX + (plain_name(key) or hashed_name(key)).removeprefix(PREFIX)


class ToolNamer:
    """The names in use: each means one key, and each key has one name while it is in use."""

    def __init__(self) -> None:
        self._names: dict[PageKey, str] = {}
        self._used: set[str] = set()

    def name(self, key: PageKey) -> str:
        """The name of a key; with a hash if the plain one is in use, as names without a tab may be by two sites."""
        known = self._names.get(key)
        if known is not None:
            return known
        name = plain_name(key)
        digits = _HASH
        while name is None or name in self._used:
            name = hashed_name(key, digits)
            digits += 4
        self._names[key] = name
        self._used.add(name)
        return name

    def release(self, key: PageKey) -> None:
        """The key is no longer in use; its name may be given to another."""
        self._used.discard(self._names.pop(key, ""))


class TabNumbers:
    """Small numbers for the tabs of each site: the lowest free one, kept until the tab closes."""

    def __init__(self) -> None:
        self._sites: dict[str, dict[int, int]] = {}
        self._tabs: dict[int, dict[str, None]] = {}

    def number(self, origin: str, tab_id: int) -> int:
        """The number of a tab at a site; http and https of one host share numbers, because their names look alike."""
        site = site_of(origin)[0]
        numbers = self._sites.setdefault(site, {})
        number = numbers.get(tab_id)
        if number is None:
            used = set(numbers.values())
            number = numbers[tab_id] = next(n for n in range(1, len(used) + 2) if n not in used)
        visited = self._tabs.setdefault(tab_id, {})
        visited.pop(site, None)
        visited[site] = None
        if len(visited) > _SITES_PER_TAB:  # the memory of one tab's sites is bounded
            self._free(next(iter(visited)), tab_id)
        return number

    def closed(self, tab_id: int) -> None:
        for site in list(self._tabs.get(tab_id, ())):
            self._free(site, tab_id)

    def _free(self, site: str, tab_id: int) -> None:
        numbers = self._sites[site]
        del numbers[tab_id]
        if not numbers:
            del self._sites[site]
        visited = self._tabs[tab_id]
        del visited[site]
        if not visited:
            del self._tabs[tab_id]
