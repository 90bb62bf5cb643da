"""The relays a hub uses: which remote browsers there are, one link to each, and all of it again when a road breaks.

Owns when to connect, with which token, and what is told of it. What is said on a connection is relay.py's.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tabhub.errors import CommandFailed, SetupError, TabhubError
from tabhub.kinds import RelaySettings
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers, Change
from tabhub.links.relay import RelayLink, RelayRefused, relay_link, relay_url
from tabhub.trust.jwt import unverified

log = logging.getLogger("tabhub.relay")

_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
_GOOD = 10.0
"""A connection that lasted this long was a good one: the next attempt comes soon."""
_LOOK = 2.0
"""How often the token's file is looked at."""
_LOOKS = 15
"""After so many, the browsers are listed again though nothing was said of a change."""
_MOST_BROWSERS = 50
_HELLO = ("browserName", "browserVersion", "extensionVersion", "platform")


@dataclass(frozen=True, slots=True)
class Token:
    """A token, and where it says to go."""

    text: str
    url: str


def read_token(settings: RelaySettings) -> Token:
    """The token in its file; an address in it counts more than the one in the settings."""
    path = Path(settings.token_file).expanduser()
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise SetupError(f"The relay's token file {path} cannot be read: {error}.") from None
    named = unverified(text)["claims"].get("connection_url")
    return Token(text, relay_url(named if isinstance(named, str) and named else settings.url))


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


class RelayRoad:
    """One relay."""

    def __init__(self, settings: RelaySettings, browsers: Browsers, limits: Limits) -> None:
        self.settings = settings
        self._browsers = browsers
        self._limits = limits
        self._token: Token | None = None
        self._news = asyncio.Event()
        self._overseer: RelayLink | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._links: dict[str, RelayLink] = {}
        self._waits: dict[str, Waits] = {}
        self._same: dict[str, str] = {}
        """Of listed browsers, the id they have where they are connected directly."""
        self._reason: str | None = "not connected yet"

    def facts(self) -> dict[str, Any]:
        """How it stands."""
        url = self._token.url if self._token is not None else self.settings.url
        facts: dict[str, Any] = {"url": url, "connected": self._overseer is not None, "browsers": len(self._links)}
        return facts if self._reason is None else {**facts, "reason": self._reason}

    def changed(self, change: Change) -> None:
        """A browser that is connected directly is not reached through the relay as well."""
        if change.kind == "tabs" or change.browser_id in self._links:
            return
        self._news.set()
        if change.kind == "connected":
            for ident, direct in list(self._same.items()):
                if direct == change.browser_id and (link := self._links.get(ident)) is not None:
                    link.close(1000, "the browser is connected directly")

    async def run(self) -> None:
        """Keep to the relay until cancelled."""
        waits = Waits()
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                try:
                    self._reason = await self._oversee()
                except (TabhubError, TimeoutError) as error:
                    self._reason = error.text() if isinstance(error, TabhubError) else "The relay gave no answer."
                if loop.time() - began > _GOOD:
                    waits.good()
                log.warning("relay %s: %s", self.settings.url, self._reason)
                await asyncio.sleep(waits.next())
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _oversee(self) -> str:
        """Follow which browsers there are; gives why that ended."""
        self._token = token = read_token(self.settings)
        async with relay_link(token.url, token.text, "relay", self._limits) as link:
            self._overseer, self._reason = link, None
            log.info("relay %s: connected", token.url)
            link.on_status = self._news.set
            watch = asyncio.create_task(self._browsers.watch(link))
            end = asyncio.create_task(link.ended.wait())
            try:
                while link.closed is None:
                    self._news.clear()
                    self._follow((await link.control("list_extensions")).get("extensions"))
                    await self._pause(end)
            finally:
                self._overseer = None
                watch.cancel()
                end.cancel()
        return link.closed or "the connection ended"

    async def _pause(self, end: asyncio.Task[bool]) -> None:
        """Wait for news; meanwhile a token that was replaced is handed on."""
        news = asyncio.create_task(self._news.wait())
        try:
            for _ in range(_LOOKS):
                if news.done() or end.done():
                    return
                await asyncio.wait((news, end), timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
                await self._refresh()
        finally:
            news.cancel()

    async def _refresh(self) -> None:
        try:
            fresh = read_token(self.settings)
        except SetupError as error:
            self._reason = error.text()  # the one in use holds until its end
            return
        self._reason = None
        if fresh == self._token or self._token is None:
            return
        moved = fresh.url != self._token.url
        self._token = fresh
        for link in [self._overseer, *self._links.values()]:
            if link is not None and link.closed is None:
                if moved:
                    link.close(1000, "the token names another relay")
                else:
                    await link.control("refresh_token", accessToken=fresh.text)
        log.info("relay %s: the token was replaced", fresh.url)

    def _follow(self, listed: Any) -> None:
        """Have a link to every browser that is there."""
        there = [item.get("id") for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        idents = {ident for ident in there[:_MOST_BROWSERS] if isinstance(ident, str) and ident.startswith("ext-")}
        self._same = {ident: direct for ident, direct in self._same.items() if ident in idents}
        self._waits = {ident: waits for ident, waits in self._waits.items() if ident in idents}
        direct = {link.browser_id for link in self._browsers.links() if link.local}
        for ident in idents - self._tasks.keys():
            if self._same.get(ident) not in direct:
                task = asyncio.create_task(self._keep(ident))
                self._tasks[ident] = task
                task.add_done_callback(partial(self._ended, ident))

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
        log.info("remote browser %s: %s", ident, reason)
        if loop.time() - began > _GOOD:
            waits.good()
        await asyncio.sleep(waits.next())

    async def _serve(self, ident: str) -> str:
        token = self._token
        if token is None:
            raise RelayRefused("There is no token for the relay.")
        async with relay_link(token.url, token.text, ident, self._limits) as link:
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
            self._links[ident] = link
            self._browsers.attach(link)
            watch = asyncio.create_task(self._browsers.watch(link))
            try:
                hello = {name: state[name] for name in _HELLO if name in state}
                link.heard("extension.hello", {"browserName": link.name, **hello})
                async with asyncio.timeout(self._limits.call_timeout):
                    tabs = await _asked(link, "getTabs")
                link.heard("tab.syncAll", {"tabs": [], **tabs, "debugger": state.get("debugger")})
                await link.ended.wait()
            finally:
                watch.cancel()
                del self._links[ident]
                self._browsers.detach(link, link.closed or "the hub let the remote browser go")
        return link.closed or "the connection ended"


async def _asked(link: RelayLink, method: str) -> dict[str, Any]:
    """What a browser says, or nothing where it does not know the question."""
    try:
        answer = await link.request(method, {})
    except CommandFailed:
        return {}
    return answer if isinstance(answer, dict) else {}


class Relays:
    """All relays of a hub."""

    def __init__(self, settings: Iterable[RelaySettings], browsers: Browsers, limits: Limits) -> None:
        self.roads = [RelayRoad(each, browsers, limits) for each in settings]
        self._tasks: list[asyncio.Task[None]] = []
        browsers.on_change(self._changed)

    def _changed(self, change: Change) -> None:
        for road in self.roads:
            road.changed(change)

    def facts(self) -> list[dict[str, Any]]:
        """How each of them stands."""
        return [road.facts() for road in self.roads]

    def start(self) -> None:
        """Begin."""
        self._tasks = [asyncio.create_task(road.run()) for road in self.roads]

    async def stop(self) -> None:
        """End all connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
