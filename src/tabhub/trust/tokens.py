"""Tokens in requests: the bearer token of a header, and the offer of a browser that opens its link.

Owns how they are parsed and compared. Knows nothing of where tokens are stored. Malformed tokens are rejected, and no
input is repeated in an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest, digest

from tabhub.limits import DEFAULTS

PANEL = "tabhub-panel"
"""The agent in the person's panel."""
CLI = "tabhub-cli"
"""The person's own command line."""
UNNAMED = "unnamed"
"""Agents without a token, while the setting `requireTokens` admits them."""
_BEARER = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*) *")
_BROWSER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CHALLENGE = re.compile(r"[0-9a-f]{32,128}")


def bearer(header: bytes | None, longest: int = DEFAULTS.max_token) -> bytes | None:
    """The token of an Authorization header; None if it is missing, of another scheme, malformed or too long."""
    if header is None or len(header) > longest + len(b"Bearer "):
        return None
    match = _BEARER.fullmatch(header)
    return match[1] if match else None


def same_token(a: bytes, b: bytes) -> bool:
    """Whether two tokens are equal, in constant time; not even the length leaks."""
    return compare_digest(sha256(a).digest(), sha256(b).digest())


def challenge_proof(key: bytes, port: int, challenge: str) -> str | None:
    """Proves that the listener on a port knows the key, without revealing it; None if the challenge is malformed.

    The port is included, so that the proof of another hub of this user on its own port is no proof for this one.
    """
    if not _CHALLENGE.fullmatch(challenge):
        return None
    return digest(key, f"tabhub hub {port} {challenge}".encode(), "sha256").hex()


@dataclass(frozen=True, slots=True)
class LinkOffer:
    """What a browser sends about itself when it opens its link."""

    protocol: str
    """The one to select in the answer."""
    key: bytes
    browser_id: str

    def __repr__(self) -> str:
        return f"LinkOffer(protocol={self.protocol!r}, browser_id={self.browser_id!r})"


def parse_link_offer(header: str) -> LinkOffer | None:
    """`tabhub, <key>, <browser id>` or `opentabs, <key>` in Sec-WebSocket-Protocol; None for anything else."""
    match [part.strip(" \t") for part in header.split(",")]:
        case ["tabhub", key, browser_id] if _BROWSER_ID.fullmatch(browser_id):
            return LinkOffer("tabhub", key.encode("utf-8", "replace"), browser_id)
        case ["tabhub" | "opentabs" as protocol, key]:
            return LinkOffer(protocol, key.encode("utf-8", "replace"), "default")
    return None
