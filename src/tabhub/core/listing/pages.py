"""Pages of a listing: their encoded form and their cursors.

A cursor is the sort key of the last entry on the page before, so that changes do not shift pages.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from tabhub.errors import InvalidParams

LIST_TTL_MS = 1000
"""How long a stateless client may keep a listing: a page's tools must be seen within a second."""


def encode_page(name: str, entries: Iterable[bytes], last_key: str | None, *, stateless: bool) -> bytes:
    """The result of a list request; `last_key` is the last entry's sort key if more entries follow."""
    tail = b""
    if last_key is not None:
        tail = b',"nextCursor":"%b"' % base64.urlsafe_b64encode(last_key.encode("utf-8", "surrogatepass"))
    if stateless:
        tail += b',"ttlMs":%d,"cacheScope":"private"' % LIST_TTL_MS
    return b'{"%b":[%b]%b}' % (name.encode(), b",".join(entries), tail)


def decode_cursor(cursor: str, prefixes: tuple[str, ...]) -> str:
    """The sort key in a cursor; every key of the listing starts with one of the prefixes."""
    try:
        key = base64.urlsafe_b64decode(cursor.encode()).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        key = ""
    if not key.startswith(prefixes):
        raise InvalidParams("The cursor is not one of this list.", hint="Start again without a cursor.")
    return key
