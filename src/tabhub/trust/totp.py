"""Time-based one-time codes (RFC 6238), from a base32 key or an otpauth: URI as sites show it.

Pure: the time is passed in.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from tabhub.errors import SetupError

_HASHES = {"SHA1": hashlib.sha1, "SHA256": hashlib.sha256, "SHA512": hashlib.sha512}
_HINT = "Give the key as base32 text, or the otpauth://totp/… address behind the site's QR code."


@dataclass(frozen=True, slots=True)
class Totp:
    """A key and how codes are made with it."""

    key: bytes
    digits: int = 6
    period: int = 30
    algorithm: str = "SHA1"

    @classmethod
    def parse(cls, text: str) -> Totp:
        """SetupError if the text is neither base32 nor a valid URI; the error never repeats the text."""
        if not text.lower().startswith("otpauth:"):
            return cls(_decoded(text))
        parts = urlsplit(text)
        given = {name.lower(): values[0] for name, values in parse_qs(parts.query).items()}
        if parts.netloc.lower() != "totp" or "secret" not in given:
            raise SetupError("The otpauth: address is not one of a time-based code with a key.", hint=_HINT)
        algorithm = given.get("algorithm", "SHA1").upper().replace("-", "")
        digits, period = given.get("digits", "6"), given.get("period", "30")
        valid = algorithm in _HASHES and digits in ("6", "7", "8") and period.isascii() and period.isdecimal()
        if not valid or not 5 <= int(period[:5]) <= 300:
            raise SetupError("The otpauth: address has an algorithm, length or period that is not supported.")
        return cls(_decoded(given["secret"]), int(digits), int(period), algorithm)

    def code(self, now: float) -> str:
        counter = struct.pack(">Q", int(now) // self.period)
        digest = hmac.new(self.key, counter, _HASHES[self.algorithm]).digest()
        offset = digest[-1] & 0x0F
        number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
        return str(number % 10**self.digits).zfill(self.digits)


def _decoded(text: str) -> bytes:
    plain = "".join(text.split()).replace("-", "").rstrip("=").upper()
    try:
        key = base64.b32decode(plain + "=" * (-len(plain) % 8))
    except (binascii.Error, ValueError):
        raise SetupError("The key is not base32 text.", hint=_HINT) from None
    if not key:
        raise SetupError("The key is empty.", hint=_HINT)
    return key
