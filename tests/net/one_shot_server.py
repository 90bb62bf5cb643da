"""A server with one request per connection, which answers with given bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

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
