"""Where a request may come from: the checks of its Host and Origin headers.

Owns the two allow-lists; everything else is refused. A web page can make a browser send requests here, but it cannot
choose these two headers: Host stops DNS rebinding, Origin stops every page and every extension but our own. Knows
nothing of HTTP beyond the header values passed in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

EXTENSION_ID = "fbfngjfcbbkgoepkeecjnefoncaahigp"
"""The id that the key in the extension's manifest gives it in every browser."""

EXTENSION_ORIGIN = f"chrome-extension://{EXTENSION_ID}".encode()

_NAMES = (b"127.0.0.1", b"localhost", b"[::1]")
_HTTP_PORT = 80


@lru_cache(maxsize=16)
def allowed_hosts(port: int) -> frozenset[bytes]:
    """The Host headers, in lower case, that name this machine and this port."""
    hosts = {b"%b:%d" % (name, port) for name in _NAMES}
    # For the default port, and only there, clients leave the number out.
    return frozenset(hosts.union(_NAMES) if port == _HTTP_PORT else hosts)


def host_allowed(host: bytes | None, port: int) -> bool:
    """Whether a Host header names this machine and this port. Pass None if there is not exactly one such header."""
    return host is not None and host.lower() in allowed_hosts(port)


def origin_allowed(origins: Sequence[bytes]) -> bool:
    """Whether the Origin headers of a request allow it: none at all, or our own extension's once."""
    return not origins or (len(origins) == 1 and origins[0] == EXTENSION_ORIGIN)
