"""A road to the browsers of one relay: which of them are there, one link to each, and each again when it breaks.

Owns when to connect to a browser and what is asked of it first. How a connection to the relay is made, and with which
token, is whoever's that hands in `dial`; what is said on it is relay.py's.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

from tabhub.errors import CommandFailed, TabhubError
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers, Change
from tabhub.links.relay_link import RelayLink

log = logging.getLogger("tabhub.relay")

GOOD = 10.0
"""A connection that lasted this long was a good one: the next attempt comes soon."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_LOOK = 2.0
_LOOKS = 15
"""After so many, the browsers are listed again though nothing was said of a change."""
_MOST_BROWSERS = 50
_HELLO = ("browserName", "browserVersion", "extensionVersion", "platform")

Dial = Callable[[str], AbstractAsyncContextManager[RelayLink]]
"""Makes a connection to the relay that has been let in, for the browser of that id."""


class Waits:
    """The time until the next attempt: longer with every failure."""

    def __init__(self) -> None:
        self._failures = 0

    def good(self) -> None:
        """An attempt succeeded."""
        self._failures = 0

    def next(self) -> float:
        """How long to wait now."""
        wait: float = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(self._failures, 10))
        self._failures += 1
        return wait * random.uniform(1.0, 1.3)  # noqa: S311 - so that not all come at once


async def nothing() -> None:
    """What there is to do meanwhile, mostly."""


class RelayBrowsers:
    """The browsers behind one relay."""

    def __init__(self, browsers: Browsers, limits: Limits, dial: Dial) -> None:
        self.links: dict[str, RelayLink] = {}
        self.settled = asyncio.Event()
        """Set once the browsers that were there at first have told their tabs, or failed to."""
        self._browsers = browsers
        self._limits = limits
        self._dial = dial
        self._news = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waits: dict[str, Waits] = {}
        self._coming: set[str] = set()
        self._same: dict[str, str] = {}
        """Of listed browsers, the id they have where they are connected directly."""

    def changed(self, change: Change) -> None:
        """A browser that is connected directly is not reached through the relay as well."""
        if change.kind == "tabs" or change.browser_id in self.links:
            return
        self._news.set()
        if change.kind == "connected":
            for ident, direct in list(self._same.items()):
                if direct == change.browser_id and (link := self.links.get(ident)) is not None:
                    link.close(1000, "the browser is connected directly")

    async def oversee(self, link: RelayLink, meanwhile: Callable[[], Awaitable[None]] = nothing) -> str:
        """Follow which browsers there are, on a connection of its own; gives why that ended."""
        link.on_status = self._news.set
        watch = asyncio.create_task(self._browsers.watch(link))
        end = asyncio.create_task(link.ended.wait())
        try:
            while link.closed is None:
                self._news.clear()
                self._follow((await link.control("list_extensions")).get("extensions"))
                await self._pause(end, meanwhile)
        finally:
            watch.cancel()
            end.cancel()
        return link.closed or "the connection ended"

    async def stop(self) -> None:
        """Let all browsers go."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _pause(self, end: asyncio.Task[bool], meanwhile: Callable[[], Awaitable[None]]) -> None:
        """Wait for news; now and then there is something else to do."""
        news = asyncio.create_task(self._news.wait())
        try:
            for _ in range(_LOOKS):
                if news.done() or end.done():
                    return
                await asyncio.wait((news, end), timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
                await meanwhile()
        finally:
            news.cancel()

    def _follow(self, listed: Any) -> None:
        """Have a link to every browser that is there."""
        there = [item.get("id") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        idents = {ident for ident in there[:_MOST_BROWSERS] if isinstance(ident, str) and ident.startswith("ext-")}
        self._same = {ident: direct for ident, direct in self._same.items() if ident in idents}
        self._waits = {ident: waits for ident, waits in self._waits.items() if ident in idents}
        direct = {link.browser_id for link in self._browsers.links() if link.local}
        for ident in idents - self._tasks.keys():
            if self._same.get(ident) not in direct:
                self._coming.add(ident)
                task = asyncio.create_task(self._keep(ident))
                self._tasks[ident] = task
                task.add_done_callback(partial(self._ended, ident))
        self._arrived("")

    def _arrived(self, ident: str) -> None:
        self._coming.discard(ident)
        if not self._coming:
            self.settled.set()

    def _ended(self, ident: str, _: asyncio.Task[None]) -> None:
        self._tasks.pop(ident, None)
        self._news.set()

    async def _keep(self, ident: str) -> None:
        """One browser, from its connection to its end; a failure is not repeated at once."""
        waits = self._waits.setdefault(ident, Waits())
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            reason = await self._serve(ident)
        except TimeoutError:
            reason = "it gave no answer"
        except TabhubError as error:
            reason = error.text()
        finally:
            self._arrived(ident)
        log.info("remote browser %s: %s", ident, reason)
        if loop.time() - began > GOOD:
            waits.good()
        await asyncio.sleep(waits.next())

    async def _serve(self, ident: str) -> str:
        async with self._dial(ident) as link:
            joined = await link.control("connect", extension_id=ident)
            link.connection = str(joined.get("connection_id", ""))
            link.name = str(joined.get("extension_name", "browser"))[:200]
            async with asyncio.timeout(self._limits.call_timeout):
                state = await _asked(link, "getState")
            direct = state.get("browserId")
            if isinstance(direct, str):
                self._same[ident] = direct
                if any(known.local and known.browser_id == direct for known in self._browsers.links()):
                    return "it is connected directly"
            self.links[ident] = link
            self._browsers.attach(link)
            watch = asyncio.create_task(self._browsers.watch(link))
            try:
                hello = {name: state[name] for name in _HELLO if name in state}
                link.heard("extension.hello", {"browserName": link.name, **hello})
                async with asyncio.timeout(self._limits.call_timeout):
                    tabs = await _asked(link, "getTabs")
                link.heard("tab.syncAll", {"tabs": [], **tabs, "debugger": state.get("debugger")})
                self._arrived(ident)
                await link.ended.wait()
            finally:
                watch.cancel()
                del self.links[ident]
                self._browsers.detach(link, link.closed or "the hub let the remote browser go")
        return link.closed or "the connection ended"


async def _asked(link: RelayLink, method: str) -> dict[str, Any]:
    """What a browser says, or nothing where it does not know the question."""
    try:
        answer = await link.request(method, {})
    except CommandFailed:
        return {}
    return answer if isinstance(answer, dict) else {}
