"""A hub whose HTTP responses the test defines, byte by byte if needed."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

PERSON_KEY = "5" * 64
EXTENSION_KEY = "6" * 64


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Reply:
    """Writes the answer to one request."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def raw(self, data: bytes) -> None:
        self._connection.sendall(data)

    def send(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
        self.raw(head.encode() + body)

    def json(self, value: Any, status: int = 200, **headers: str) -> None:
        self.send(status, json.dumps(value).encode(), **headers)

    def events(self, **headers: str) -> None:
        extra = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.raw(f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{extra}\r\n".encode())

    def event(self, value: Any, ident: str | None = None) -> None:
        prefix = f"id: {ident}\n" if ident else ""
        self.raw(f"{prefix}data: {json.dumps(value)}\n\n".encode())

    def wait_closed(self) -> None:
        """Return when the client has disconnected."""
        try:
            while self._connection.recv(1024):
                continue
        except OSError:
            return


Handler = Callable[[ReceivedRequest, Reply], None]


class FakeHub:
    def __init__(self, port: int = 0) -> None:
        self.routes: dict[str, Handler] = {}
        self.requests: list[ReceivedRequest] = []
        self.changed = threading.Condition()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def on(self, route: str, handler: Handler) -> None:
        """Handle `METHOD /path` (without the query)."""
        self.routes[route] = handler

    def answer(self, route: str, value: Any, status: int = 200, **headers: str) -> None:
        self.on(route, lambda _asked, reply: reply.json(value, status, **headers))

    def wait_for(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        with self.changed:
            assert self.changed.wait_for(condition, seconds), f"it did not happen; requests: {self.requests}"

    def wait_requested(self, method: str, path: str) -> None:
        """Return when this was requested."""
        self.wait_for(lambda: any((request.method, request.path) == (method, path) for request in self.requests))

    def close(self) -> None:
        if self._listener.fileno() < 0:
            return
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it has already ended

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = _read(connection)
                if request is None:
                    return
                with self.changed:
                    self.requests.append(request)
                    self.changed.notify_all()
                handler = self.routes.get(f"{request.method} {request.path.partition('?')[0]}")
                if handler is None:
                    Reply(connection).json({"error": {"message": f"no route {request.path}"}}, 404)
                else:
                    handler(request, Reply(connection))
            except OSError:
                return  # the client has disconnected
            finally:
                self._open.discard(connection)


def _read(connection: socket.socket) -> ReceivedRequest | None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return None
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    method, path, _ = lines[0].split(" ")
    headers = {name.lower(): value for name, _, value in (text.partition(": ") for text in lines[1:])}
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        body += connection.recv(65536)
    return ReceivedRequest(method, path, headers, body)


@contextmanager
def running(port: int = 0) -> Iterator[FakeHub]:
    hub = FakeHub(port)
    try:
        yield hub
    finally:
        hub.close()
