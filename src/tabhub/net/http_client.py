"""A blocking HTTP/1.1 client: one request per connection, with bounds and timeouts.

It imports next to nothing, because every `tabhub tool call` pays for it; TLS, redirects and proxies are imported when
used. It knows no endpoint and no hub.
"""

from __future__ import annotations

import contextlib
import socket
import time

from tabhub.client_errors import HttpConnectError, HttpConnectionClosed, HttpTimeout, InvalidHttpResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

_MAX_HEAD = 64 * 1024
_MAX_BODY = 256 * 1024 * 1024
_MAX_REQUESTS = 10
"""The first one, and those that follow redirects."""
_REDIRECTS = (301, 302, 303, 307, 308)


class Response:
    """A complete response; header names are in lower case."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


def request(
    method: str,
    host: str,
    port: int,
    target: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    timeout: float = 10.0,
    connect_timeout: float = 3.0,
    max_body: int = _MAX_BODY,
    tls: bool = False,
) -> Response:
    """Send a request and read its response within `timeout` seconds; raises HttpError. Proxies are not used."""
    connection = _connect(host, port, connect_timeout)
    with contextlib.ExitStack() as stack:
        stack.enter_context(connection)
        if tls:
            connection = stack.enter_context(_start_tls(connection, host))
        reader = _Reader(connection, time.monotonic() + timeout)
        return _exchange(reader, _encode(method, target, _authority(host, port), headers, body), max_body)


def get(
    url: str,
    *,
    headers: Mapping[str, str],
    timeout: float,
    stall_timeout: float,
    max_body: int,
    follow_redirects: bool = False,
    use_proxy: bool = False,
) -> Response:
    """Fetch an http or https URL; raises HttpError.

    `stall_timeout` bounds the seconds without any data. A redirect is followed only to https or within the origin; any
    other is returned as the response. The Authorization header is not sent to another host.
    """
    from urllib.parse import urljoin, urlsplit

    deadline = time.monotonic() + timeout
    for _ in range(_MAX_REQUESTS):
        parts = urlsplit(url)
        proxy = _proxy_for(parts) if use_proxy else None
        response = _get_once(parts, proxy, headers, deadline, stall_timeout, max_body)
        location = response.headers.get("location")
        if not follow_redirects or response.status not in _REDIRECTS or not location:
            return response
        url = urljoin(url, location)
        following = urlsplit(url)
        same_origin = (following.scheme, following.netloc) == (parts.scheme, parts.netloc)
        if following.scheme != "https" and not same_origin:
            return response
        if following.netloc != parts.netloc:
            headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
    raise InvalidHttpResponse("it redirects too often")


def _get_once(
    parts: SplitResult,
    proxy: SplitResult | None,
    headers: Mapping[str, str],
    deadline: float,
    stall_timeout: float,
    max_body: int,
) -> Response:
    secure = parts.scheme == "https"
    host, port = parts.hostname or "", parts.port or (443 if secure else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if proxy is None:
        connection = _connect(host, port, stall_timeout)
    else:
        connection = _connect(proxy.hostname or "", proxy.port or 80, stall_timeout)
    with contextlib.ExitStack() as stack:
        stack.enter_context(connection)
        if proxy is not None and secure:
            authority = _authority(host, port)
            message = _encode("CONNECT", authority, authority, _proxy_headers(proxy), None)
            _open_tunnel(_Reader(connection, deadline, stall_timeout), message)
        elif proxy is not None:
            target = f"http://{parts.netloc.rpartition('@')[2]}{target}"
            headers = {**headers, **_proxy_headers(proxy)}
        if secure:
            connection = stack.enter_context(_start_tls(connection, host))
        reader = _Reader(connection, deadline, stall_timeout)
        return _exchange(reader, _encode("GET", target, parts.netloc.rpartition("@")[2], headers, None), max_body)


def _connect(host: str, port: int, timeout: float) -> socket.socket:
    try:
        return socket.create_connection((host, port), timeout=timeout)
    except (OSError, UnicodeError) as error:
        raise HttpConnectError(_reason(error)) from None


def _start_tls(connection: socket.socket, host: str) -> socket.socket:
    import ssl

    try:
        return ssl.create_default_context().wrap_socket(connection, server_hostname=host)
    except (OSError, ValueError) as error:
        raise HttpConnectError(_reason(error)) from None


def _open_tunnel(reader: _Reader, message: bytes) -> None:
    try:
        _send(reader, message)
        status, _ = _read_head(reader)
    except (EOFError, OSError) as error:
        raise HttpConnectError(f"the proxy does not respond: {_reason(error)}") from None
    if status != 200:
        raise HttpConnectError(f"the proxy answered with status {status}")


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _encode(method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    for line in lines:
        if not (line.isascii() and line.isprintable()):
            raise ValueError(f"not printable ASCII: {line!r}")
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + (body or b"")


class _Reader:
    """A socket as lines and counted bytes, up to a deadline."""

    __slots__ = ("buffer", "connection", "deadline", "stall_timeout")

    def __init__(self, connection: socket.socket, deadline: float, stall_timeout: float | None = None) -> None:
        self.connection = connection
        self.deadline = deadline
        self.stall_timeout = stall_timeout
        self.buffer = bytearray()

    def set_timeout(self) -> None:
        remaining = self.deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self.connection.settimeout(remaining if self.stall_timeout is None else min(remaining, self.stall_timeout))

    def more(self) -> bool:
        """Read what is there; False at the end."""
        self.set_timeout()
        data = self.connection.recv(262144)
        self.buffer += data
        return bool(data)

    def line(self) -> bytes:
        while (end := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > _MAX_HEAD:
                raise InvalidHttpResponse("it sent a line that is too long")
            if not self.more():
                raise EOFError
        found = bytes(self.buffer[:end]).rstrip(b"\r")
        del self.buffer[: end + 1]
        return found

    def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            if not self.more():
                raise EOFError
        found = bytes(self.buffer[:size])
        del self.buffer[:size]
        return found

    def rest(self, max_body: int) -> bytes:
        while len(self.buffer) <= max_body:
            if not self.more():
                return bytes(self.buffer)
        raise _too_large(max_body)


def _exchange(reader: _Reader, message: bytes, max_body: int) -> Response:
    try:
        _send(reader, message)
        return _read_response(reader, max_body)
    except TimeoutError:
        raise HttpTimeout("it did not respond in time") from None
    except (EOFError, OSError):
        raise HttpConnectionClosed("it closed the connection before it responded") from None


def _send(reader: _Reader, message: bytes) -> None:
    reader.set_timeout()
    # A server that refuses a request early (413) may close before it has read all of it; its response is still there.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        reader.connection.sendall(message)


def _read_response(reader: _Reader, max_body: int) -> Response:
    status, headers = _read_head(reader)
    if status in (204, 304):
        return Response(status, headers, b"")
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Response(status, headers, _read_chunks(reader, max_body))
    length = headers.get("content-length")
    if length is None:
        return Response(status, headers, reader.rest(max_body))
    if not (length.isascii() and length.isdigit()):
        raise InvalidHttpResponse("it sent an invalid Content-Length")
    if int(length) > max_body:
        raise _too_large(max_body)
    return Response(status, headers, reader.exactly(int(length)))


def _read_head(reader: _Reader) -> tuple[int, dict[str, str]]:
    """Status and headers; interim responses (1xx) are skipped."""
    while True:
        first = reader.line().split(b" ", 2)
        if len(first) < 2 or first[0] not in (b"HTTP/1.1", b"HTTP/1.0") or not first[1].isdigit():
            raise InvalidHttpResponse("it does not speak HTTP")
        status = int(first[1])
        headers = _read_headers(reader)
        if status >= 200:
            return status, headers


def _read_headers(reader: _Reader) -> dict[str, str]:
    headers: dict[str, str] = {}
    size = 0
    while field := reader.line():
        size += len(field)
        name, colon, value = field.decode("latin-1").partition(":")
        if not colon or size > _MAX_HEAD:
            raise InvalidHttpResponse("it sent an invalid header")
        headers[name.strip().lower()] = value.strip()
    return headers


def _read_chunks(reader: _Reader, max_body: int) -> bytes:
    body = bytearray()
    while True:
        try:
            size = int(reader.line().split(b";")[0], 16)
        except ValueError:
            raise InvalidHttpResponse("it sent an invalid chunk") from None
        if size < 0 or len(body) + size > max_body:
            raise _too_large(max_body)
        if size == 0:
            while reader.line():
                pass  # trailers
            return bytes(body)
        body += reader.exactly(size)
        reader.line()


def _too_large(max_body: int) -> InvalidHttpResponse:
    return InvalidHttpResponse(f"it sent a response larger than {max_body} bytes")


def _proxy_for(parts: SplitResult) -> SplitResult | None:
    """The proxy that the environment names for a URL (`https_proxy`, `no_proxy` and their upper-case forms)."""
    import os
    from urllib.parse import urlsplit

    host = parts.hostname or ""
    exceptions = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    for each in exceptions.replace(" ", "").lower().split(","):
        domain = each.lstrip(".")
        if each == "*" or (domain and (host == domain or host.endswith(f".{domain}"))):
            return None
    name = f"{parts.scheme}_proxy"
    proxy = os.environ.get(name) or os.environ.get(name.upper())
    return urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else None


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    import base64
    from urllib.parse import unquote

    credentials = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(credentials.encode()).decode()}"}
