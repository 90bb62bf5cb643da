"""Origins: which site a URL belongs to, as browsers decide it, and names for documents that belong to none."""

from __future__ import annotations

import re
from functools import lru_cache

from tabhub.config.public_suffixes import cookie_domain
from tabhub.trust.dataflow import UNKNOWN
from tabhub.wire import urls as addresses

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LEADING = "".join(map(chr, range(33)))
_UNSEEN = str.maketrans("", "", "\t\n\r")
_WEB = re.compile(r"(https?):[/\\]*([^/\\?#]*)", re.IGNORECASE)
_WRAPPER = re.compile(r"(?:blob|filesystem|view-source):", re.IGNORECASE)
"""Schemes whose URLs contain the one that their document's origin is from."""
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):(//[^/?#]*)?", re.IGNORECASE)
BLANK = "about:blank"
"""The site of a tab that has shown nothing yet."""


def _clean(url: str) -> str:
    """A URL as browsers parse it: they ignore control characters."""
    return url.lstrip(_LEADING).translate(_UNSEEN)


@lru_cache(maxsize=4096)
def origin_of(url: str) -> str | None:
    """The origin of a web URL, `file://` for files, None for pages that have none of their own.

    Parsed like browsers do: they accept any number of slashes of either kind, and ignore control characters.
    """
    text = _clean(url)
    while wrapper := _WRAPPER.match(text):
        text = text[wrapper.end() :]
    web = _WEB.match(text)
    if web is None:
        return "file://" if text[:5].lower() == "file:" else None
    parts = addresses.split(f"{web[1].lower()}://{web[2].rpartition('@')[2]}")
    if parts is None or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    suffix = "" if parts.port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{parts.port}"
    return f"{parts.scheme}://{host}{suffix}"


def name_of(url: str) -> str:
    """The name of a document without an origin: `chrome://newtab`, or `unknown (data:)` if any page can make it."""
    found = _SCHEME.match(_clean(url))
    scheme = found[1].lower() if found is not None else "about"
    return f"{scheme}:{found[2]}" if found is not None and found[2] else f"{UNKNOWN}({scheme}:)"


@lru_cache(maxsize=4096)
def browser_origin(url: str) -> str:
    """The origin of a page as browsers write it, or its scheme if it has none; empty where browsers differ."""
    text = _clean(url).lower()
    scheme = text.partition(":")[0]
    if scheme in ("http", "https", "blob", "data", "about"):
        return origin_of(url) or f"{scheme}:"
    return ""


def share_cookies(one: str | None, other: str | None) -> bool:
    """Whether two origins may share cookies: their hosts can set them for the same domain."""
    hosts = [parts.hostname if (parts := addresses.split(each or "")) is not None else None for each in (one, other)]
    return None not in hosts and len({cookie_domain(str(host)) for host in hosts}) == 1
