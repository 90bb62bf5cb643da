"""URLs: parsing without exceptions, and whether a host is this machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit


def split(url: str) -> SplitResult | None:
    """The parts of a URL, or None if it is invalid: reading its host or port would raise."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError:
        return None
    return parts


def plain(parts: SplitResult) -> bool:
    """Whether a URL has no user, query or fragment."""
    return not (parts.query or parts.fragment or parts.username)


def names_this_machine(host: str) -> bool:
    """Whether a host name is a loopback name or address, so that nothing sent there leaves the machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
