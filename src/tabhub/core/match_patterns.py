"""Match patterns: which URLs a site plugin works on, as browsers write them (`https://*.example.com/app/*`).

Owns parsing a pattern, matching a URL and telling which of two patterns is more specific. Knows no plugins and no tabs.
A host without a port stands for every port, as in browsers; `*` as scheme means http and https.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tabhub.config.public_suffixes import is_local, is_public_suffix
from tabhub.wire import urls as addresses

_PATTERN = re.compile(r"(\*|https?)://([^/?#\s@]+)(/[^#\s]*)")
_HOST = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*|\[[0-9a-f:.]+\]|\*")
_LONGEST = 1_000
_MOST_STARS = 5
_ALL = "<all_urls>"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One parsed pattern."""

    scheme: str
    host: str
    port: str
    path: str

    def matches(self, url: str) -> bool:
        found = _parts(url)
        if found is None:
            return False
        scheme, host, port, path = found
        if scheme not in (("http", "https") if self.scheme == "*" else (self.scheme,)):
            return False
        if self.port not in ("", "*", port):
            return False
        below = self.host.removeprefix("*.")
        wide = below != self.host and (host == below or host.endswith(f".{below}"))
        return (self.host in ("*", host) or wide) and has_pieces(path, self.path.split("*"))

    @property
    def specificity(self) -> tuple[bool, int, bool, int, bool]:
        """A sort key: the greater, the fewer URLs it matches."""
        exact = not self.host.startswith("*")
        return exact, len(self.host), bool(self.port), len(self.path.replace("*", "")), self.scheme != "*"


@lru_cache(maxsize=4096)
def parse(text: str) -> Pattern | None:
    """None if the text is not a pattern."""
    if text == _ALL:
        return Pattern("*", "*", "", "/*")
    found = _PATTERN.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None:
        return None
    host, port = _host_port(found[2].lower())
    if not _HOST.fullmatch(host) or not (port in ("", "*") or (port.isascii() and port.isdigit() and len(port) < 6)):
        return None
    return Pattern(found[1], host, port, found[3])


def problem(text: str) -> str | None:
    """Why a plugin may not claim this pattern, or None if it may."""
    shown = repr(text[:100])
    if text == _ALL or (pattern := parse(text)) is None:
        broad = "is every site there is" if text == _ALL else "is not a match pattern such as https://*.example.com/*"
        return f"the pattern {shown} {broad}"
    if pattern.host == "*" or (pattern.host.startswith("*.") and "." not in pattern.host[2:]):
        return f"the pattern {shown} means every site, or every site of a top-level domain; name the site's own domain"
    below = pattern.host.removeprefix("*.")
    if below != pattern.host and is_public_suffix(below):
        return f"the pattern {shown} means the sites of many owners below {below}; name the site's own domain"
    if pattern.path.count("*") > _MOST_STARS:
        return f"the pattern {shown} has more than {_MOST_STARS} stars in its path"
    return None


def local_host(text: str) -> str | None:
    """The host of a pattern if it is this machine's or its network's."""
    pattern = parse(text)
    host = pattern.host.removeprefix("*.") if pattern is not None else "*"
    return host if host != "*" and is_local(host) else None


def matches(text: str, url: str) -> bool:
    """Whether a URL matches a pattern; an invalid pattern matches nothing."""
    pattern = parse(text)
    return pattern is not None and pattern.matches(url)


def any_matches(patterns: Iterable[str], url: str, without: Iterable[str] = ()) -> bool:
    """Whether a URL matches one of the patterns and none of those in `without`."""
    return any(matches(each, url) for each in patterns) and not any(matches(each, url) for each in without)


def of_address(url: str) -> str | None:
    """The pattern for the site of a URL, or None if it is not a web URL."""
    parts = addresses.split(url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    pattern = f"*://{host}:{parts.port}/*" if parts.port is not None else f"*://{host}/*"
    return pattern if parse(pattern) is not None else None


def covers_only(patterns: Iterable[str], sites: Callable[[str], bool]) -> bool:
    """Whether patterns match nothing but certain sites; `sites` tests a URL."""
    urls = [url for pattern in patterns for url in sample_urls(pattern)]
    return bool(urls) and all(map(sites, urls))


def sample_urls(text: str) -> list[str]:
    """URLs that stand for the sites of a pattern: for each scheme its host and, where it has them, a subdomain."""
    pattern = parse(text)
    if pattern is None:
        return []
    port = f":{pattern.port}" if pattern.port not in ("", "*") else ""
    host = pattern.host.removeprefix("*.")
    hosts = [host] if host == pattern.host else [host, f"any.{host}"]
    schemes = ("http", "https") if pattern.scheme == "*" else (pattern.scheme,)
    return [f"{scheme}://{each}{port}/" for scheme in schemes for each in hosts]


def has_pieces(text: str, pieces: Sequence[str]) -> bool:
    """Whether a text is these pieces in this order, with anything between them; in linear time."""
    first, *others = pieces
    if not others:
        return text == first
    *middle, last = others
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _parts(url: str) -> tuple[str, str, str, str] | None:
    """Scheme, host, port (as written, or the scheme's default) and the rest without fragment."""
    scheme, there, rest = url.partition("://")
    scheme = scheme.lower()
    if not there or scheme not in ("http", "https"):
        return None
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    path = rest[len(authority) :].partition("#")[0]
    host, port = _host_port(authority.rpartition("@")[2].lower())
    if not host:
        return None
    return scheme, host, port or ("80" if scheme == "http" else "443"), path if path.startswith("/") else f"/{path}"


def _host_port(authority: str) -> tuple[str, str]:
    if authority.startswith("["):
        host, _, rest = authority.partition("]")
        return f"{host}]", rest.removeprefix(":")
    host, _, port = authority.partition(":")
    return host, port
