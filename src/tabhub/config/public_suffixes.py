"""Which part of a host name one owner registers: `shop.co.uk` of `www.shop.co.uk`, by the Public Suffix List.

Owns what counts as one site, what shares cookies, and which hosts belong to this machine or its network. Two names
below a public suffix (`co.uk`, `github.io`) have different owners. The list is data of the package publicsuffixlist;
nothing is downloaded.
"""

from __future__ import annotations

import ipaddress
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

_LOCAL_ENDINGS = ("localhost", "local", "internal", "home", "home.arpa", "lan", "corp")
_NOT_REGISTERED = frozenset({*_LOCAL_ENDINGS, "test", "example", "invalid"})
"""Names below which nobody registers domains."""


@cache
def load_list() -> PublicSuffixList:
    """The list, parsed once; that takes a moment."""
    from publicsuffixlist import PSLFILE, PublicSuffixList  # not needed by most commands

    with open(PSLFILE, encoding="utf-8") as file:  # noqa: PTH123 - the pure layers use this module, and not pathlib
        lines = file.read().splitlines()
    rules = [rule for line in lines if (rule := line.partition(" ")[0]) and not rule.startswith("//")]
    # Most are ASCII, for which encoding takes longer than everything else.
    encoded = [rule.encode("idna").decode() for rule in rules if not rule.isascii()]
    return PublicSuffixList(rules + encoded, accept_encoded_idn=False)


def is_public_suffix(host: str) -> bool:
    """Whether names below this host belong to different owners. A top-level domain that is not listed may be new."""
    host = host.lower().removesuffix(".")
    return host not in _NOT_REGISTERED and not _is_address(host) and load_list().is_public(host)


def registrable_domain(host: str) -> str:
    """The part of a host name that its owner registered; an address, a public suffix or `localhost` is its own."""
    host = host.lower().removesuffix(".")
    return "localhost" if host.endswith(".localhost") else cookie_domain(host)


def cookie_domain(host: str) -> str:
    """The widest domain for which pages of a host can set cookies; each name below `localhost` has its own."""
    host = host.lower().removesuffix(".")
    return host if _is_address(host) else load_list().privatesuffix(host) or host


@lru_cache(maxsize=1024)
def site_of(origin: str) -> str:
    """The site of an origin: its registrable domain, whatever its scheme and port; `file` for files."""
    return registrable_domain(urlsplit(origin).hostname or "") or origin.partition(":")[0]


def is_local(host: str) -> bool:
    """Whether a host is this machine or in its network: what runs there differs from place to place."""
    host = host.lower().removesuffix(".")
    if _is_address(host):
        address = ipaddress.ip_address(host.strip("[]"))
        return address.is_private or address.is_loopback or address.is_link_local
    return "." not in host or any(host.endswith(f".{ending}") for ending in _LOCAL_ENDINGS)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True
