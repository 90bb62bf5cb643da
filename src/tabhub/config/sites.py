"""The `sites` section of the config file: what agents may do on which sites.

Owns the levels, the patterns that name sites, and the normal form of a host. Which rule decides on a URL is
trust.site_rules'.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal, cast, get_args

from tabhub.config.public_suffixes import is_public_suffix
from tabhub.config.setting_types import mapping, shown
from tabhub.errors import SetupError

SiteLevel = Literal["block", "read", "ask", "act"]

SITE_LEVELS: tuple[SiteLevel, ...] = get_args(SiteLevel)
EVERYONE = "*"
"""In a rule's levels, the one of agents without a level of their own; as a pattern, every site."""

_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
"""The schemes of sites, and what each counts as: a WebSocket belongs to the site of its server."""
_LONGEST = 300
_LONGEST_HOST = 253
_PATTERN = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*)://)?(.*)", re.DOTALL)
_HOST = re.compile(r"[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\]")
_NOT_IN_HOSTS = re.compile(r"[\x00-\x20#%/:<>?@\[\\\]^|\x7f]")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_IGNORED = re.compile("[\u00ad\u034f\u180b-\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]")
"""What browsers drop from host names."""
_HINT = (
    "Write a host, with `*.` for its subdomains too, and a scheme or port if only those are meant: bank.example, "
    "*.bank.example, https://bank.example:8443, or * for every site."
)


@dataclass(frozen=True, slots=True)
class SitePattern:
    """The sites a rule covers: `[scheme://]host[:port]`; without scheme or port, those of any."""

    scheme: str | None
    host: str
    """In normal form; empty for every site."""
    below: bool
    """Whether subdomains of the host are covered too."""
    port: int | None

    def __str__(self) -> str:
        host = self.host or EVERYONE
        return "".join(
            (
                f"{self.scheme}://" if self.scheme else "",
                f"*.{host}" if self.host and self.below else host,
                f":{self.port}" if self.port is not None else "",
            )
        )

    @classmethod
    def parse(cls, text: str) -> SitePattern:
        """SetupError if the text does not name a site, or names one that no person can mean."""
        found = _PATTERN.fullmatch(text) if len(text) <= _LONGEST else None
        scheme, authority = (found[1], found[2]) if found else (None, "")
        authority = authority.removesuffix("/")
        if scheme is not None and scheme.lower() not in _SCHEMES:
            raise _invalid(text, f"sites have no scheme {scheme}; use http or https, or leave it out")
        if not authority:
            raise _invalid(text, "it has no host")
        if "@" in authority:
            raise _invalid(text, "it has a user name or password")
        if re.search(r"[/?#\\]", authority):
            raise _invalid(text, "it has a path, but a rule is for a whole site")
        split = split_port(authority)
        if split is None:
            raise _invalid(text, "its port is not a number from 1 to 65535")
        name, port = split
        site_scheme = _SCHEMES[scheme.lower()] if scheme is not None else None
        if name == EVERYONE:
            return cls(site_scheme, "", below=True, port=port)
        host = normal_host(name.removeprefix("*."))
        if host is None or not _HOST.fullmatch(host):
            raise _invalid(text, "its host is not valid")
        below = name.startswith("*.")
        if below and (reason := _too_wide(host)):
            raise _invalid(text, reason)
        return cls(site_scheme, host, below, port)


@dataclass(frozen=True, slots=True)
class SiteSetting:
    """One entry of the section."""

    pattern: SitePattern
    written: str
    """The pattern as the file has it."""
    levels: Mapping[str, SiteLevel]
    """By agent, or EVERYONE."""

    def value(self) -> Any:
        return self.levels[EVERYONE] if self.levels.keys() == {EVERYONE} else dict(self.levels)


def read(values: Mapping[str, Any]) -> tuple[SiteSetting, ...]:
    """The section, parsed; two spellings of one pattern are an error, because only one of them could count."""
    entries: dict[SitePattern, SiteSetting] = {}
    for written, value in values.items():
        entry = SiteSetting(SitePattern.parse(written), written, levels(written, value))
        if known := entries.get(entry.pattern):
            raise SetupError(
                f"sites has the same site twice, as {known.written!r} and {written!r}.", hint="Remove one of them."
            )
        entries[entry.pattern] = entry
    return tuple(entries.values())


def levels(pattern: str, value: Any) -> dict[str, SiteLevel]:
    """The levels of one entry: a level for everyone, or an object of levels by agent."""
    if isinstance(value, str):
        return {EVERYONE: site_level(f"sites.{pattern}", value)}
    own = mapping(f"sites.{pattern}", value)
    if not own:
        raise SetupError(f"sites.{pattern} has no levels.", hint=f"Remove it: tabhub site remove '{pattern}'")
    return {agent: site_level(f"sites.{pattern}.{agent}", level) for agent, level in own.items()}


def with_level(values: Mapping[str, Any], text: str, agent: str | None, level: SiteLevel | None) -> dict[str, Any]:
    """The section with the level of an agent (None: of everyone) on a pattern set, or removed."""
    pattern, who = SitePattern.parse(text), agent if agent is not None else EVERYONE
    known = next((entry for entry in read(values) if entry.pattern == pattern), None)
    written = known.written if known is not None else str(pattern)
    own = dict(known.levels) if known is not None else {}
    if level is not None:
        own[who] = level
    elif own.pop(who, None) is None:
        whose = f" for {agent}" if agent is not None else ""
        raise SetupError(f"There is no rule for {pattern}{whose}.", hint="`tabhub site list` shows the rules.")
    others = {name: value for name, value in values.items() if name != written}
    return others if not own else {**values, written: SiteSetting(pattern, written, own).value()}


def site_level(path: str, value: Any) -> SiteLevel:
    if value not in SITE_LEVELS:
        raise SetupError(f"{path} must be block, read, ask or act, not {shown(value)}.")
    return cast("SiteLevel", value)


def site_scheme(scheme: str) -> str | None:
    """The scheme of the site that a URL of this scheme belongs to: http, https, or None."""
    return _SCHEMES.get(scheme.lower())


@lru_cache(maxsize=4096)
def normal_host(host: str) -> str | None:
    """A host as browsers serialize it, without trailing dots; None if no browser accepts it.

    Lower case, internationalized names as punycode, IPv4 addresses in dotted form, IPv6 addresses in brackets.
    """
    if host.startswith("["):
        return _ipv6(host)
    text = unicodedata.normalize("NFKC", _IGNORED.sub("", host).replace("\u3002", "."))
    # Character by character: lower() of a whole word treats a final sigma differently.
    text = unicodedata.normalize("NFKC", "".join(character.lower() for character in text)).rstrip(".")
    if not text or len(text) > _LONGEST_HOST or _NOT_IN_HOSTS.search(text):
        return None
    if _NUMBER.fullmatch(text.rpartition(".")[2]):
        return _ipv4(text)
    try:
        labels = (label if label.isascii() else f"xn--{label.encode('punycode').decode()}" for label in text.split("."))
        return ".".join(labels)
    except UnicodeError:
        return None


def split_port(authority: str) -> tuple[str, int | None] | None:
    """The host and port of an authority without user; None if the port is invalid."""
    bracket = authority.rfind("]") + 1
    if authority.startswith("[") and not bracket:
        return authority, None  # not a host either
    host, _, port = authority[bracket:].partition(":")
    if bracket and host:
        return None
    if not port:
        return authority[:bracket] + host, None
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536):
        return None
    return authority[:bracket] + host, int(port)


def _ipv6(host: str) -> str | None:
    inner = host[1:-1]
    try:
        return f"[{IPv6Address(inner).compressed}]" if host.endswith("]") and "%" not in inner else None
    except ValueError:
        return None


def _ipv4(host: str) -> str | None:
    """An address as browsers read it: one to four numbers, each decimal, octal or hexadecimal."""
    parts = host.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return None
    *first, last = numbers
    if any(number > 255 for number in first) or last >= 256 ** (5 - len(numbers)):
        return None
    value = last + sum(number * 256 ** (3 - place) for place, number in enumerate(first))
    return str(IPv4Address(value))


def _number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text[2:] or "0", 16)
    return int(text, 8 if len(text) > 1 and text[0] == "0" else 10)


def _too_wide(host: str) -> str | None:
    """Why subdomains of a host cannot be meant: they are sites of strangers, or there are none."""
    if host.startswith("[") or host.rpartition(".")[2].isdigit():
        return "an IP address has no subdomains"
    if is_public_suffix(host):
        return f"it covers the sites of many owners below .{host}; name the site's own domain, or use * for every site"
    return None


def _invalid(text: str, reason: str) -> SetupError:
    return SetupError(f"{shown(text)} is not a site: {reason}.", hint=_HINT)
