"""Addresses as text: taken apart without surprises, and whether they name this machine."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit


def split(url: str) -> SplitResult | None:
    """The parts of an address, or None if it is none: then even looking at its host or its port would fail."""
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError:
        return None
    return parts


def plain(parts: SplitResult) -> bool:
    """Whether an address says where, and nothing of a user, a query or a place in a page."""
    return not (parts.query or parts.fragment or parts.username)


def names_this_machine(host: str) -> bool:
    """Whether a host says in itself that it is this machine: nothing sent there passes a network."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
