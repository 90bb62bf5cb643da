"""A fake browser extension controlled by a test: for load and faults, never as the only test of a feature."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any, Self

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from tabhub.wire.browser_commands import COMMANDS
from tabhub.wire.extension_link import FROM_HUB
from tests.harness.hub import Address

Reply = Callable[[dict[str, Any]], Any | Awaitable[Any]]


class Silent:
    """A handler returns this to leave a request unanswered."""


class Refuses(Exception):
    """A handler raises this to answer with an error."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data is not None else {})}


def tab(tab_id: int, url: str = "https://example.com/", **more: Any) -> dict[str, Any]:
    """A tab as an extension describes it."""
    return {
        "tabId": tab_id,
        "url": url,
        "title": f"Tab {tab_id}",
        "active": False,
        "windowId": 1,
        "windowFocused": False,
        "index": 0,
        "status": "complete",
        "pinned": False,
        "incognito": False,
        "groupId": -1,
        "discarded": False,
        "audible": False,
        "lastAccessed": 1.0,
        **more,
    }


def undeclared(message: dict[str, Any]) -> list[str]:
    """How a message of the hub differs from the struct declared for it in src/tabhub/wire."""
    method, params = message.get("method"), message.get("params", {})
    if method is None:
        return []
    if method not in (COMMANDS if "id" in message else FROM_HUB):
        return [f"{method} is not declared"]
    known = COMMANDS[method].params if "id" in message else FROM_HUB[method]
    try:
        if known is not None:
            msgspec.convert(params, known)
    except msgspec.ValidationError as error:
        return [f"{method}: {error}"]
    return []


def _answer_cdp(params: dict[str, Any]) -> dict[str, Any]:
    """A page without frames, in which every script returns the same."""
    if params["method"] == "Page.getFrameTree":
        return {"frameTree": {"frame": {"id": "F", "url": ""}}}
    return {"result": {"type": "string", "value": "fake"}}


def answer_scripts(params: dict[str, Any]) -> dict[str, Any]:
    """A handler of CDP commands for a page in which the hub's scripts run and permit its input; see `has_frames`."""
    if params["method"] == "Page.getFrameTree":
        return _answer_cdp(params)
    if params["method"] == "Page.createIsolatedWorld":
        return {"executionContextId": 3}
    return {"result": {"value": script_value(params.get("params", {}).get("expression", ""))}}


def script_value(expression: str) -> Any:
    """What a script of the hub gets: the kit, or leave to send input."""
    if "tabhubKit.begin(" in expression:
        return ["token", "e"]
    return {"go": True} if "watchReactions" in expression else 0


class FakeExtension:
    """One connected fake browser. `handlers[method](params)` gives a request's result; requests are kept in `seen`.

    Scripts of the hub itself find nothing in its pages, such as secret fields: the commands before them are answered
    here and not kept, unless a test sets `has_frames` and answers them itself.
    """

    has_frames = False

    def __init__(
        self, hub: Address, browser_id: str = "fake-browser", tabs: list[dict[str, Any]] | None = None
    ) -> None:
        self._hub = hub
        self.browser_id = browser_id
        self.tabs = tabs if tabs is not None else [tab(7, active=True)]
        self.handlers: dict[str, Reply] = {
            "getState": lambda params: {"browserId": browser_id, "debugger": {"attached": []}},
            "getTabs": lambda params: {"tabs": self.tabs},
            "createTab": self._create,
            "forwardCDPCommand": _answer_cdp,
            "subscribeCDPEvents": lambda params: {},
            "plugin.uninstall": lambda params: {},
        }
        self.seen: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.notices: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.closed: asyncio.Future[tuple[int, str]] = asyncio.get_running_loop().create_future()
        self.undeclared: list[str] = []
        self._pongs: list[asyncio.Future[None]] = []
        self._next_tab = 1000
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None

    @property
    def socket(self) -> ClientConnection:
        assert self._socket is not None
        return self._socket

    async def __aenter__(self) -> Self:
        await self.connect()
        await self.notify("extension.hello", {"browserId": self.browser_id, "browserName": "Fake"})
        await self.sync()
        return self

    async def connect(self) -> None:
        """Connect without a word about itself."""
        protocols = [Subprotocol("tabhub"), Subprotocol(self._hub.extension_key), Subprotocol(self.browser_id)]
        self._socket = await connect(self._hub.ws_url, subprotocols=protocols, max_size=None, ping_interval=None)
        self._reader = asyncio.create_task(self._read())

    async def __aexit__(self, *_: object) -> None:
        await self.socket.close()
        if self._reader is not None:
            await self._reader
        assert self.undeclared == []

    async def sync(self) -> None:
        """Send the tabs, and wait until the hub has processed them."""
        await self.notify("tab.syncAll", {"tabs": self.tabs, "plugins": {}, "debugger": {"attached": []}})
        await self.settle()

    async def settle(self) -> None:
        """Wait until the hub has processed everything sent: it answers pings in order."""
        pong = asyncio.get_running_loop().create_future()
        self._pongs.append(pong)
        await self.notify("ping", {})
        async with asyncio.timeout(30):
            await pong

    async def next_request(self, method: str) -> dict[str, Any]:
        """The next request of that method; earlier messages of other methods are skipped."""
        async with asyncio.timeout(30):
            while True:
                message = await self.seen.get()
                if message["method"] == method:
                    return message

    async def next_notification(self, method: str) -> dict[str, Any]:
        """The next notification of that method; earlier messages of other methods are skipped."""
        async with asyncio.timeout(30):
            while True:
                message = await self.notices.get()
                if message["method"] == method:
                    return message

    async def ended(self) -> tuple[int, str]:
        """How the hub closed the connection: code and reason."""
        async with asyncio.timeout(30):
            return await asyncio.shield(self.closed)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def send(self, message: Any) -> None:
        await self.socket.send(message if isinstance(message, str) else json.dumps(message))

    def cut(self) -> None:
        """Abort the TCP connection without closing the WebSocket."""
        self.socket.transport.abort()

    def _create(self, params: dict[str, Any]) -> dict[str, Any]:
        self._next_tab += 1
        made = tab(self._next_tab, params.get("url", "about:blank"))
        self.tabs.append(made)
        return made

    async def _read(self) -> None:
        running: set[asyncio.Task[None]] = set()
        with contextlib.suppress(ConnectionClosed):
            async for text in self.socket:
                self._take(json.loads(text), running)
        for task in running:
            task.cancel()
        self.closed.set_result((self.socket.close_code or 1006, self.socket.close_reason or ""))

    def _take(self, message: dict[str, Any], running: set[asyncio.Task[None]]) -> None:
        self.undeclared.extend(undeclared(message))
        if "method" in message and "id" in message:
            params = message.get("params", {})
            if not self.has_frames and params.get("method") in ("Page.getFrameTree", "Page.createIsolatedWorld"):
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": _answer_cdp(params)}
                task = asyncio.create_task(self.send(reply))
                running.add(task)
                task.add_done_callback(running.discard)
                return
            self.seen.put_nowait(message)
            task = asyncio.create_task(self._answer(message))
            running.add(task)
            task.add_done_callback(running.discard)
        elif message.get("method") == "pong" and self._pongs:
            self._pongs.pop(0).set_result(None)
        elif message.get("method") == "ping":
            task = asyncio.create_task(self.notify("pong", {}))
            running.add(task)
            task.add_done_callback(running.discard)
        elif "method" in message:
            self.notices.put_nowait(message)

    async def _answer(self, message: dict[str, Any]) -> None:
        handler = self.handlers.get(message["method"])
        if handler is None:
            error = {"code": -32601, "message": f"Method not found: {message['method']}"}
            await self.send({"jsonrpc": "2.0", "id": message["id"], "error": error})
            return
        try:
            result = handler(message.get("params", {}))
            if inspect.isawaitable(result):
                result = await result
        except Refuses as refusal:
            await self.send({"jsonrpc": "2.0", "id": message["id"], "error": refusal.error})
            return
        if result is Silent:
            return
        with contextlib.suppress(ConnectionClosed):  # the hub has disconnected
            await self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
