"""Known heads: which bytes are one whole request with a head that was let in before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.http.known_heads import Head, Heads, split
from tests.harness.raw import request

HOST = ("Host", "127.0.0.1:9515")


def post(body: bytes, *more: tuple[str, str], length: str | None = None, name: str = "Content-Length") -> bytes:
    return request("POST", "/mcp", [HOST, (name, length or str(len(body))), *more], body)


def head() -> Head:
    return Head("/mcp", [], {})


@pytest.mark.parametrize("name", ["Content-Length", "content-length"])
def test_a_head_is_known_again_whatever_the_length_of_the_body(name: str) -> None:
    heads, known = Heads(), head()
    heads.learn(post(b"{}", name=name), known)
    for body in (b"{}", b"", b"x" * 12345, b"\r\n\r\n"):
        assert heads.find(post(body, name=name)) == (known, body)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        post(b"{}")[:10],
        post(b"{}")[:-1],
        post(b"{}") + b"\r\n",
        post(b"{}") * 2,
        post(b"{}", length="+2"),
        post(b"{}", length="0x2"),
        post(b"{}", length="2 "),
        post(b"{}", length="00000002"),
        post(b"{}", name="CONTENT-LENGTH"),
        post(b"{}", ("X", "y")),
        post(b"{}").replace(b"127", b"128"),
        post(b"{}").replace(b"POST", b"PUT"),
    ],
)
def test_other_bytes_are_not_known(data: bytes) -> None:
    heads = Heads()
    heads.learn(post(b"{}"), head())
    assert heads.find(data) is None


def test_a_known_head_without_its_body_is_known_as_that() -> None:
    heads, known = Heads(), head()
    heads.learn(post(b"{}"), known)
    assert heads.find(post(b"{}")[:-2]) == (known, None)
    assert heads.find(post(b"")) == (known, b"")


def test_a_header_that_only_ends_like_the_length_does_not_count() -> None:
    one = request("POST", "/mcp", [HOST, ("X-Content-Length", "2"), ("Content-Length", "2")], b"{}")
    other = request("POST", "/mcp", [HOST, ("X-Content-Length", "9"), ("Content-Length", "2")], b"{}")
    heads = Heads()
    heads.learn(one, head())
    assert heads.find(one) is not None
    assert heads.find(other) is None


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_a_crash(data: bytes) -> None:
    cut = split(data)
    assert cut is None or data[cut.end - 4 : cut.end] == b"\r\n\r\n"


def test_the_store_is_bounded() -> None:
    heads = Heads()
    for number in range(3000):
        heads.learn(post(b"{}", ("X", str(number))), head())
        assert len(heads) <= 512
    heads = Heads()
    heads.learn(post(b"{}", ("X", "y" * 5000)), head())
    assert len(heads) == 0
