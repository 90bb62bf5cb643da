"""The relays a hub uses: a road to each, and the token it goes with.

Owns when to connect to a relay, with which token, and what is told of it. Which browsers are behind it is road.py's,
what is said on a connection relay.py's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabhub.config.relay import RelaySettings
from tabhub.errors import RelayRefused, SetupError, TabhubError
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers, Change
from tabhub.links.relay_browsers import GOOD, RelayBrowsers, Waits
from tabhub.links.relay_link import RelayLink, relay_link, relay_url
from tabhub.trust.jwt import unverified

log = logging.getLogger("tabhub.relay")


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


class RelayClient:
    """One relay."""

    def __init__(self, settings: RelaySettings, browsers: Browsers, limits: Limits) -> None:
        self.settings = settings
        self._limits = limits
        self._token: Token | None = None
        self._overseer: RelayLink | None = None
        self._road = RelayBrowsers(browsers, limits, self._dial)
        self.changed = self._road.changed
        self._reason: str | None = "not connected yet"

    def facts(self) -> dict[str, Any]:
        """How it stands."""
        url = self._token.url if self._token is not None else self.settings.url
        connected, count = self._overseer is not None, len(self._road.links)
        facts: dict[str, Any] = {"url": url, "connected": connected, "browsers": count}
        return facts if self._reason is None else {**facts, "reason": self._reason}

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
                if loop.time() - began > GOOD:
                    waits.good()
                log.warning("relay %s: %s", self.settings.url, self._reason)
                await asyncio.sleep(waits.next())
        finally:
            await self._road.stop()

    def _dial(self, ident: str) -> AbstractAsyncContextManager[RelayLink]:
        token = self._token
        if token is None:
            raise RelayRefused("There is no token for the relay.")
        return relay_link(token.url, token.text, ident, self._limits)

    async def _oversee(self) -> str:
        """Follow which browsers there are; gives why that ended."""
        self._token = token = read_token(self.settings)
        async with self._dial("relay") as link:
            self._overseer, self._reason = link, None
            log.info("relay %s: connected", token.url)
            try:
                return await self._road.oversee(link, self._refresh)
            finally:
                self._overseer = None

    async def _refresh(self) -> None:
        """A token that was replaced is handed on."""
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
        for link in [self._overseer, *self._road.links.values()]:
            if link is not None and link.closed is None:
                if moved:
                    link.close(1000, "the token names another relay")
                else:
                    await link.control("refresh_token", accessToken=fresh.text)
        log.info("relay %s: the token was replaced", fresh.url)


class Relays:
    """All relays of a hub."""

    def __init__(self, settings: Iterable[RelaySettings], browsers: Browsers, limits: Limits) -> None:
        self.roads = [RelayClient(each, browsers, limits) for each in settings]
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
