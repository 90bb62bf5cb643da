"""One-time codes: the vectors of RFC 6238, and how keys are given."""

from __future__ import annotations

import base64

import pytest

from tabhub.errors import SetupError
from tabhub.trust.totp import Totp

SHA1, SHA256, SHA512 = b"1234567890" * 2, b"12345678901234567890123456789012", (b"1234567890" * 7)[:64]
VECTORS = [
    (59, "94287082", "46119246", "90693936"),
    (1111111109, "07081804", "68084774", "25091201"),
    (1111111111, "14050471", "67062674", "99943326"),
    (1234567890, "89005924", "91819424", "93441116"),
    (2000000000, "69279037", "90698825", "38618901"),
    (20000000000, "65353130", "77737706", "47863826"),
]


@pytest.mark.parametrize(("now", "sha1", "sha256", "sha512"), VECTORS)
def test_codes_are_those_of_the_rfc(now: int, sha1: str, sha256: str, sha512: str) -> None:
    assert Totp(SHA1, digits=8).code(now) == sha1
    assert Totp(SHA256, digits=8, algorithm="SHA256").code(now) == sha256
    assert Totp(SHA512, digits=8, algorithm="SHA512").code(now) == sha512


def test_keys_are_base32_with_spaces_or_an_address() -> None:
    key = base64.b32encode(SHA1).decode()
    assert Totp.parse(f"  {key[:4].lower()} {key[4:]} ") == Totp(SHA1)
    address = f"otpauth://totp/Shop:anna?secret={key}&issuer=Shop&digits=8&period=60&algorithm=SHA256"
    assert Totp.parse(address) == Totp(SHA1, 8, 60, "SHA256")
    assert Totp.parse(f"otpauth://totp/x?secret={key.lower()}").code(59) == "287082"


@pytest.mark.parametrize(
    "text",
    ["", "not base32!", "otpauth://hotp/x?secret=GEZDGNBV", "otpauth://totp/x", "otpauth://totp/x?secret=1"]
    + [f"otpauth://totp/x?secret=GEZDGNBV&{more}" for more in ("digits=20", "period=0", "period=x", "algorithm=MD5")],
)
def test_other_keys_are_refused_without_repeating_them(text: str) -> None:
    with pytest.raises(SetupError) as caught:
        Totp.parse(text)
    assert not text or text not in caught.value.text()
