"""A blocking HTTP/1.1 client: one request per connection, with bounds and timeouts.

It imports next to nothing, because every `tabhub tool call` pays for it. It knows no endpoint and no hub.
"""

from __future__ import annotations

import contextlib
import io
import socket
import time

from tabhub.client_errors import HttpConnectError, HttpConnectionClosed, HttpTimeout, InvalidHttpResponse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

_CONNECT_TIMEOUT = 3.0
_MAX_HEAD = 64 * 1024
_MAX_BODY = 256 * 1024 * 1024


class Response:
    """A complete response; header names are in lower case."""

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
) -> Response:
    """Send a request and read its response within `timeout` seconds; raises HttpError. Proxies are not used."""
    message = _encode(method, target, f"[{host}]:{port}" if ":" in host else f"{host}:{port}", headers, body)
    with _connect(host, port) as connection:
        reader = io.BufferedReader(_Received(connection, time.monotonic() + timeout))
        try:
            # A server that refuses a request early (413) may close before it has read all of it; its response is there.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.settimeout(timeout)
                connection.sendall(message)
            return _read_response(reader)
        except TimeoutError:
            raise HttpTimeout("it did not respond in time") from None
        except (EOFError, OSError):
            raise HttpConnectionClosed("it closed the connection before it responded") from None


def _encode(method: str, target: str, host: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    for line in lines:
        if not (line.isascii() and line.isprintable()):
            raise ValueError(f"not printable ASCII: {line!r}")
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + (body or b"")


def _connect(host: str, port: int) -> socket.socket:
    try:
        return socket.create_connection((host, port), timeout=_CONNECT_TIMEOUT)
    except (OSError, ValueError) as error:
        raise HttpConnectError(str(getattr(error, "strerror", None) or error)) from None


class _Received(io.RawIOBase):
    """The bytes that a connection receives, up to a deadline."""

    def __init__(self, connection: socket.socket, deadline: float) -> None:
        self._connection = connection
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        self._connection.settimeout(remaining)
        return self._connection.recv_into(buffer)


def _read_response(reader: BinaryIO) -> Response:
    status, headers = _read_head(reader)
    length = headers.get("content-length")
    if status in (204, 304):
        body = b""
    elif headers.get("transfer-encoding", "").lower() == "chunked":
        body = _read_chunks(reader)
    elif length is None:
        body = reader.read(_MAX_BODY + 1)
        _check_size(len(body))
    elif length.isascii() and length.isdigit():
        _check_size(int(length))
        body = _read_exactly(reader, int(length))
    else:
        raise InvalidHttpResponse("it sent an invalid Content-Length")
    return Response(status, headers, body)


def _read_head(reader: BinaryIO) -> tuple[int, dict[str, str]]:
    """Status and headers; interim responses (1xx) are skipped."""
    while True:
        first = _read_line(reader).split(b" ", 2)
        if len(first) < 2 or first[0] not in (b"HTTP/1.1", b"HTTP/1.0") or not first[1].isdigit():
            raise InvalidHttpResponse("it does not speak HTTP")
        headers: dict[str, str] = {}
        size = 0
        while field := _read_line(reader):
            size += len(field)
            name, colon, value = field.decode("latin-1").partition(":")
            if not colon or size > _MAX_HEAD:
                raise InvalidHttpResponse("it sent an invalid header")
            headers[name.strip().lower()] = value.strip()
        if int(first[1]) >= 200:
            return int(first[1]), headers


def _read_chunks(reader: BinaryIO) -> bytes:
    body = bytearray()
    while True:
        try:
            size = int(_read_line(reader).split(b";")[0], 16)
        except ValueError:
            size = -1
        if size < 0:
            raise InvalidHttpResponse("it sent an invalid chunk")
        if size == 0:
            while _read_line(reader):
                pass  # trailers
            return bytes(body)
        _check_size(len(body) + size)
        body += _read_exactly(reader, size)
        _read_line(reader)


def _read_line(reader: BinaryIO) -> bytes:
    line = reader.readline(_MAX_HEAD)
    if line.endswith(b"\n"):
        return line.rstrip(b"\r\n")
    if len(line) == _MAX_HEAD:
        raise InvalidHttpResponse("it sent a line that is too long")
    raise EOFError


def _read_exactly(reader: BinaryIO, size: int) -> bytes:
    data = reader.read(size)
    if len(data) < size:
        raise EOFError
    return data


def _check_size(size: int) -> None:
    if size > _MAX_BODY:
        raise InvalidHttpResponse(f"it sent a response larger than {_MAX_BODY} bytes")
