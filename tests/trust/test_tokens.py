from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.trust.tokens import LinkOffer, bearer, parse_link_offer, same_token, ws_protocols

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
def test_what_is_not_exactly_a_token_is_none(header: bytes | None) -> None:
    assert bearer(header) is None


def test_the_longest_token_is_a_setting() -> None:
    assert bearer(b"Bearer " + b"a" * 512) == b"a" * 512
    assert bearer(b"Bearer abcdef", longest=5) is None


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_tokens_are_the_same_only_if_equal(a: bytes, b: bytes) -> None:
    assert same_token(a, b) == (a == b)
    assert same_token(a, bytes(a))


def test_a_prefix_or_another_case_is_not_the_same() -> None:
    secret = SECRET.encode()
    assert not same_token(secret[:-1], secret)
    assert not same_token(secret + b"a", secret)
    assert not same_token(secret.upper(), secret)
    assert not same_token(b"", secret)


def test_protocols_are_split_and_bounded() -> None:
    assert ws_protocols(f"tabhub, {SECRET},chrome-1".encode()) == ["tabhub", SECRET, "chrome-1"]
    assert ws_protocols("tabhub") == ["tabhub"]
    assert ws_protocols(None) == []


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b",",
        b"tabhub,",
        b"tabhub,,x",
        b"tab hub",
        b"tabhub; x",
        b"tabhub, \xff",
        b"a," * 8 + b"a",
        b"a" * 513,
        b"\0",
    ],
)
def test_a_malformed_offer_is_no_offer(header: bytes) -> None:
    assert ws_protocols(header) == []


def test_an_offer_names_its_browser() -> None:
    assert parse_link_offer(["tabhub", SECRET, "chrome-1"]) == LinkOffer("tabhub", SECRET.encode(), "chrome-1")
    assert parse_link_offer(["opentabs", SECRET]) == LinkOffer("opentabs", SECRET.encode(), "default")
    assert parse_link_offer(["tabhub", SECRET]) == LinkOffer("tabhub", SECRET.encode(), "default")


@pytest.mark.parametrize(
    "offered",
    [
        [],
        ["tabhub"],
        [SECRET, "tabhub"],
        ["TABHUB", SECRET],
        ["opentabs", SECRET, "x"],
        ["tabhub", SECRET, ""],
        ["tabhub", SECRET, "a" * 65],
        ["tabhub", SECRET, "../x"],
        ["tabhub", SECRET, "x", "y"],
    ],
)
def test_any_other_offer_is_none(offered: list[str]) -> None:
    assert parse_link_offer(offered) is None


def test_an_offer_never_shows_its_secret() -> None:
    assert SECRET not in repr(parse_link_offer(["tabhub", SECRET, "x"]))
