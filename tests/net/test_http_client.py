"""The blocking HTTP client: every form of response, bounds, redirects and proxies."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tabhub.client_errors import (
    HttpConnectError,
    HttpConnectionClosed,
    HttpError,
    HttpTimeout,
    InvalidHttpResponse,
)
from tabhub.net.http_client import Response, get, request

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


class Server:
    """Answers its connections with the given responses in order; the last one is repeated."""

    def __init__(self, *responses: bytes) -> None:
        self._responses = list(responses)
        self.requests: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self.requests.append(connection.recv(65536).decode())
                response = self._responses.pop(0) if len(self._responses) > 1 else self._responses[0]
                if response == b"hang":
                    connection.recv(1)
                else:
                    connection.sendall(response)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


@contextmanager
def serving(*responses: bytes) -> Iterator[Server]:
    server = Server(*responses)
    try:
        yield server
    finally:
        server.close()


def fetch(server: Server, *, max_body: int = 1000, use_proxy: bool = False, path: str = "/a?b=c") -> Response:
    return get(
        f"{server.url}{path}",
        headers={"Authorization": "Bearer t"},
        timeout=20,
        stall_timeout=20,
        max_body=max_body,
        follow_redirects=True,
        use_proxy=use_proxy,
    )


def redirect(location: str) -> bytes:
    return f"HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n".encode()


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
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffff\r\n", InvalidHttpResponse, "larger than 1000"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n", InvalidHttpResponse, "larger than 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, InvalidHttpResponse, "larger than 1000 bytes"),
    ],
)
def test_a_broken_response_is_reported_with_its_reason(response: bytes, error: type[HttpError], reason: str) -> None:
    with serving(response) as server, pytest.raises(error, match=reason):
        fetch(server)


def test_a_silent_server_and_a_closed_port_raise_different_errors() -> None:
    with serving(b"hang") as server, pytest.raises(HttpTimeout):
        request("GET", "127.0.0.1", server.port, "/", headers={}, timeout=0.2)
    with pytest.raises(HttpConnectError, match="refused"):
        request("GET", "127.0.0.1", server.port, "/", headers={})


def test_a_header_with_a_line_break_is_not_sent() -> None:
    with serving(OK) as server, pytest.raises(ValueError, match="not printable ASCII"):
        request("GET", "127.0.0.1", server.port, "/", headers={"X-One": "1\r\nX-Two: 2"})


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
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        assert fetch(server, use_proxy=True).body == b"hello"
        assert proxy.requests[0].startswith(f"GET {server.url}/a?b=c HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n")
        assert "Proxy-Authorization: Basic dXNlcjpwQHNz" in proxy.requests[0]
        monkeypatch.setenv("no_proxy", "example.com, 127.0.0.1")
        fetch(server, use_proxy=True)
        assert (len(proxy.requests), len(server.requests)) == (1, 1)


def test_https_goes_through_a_tunnel_of_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(b"HTTP/1.1 407 No\r\n\r\n") as proxy:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(HttpConnectError, match="the proxy answered with status 407"):
            get("https://registry.example/x", headers={}, timeout=5, stall_timeout=5, max_body=10, use_proxy=True)
        assert proxy.requests[0].startswith("CONNECT registry.example:443 HTTP/1.1\r\n")
