"""The relay's tokens (JWT): which keys sign them, which claims they must have, and one error for every invalid token.

Owns verification of tokens and parsing of keys. Time and bytes are passed in. A key determines its algorithm; a token's
header only chooses among the configured keys, and keys, URLs or certificates in it are ignored.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import jwt
import orjson
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from tabhub.errors import InvalidToken, SetupError, UnknownSigningKey

AUDIENCE = "tabhub-relay"
ROLE = "tabhub_role"
"""The claim that restricts a token to one kind of client; other software uses `role` for its own kinds."""
ROLES = ("browser", "agent")
LEEWAY = 5.0
"""Seconds two clocks may differ."""
_SHORTEST_SECRET = 32
_SHORTEST_RSA = 2048
_LONGEST_USER = 256
_BASE64URL = r"(?=[A-Za-z0-9_-])(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-][AQgw]|[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048])?"
"""Without padding, and the unused bits of the last character are zero: there is one encoding of each part."""
_JWT = re.compile(rf"{_BASE64URL}\.{_BASE64URL}\.{_BASE64URL}")
_JTI = re.compile(r"[!-~]{1,128}")
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_PRIVATE = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey)


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a valid token."""

    user: str
    expires: float
    token_id: str
    """Identifies what is signed, whatever the signature: two valid signatures of the same claims are one token."""
    connection_url: str | None = None
    other_ids: frozenset[str] = frozenset()
    """Further ids by which a revocation may name it."""
    issued: float | None = None
    role: str | None = None
    """What it is for, `browser` or `agent`; None for both."""

    def for_role(self, role: str) -> Claims:
        """These claims, if they are for a client of this kind; raises InvalidToken otherwise."""
        if self.role not in (None, role):
            raise InvalidToken(f"for a client of kind {self.role}")
        return self

    @property
    def ids(self) -> frozenset[str]:
        return self.other_ids | {self.token_id}


@dataclass(frozen=True, slots=True)
class Key:
    """A key and the one algorithm it is for."""

    algorithm: str
    verifying: Any
    signing: Any = None
    kid: str | None = None

    def __repr__(self) -> str:
        return f"Key(algorithm={self.algorithm!r}, kid={self.kid!r})"


@dataclass(frozen=True, slots=True)
class Rules:
    """The claims a token must have."""

    audience: str = AUDIENCE
    issuer: str | None = None
    longest: int = 8192


def read_keys(data: bytes) -> tuple[Key, ...]:
    """The keys in a file: PEM (public or private), a JWK or JWKS, or else a raw secret of at least 32 bytes."""
    text = data.strip()
    if text.startswith(b"-----BEGIN"):
        return (_pem(text),)
    if text.startswith(b"{"):
        return _json_keys(text, secrets=True)
    secret = data.rstrip(b"\r\n")
    return (_secret(secret, None),)


def read_published(data: bytes) -> tuple[Key, ...]:
    """The public keys of a JWKS URL; unsupported kinds are skipped."""
    return _json_keys(data, secrets=False)


def verify(token: str, keys: Iterable[Key], now: float, rules: Rules) -> Claims:
    """The claims of a token, or InvalidToken."""
    if len(token) > rules.longest or not _JWT.fullmatch(token):
        raise InvalidToken("not a signed JWT")
    if not _strict_json(token):
        raise InvalidToken("its header or claims are not JSON in UTF-8")
    try:
        header = jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise InvalidToken("its header cannot be read") from None
    if "crit" in header:
        raise InvalidToken("its header has extensions")
    kid = header.get("kid")
    all_keys = [key for key in keys if key.algorithm == header.get("alg")]
    candidates = [key for key in all_keys if kid is None or key.kid is None or key.kid == kid]
    if not candidates:
        raise UnknownSigningKey("no key for its algorithm and key id")
    for key in candidates:
        claims = _signed_with(token, key)
        if claims is not None:
            return _checked(token, claims, now, rules)
    raise UnknownSigningKey("its signature is wrong") if kid is None else InvalidToken("its signature is wrong")


def _strict_json(token: str) -> bool:
    """Whether header and claims are JSON in UTF-8; the library also reads UTF-16 and UTF-32."""
    try:
        for part in token.split(".")[:2]:
            orjson.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except orjson.JSONDecodeError:
        return False
    return True


def _signed_with(token: str, key: Key) -> dict[str, Any] | None:
    options: Any = {
        "verify_signature": True,
        **dict.fromkeys(("verify_exp", "verify_nbf", "verify_iat", "verify_aud", "verify_iss"), False),
        **dict.fromkeys(("verify_sub", "verify_jti"), False),
    }
    try:
        return jwt.decode(token, key.verifying, algorithms=[key.algorithm], options=options)
    except (jwt.PyJWTError, ValueError, TypeError):
        return None


def _checked(token: str, claims: Mapping[str, Any], now: float, rules: Rules) -> Claims:
    expires = _time(claims, "exp")
    if expires is None:
        raise InvalidToken("without exp")
    if now >= expires + LEEWAY:
        raise InvalidToken("expired")
    not_before = _time(claims, "nbf")
    if not_before is not None and now < not_before - LEEWAY:
        raise InvalidToken("not valid yet")
    issued = _time(claims, "iat")
    if issued is not None and now < issued - LEEWAY:
        raise InvalidToken("issued in the future")
    audience = claims.get("aud")
    if rules.audience not in (audience if isinstance(audience, list) else [audience]):
        raise InvalidToken("for another audience")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("of another issuer")
    user = claims.get("user_id", claims.get("sub"))
    if not isinstance(user, str) or not 0 < len(user) <= _LONGEST_USER or not user.isprintable():
        raise InvalidToken("without a user")
    url = claims.get("connection_url")
    if url is not None and not isinstance(url, str):
        raise InvalidToken("connection_url is not a text")
    ident = token_id(token, claims)
    role = claims.get(ROLE)
    if role not in (None, *ROLES):
        raise InvalidToken(f"{ROLE} is neither browser nor agent")
    return Claims(user, expires, ident, url, other_ids(token, claims) - {ident}, issued, role)


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e12:
        raise InvalidToken(f"{name} is not a time")
    return float(value)


def token_id(token: str, claims: Mapping[str, Any]) -> str:
    """Its issuer and `jti`, else a hash of what is signed. An id has no spaces, so that a revocation can name it."""
    if (jti := _jti(claims)) is None:
        return "signed-sha256-" + sha256(token.rpartition(".")[0].encode()).hexdigest()
    if (issuer := claims.get("iss")) is None:
        return jti
    return "jti-sha256-" + sha256(json.dumps([issuer, jti]).encode()).hexdigest()


def other_ids(token: str, claims: Mapping[str, Any]) -> frozenset[str]:
    """Its `jti` of any issuer, which an operator may revoke; without one, the fingerprints that version 0.1 wrote.

    Those cover the signature, and with (r, s) an ES256 signature is also valid as (r, n - s).
    """
    if (jti := _jti(claims)) is not None:
        return frozenset({jti})
    signed, _, encoded = token.rpartition(".")
    signatures = {encoded}
    raw = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    if len(raw) == 64 and 0 < (s := int.from_bytes(raw[32:])) < _P256_ORDER:
        twin = raw[:32] + (_P256_ORDER - s).to_bytes(32)
        signatures.add(urlsafe_b64encode(twin).rstrip(b"=").decode())
    return frozenset(f"sha256-{sha256(f'{signed}.{each}'.encode()).hexdigest()}" for each in signatures)


def _jti(claims: Mapping[str, Any]) -> str | None:
    jti = claims.get("jti")
    return jti if isinstance(jti, str) and _JTI.fullmatch(jti) else None


def unverified(token: str) -> dict[str, Any]:
    """Header and claims without verification, for display or for a client to find its relay URL in."""
    if not _JWT.fullmatch(token):
        raise SetupError(
            "This is not a JWT.", hint="A token has three parts in base64url without padding, separated by dots."
        )
    if not _strict_json(token):
        raise SetupError("This is not a JWT.", hint="Header and claims of a token are JSON in UTF-8.")
    try:
        parts = jwt.decode_complete(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError) as error:
        raise SetupError(f"This is not a JWT: {error}.", hint="A token has three parts separated by dots.") from None
    return {"header": parts["header"], "claims": parts["payload"]}


def issue(
    key: Key,
    user: str,
    *,
    now: float,
    ttl: float,
    token_id: str,
    rules: Rules,
    connection_url: str | None = None,
    role: str | None = None,
) -> str:
    if key.signing is None:
        raise SetupError("This key can only verify tokens.", hint="Use the private key, or the shared secret.")
    if not 0 < len(user) <= _LONGEST_USER or not user.isprintable():
        raise SetupError(f"A user has 1 to {_LONGEST_USER} printable characters.")
    claims: dict[str, Any] = {"sub": user, "user_id": user, "aud": rules.audience, "jti": token_id}
    claims |= {"iat": int(now), "exp": int(now + ttl)}
    if rules.issuer is not None:
        claims["iss"] = rules.issuer
    if connection_url is not None:
        claims["connection_url"] = connection_url
    if role is not None:
        claims[ROLE] = role
    headers = {"kid": key.kid} if key.kid is not None else None
    return jwt.encode(claims, key.signing, algorithm=key.algorithm, headers=headers)


def _secret(secret: bytes, kid: str | None) -> Key:
    if len(secret) < _SHORTEST_SECRET:
        raise SetupError(
            f"The key has {len(secret)} bytes; a shared secret needs {_SHORTEST_SECRET} or more.",
            hint="Make one with: openssl rand -hex 32",
        )
    return Key("HS256", secret, secret, kid)


def _pem(text: bytes) -> Key:
    try:
        if b"PRIVATE KEY" in text:
            return _asymmetric(load_pem_private_key(text, None), None)
        return _asymmetric(load_pem_public_key(text), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise SetupError(
            f"The PEM key cannot be read: {type(error).__name__}.",
            hint="It must be an unencrypted RSA, P-256 or Ed25519 key.",
        ) from None


def _asymmetric(key: Any, kid: str | None) -> Key:
    public = key.public_key() if isinstance(key, _PRIVATE) else key
    signing = key if public is not key else None
    if isinstance(public, rsa.RSAPublicKey):
        if public.key_size < _SHORTEST_RSA:
            raise SetupError(f"The RSA key has {public.key_size} bits; it needs {_SHORTEST_RSA} or more.")
        return Key("RS256", public, signing, kid)
    if isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1):
        return Key("ES256", public, signing, kid)
    if isinstance(public, ed25519.Ed25519PublicKey):
        return Key("EdDSA", public, signing, kid)
    raise SetupError("This kind of key is not supported.", hint="Use RSA, EC P-256, Ed25519, or a secret.")


def _json_keys(data: bytes, *, secrets: bool) -> tuple[Key, ...]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise SetupError("The key is not valid JSON.") from None
    listed = value.get("keys") if isinstance(value, dict) and "keys" in value else [value]
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise SetupError("A JWKS needs a list of keys under `keys`.")
    found = [key for item in listed if (key := _jwk(item, secrets=secrets)) is not None]
    if not found:
        raise SetupError("It contains no usable key.", hint="Use RSA, EC P-256 or Ed25519 keys.")
    return tuple(found)


def _jwk(item: dict[str, Any], *, secrets: bool) -> Key | None:
    """One key; None for one with another purpose. `secrets` says whether shared secrets are accepted."""
    if item.get("use") not in (None, "sig"):
        return None
    kid = item.get("kid") if isinstance(item.get("kid"), str) else None
    try:
        material: Any = jwt.PyJWK(item).key
        if item.get("kty") == "oct":
            return _secret(material, kid) if secrets else None
        key = _asymmetric(material, kid)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError) as error:
        if secrets:
            raise SetupError(f"A key in it cannot be read: {type(error).__name__}.") from None
        return None
    except SetupError:
        if secrets:
            raise
        return None
    if item.get("alg") not in (None, key.algorithm):
        return None
    return key if secrets else Key(key.algorithm, key.verifying, None, kid)
