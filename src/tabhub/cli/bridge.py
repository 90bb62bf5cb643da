"""The bridge: an MCP client's stdio messages relayed to the hub's HTTP endpoint and back, in both eras.

Owns the session with the hub (id, negotiated version, notification stream), which request runs where, and what
happens when the hub goes away and comes back. It is handed lines and a way to write lines; it opens no stdio.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Callable
from typing import Any

from tabhub.cli.client import HOST, find_hub
from tabhub.cli.messages import (
    HUB_GONE,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Message,
    NotJson,
    answers,
    failure,
    one_line,
    read_message,
    refused,
)
from tabhub.cli.stream import Broken, Exchange
from tabhub.cli.terminal import CliError

_GRACE = 1.0
_BACKOFF = (0.2, 0.5, 1.0, 2.0)
_NOTICE_TIMEOUT = 30.0
_LIST_CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
_DOWN = "The hub is not running. Start it with: tabhub start --background"


class Bridge:
    """One client's connection to the hub."""

    def __init__(self, write: Callable[[bytes], None], *, path: str = "/mcp") -> None:
        self._write = write
        self._path = path
        self._hub = find_hub()
        self._session: str | None = None
        self._version: str | None = None
        self._hello: Message | None = None
        """The client's initialize, kept to introduce it again to a hub that has forgotten it."""
        self._greeting = asyncio.Lock()
        self._notices: asyncio.Task[None] | None = None
        self._running: dict[str, tuple[asyncio.Task[None], Message]] = {}

    # what the client sends

    async def line(self, line: bytes) -> None:
        """Take one line from the client. Requests run beside each other; everything else keeps its order."""
        if not line.strip():
            return
        try:
            message = read_message(line)
        except NotJson:
            self._write(failure(None, PARSE_ERROR, "Not valid JSON."))
            return
        if message.method == "notifications/cancelled" and self._cancelled(message):
            return
        if message.ids:
            key = json.dumps(message.ids)
            task = asyncio.get_running_loop().create_task(self._request(message))
            self._running[key] = (task, message)
            task.add_done_callback(lambda done: self._ended(key, done, message))
            if message.method == "initialize":
                await asyncio.sleep(0)  # it takes the greeting's lock before any later message asks for it
            return
        await self._notify(message)

    def too_long(self, size: int) -> None:
        """A line was longer than any message may be, and was dropped."""
        self._write(failure(None, INVALID_REQUEST, f"The message is longer than {size} bytes and was not read."))

    def _ended(self, key: str, task: asyncio.Task[None], message: Message) -> None:
        if self._running.get(key, (None,))[0] is task:
            del self._running[key]
        if not task.cancelled() and (error := task.exception()) is not None:  # a fault of the bridge: still an answer
            print(f"tabhub: {message.method} failed in the bridge: {error!r}", file=sys.stderr)
            for ident in message.ids:
                self._write(failure(ident, INTERNAL_ERROR, f"The stdio bridge failed: {error!r}", outcome="unknown"))

    def _cancelled(self, message: Message) -> bool:
        """Take back a request: closing its connection is the cancel of 2026-07-28; older hubs want the message."""
        entry = self._running.get(json.dumps((message.params.get("requestId"),)))
        if entry is None:
            return self._session is None
        task, request = entry
        if request.modern:
            task.cancel()
        return request.modern

    async def finish(self) -> None:
        """The client has gone: let what is nearly done be done, end the rest and the session."""
        tasks = [task for task, message in self._running.values() if message.method != "subscriptions/listen"]
        if tasks:
            await asyncio.wait(tasks, timeout=_GRACE)
        await self.stop()

    async def stop(self) -> None:
        """End everything now."""
        tasks = [task for task, _ in self._running.values()]
        if self._notices is not None:
            tasks.append(self._notices)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._end_session()

    async def _end_session(self) -> None:
        """Tell the hub that the session is over, if it can still be told."""
        if self._session is None:
            return
        headers = self._headers(None)
        self._session = None
        with contextlib.suppress(ConnectionError, TimeoutError):
            exchange = await self._open("DELETE", headers, None)
            try:
                await asyncio.wait_for(exchange.head(), 2.0)
            finally:
                exchange.close()

    # requests

    async def _request(self, message: Message) -> None:
        """Run one request (or batch) and see that each of its ids gets exactly one answer."""
        if message.method == "initialize":
            async with self._greeting:
                await self._end_session()
                self._hello, self._version = message, None
                await self._post(message, retry=True)
            return
        if not message.modern:
            async with self._greeting:
                pass  # an initialize under way comes first
        await self._post(message, retry=True)

    async def _post(self, message: Message, *, retry: bool) -> None:
        session = self._session
        try:
            exchange = await self._open("POST", self._headers(message), message.raw)
        except ConnectionRefusedError:
            self._fail(message, _DOWN, "not_sent")
            return
        try:
            await exchange.head()
            if retry and await self._mended(message, exchange, session):
                exchange.close()
                await self._post(message, retry=False)
            elif exchange.streaming:
                await self._relay_events(message, exchange)
            else:
                await self._relay_body(message, exchange)
        except Broken:
            self._fail(message, "The connection to the hub ended before it had answered.", "unknown")
        finally:
            exchange.close()

    async def _mended(self, message: Message, exchange: Exchange, session: str | None) -> bool:
        """Whether a refusal came from something that could be put right, so that the same message may go again."""
        if exchange.status == 401:
            before = self._hub.secret
            self._look()
            return self._hub.secret != before
        if exchange.status == 404 and session is not None and not message.modern:
            return await self._greet_again(session)
        return False

    async def _relay_body(self, message: Message, exchange: Exchange) -> None:
        body = await exchange.body()
        if not 200 <= exchange.status < 300:
            for ident in message.ids:
                self._write(refused(body, ident, exchange.status))
            return
        if message.method == "initialize":
            self._greeted(exchange, body)
        line = one_line(body)
        if line[:1] == b"[" or answers(line, message.ids):
            self._write(line)
        else:
            self._fail(message, "The hub's answer is not an answer to this request.", "unknown")

    async def _relay_events(self, message: Message, exchange: Exchange) -> None:
        """Relay a stream until every id has its answer; a stream that breaks is taken up where it broke."""
        owed = list(message.ids)
        last: str | None = None
        while True:
            with contextlib.suppress(Broken):
                async for event in exchange.events():
                    last = event.id or last
                    if not event.data:
                        continue
                    if message.method == "initialize":
                        self._greeted(exchange, event.data)
                    self._write(one_line(event.data))
                    owed = [ident for ident in owed if not answers(event.data, (ident,))]
                    if not owed:
                        return
            if last is None or message.modern or self._session is None:
                break
            exchange.close()
            resumed = await self._resume(last)
            if resumed is None:
                break
            exchange = resumed
        for ident in owed:
            self._write(_gone(ident, "The hub's stream ended before it had answered.", "unknown"))

    async def _resume(self, last: str) -> Exchange | None:
        """The rest of a stream, where the hub still has it."""
        try:
            exchange = await self._open("GET", {**self._headers(None), "Last-Event-ID": last}, None)
            await exchange.head()
        except ConnectionError:
            return None
        if exchange.status == 200 and exchange.streaming:
            return exchange
        exchange.close()
        return None

    def _fail(self, message: Message, why: str, outcome: str) -> None:
        for ident in message.ids:
            self._write(_gone(ident, why, outcome))

    # notifications, both ways

    async def _notify(self, message: Message) -> None:
        """Pass on a notification, or the client's answer to the hub; there is nobody to tell if that fails."""
        async with self._greeting:
            pass
        try:
            async with asyncio.timeout(_NOTICE_TIMEOUT):
                exchange = await self._open("POST", self._headers(message), message.raw)
                try:
                    await exchange.head()
                finally:
                    exchange.close()
        except (ConnectionError, TimeoutError) as error:
            print(f"tabhub: {message.method or 'an answer'} did not reach the hub: {error}", file=sys.stderr)
            return
        if message.method == "notifications/initialized" and self._session is not None:
            self._listen()

    def _listen(self) -> None:
        """Open the stream of notifications, anew if there is one."""
        if self._notices is not None:
            self._notices.cancel()
        self._notices = asyncio.get_running_loop().create_task(self._follow_notices())

    async def _follow_notices(self) -> None:
        """Relay what the hub says unasked, through any number of lost connections and restarts of the hub."""
        last: str | None = None
        listened: str | None = None
        tries = 0
        while (session := self._session) is not None:
            last = last if session == listened else None  # events are counted by session
            listened = session
            headers = {**self._headers(None), **({"Last-Event-ID": last} if last else {})}
            exchange = None
            try:
                exchange = await self._open("GET", headers, None)
                await exchange.head()
                if exchange.status == 405:
                    return
                if exchange.status == 404:
                    if await self._greet_again(session):
                        tries = 0
                        continue
                elif exchange.status == 200 and exchange.streaming:
                    async for event in exchange.events():
                        tries = 0
                        last = event.id or last
                        if event.data:
                            self._write(one_line(event.data))
                else:
                    last = None
                    self._look()  # the secret may be new
            except ConnectionError:
                self._look()  # a hub that comes back may have another port
            finally:
                if exchange is not None:
                    exchange.close()
            await asyncio.sleep(_BACKOFF[min(tries, len(_BACKOFF) - 1)])
            tries += 1

    # the session

    def _greeted(self, exchange: Exchange, body: bytes) -> bool:
        """Note the session the hub has opened."""
        try:
            value = json.loads(body)
        except ValueError:
            return False
        result = value.get("result") if isinstance(value, dict) else None
        if not isinstance(result, dict):
            return False
        self._session = exchange.headers.get("mcp-session-id")
        version = result.get("protocolVersion")
        self._version = version if isinstance(version, str) else None
        return True

    async def _greet_again(self, stale: str) -> bool:
        """Introduce the client to a hub that does not know its session any more; once, however many notice it."""
        async with self._greeting:
            if self._session != stale:
                return self._session is not None
            if self._hello is None:
                return False
            self._session = self._version = None
            try:
                if not await self._introduce(self._hello):
                    self._session = stale
                    return False
            except ConnectionError:
                self._session = stale
                return False
        self._write(_LIST_CHANGED)  # the hub that is back may have other tools
        if self._notices is None or self._notices.done():
            self._listen()
        return True

    async def _introduce(self, hello: Message) -> bool:
        """initialize and notifications/initialized, on the client's behalf."""
        exchange = await self._open("POST", self._headers(hello), hello.raw)
        try:
            await exchange.head()
            if exchange.streaming:
                greeted = False
                async for event in exchange.events():
                    greeted = bool(event.data) and self._greeted(exchange, event.data)
                    if greeted:
                        break
            else:
                greeted = self._greeted(exchange, await exchange.body())
        finally:
            exchange.close()
        if not greeted:
            return False
        ready = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        exchange = await self._open("POST", self._headers(None), ready)
        try:
            await exchange.head()
        finally:
            exchange.close()
        return True

    # the way to the hub

    def _headers(self, message: Message | None) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if message is not None and message.modern:
            return {**headers, **message.headers()}
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        if self._version is not None:
            headers["MCP-Protocol-Version"] = self._version
        return headers

    async def _open(self, method: str, headers: dict[str, str], body: bytes | None) -> Exchange:
        """Send a request; when nobody listens, look once whether the hub has moved."""
        for attempt in (0, 1):
            secret = {"Authorization": f"Bearer {self._hub.secret}"} if self._hub.secret else {}
            try:
                return await Exchange.open(
                    HOST, self._hub.port, method=method, path=self._path, headers={**headers, **secret}, body=body
                )
            except ConnectionRefusedError:
                before = self._hub.port
                self._look()
                if attempt or self._hub.port == before:
                    raise
        raise AssertionError("unreachable")

    def _look(self) -> None:
        """Read anew where the hub is; while its files cannot be read, what was known stays."""
        with contextlib.suppress(CliError, OSError):
            self._hub = find_hub()


def _gone(ident: Any, why: str, outcome: str) -> bytes:
    return failure(ident, HUB_GONE, why, outcome=outcome)
