"""Both ends of the relay's protocol, written from its specification alone, without the relay's code.

An extension and an agent as a third party would write them, on plain WebSockets.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

Command = Callable[[str, dict[str, Any]], Any]


class IndependentExtension:
    """Passive: connects, waits, and answers requests with their id."""

    def __init__(self, base: str, token: str, name: str = "Chrome 141", **more: Any) -> None:
        self._url = f"{base}/extension"
        self._credentials = {"name": name, "accessToken": token, **more}
        self.handle: Command = lambda method, params: {"method": method, "params": params}
        self.requests: list[dict[str, Any]] = []
        self.received: list[Any] = []
        """All received messages, unchanged."""
        self.notifications: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.user_id = ""
        self.extension_id = ""
        self.ws: ClientConnection
        self._reader: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self.ws = await connect(self._url, max_size=None)
        self._reader = asyncio.create_task(self._read())
        confirmed = await self.notified("authenticated")
        self.user_id, self.extension_id = confirmed["user_id"], confirmed["extension_id"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.ws.close()
        await self._reader

    async def notified(self, method: str) -> dict[str, Any]:
        """The params of the next notification of that method."""
        async with asyncio.timeout(30):
            while True:
                message = await self.notifications.get()
                if message["method"] == method:
                    params: dict[str, Any] = message["params"]
                    return params

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        await self.send({"method": method, "params": params})

    async def send(self, message: dict[str, Any]) -> None:
        await self.ws.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def _read(self) -> None:
        try:
            async for text in self.ws:
                self.received.append(json.loads(text))
                await self._take(self.received[-1])
        except ConnectionClosed:
            return

    async def _take(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self.notifications.put_nowait(message)
        elif "method" not in message:
            return  # a reply; it made no request, so the reply is only kept in `received`
        elif str(message["id"]).startswith("proxy:") and message["method"] == "authenticate":
            await self.send({"id": message["id"], "result": self._credentials})
        else:
            self.requests.append(message)
            try:
                result = self.handle(message["method"], message.get("params", {}))
            except LookupError as error:
                await self.send({"id": message["id"], "error": {"code": -32000, "message": str(error.args[0])}})
                return
            if result is not None:
                await self.send({"id": message["id"], "result": result})


class IndependentAgent:
    """Active: starts every exchange, counts its ids from 1, and omits connectionId unless given."""

    def __init__(self, base: str, token: str) -> None:
        self._url = f"{base}/mcp"
        self._token = token
        self._next = 0
        self._waiting: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self.notifications: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.received: list[Any] = []
        """All received messages, unchanged."""
        self.connection_id = ""
        self.ws: ClientConnection
        self._reader: asyncio.Task[None]

    async def __aenter__(self) -> Self:
        self.ws = await connect(self._url, max_size=None)
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.ws.close()
        await self._reader

    async def handshake(self) -> dict[str, Any]:
        return await self.result("mcp_handshake", {"accessToken": self._token})

    async def browsers(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = (await self.result("list_extensions"))["extensions"]
        return listed

    async def listed(self, count: int, within: float = 30) -> list[dict[str, Any]]:
        """Its browsers, once there are this many; changes are reported by `status`."""
        async with asyncio.timeout(within):
            while len(there := await self.browsers()) != count:
                while (await self.notifications.get()).get("method") != "status":
                    pass
        return there

    async def join(self, extension_id: str) -> dict[str, Any]:
        joined = await self.result("connect", {"extension_id": extension_id})
        self.connection_id = joined["connection_id"]
        return joined

    async def ready(self) -> Self:
        """Handshake, discovery and connection to the first browser."""
        await self.handshake()
        await self.join((await self.browsers())[0]["id"])
        return self

    async def result(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        answer = await self.ask(method, params, **more)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def error(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        answer = await self.ask(method, params, **more)
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        return error

    async def ask(self, method: str, params: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Send a request and wait for the reply with its id."""
        return await (await self.begin(method, params, **more))

    async def begin(
        self, method: str, params: dict[str, Any] | None = None, **more: Any
    ) -> asyncio.Future[dict[str, Any]]:
        self._next += 1
        ident = more.pop("id", self._next)
        answer = self._waiting[(type(ident), ident)] = asyncio.get_running_loop().create_future()
        await self.send({"id": ident, "method": method, "params": params or {}, **more})
        return answer

    async def send(self, message: dict[str, Any]) -> None:
        await self.ws.send(json.dumps({"jsonrpc": "2.0", **message}))

    async def notified(self, method: str) -> dict[str, Any]:
        async with asyncio.timeout(30):
            while True:
                message = await self.notifications.get()
                if message["method"] == method:
                    params: dict[str, Any] = message["params"]
                    return params

    async def stray(self) -> dict[str, Any]:
        """The next reply that belongs to no request: an error with id null."""
        async with asyncio.timeout(30):
            while True:
                message = await self.notifications.get()
                if "method" not in message:
                    return message

    async def closed(self) -> tuple[int | None, str | None]:
        async with asyncio.timeout(30):
            await self._reader
        return self.ws.close_code, self.ws.close_reason

    async def _read(self) -> None:
        try:
            async for text in self.ws:
                message = json.loads(text)
                self.received.append(message)
                key = (type(message.get("id")), message.get("id"))
                if "method" not in message and key in self._waiting:
                    self._waiting.pop(key).set_result(message)
                else:
                    self.notifications.put_nowait(message)
        except ConnectionClosed:
            return
        finally:
            for future in self._waiting.values():
                future.cancel()
