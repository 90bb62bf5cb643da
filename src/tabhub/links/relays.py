"""The relays a hub connects to, each with its token.

Owns when to connect to a relay, with which token, and the status of that connection. The browsers behind it belong to
relay_browsers.py, the protocol to relay_link.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabhub.config.setting_types import RelaySettings
from tabhub.errors import RelayRefused, SetupError, TabhubError
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.relay_browsers import STABLE, RelayBrowsers, least_delay, reconnect_backoff
from tabhub.links.relay_link import RelayLink, relay_link, relay_url
from tabhub.trust.jwt import unverified

log = logging.getLogger("tabhub.relay")


@dataclass(frozen=True, slots=True)
class Token:
    """An access token and the relay it is for."""

    text: str
    url: str


def read_token(settings: RelaySettings) -> Token:
    """Read the token file; a `connection_url` in the token takes precedence over the URL in the settings."""
    path = Path(settings.token_file).expanduser()
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise SetupError(f"The relay's token file {path} cannot be read: {error}.") from None
    named = unverified(text)["claims"].get("connection_url")
    return Token(text, relay_url(named if isinstance(named, str) and named else settings.url))


class RelayClient:
    """The connection to one relay."""

    def __init__(self, settings: RelaySettings, browsers: Browsers, limits: Limits) -> None:
        self.settings = settings
        self._limits = limits
        self._token: Token | None = None
        self._main_link: RelayLink | None = None
        self._relay_browsers = RelayBrowsers(browsers, limits, self._dial)
        browsers.on_change(self._relay_browsers.browser_changed, "connected", "disconnected")
        self._reason: str | None = "not connected yet"
        self._close_code: int | None = None

    def status(self) -> dict[str, Any]:
        url = self._token.url if self._token is not None else self.settings.url
        connected, count = self._main_link is not None, len(self._relay_browsers.links)
        status: dict[str, Any] = {"url": url, "connected": connected, "browsers": count}
        return status if self._reason is None else {**status, "reason": self._reason}

    async def run(self) -> None:
        """Stay connected until cancelled."""
        backoff = reconnect_backoff()
        loop = asyncio.get_running_loop()
        try:
            while True:
                began, refused, self._close_code = loop.time(), None, None
                try:
                    self._reason = await self._follow()
                except (TabhubError, TimeoutError) as error:
                    refused = error if isinstance(error, TabhubError) else None
                    self._reason = (
                        error.text() if isinstance(error, TabhubError) else "The relay did not answer in time."
                    )
                if loop.time() - began > STABLE:
                    backoff.reset()
                log.warning("relay %s: %s", self.settings.url, self._reason)
                await asyncio.sleep(backoff.next_delay(least_delay(self._close_code, refused)))
        finally:
            await self._relay_browsers.stop()

    def _dial(self, ident: str) -> AbstractAsyncContextManager[RelayLink]:
        token = self._token
        if token is None:
            raise RelayRefused("There is no token for the relay.")
        return relay_link(token.url, token.text, ident, self._limits)

    async def _follow(self) -> str:
        """Follow the relay's list of browsers until the connection closes; returns the reason."""
        self._token = token = read_token(self.settings)
        async with self._dial("relay") as link:
            self._main_link, self._reason = link, None
            log.info("relay %s: connected", token.url)
            try:
                return await self._relay_browsers.follow(link, self._refresh)
            finally:
                self._main_link, self._close_code = None, link.close_code

    async def _refresh(self) -> None:
        """Send a token that was replaced in its file to the relay."""
        try:
            fresh = read_token(self.settings)
        except SetupError as error:
            self._reason = error.text()  # the current token is valid until it expires
            return
        self._reason = None
        if fresh == self._token or self._token is None:
            return
        moved = fresh.url != self._token.url
        self._token = fresh
        for link in [self._main_link, *self._relay_browsers.links.values()]:
            if link is not None and link.closed is None:
                if moved:
                    link.close(1000, "the new token is for another relay")
                else:
                    await link.control("refresh_token", accessToken=fresh.text)
        log.info("relay %s: the token was replaced", fresh.url)


class Relays:
    """All relays of a hub."""

    def __init__(self, settings: Iterable[RelaySettings], browsers: Browsers, limits: Limits) -> None:
        self._clients = [RelayClient(each, browsers, limits) for each in settings]
        self._tasks: list[asyncio.Task[None]] = []

    def status(self) -> list[dict[str, Any]]:
        return [client.status() for client in self._clients]

    def start(self) -> None:
        self._tasks = [asyncio.create_task(client.run()) for client in self._clients]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
