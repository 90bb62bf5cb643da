"""What an agent may learn of: everything except the sites that the person keeps it off.

Owns the one test that every tool uses, how omissions are counted and reported, and how URLs are masked in texts. If no
rule blocks a site, there is one shared object, `EVERYTHING`, whose `active` is false, and callers look no further.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from tabhub.config.public_suffixes import cookie_domain
from tabhub.config.sites import SitePattern
from tabhub.errors import TabhubError, TabNotFound
from tabhub.trust.site_rules import SiteRules

MASK = "[a site the person keeps agents off]"
_BEGIN = r"(?:http|ws)s?:[/\\]"
_URL = re.compile(rf"(?:(?:blob|filesystem|view-source):)?{_BEGIN}(?:(?!{_BEGIN})[^\s\"'<>(){{}}|^`])+", re.IGNORECASE)
_TAIL = ".,;:!?]\u2026"
"""What a sentence puts after a URL."""
_WEB_PORTS = {"http": 80, "https": 443}
_NOTES = {
    "tab": ("1 tab is", "{} tabs are"),
    "frame": ("1 frame of the page is", "{} frames of the page are"),
    "entry": ("1 entry is", "{} entries are"),
}
T = TypeVar("T")
Omitted = tuple[str, object]
"""What was omitted: its kind, of _NOTES, and what makes it one."""


class Visibility:
    """What one agent may learn of."""

    def __init__(self, rules: SiteRules, agent: str | None) -> None:
        self._rules = rules
        self._agent = agent
        self.active = rules.any_blocked(agent)
        """Whether anything may be hidden."""

    def hides(self, url: str | None) -> bool:
        return self.active and self._rules.blocks(url, self._agent)

    def hides_host(self, host: str) -> bool:
        """Whether a host has a blocked site, whatever its scheme and port: cookies do not distinguish these."""
        return self.active and self._rules.blocks_host(host.strip(".[]").lower(), self._agent)

    def hides_near(self, host: str) -> bool:
        """Whether a blocked site may be of the same domain as a host, and so share cookies with it."""
        rules = self._rules.of_agent(self._agent) if self.active else ()
        blocked = {cookie_domain(rule.pattern.host) for rule in rules if rule.level == "block"}
        return cookie_domain(host) in blocked or "" in blocked

    def hides_text(self, text: str) -> bool:
        """Whether a text mentions a URL of a blocked site."""
        return self.active and any(self._names_hidden(found[0]) for found in _URL.finditer(text))

    def mask(self, text: str) -> str:
        """The text without URLs of blocked sites."""
        if not self.active or ":" not in text:
            return text
        return _URL.sub(self._masked, text)

    def _names_hidden(self, url: str) -> bool:
        """Whether a URL found in a text is hidden, with or without what follows it there."""
        return self.hides(url) or self.hides(url.rstrip(_TAIL))

    def _masked(self, found: re.Match[str]) -> str:
        url: str = found[0]
        return MASK + url[len(url.rstrip(_TAIL)) :] if self._names_hidden(url) else url

    def mask_values(self, value: Any) -> Any:
        """A JSON value without URLs of blocked sites."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, Mapping):
            return {name: self.mask_values(each) for name, each in value.items()}
        return [self.mask_values(each) for each in value] if isinstance(value, list | tuple) else value

    def mask_error(self, error: TabhubError) -> None:
        """Remove from an error what it says of blocked sites."""
        error.message = self.mask(error.message)
        if isinstance(error, TabNotFound):
            error.hint = "browser_list_tabs shows what is open."  # the usual hint has titles of tabs
        error.hint = error.hint and self.mask(error.hint)
        error.data = error.data and self.mask_values(error.data)

    @cached_property
    def rules(self) -> str:
        """Identifies the rules: what was read under others may hold more. Empty if nothing is hidden."""
        rules = ";".join(map(str, self._rules.of_agent(self._agent))) if self.active else ""
        return hashlib.sha256(rules.encode()).hexdigest()[:16] if rules else ""

    @cached_property
    def requests(self) -> Mapping[str, Any]:
        """The parameters of Network.setBlockedURLs that stop a page's requests to blocked sites.

        `urls` is for browsers that do not know `urlPatterns`; those that do ignore it.
        """
        rules = self._rules.of_agent(self._agent) if self.active else ()
        patterns = [
            {"urlPattern": pattern, "block": rule.level == "block"}
            for rule in rules
            for pattern in _url_patterns(rule.pattern)
        ]
        blocked = [rule.pattern for rule in rules if rule.level == "block" and rule.pattern.host]
        return {"urlPatterns": patterns, "urls": [url for pattern in blocked for url in _wildcards(pattern)]}

    def view(self) -> View:
        """For one call."""
        return View(self) if self.active else EVERYTHING


class View:
    """What one call may show, and what it has omitted."""

    __slots__ = ("_omitted", "_visibility", "active", "hides", "hides_host", "hides_near", "hides_text", "mask")

    def __init__(self, visibility: Visibility) -> None:
        self._visibility = visibility
        self._omitted: dict[Omitted, None] = {}
        self.active = visibility.active
        self.hides = visibility.hides
        self.hides_host = visibility.hides_host
        self.hides_near = visibility.hides_near
        self.hides_text = visibility.hides_text
        self.mask = visibility.mask

    @property
    def requests(self) -> Mapping[str, Any]:
        return self._visibility.requests

    @property
    def rules(self) -> str:
        return self._visibility.rules

    def mask_values(self, value: Any) -> Any:
        return self._visibility.mask_values(value) if self.active else value

    def keep(
        self, items: Iterable[T], hidden: Callable[[T], bool], key: Callable[[T], Omitted] | None = None
    ) -> list[T]:
        """The items that are not hidden. The others are counted: each once, if it has a key, over the whole call."""
        if not self.active:
            return list(items)
        kept: list[T] = []
        for item in items:
            if not hidden(item):
                kept.append(item)
            elif key is not None:
                self._omitted[key(item)] = None
            else:
                self._omitted["entry", object()] = None
        return kept

    def omit_frame(self, frame_id: str) -> None:
        """Count a frame once, however often the call comes across it."""
        self._omitted["frame", frame_id] = None

    def note(self) -> str:
        """What was omitted, for the agent; empty if nothing was."""
        counts = Counter(kind for kind, _ in self._omitted)
        parts = [_NOTES[kind][min(count, 2) - 1].format(count) for kind, count in counts.items()]
        listed = " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))
        return f"{listed} on a site that the person keeps agents off, and left out." if listed else ""


EVERYTHING = View(Visibility(SiteRules(), None))
"""Of an agent that is kept off no site."""


def _url_patterns(pattern: SitePattern) -> list[str]:
    """A pattern of sites in the syntax of the web's URLPattern."""
    schemes = [pattern.scheme] if pattern.scheme else ["http", "https"] if pattern.port in _WEB_PORTS.values() else []
    schemes = [each for scheme in schemes for each in (scheme, scheme.replace("http", "ws"))] or ["*"]
    port = pattern.port if pattern.port is not None else "*"
    hosts = [pattern.host or "*", *([f"*.{pattern.host}"] if pattern.host and pattern.below else [])]
    return [f"{scheme}://{host}:{port}/*" for scheme in schemes for host in hosts]


def _wildcards(pattern: SitePattern) -> list[str]:
    scheme = f"{pattern.scheme}*" if pattern.scheme else "*"
    port = f":{pattern.port}" if pattern.port is not None else "*"
    hosts = [pattern.host, *([f"*.{pattern.host}"] if pattern.below else [])]
    return [f"{scheme}://{host}{port}" if port == "*" else f"{scheme}://{host}{port}/*" for host in hosts]
