"""A small hub for the extension's tests: it accepts the WebSocket, speaks JSON-RPC, and records messages."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

import orjson
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Subprotocol

from tabhub.trust.tokens import challenge_proof
from tests.harness.ports import free_port
from tests.harness.waiting import LONG

SECRET = "5e" * 32
Message = dict[str, Any]


class Refused(Exception):
    """The extension answered with an error."""

    def __init__(self, error: Message) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = error["code"]
        self.message = error["message"]
        self.data: Any = error.get("data")


class Wire:
    """One connection of the extension."""

    def __init__(self, socket: ServerConnection) -> None:
        self.socket = socket
        assert socket.request is not None
        self.protocols = [p.strip() for p in socket.request.headers["Sec-WebSocket-Protocol"].split(",")]
        self.origin = socket.request.headers["Origin"]
        self.path = socket.request.path
        self.seen: list[Message] = []
        self.closed = asyncio.Event()
        self.answers_pings = True
        self.answers: dict[str, Any] = {}
        self._ids = itertools.count(1)
        self._replies: dict[Any, asyncio.Future[Message]] = {}
        self._news = asyncio.Condition()

    async def read(self) -> None:
        """Record messages until the connection ends."""
        try:
            async for data in self.socket:
                message = orjson.loads(data)
                if "method" in message:
                    if message["method"] == "ping" and self.answers_pings:
                        await self.notify("pong")
                    if "id" in message:
                        await self.raw(
                            {"jsonrpc": "2.0", "id": message["id"], "result": self.answers.get(message["method"], {})}
                        )
                elif (waiting := self._replies.pop(message["id"], None)) is not None and not waiting.done():
                    waiting.set_result(message)
                async with self._news:
                    self.seen.append(message)
                    self._news.notify_all()
        except ConnectionClosed:
            pass
        finally:
            self.closed.set()
            for waiting in self._replies.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionError("the extension went away"))

    async def raw(self, message: Any) -> None:
        """Send a value as JSON, or a text unchanged."""
        await self.socket.send(message if isinstance(message, str) else orjson.dumps(message).decode())

    async def start(self, command: str, /, **params: Any) -> tuple[int, asyncio.Future[Message]]:
        """Send a request; returns its id and the future of its reply."""
        number = next(self._ids)
        reply: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._replies[number] = reply
        await self.raw({"jsonrpc": "2.0", "id": number, "method": command, "params": params})
        return number, reply

    async def ask(self, command: str, /, *, within: float = LONG, **params: Any) -> Any:
        """A request and its result."""
        _, reply = await self.start(command, **params)
        message = await asyncio.wait_for(reply, within)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    async def cdp(self, tab: int, method: str, session: str | None = None, **params: Any) -> Any:
        """Send a command of the DevTools protocol."""
        where: dict[str, Any] = {"sessionId": session} if session else {}
        return await self.ask("forwardCDPCommand", tabId=tab, method=method, params=params, **where)

    async def notify(self, method: str, /, **params: Any) -> None:
        """Send a notification."""
        await self.raw({"jsonrpc": "2.0", "method": method, "params": params})

    async def next(self, wanted: Callable[[Message], bool], *, after: int = 0, within: float = LONG) -> Message:
        """The first message from `after` on for which `wanted` is true."""
        async with asyncio.timeout(within), self._news:
            while True:
                for message in self.seen[after:]:
                    if wanted(message):
                        return message
                await self._news.wait()

    async def notified(self, event: str, /, *, after: int = 0, within: float = LONG, **params: Any) -> Message:
        """The params of the first notification with that method and those params."""

        def wanted(message: Message) -> bool:
            given = message.get("params", {})
            return message.get("method") == event and all(given.get(k) == v for k, v in params.items())

        found: Message = (await self.next(wanted, after=after, within=within))["params"]
        return found


class FakeHub:
    """Listens, and keeps the connections in order of arrival."""

    def __init__(self) -> None:
        self.port = free_port()
        self.refuses = False
        self.secret: str | None = SECRET
        """The secret of its proof; None for a hub that does not know the secret."""
        self.asked: list[Request] = []
        self.wires: list[Wire] = []
        self.open_at_once = 0
        self.most_at_once = 0
        self._server: Server | None = None
        self._arrivals = asyncio.Condition()

    async def listen(self) -> None:
        """Start, on the same port as before."""
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self.port,
            subprotocols=[Subprotocol("tabhub")],
            max_size=10 * 1024 * 1024,
            process_request=self._decide,
        )

    def _decide(self, socket: ServerConnection, request: Request) -> Response | None:
        self.asked.append(request)
        if request.path == "/ws":
            return socket.respond(401, "refused") if self.refuses else None
        challenge = request.path.partition("/health?challenge=")[2]
        shown = challenge_proof(self.secret.encode(), self.port, challenge) if self.secret is not None else None
        return socket.respond(200, orjson.dumps({"status": "ok", "proof": shown}).decode())

    async def stop(self) -> None:
        """Stop, and close the connections."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, socket: ServerConnection) -> None:
        wire = Wire(socket)
        self.open_at_once += 1
        self.most_at_once = max(self.most_at_once, self.open_at_once)
        async with self._arrivals:
            self.wires.append(wire)
            self._arrivals.notify_all()
        try:
            await wire.read()
        finally:
            self.open_at_once -= 1

    async def connection(self, number: int, *, within: float = 2 * LONG) -> Wire:
        """The connection with that number, from 1, once its initial messages have arrived."""
        async with asyncio.timeout(within), self._arrivals:
            await self._arrivals.wait_for(lambda: len(self.wires) >= number)
        wire = self.wires[number - 1]
        await wire.notified("tab.syncAll")
        return wire
