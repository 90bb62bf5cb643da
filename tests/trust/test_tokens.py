"""Tokens in headers: parsed strictly and compared in constant time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.tokens import LinkOffer, bearer, parse_link_offer, same_token

SECRET = "ab" * 32


@pytest.mark.parametrize("scheme", [b"Bearer ", b"bearer ", b"BEARER ", b"Bearer   "])
def test_the_scheme_is_read_in_any_case(scheme: bytes) -> None:
    assert bearer(scheme + SECRET.encode()) == SECRET.encode()


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        b"Basic " + SECRET.encode(),
        b"Bearer" + SECRET.encode(),
        b" Bearer abc",
        b"Bearer\tabc",
        b"Bearer abc def",
        b"Bearer abc,def",
        b"Bearer abc\r\nX: y",
        b"Bearer \xff\xfe",
        b"Bearer " + b"a" * 513,
        b"Bearer " + b" " * 600 + b"a",
    ],
)
def test_a_malformed_header_has_no_token(header: bytes | None) -> None:
    assert bearer(header) is None


def test_the_longest_token_is_a_setting() -> None:
    assert bearer(b"Bearer " + b"a" * 512) == b"a" * 512
    assert bearer(b"Bearer abcdef", longest=5) is None


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_tokens_are_the_same_only_if_equal(a: bytes, b: bytes) -> None:
    assert same_token(a, b) == (a == b)
    assert same_token(a, bytes(a))


def test_a_prefix_or_another_case_is_another_token() -> None:
    secret = SECRET.encode()
    assert not same_token(secret[:-1], secret)
    assert not same_token(secret + b"a", secret)
    assert not same_token(secret.upper(), secret)
    assert not same_token(b"", secret)


def test_a_subprotocol_offer_names_the_browser() -> None:
    assert parse_link_offer(f"tabhub, {SECRET},chrome-1") == LinkOffer("tabhub", SECRET.encode(), "chrome-1")
    assert parse_link_offer(f"opentabs, {SECRET}") == LinkOffer("opentabs", SECRET.encode(), "default")
    assert parse_link_offer(f"tabhub,{SECRET}") == LinkOffer("tabhub", SECRET.encode(), "default")


@pytest.mark.parametrize(
    "header",
    [
        "",
        ",",
        "tabhub",
        f"{SECRET}, tabhub",
        f"TABHUB, {SECRET}",
        f"opentabs, {SECRET}, x",
        f"tabhub, {SECRET},",
        f"tabhub, {SECRET}, {'a' * 65}",
        f"tabhub, {SECRET}, ../x",
        f"tabhub, {SECRET}, x, y",
        "tab hub, x",
        "a," * 8 + "a",
        "\0",
    ],
)
def test_any_other_header_is_not_an_offer(header: str) -> None:
    assert parse_link_offer(header) is None


def test_an_offer_never_shows_its_secret() -> None:
    assert SECRET not in repr(parse_link_offer(f"tabhub, {SECRET}, x"))
