"""Which addresses external servers may have: public ones, and this machine where the person named it.

Owns the check of a host and of every address its name resolves to. A server on a private or link-local address, or a
name that resolves to one, is refused unless the person allowed that host (`upstreamHosts`). Names are resolved here and
the address found is the one connected to: a name cannot resolve to one address for the check and another for the
connection.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Collection

from tabhub.errors import AddressBlocked, UpstreamOffline
from tabhub.wire import urls as addresses

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
LookUp = Callable[[str, int], Awaitable[list[str]]]
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PUBLIC_IPV6 = ipaddress.ip_network("2000::/3")
"""All public IPv6 addresses."""
_SPECIAL = ipaddress.ip_network("192.0.0.0/24")
"""Reserved for protocols; some clouds serve a machine's secrets there."""


class AddressGuard:
    """The check of hosts against what the person allowed."""

    def __init__(self, allowed: Callable[[], Collection[str]] = tuple, look_up: LookUp | None = None) -> None:
        self._allowed = allowed
        self.look_up: LookUp = look_up or _look_up
        """The addresses of a name; the system's resolver by default."""

    def check(self, host: str, address: str, *, local: bool = True) -> None:
        """Raise AddressBlocked for an address of a host that must not be reached.

        `local` says whether this machine may be meant: where the person named it, not where a server elsewhere did.
        """
        ip = _plain(ipaddress.ip_address(address.partition("%")[0]))
        if self.is_allowed(host, ip) or _is_public(ip):
            return
        named = ip.is_loopback and addresses.names_this_machine(host)
        if named and local:
            return
        kind = "this machine, which a server elsewhere named" if named else _kind(ip)
        lead = "is" if host == address else f"leads to {address},"
        raise AddressBlocked(
            f"The host {host[:200]} {lead} {kind}, which servers may not have.",
            hint=f"If it is a server you trust, allow it: tabhub config set upstreamHosts {host[:200]}",
        )

    def is_allowed(self, host: str, ip: IpAddress) -> bool:
        for entry in self._allowed():
            if entry.lower() == host.lower():
                return True
            try:
                if ip in ipaddress.ip_network(entry, strict=False):
                    return True
            except ValueError:
                continue  # another name
        return False

    async def resolve(self, host: str, port: int, *, local: bool = True) -> list[str]:
        """The addresses of a host, all checked; one blocked address blocks the host."""
        try:
            found = [str(ipaddress.ip_address(host.strip("[]")))]
        except ValueError:  # a name
            try:
                found = await self.look_up(host, port)
            except (OSError, UnicodeError) as error:
                why = getattr(error, "strerror", None) or str(error)
                raise UpstreamOffline(f"The host {host[:200]} is not found: {why}.") from None
        for address in found:
            self.check(host, address, local=local)
        return found


async def _look_up(host: str, port: int) -> list[str]:
    facts = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in facts))


def _plain(ip: IpAddress) -> IpAddress:
    """The IPv4 address embedded in an IPv6 one, if any."""
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped
        if ip.sixtofour is not None:
            return ip.sixtofour
        if ip in _NAT64:
            return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip


def _is_public(ip: IpAddress) -> bool:
    """Whether it is a public address; some Python versions do not know every reserved range."""
    known = ip in _PUBLIC_IPV6 if isinstance(ip, ipaddress.IPv6Address) else ip not in _SPECIAL
    return known and ip.is_global and not ip.is_multicast


def _kind(ip: IpAddress) -> str:
    if ip.is_loopback:
        return "this machine under another name"
    if ip.is_link_local:
        return "a link-local address"
    if ip.is_private or ip in _SPECIAL or (isinstance(ip, ipaddress.IPv6Address) and ip.is_site_local):
        return "a private address"
    return "not a public address"
