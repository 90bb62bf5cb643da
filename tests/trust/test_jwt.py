"""The relay's tokens: which are valid, and one error for all others."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import InvalidToken, SetupError, UnknownSigningKey
from tabhub.trust.jwt import Claims, Rules, issue, read_keys, read_published, token_id, unverified, verify
from tests.relay.world import other_signature

NOW = 1_800_000_000.0
SECRET = b"s" * 32
RULES = Rules()
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
ED = ed25519.Ed25519PrivateKey.generate()
CLAIMS = {"user_id": "ann", "aud": "tabhub-relay", "exp": NOW + 60, "jti": "t1"}


def private_pem(key: Any) -> bytes:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem


def public_pem(key: Any) -> bytes:
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def jwk(key: Any, algorithm: str, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key()))
    return {**made, **more}


def signed(claims: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256", **headers: Any) -> str:
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers or None)


def judged(token: str, keys: bytes = SECRET, rules: Rules = RULES) -> Claims:
    return verify(token, read_keys(keys), NOW, rules)


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("file", "signer", "algorithm"),
    [
        (SECRET, SECRET, "HS256"),
        (SECRET + b"\n", SECRET, "HS256"),
        (public_pem(RSA), RSA, "RS256"),
        (public_pem(EC), EC, "ES256"),
        (public_pem(ED), ED, "EdDSA"),
        (json.dumps(jwk(EC, "ES256")).encode(), EC, "ES256"),
        (json.dumps({"keys": [jwk(RSA, "RS256", kid="a"), jwk(ED, "EdDSA", kid="b")]}).encode(), ED, "EdDSA"),
    ],
)
def test_tokens_of_every_algorithm_are_valid_with_their_key(file: bytes, signer: Any, algorithm: str) -> None:
    token = signed({**CLAIMS, "connection_url": "wss://relay.example"}, signer, algorithm)
    assert judged(token, file) == Claims("ann", NOW + 60, "t1", "wss://relay.example")


@pytest.mark.parametrize("key", [RSA, EC, ED, None])
def test_issued_tokens_are_valid(key: Any) -> None:
    file = private_pem(key) if key is not None else SECRET
    token = issue(
        read_keys(file)[0], "ann", now=NOW, ttl=60, token_id="x", rules=RULES, connection_url="wss://relay.example"
    )
    public = public_pem(key) if key is not None else SECRET
    assert judged(token, public) == Claims("ann", NOW + 60, "x", "wss://relay.example", issued=NOW)
    assert unverified(token)["claims"]["sub"] == "ann"


def test_the_user_is_user_id_or_else_sub() -> None:
    assert judged(signed({**CLAIMS, "sub": "other"})).user == "ann"
    claims = {key: value for key, value in CLAIMS.items() if key != "user_id"}
    assert judged(signed({**claims, "sub": "other"})).user == "other"


def without(*names: str) -> dict[str, Any]:
    return {key: value for key, value in CLAIMS.items() if key not in names}


def signed_bytes(claims: bytes, header: bytes = b'{"alg":"HS256","typ":"JWT"}') -> str:
    """A token with a correct signature of exactly these bytes."""
    head, body = (base64.urlsafe_b64encode(each).rstrip(b"=") for each in (header, claims))
    mac = hmac.new(SECRET, head + b"." + body, hashlib.sha256).digest()
    return b".".join((head, body, base64.urlsafe_b64encode(mac).rstrip(b"="))).decode()


BAD: dict[str, str] = {
    "claims in UTF-16": signed_bytes(json.dumps(CLAIMS).encode("utf-16")),
    "claims in UTF-16 without a mark": signed_bytes(json.dumps(CLAIMS).encode("utf-16-le")),
    "claims in UTF-32": signed_bytes(json.dumps(CLAIMS).encode("utf-32")),
    "claims after a byte order mark": signed_bytes(json.dumps(CLAIMS).encode("utf-8-sig")),
    "claims with a byte that is not UTF-8": signed_bytes(
        json.dumps({**CLAIMS, "x": "?"}).encode().replace(b"?", b"\xff")
    ),
    "a header in UTF-16": signed_bytes(json.dumps(CLAIMS).encode(), '{"alg":"HS256"}'.encode("utf-16")),
    "unsigned": f"{part({'alg': 'none'})}.{part(CLAIMS)}.",
    "unsigned, with a signature": f"{part({'alg': 'none'})}.{part(CLAIMS)}.AAAA",
    "expired": signed({**CLAIMS, "exp": NOW - 6}),
    "not yet valid": signed({**CLAIMS, "nbf": NOW + 6}),
    "issued in the future": signed({**CLAIMS, "iat": NOW + 60}),
    "without exp": signed(without("exp")),
    "exp as text": signed({**CLAIMS, "exp": "9"}),
    "exp beyond all times": signed({**CLAIMS, "exp": 10**12}),
    "nbf that is no time": signed({**CLAIMS, "nbf": True}),
    "without audience": signed(without("aud")),
    "wrong audience": signed({**CLAIMS, "aud": "other"}),
    "without a user": signed(without("user_id")),
    "an empty user": signed({**CLAIMS, "user_id": ""}),
    "a user that is no text": signed({**CLAIMS, "user_id": 7}),
    "a user with control characters": signed({**CLAIMS, "user_id": "a\nb"}),
    "wrong key": signed(CLAIMS, b"x" * 32),
    "a header with extensions": signed(CLAIMS, SECRET, "HS256", crit=["b64"]),
    "another algorithm": signed(CLAIMS, b"s" * 64, "HS512"),
    "an unknown role": signed({**CLAIMS, "tabhub_role": "admin"}),
    "a role that is no text": signed({**CLAIMS, "tabhub_role": ["agent"]}),
    "tampered": signed(CLAIMS)[:-4] + "AAAA",
    "not a token": "hello",
    "huge": "a" * 5000 + "." + "b" * 5000 + ".c",
    "empty": "",
    "a header key": signed(CLAIMS, RSA, "RS256", jwk=jwk(RSA, "RS256")),
    "a header address": signed(CLAIMS, RSA, "RS256", jku="https://evil.example/keys", x5u="https://evil.example/c"),
}


@pytest.mark.parametrize("name", BAD)
def test_every_other_token_is_refused_with_one_message(name: str) -> None:
    with pytest.raises(InvalidToken) as refused:
        judged(BAD[name])
    assert refused.value.text() == "Authentication failed: Invalid token"
    assert refused.value.code == -32000


def test_claims_of_exact_bytes_are_valid_in_utf8() -> None:
    assert judged(signed_bytes(json.dumps({**CLAIMS, "user_id": "änn"}, ensure_ascii=False).encode())).user == "änn"


@pytest.mark.parametrize("name", [name for name in BAD if "UTF" in name])
def test_a_token_that_is_not_utf8_is_not_shown_either(name: str) -> None:
    with pytest.raises(SetupError):
        unverified(BAD[name])


def test_a_public_key_is_not_a_shared_secret() -> None:
    pem = public_pem(RSA)
    head, body = part({"alg": "HS256", "typ": "JWT"}), part(CLAIMS)
    mac = hmac.new(pem, f"{head}.{body}".encode(), hashlib.sha256).digest()
    forged = f"{head}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    with pytest.raises(InvalidToken):
        judged(forged, pem)


def test_the_issuer_must_match_if_one_is_set() -> None:
    rules = Rules(issuer="https://id.example")
    assert judged(signed({**CLAIMS, "iss": "https://id.example"}), rules=rules).user == "ann"
    for claims in (CLAIMS, {**CLAIMS, "iss": "https://evil.example"}):
        with pytest.raises(InvalidToken):
            judged(signed(claims), rules=rules)
    assert judged(signed({**CLAIMS, "aud": ["x", "mine"]}), rules=Rules("mine")).user == "ann"


def test_a_key_id_chooses_the_key_and_an_unknown_one_has_its_own_error() -> None:
    keys = read_published(json.dumps({"keys": [jwk(EC, "ES256", kid="new")]}).encode())
    assert verify(signed(CLAIMS, EC, "ES256", kid="new"), keys, NOW, RULES).user == "ann"
    with pytest.raises(UnknownSigningKey):
        verify(signed(CLAIMS, EC, "ES256", kid="newer"), keys, NOW, RULES)


def test_published_keys_are_public_and_of_kinds_that_are_used() -> None:
    other = ec.generate_private_key(ec.SECP384R1())
    small = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).decode()}
    listed = [small, jwk(other, "ES384"), jwk(EC, "ES256", use="enc"), jwk(ED, "EdDSA", kid="k"), {"kty": "?"}]
    keys = read_published(json.dumps({"keys": listed}).encode())
    assert [(key.algorithm, key.kid, key.signing) for key in keys] == [("EdDSA", "k", None)]
    assert "Ed25519" not in repr(keys)


@pytest.mark.parametrize(
    "file",
    [
        b"",
        b"short",
        b"x" * 31,
        public_pem(ec.generate_private_key(ec.SECP384R1())),
        public_pem(rsa.generate_private_key(65537, 1024)),
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
        b'{"kty":"oct","k":"c2hvcnQ"}',
        b'{"keys":[]}',
        b'{"keys":7}',
        b"{",
    ],
)
def test_weak_broken_and_unused_keys_are_refused(file: bytes) -> None:
    with pytest.raises(SetupError):
        read_keys(file)


@pytest.mark.parametrize("user", ["", "x" * 257, "a\nb", "a\u202eb"])
def test_no_token_is_issued_to_an_invalid_user(user: str) -> None:
    with pytest.raises(SetupError, match="printable characters"):
        issue(read_keys(SECRET)[0], user, now=NOW, ttl=60, token_id="t", rules=Rules())


def test_a_public_key_cannot_issue() -> None:
    with pytest.raises(SetupError, match="only verify"):
        issue(read_keys(public_pem(ED))[0], "ann", now=NOW, ttl=1, token_id="x", rules=RULES)


def test_a_token_without_jti_is_identified_by_what_is_signed() -> None:
    token = signed(without("jti"), EC, "ES256")
    twin = other_signature(token)
    known, alike = judged(token, public_pem(EC)), judged(twin, public_pem(EC))
    assert token != twin
    assert known.token_id == alike.token_id == token_id(token, {})
    assert known.ids == alike.ids
    assert signed(without("jti"), EC, "ES256") != token  # signed again, it is the same token
    assert judged(signed(without("jti"), EC, "ES256"), public_pem(EC)).token_id == known.token_id
    later = signed({**without("jti"), "exp": NOW + 61}, EC, "ES256")
    assert not judged(later, public_pem(EC)).ids & known.ids


@pytest.mark.parametrize("listed", ["the token", "its twin"])
def test_a_fingerprint_of_version_0_1_names_every_signature_of_a_token(listed: str) -> None:
    token = signed(without("jti"), EC, "ES256")
    twin = other_signature(token)
    written = f"sha256-{hashlib.sha256((token if listed == 'the token' else twin).encode()).hexdigest()}"
    for each in (token, twin):
        assert written in judged(each, public_pem(EC)).ids
    plain = signed(without("jti"))
    assert f"sha256-{hashlib.sha256(plain.encode()).hexdigest()}" in judged(plain).ids


def test_the_same_jti_of_two_issuers_is_two_tokens() -> None:
    one, other = (judged(signed({**CLAIMS, "iss": f"https://{name}.example"})) for name in ("a", "b"))
    assert one.token_id != other.token_id
    assert judged(signed({**CLAIMS, "iss": "https://a.example", "iat": NOW})).token_id == one.token_id
    # An operator who revokes a jti, as version 0.1 wrote it, means it of any issuer.
    assert "t1" in one.ids & other.ids
    assert judged(signed(CLAIMS)).ids == {"t1"}


@pytest.mark.parametrize("jti", ["a b", "", " ", "x" * 129, "a\u202eb", 7, None])
def test_a_jti_that_no_revocation_could_name_does_not_identify_a_token(jti: Any) -> None:
    claims = {**CLAIMS, "jti": jti} if jti is not None else without("jti")
    head = part({"alg": "HS256", "typ": "JWT"})
    body = part(claims)
    mac = hmac.new(SECRET, f"{head}.{body}".encode(), hashlib.sha256).digest()
    found = judged(f"{head}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}")
    assert found.token_id == f"signed-sha256-{hashlib.sha256(f'{head}.{body}'.encode()).hexdigest()}"


_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_token_has_one_encoding(index: int) -> None:
    for padding in range(3):
        parts = signed({**CLAIMS, "x": "y" * padding}, **({"x": "y" * padding} if index == 0 else {})).split(".")
        given = parts[index]
        unused = {0: 0, 2: 4, 3: 2}[len(given) % 4]
        others = {f"{given}=", f"{given}==", f"{given}\n", f"{given} ", f"{given}A"}
        last = _ALPHABET.index(given[-1])
        others |= {given[:-1] + _ALPHABET[last + more] for more in range(1, 2**unused)}
        for other in others:
            spoilt = ".".join([*parts[:index], other, *parts[index + 1 :]])
            with pytest.raises(InvalidToken):
                judged(spoilt)
            if other != f"{given}A":
                with pytest.raises(SetupError, match="not a JWT"):
                    unverified(spoilt)


@given(st.binary(max_size=40), st.binary(min_size=1, max_size=40))
def test_every_canonical_encoding_is_read(first: bytes, second: bytes) -> None:
    encoded = [base64.urlsafe_b64encode(each).rstrip(b"=").decode() for each in (b"{}" + first, second, second)]
    with pytest.raises(InvalidToken) as refused:
        judged(".".join(encoded))
    assert refused.value.reason != "not a signed JWT"


@given(st.text(max_size=300))
def test_any_text_is_refused_without_another_exception(text: str) -> None:
    with pytest.raises(InvalidToken):
        judged(text)
