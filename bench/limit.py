"""The limit: a bare pass-through on uvicorn, uvloop, httptools and websockets-sansio.

HTTP body -> WebSocket text to the fake extension -> HTTP answer, and nothing else: no parsing, no checks, no log. Its
rate is what the hub could reach if everything the hub does were free. `python -m bench.limit PORT` serves it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_HEAD = '{"jsonrpc":"2.0","id":'


class PassThrough:
    """An ASGI application that holds one WebSocket and the HTTP requests that wait for its answers."""

    def __init__(self) -> None:
        self._extension: Send | None = None
        self._waiting: dict[int, asyncio.Future[str]] = {}
        self._last = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one connection or request."""
        if scope["type"] == "http":
            await self._http(receive, send)
        else:
            await self._websocket(receive, send)

    async def _http(self, receive: Receive, send: Send) -> None:
        message = await receive()
        body: bytes = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        status, answer = 503, b"no extension"
        if self._extension is not None:
            self._last = number = self._last + 1
            self._waiting[number] = future = asyncio.get_running_loop().create_future()
            text = f'{_HEAD}{number},"method":"forwardCDPCommand","params":{body.decode()}}}'
            await self._extension({"type": "websocket.send", "text": text})
            status, answer = 200, (await future).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _websocket(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "tabhub"})
        self._extension = send
        while (message := await receive())["type"] == "websocket.receive":
            text: str = message["text"]
            if text.startswith(_HEAD):
                number = int(text[len(_HEAD) : text.index(",", len(_HEAD))])
                self._waiting.pop(number).set_result(text)


def main() -> None:
    """Serve on the given port until terminated."""
    uvicorn.run(
        PassThrough(),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        ws="websockets-sansio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
    )


if __name__ == "__main__":
    main()
