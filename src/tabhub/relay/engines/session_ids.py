"""Session ids that name the node of their session, so that any node can pass a request on to it.

Owns their form: the node and a random part, signed with what all nodes of a relay share, the credentials of their bus.
To clients they mean nothing.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from hashlib import sha256

_RANDOM = 18
_MAC = 12
_LONGEST = 400


class SessionIds:
    """Makes and reads the ids of one relay."""

    def __init__(self, node: str, shared: bytes) -> None:
        self._node = node
        self._key = sha256(b"tabhub-session-id:" + shared).digest()

    def new(self) -> str:
        signed = self._node.encode() + b" " + secrets.token_bytes(_RANDOM)
        return urlsafe_b64encode(signed + self._mac(signed)).rstrip(b"=").decode()

    def node_of(self, session_id: str) -> str | None:
        """The node of a session; None for an id that this relay has not made."""
        if len(session_id) > _LONGEST or not session_id.isascii():
            return None
        try:
            raw = urlsafe_b64decode(session_id + "=" * (-len(session_id) % 4))
        except (Error, ValueError):
            return None
        signed, mac = raw[:-_MAC], raw[-_MAC:]
        if not hmac.compare_digest(mac, self._mac(signed)):
            return None
        return signed[: -_RANDOM - 1].decode("ascii", "replace")

    def _mac(self, signed: bytes) -> bytes:
        return hmac.digest(self._key, signed, "sha256")[:_MAC]
