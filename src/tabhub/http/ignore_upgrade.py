"""Requests to change the protocol to something else than a WebSocket, which are not taken up.

Owns how such a request is read on: as if it had not asked. Some clients ask with every first request (Java's for
HTTP/2), and the parser takes everything behind such a head, the body too, for bytes of the other protocol. Knows no
sockets and no routes.
"""

from __future__ import annotations

import sys

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class PlainHttp(HttpToolsProtocol):
    """uvicorn's HTTP protocol, in which only WebSockets change the protocol and only heads hold headers."""

    _fed = b""
    """What the parser is reading."""
    _again = b""
    """The same without the wish, to be read by a new parser."""

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of a request whose wish is not taken up are read once more without it."""
        while data:
            self._fed, self._again = data, b""
            super().data_received(data)
            data = self._again
        self._fed = b""

    def on_headers_complete(self) -> None:
        """The parser has a head."""
        if self._declined():
            return
        super().on_headers_complete()
        if not self.parser.should_upgrade():
            self.headers = []  # fields that follow a body come here too, and are no headers of the request

    def on_message_complete(self) -> None:
        """The parser has the last byte of a request."""
        if not self._declined():
            super().on_message_complete()

    def _declined(self) -> bool:
        upgrade: bool = self.parser.should_upgrade()
        return upgrade and not self._should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _unsupported_upgrade_warning(self) -> None:
        """uvicorn would say in the log that it goes on without the body: here nothing is lost, nor worth a line."""
        if not self._declined():
            return
        stopped: BaseException | None = (
            sys.exception()
        )  # this is called while it is handled: it says where the head ends
        end: int = stopped.args[0] if isinstance(stopped, httptools.HttpParserUpgrade) else len(self._fed)
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        fields = b"".join([b"%b: %b\r\n" % field for field in self.headers if field[0] != b"upgrade"])
        self._again = line + fields + b"\r\n" + self._fed[end:]
        self.parser = httptools.HttpRequestParser(self)
