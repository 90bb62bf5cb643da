"""The browsers behind one relay: which are connected, and one link to each that is re-established when it breaks.

Owns when to connect to a browser and the first requests to it. The caller supplies `dial`, which opens an authenticated
connection to the relay; the protocol on that connection belongs to relay_link.py.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any

from tabhub.core.backoff import Backoff, FullJitter
from tabhub.errors import CommandFailed, TabhubError
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers, Change
from tabhub.links.connected_browser import FACTS
from tabhub.links.relay_link import RelayLink
from tabhub.wire.relay import NOT_AUTHENTICATED, TRY_AGAIN_LATER, Extensions

log = logging.getLogger("tabhub.relay")

STABLE = 10.0
"""Seconds after which a connection counts as successful and resets the backoff."""
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 30.0
_FIRST_WINDOW, _LONGEST_WINDOW = 5.0, 30.0
"""Seconds within which all clients of a node that ended come back: the first time, and after several failures."""
_AT_LEAST = {NOT_AUTHENTICATED: 15.0, TRY_AGAIN_LATER: 5.0}
_POLL = 2.0
_POLLS_PER_LIST = 15
"""The browsers are listed again after this many polls even if the relay reported no change."""
_MAX_BROWSERS = 50

Dial = Callable[[str], AbstractAsyncContextManager[RelayLink]]
"""Opens an authenticated connection to the relay for the browser with that id."""
Poll = Callable[[], Awaitable[None]]


def _link_backoff() -> Backoff:
    """For a link to one browser. When all links end at once, the connection over which they are listed comes first."""
    return Backoff(_FIRST_DELAY, _LONGEST_DELAY, jitter=partial(random.uniform, 1.0, 1.3))


def reconnect_backoff() -> FullJitter:
    """For the connection to a relay over which its browsers are listed."""
    return FullJitter(_FIRST_WINDOW, _LONGEST_WINDOW, random.random)


def least_delay(link_code: int | None, refused: TabhubError | None) -> float:
    """Seconds to wait in any case: a relay that refuses says how long, or would refuse a quick reconnect again."""
    if refused is not None and refused.retry_after is not None:
        return float(refused.retry_after)
    return _AT_LEAST.get(link_code or 0, 0.0)


class RelayBrowsers:
    """Links to all browsers that one relay lists."""

    def __init__(self, browsers: Browsers, limits: Limits, dial: Dial) -> None:
        self.links: dict[str, RelayLink] = {}
        self.settled = asyncio.Event()
        """Set once every browser of the first list has reported its tabs or failed to."""
        self._browsers = browsers
        self._limits = limits
        self._dial = dial
        self._list_link: RelayLink | None = None
        """The connection over which the browsers are listed."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._connecting: set[str] = set()
        self._direct_ids: dict[str, str] = {}
        """For listed browsers, the id they use when they are connected directly to this hub."""

    def browser_changed(self, change: Change) -> None:
        """Drop the relay link of a browser that is also connected directly."""
        if change.browser_id in self.links:
            return
        self._list_again()
        if change.kind == "connected":
            for ident, direct in list(self._direct_ids.items()):
                if direct == change.browser_id and (link := self.links.get(ident)) is not None:
                    link.close(1000, "the browser is connected directly")

    async def follow(self, link: RelayLink, poll: Poll | None = None) -> str:
        """Keep the links up to date over a separate connection, until that closes; returns the reason.

        `poll` is awaited every two seconds.
        """
        self._list_link = link
        watch = asyncio.create_task(self._browsers.watch(link))
        try:
            while link.closed is None:
                link.changed.clear()
                listed: Extensions = await link.control("list_extensions")
                self._update([extension.id for extension in listed.extensions])
                await self._wait_for_change(link, poll)
        finally:
            watch.cancel()
        return link.closed

    async def stop(self) -> None:
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait_for_change(self, link: RelayLink, poll: Poll | None) -> None:
        for _ in range(_POLLS_PER_LIST):
            if link.changed.is_set():
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    await link.changed.wait()
            if poll is not None:
                await poll()

    def _list_again(self) -> None:
        if self._list_link is not None:
            self._list_link.changed.set()

    def _update(self, listed: list[str]) -> None:
        """Start a task for every listed browser that has none and is not connected directly."""
        idents = {ident for ident in listed[:_MAX_BROWSERS] if ident.startswith("ext-")}
        self._direct_ids = {ident: direct for ident, direct in self._direct_ids.items() if ident in idents}
        self._backoffs = {ident: backoff for ident, backoff in self._backoffs.items() if ident in idents}
        direct = {link.browser_id for link in self._browsers.links() if link.local}
        for ident in idents - self._tasks.keys():
            if self._direct_ids.get(ident) not in direct:
                self._connecting.add(ident)
                task = asyncio.create_task(self._keep(ident))
                self._tasks[ident] = task
                task.add_done_callback(partial(self._task_done, ident))
        self._connected_or_failed()

    def _connected_or_failed(self, *idents: str) -> None:
        self._connecting.difference_update(idents)
        if not self._connecting:
            self.settled.set()

    def _task_done(self, ident: str, _: asyncio.Task[None]) -> None:
        self._tasks.pop(ident, None)
        self._list_again()

    async def _keep(self, ident: str) -> None:
        """One connection to one browser, and the delay before `_update` may start the next."""
        backoff = self._backoffs.setdefault(ident, _link_backoff())
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            reason = await self._serve(ident)
        except TimeoutError:
            reason = "no reply"
        except TabhubError as error:
            reason = error.text()
        finally:
            self._connected_or_failed(ident)
        log.info("remote browser %s: %s", ident, reason)
        if loop.time() - began > STABLE:
            backoff.reset()
        await asyncio.sleep(backoff.next_delay())

    async def _serve(self, ident: str) -> str:
        async with self._dial(ident) as link:
            connected = await link.connect(ident)
            async with asyncio.timeout(self._limits.call_timeout):
                state = await _query(link, "getState")
            direct = state.get("browserId")
            if isinstance(direct, str):
                self._direct_ids[ident] = direct
                if any(known.local and known.browser_id == direct for known in self._browsers.links()):
                    return "the browser is connected directly"
            self.links[ident] = link
            self._browsers.attach(link)
            watch = asyncio.create_task(self._browsers.watch(link))
            try:
                hello = {name: state[name] for name in FACTS if name in state}
                link.deliver("extension.hello", {"browserName": connected.extension_name, **hello})
                async with asyncio.timeout(self._limits.call_timeout):
                    tabs = await _query(link, "getTabs")
                link.deliver("tab.syncAll", {"tabs": [], **tabs, "debugger": state.get("debugger")})
                self._connected_or_failed(ident)
                while link.closed is None:
                    link.changed.clear()
                    await link.changed.wait()
            finally:
                watch.cancel()
                del self.links[ident]
                self._browsers.detach(link, link.closed or "the hub closed the link to the remote browser")
        return link.closed


async def _query(link: RelayLink, method: str) -> dict[str, Any]:
    """The browser's reply, or an empty object if it does not know the method."""
    try:
        reply: dict[str, Any] = await link.request(method, {})
    except CommandFailed:
        return {}
    return reply
