"""An in-memory transport to tabs, for tests of page tools without a browser."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tabhub.core.tabs import TabChanges, TabTable
from tabhub.errors import CallTimeout, TabFailed, TabNotFound
from tabhub.links.transport import DisconnectCallback, Listener, MessageCallback
from tabhub.wire.extension_link import READERS
from tests.harness.fake_extension import tab

Handler = Callable[[dict[str, Any]], Any]


@dataclass(slots=True)
class Sent:
    """One request that a tab received."""

    tab_id: int
    method: str
    params: dict[str, Any]
    listener: Listener | None


class MemoryTabs:
    """Tabs that consist of handlers: `answer[tab_id](params)` returns a tab's answer."""

    def __init__(self) -> None:
        self.book = TabTable()
        self.answer: dict[int, Handler] = {}
        self.sent: list[Sent] = []
        self.on_open: Callable[[int, str], None] = lambda tab_id, url: None
        self.opened: list[str] = []
        self.revisited: list[str] = []
        self._on_message: MessageCallback | None = None
        self._on_tab: dict[int, list[DisconnectCallback]] = {}
        self._pending: dict[int, set[asyncio.Future[Any]]] = {}
        self._next = 100

    # TabHubTransport

    async def send_request(
        self,
        tab_id: int,
        message: Mapping[str, Any],
        timeout: float | None = None,  # noqa: ASYNC109 - it is the interface's
        *,
        listener: Listener | None = None,
        raw: bool = False,
    ) -> Any:
        if self.book.get(tab_id) is None:
            raise TabNotFound(f"no tab {tab_id}", data={"sent": False})
        self.sent.append(Sent(tab_id, message["method"], message["params"], listener))
        future = asyncio.ensure_future(self._answer(tab_id, message["params"]))
        self._pending.setdefault(tab_id, set()).add(future)
        try:
            async with asyncio.timeout(timeout):
                result = await future
        except TimeoutError:
            raise CallTimeout("late") from None
        finally:
            self._pending[tab_id].discard(future)
        return json.dumps(result).encode() if raw else result

    async def _answer(self, tab_id: int, params: dict[str, Any]) -> Any:
        result = self.answer[tab_id](params)
        result = await result if inspect.isawaitable(result) else result
        if isinstance(result, Exception):
            raise result
        return result

    def on_message(self, callback: MessageCallback) -> None:
        self._on_message = callback

    def on_disconnect(self, tab_id: int, callback: DisconnectCallback) -> None:
        self._on_tab.setdefault(tab_id, []).append(callback)

    def disconnect(self, tab_id: int) -> None:
        for future in list(self._pending.get(tab_id, ())):
            future.cancel()
        for callback in self._on_tab.pop(tab_id, ()):
            callback(tab_id)

    # Sites

    async def open(self, url: str) -> int:
        self.opened.append(url)
        self._next += 1
        self.add(self._next, url)
        self.on_open(self._next, url)
        return self._next

    async def revisit(self, tab_id: int, url: str) -> None:
        self.revisited.append(url)
        self.on_open(tab_id, url)

    # controlled by the test

    def add(self, tab_id: int, url: str, **more: Any) -> TabChanges:
        return self.report(tab_id, "created", tab=tab(tab_id, url, **more))

    def report(self, tab_id: int, change: str, **more: Any) -> TabChanges:
        return self.book.apply("b", READERS["tab.stateChanged"]({"tabId": tab_id, "change": change, **more}))

    def say(self, tab_id: int, method: str, **params: Any) -> Any:
        assert self._on_message is not None
        return self._on_message(tab_id, READERS[method]({"tabId": tab_id, **params}))

    def close(self, tab_id: int) -> TabChanges:
        """Close a tab: its calls fail as over a link, and listeners are notified."""
        changes = self.report(tab_id, "removed")
        self.answer.pop(tab_id, None)
        self.disconnect(tab_id)
        return changes


def closed_under_the_call() -> TabFailed:
    return TabFailed("it was closed")
