"""Site rules: what agents may do on a site, as the person set it.

Owns how the site of a URL is found, and which rule decides. Where the rules apply, and what happens to a call that one
forbids, is decided elsewhere. Tables are built once per configuration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from tabhub.config.settings import Config
from tabhub.config.sites import EVERYONE, SiteLevel, SitePattern, normal_host, site_scheme, split_port
from tabhub.errors import SetupError

Level = SiteLevel

_BLANK = "".join(map(chr, range(33)))
_UNSEEN = str.maketrans("", "", "\t\n\r")
_INNER = re.compile(r"(?:blob|filesystem|view-source):", re.IGNORECASE)
"""URLs whose origin is that of the URL they contain."""
_WEB = re.compile(r"(https?|wss?):[/\\]*([^/\\?#]*)", re.IGNORECASE)
_FILE = re.compile(r"file:", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}


class Site(NamedTuple):
    """Where a document or file comes from."""

    scheme: str
    """http, https or file."""
    host: str
    port: int | None

    def __str__(self) -> str:
        port = "" if self.port == _PORTS.get(self.scheme) else f":{self.port}"
        return f"{self.scheme}://{self.host}{port}"


class SiteRule(NamedTuple):
    """One rule: what an agent, or everyone, may do on the sites of a pattern."""

    pattern: SitePattern
    agent: str | None
    """None: every agent without a level of its own in this pattern."""
    level: Level

    def covers(self, site: Site, agent: str | None) -> bool:
        """Whether the rule is for this scheme, port and agent; its host has been compared."""
        pattern = self.pattern
        return (
            self.agent in (None, agent)
            and pattern.scheme in (None, site.scheme)
            and (pattern.port is None or pattern.port == site.port)
        )

    def __str__(self) -> str:
        return f"{self.pattern}: {self.level}" + (f" (for {self.agent})" if self.agent is not None else "")


_STRICTNESS = {"block": 0, "read": 1, "ask": 2, None: 3, "act": 4}


def strictest(rules: Iterable[SiteRule | None]) -> SiteRule | None:
    """What decides on a call that is about several sites; None stands for one without a rule."""
    return min(rules, key=lambda rule: _STRICTNESS[rule.level if rule is not None else None], default=None)


class SiteRules:
    """The rules of one configuration. The most specific one decides: an exact host before wildcards, a longer wildcard
    before a shorter one, all before `*`; then one with a scheme; then one with a port; then the agent's own level."""

    __slots__ = ("_blocks_agents", "_blocks_everyone", "_exact", "_wide", "empty", "rules")

    def __init__(self, rules: Iterable[SiteRule] = ()) -> None:
        self.rules = tuple(sorted(rules, key=_specificity, reverse=True))
        self.empty = not self.rules
        """Whether there are no rules, so that callers need not look anything up."""
        self._exact = _by_host(rule for rule in self.rules if not rule.pattern.below)
        self._wide = _by_host(rule for rule in self.rules if rule.pattern.below)
        blocking = [rule.agent for rule in self.rules if rule.level == "block"]
        self._blocks_everyone = None in blocking
        self._blocks_agents = frozenset(blocking)

    @classmethod
    def parse(cls, config: Config) -> SiteRules:
        return cls(
            SiteRule(entry.pattern, None if agent == EVERYONE else agent, level)
            for entry in config.sites
            for agent, level in entry.levels.items()
        )

    def rule(self, url: str | None, agent: str | None) -> SiteRule | None:
        """The rule that decides on a URL for an agent (the name of its token); None if none does.

        URLs without a site of their own (`about:blank`, `data:`) have no rule: pass their creator's.
        """
        if self.empty or url is None or (site := site_of(url)) is None:
            return None
        return next((rule for rule in self._candidates(site.host) if rule.covers(site, agent)), None)

    def level(self, url: str | None, agent: str | None) -> Level | None:
        rule = self.rule(url, agent)
        return rule.level if rule is not None else None

    def blocks(self, url: str | None, agent: str | None) -> bool:
        return self.level(url, agent) == "block"

    def any_blocked(self, agent: str | None) -> bool:
        """Whether any rule may block a site for this agent; if not, nothing needs to be looked at."""
        return self._blocks_everyone or agent in self._blocks_agents

    def of_agent(self, agent: str | None) -> list[SiteRule]:
        """The rules that count for an agent, the most specific first."""
        return [rule for rule in self.rules if rule.agent in (None, agent)]

    def blocks_host(self, host: str, agent: str | None) -> bool:
        """Whether a site of this host is blocked, on any scheme and port."""
        for rule in self._candidates(host):
            if rule.agent in (None, agent):
                if rule.level == "block":
                    return True
                if rule.pattern.scheme is None and rule.pattern.port is None:
                    return False
        return False

    def _candidates(self, host: str) -> Iterator[SiteRule]:
        """The rules for a host, the most specific first."""
        yield from self._exact.get(host, ())
        above = host
        while above:
            yield from self._wide.get(above, ())
            above = above.partition(".")[2]
        yield from self._wide.get("", ())


def _specificity(rule: SiteRule) -> tuple[bool, int, bool, bool, bool]:
    pattern = rule.pattern
    return (
        not pattern.below,
        len(pattern.host),
        pattern.scheme is not None,
        pattern.port is not None,
        rule.agent is not None,
    )


def _by_host(rules: Iterable[SiteRule]) -> Mapping[str, list[SiteRule]]:
    found: dict[str, list[SiteRule]] = {}
    for rule in rules:
        found.setdefault(rule.pattern.host, []).append(rule)
    return found


@lru_cache(maxsize=4096)
def site_of(url: str) -> Site | None:
    """The site of a URL, parsed like browsers do; None if it has none. `blob:` and the like count as their inner URL,
    WebSockets as their server's site, and files together as one site without a host, which only `*` covers."""
    text = url.translate(_UNSEEN).strip(_BLANK)
    while inner := _INNER.match(text):
        text = text[inner.end() :].lstrip(_BLANK)
    web = _WEB.match(text)
    if web is None:
        return Site("file", "", None) if _FILE.match(text) else None
    scheme, split = site_scheme(web[1]), split_port(web[2].rpartition("@")[2])
    host = _decoded_host(split[0]) if split is not None else None
    if scheme is None or split is None or host is None:
        return None
    return Site(scheme, host, split[1] or _PORTS[scheme])


def pattern_of(url: str) -> SitePattern | None:
    """The pattern that a person means by "this site": its subdomains too, where they belong to it."""
    site = site_of(url)
    if site is None or not site.host:
        return None
    host = site.host.removeprefix("www.")
    try:
        return SitePattern.parse(f"*.{host}")
    except SetupError:  # an address, or a name below which there are other sites
        port = f":{site.port}" if site.port != _PORTS[site.scheme] else ""
        return SitePattern.parse(f"{site.host}{port}")


def _decoded_host(host: str) -> str | None:
    try:
        return normal_host(unquote_to_bytes(host).decode())
    except UnicodeError:
        return None
