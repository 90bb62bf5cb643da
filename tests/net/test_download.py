"""Downloads: redirects, proxies and bounds."""

from __future__ import annotations

import pytest

from tabhub.client_errors import HttpConnectError, HttpConnectionClosed, HttpError, HttpTimeout, InvalidHttpResponse
from tabhub.net.download import get
from tabhub.net.http_client import Response
from tests.net.one_shot_server import OK, Server, serving


def fetch(server: Server, *, path: str = "/a?b=c", timeout: float = 20) -> Response:
    headers = {"Authorization": "Bearer t"}
    return get(f"{server.url}{path}", headers, timeout=20, stall_timeout=timeout, max_body=1000)


def redirect(location: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    "response",
    [
        OK,
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nt: 1\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 500 Oops\r\ncontent-length: 5\r\n\r\nhello",
    ],
)
def test_every_status_is_a_response(response: bytes) -> None:
    with serving(response) as server:
        got = fetch(server)
        assert (got.status, got.body) == (int(response[9:12]), b"hello")


@pytest.mark.parametrize(
    ("response", "error", "reason"),
    [
        (b"", HttpConnectionClosed, "closed the connection"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello", HttpConnectionClosed, "closed the connection"),
        (b"SSH-2.0\r\n\r\n", InvalidHttpResponse, "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70_000, InvalidHttpResponse, "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", InvalidHttpResponse, "not valid HTTP"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n" + b"x" * 1001,
            InvalidHttpResponse,
            "larger than 1000 bytes",
        ),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, InvalidHttpResponse, "larger than 1000 bytes"),
    ],
)
def test_a_broken_response_is_reported_with_its_reason(response: bytes, error: type[HttpError], reason: str) -> None:
    with serving(response) as server, pytest.raises(error, match=reason):
        fetch(server)


def test_a_silent_server_and_a_closed_port_raise_different_errors() -> None:
    with serving(b"hang") as server, pytest.raises(HttpTimeout):
        fetch(server, timeout=0.2)
    with pytest.raises(HttpConnectError, match="refused"):
        fetch(server)


def test_redirects_are_followed_within_the_origin_and_not_to_another_http_host() -> None:
    with serving(redirect("/b"), OK) as server:
        assert fetch(server).body == b"hello"
        assert [each.split("\r\n")[0] for each in server.requests] == ["GET /a?b=c HTTP/1.1", "GET /b HTTP/1.1"]
        assert "Authorization: Bearer t" in server.requests[1]
    with serving(OK) as other, serving(redirect(f"{other.url}/b")) as server:
        assert fetch(server).status == 302
        assert other.requests == []
    with serving(redirect("/again")) as server, pytest.raises(InvalidHttpResponse, match="redirects too often"):
        fetch(server)


def test_the_proxy_of_the_environment_is_used_with_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(OK) as proxy, serving(OK) as server:
        monkeypatch.setenv("http_proxy", f"http://user:p%40ss@127.0.0.1:{proxy.port}")
        assert fetch(server).body == b"hello"
        assert proxy.requests[0].startswith(f"GET {server.url}/a?b=c HTTP/1.1\r\n")
        assert f"Host: 127.0.0.1:{server.port}\r\n" in proxy.requests[0]
        assert "Proxy-Authorization: Basic dXNlcjpwQHNz" in proxy.requests[0]
        monkeypatch.setenv("no_proxy", "example.com, 127.0.0.1")
        fetch(server)
        assert (len(proxy.requests), len(server.requests)) == (1, 1)


def test_https_goes_through_a_tunnel_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(b"HTTP/1.1 407 No\r\n\r\n") as proxy:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        with pytest.raises(HttpConnectError, match="407 No"):
            get("https://registry.example/x", {}, timeout=5, stall_timeout=5, max_body=10)
        assert proxy.requests[0].startswith("CONNECT registry.example:443 HTTP/1.")
