"""The blocking HTTP client: every form of response, and bounds."""

from __future__ import annotations

import pytest

from tabhub.client_errors import HttpConnectError, HttpConnectionClosed, HttpError, HttpTimeout, InvalidHttpResponse
from tabhub.net.http_client import request
from tests.net.one_shot_server import OK, serving


@pytest.mark.parametrize(
    "response",
    [
        OK,
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nt: 1\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
    ],
)
def test_every_form_of_response_is_parsed(response: bytes) -> None:
    with serving(response) as server:
        got = request("POST", "127.0.0.1", server.port, "/x", headers={"X-One": "1"}, body=b"{}")
        assert (got.status, got.body) == (200, b"hello")
    assert server.requests[0].split("\r\n") == [
        "POST /x HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        "Connection: close",
        "X-One: 1",
        "Content-Length: 2",
        "",
        "{}",
    ]


@pytest.mark.parametrize(
    ("response", "error", "reason"),
    [
        (b"", HttpConnectionClosed, "closed the connection"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello", HttpConnectionClosed, "closed the connection"),
        (b"SSH-2.0\r\n\r\n", InvalidHttpResponse, "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", InvalidHttpResponse, "invalid header"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, InvalidHttpResponse, "too long"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n", InvalidHttpResponse, "invalid Content-Length"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", InvalidHttpResponse, "invalid chunk"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n", InvalidHttpResponse, "larger than"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 300000000\r\n\r\n", InvalidHttpResponse, "larger than"),
    ],
)
def test_a_broken_response_is_reported_with_its_reason(response: bytes, error: type[HttpError], reason: str) -> None:
    with serving(response) as server, pytest.raises(error, match=reason):
        request("GET", "127.0.0.1", server.port, "/", headers={})


def test_a_silent_server_and_a_closed_port_raise_different_errors() -> None:
    with serving(b"hang") as server, pytest.raises(HttpTimeout):
        request("GET", "127.0.0.1", server.port, "/", headers={}, timeout=0.2)
    with pytest.raises(HttpConnectError, match="refused"):
        request("GET", "127.0.0.1", server.port, "/", headers={})


def test_a_header_with_a_line_break_is_not_sent() -> None:
    with serving(OK) as server, pytest.raises(ValueError, match="not printable ASCII"):
        request("GET", "127.0.0.1", server.port, "/", headers={"X-One": "1\r\nX-Two: 2"})
