"""A TCP proxy that adds the hub's token to every request, for a client that cannot send one.

It changes nothing else: request bodies and answers pass unchanged. A Host that names the proxy is replaced with the
hub's; any other is kept, so that the hub's own check is exercised.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

_CHUNK = 65536
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d+)", re.IGNORECASE | re.MULTILINE)
_CHUNKED = re.compile(rb"^transfer-encoding:", re.IGNORECASE | re.MULTILINE)


@contextlib.asynccontextmanager
async def token_proxy(hub_port: int, secret: str) -> AsyncIterator[int]:
    """Listen on a free port in front of a hub; returns the port."""
    own_port = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hub_reader, hub_writer = await asyncio.open_connection("127.0.0.1", hub_port)
        directions = [
            asyncio.create_task(_requests(reader, hub_writer, own_port, hub_port, secret)),
            asyncio.create_task(_answers(hub_reader, writer)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in directions:
                task.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            writer.close()
            hub_writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=16 * 1024 * 1024)
    own_port = server.sockets[0].getsockname()[1]
    try:
        yield own_port
    finally:
        server.close()


def with_token(head: bytes, own_port: int, hub_port: int, secret: str) -> bytes:
    """The head of a request for the hub: with the token, and the hub's port where its Host named the proxy's."""
    line, rest = head.split(b"\r\n", 1)
    host = rb"(?im)^(host:[ \t]*(?:127\.0\.0\.1|localhost|\[::1\])):%d(?=\r\n)" % own_port
    rest = re.sub(host, rb"\g<1>:%d" % hub_port, rest)
    return b"%b\r\nAuthorization: Bearer %b\r\n%b" % (line, secret.encode(), rest)


async def _requests(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, own_port: int, hub_port: int, secret: str
) -> None:
    """Forward requests, each as one piece, until the client closes."""
    with contextlib.suppress(asyncio.IncompleteReadError, OSError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if _CHUNKED.search(head):
                raise NotImplementedError("the proxy knows only bodies with a content-length")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length is not None else b""
            writer.write(with_token(head, own_port, hub_port, secret) + body)
            await writer.drain()


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
