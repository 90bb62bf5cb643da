"""Pending logins: which OAuth states are expected, and the callback the person's browser brings to the hub.

Owns the expected states, each valid for one callback. It knows neither the rest of OAuth nor the SDK.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

PATH = "/oauth/callback"
_MAX_PENDING = 100


class PendingLogins:
    """Logins in progress."""

    def __init__(self, folder: Path, port: int, show: Callable[[str], Awaitable[None]]) -> None:
        self._folder = folder
        self.redirect = f"http://127.0.0.1:{port}{PATH}"
        self.show = show
        """Opens a URL in the person's browser, if one is connected."""
        self._pending: dict[str, asyncio.Future[dict[str, str]]] = {}

    def file(self, server_id: str) -> Path:
        return self._folder / f"{server_id}.json"

    def forget(self, server_id: str) -> None:
        """Delete the login of a removed server."""
        self.file(server_id).unlink(missing_ok=True)

    def expect(self, state: str) -> asyncio.Future[dict[str, str]]:
        """The query of the callback with this state."""
        while len(self._pending) >= _MAX_PENDING:
            self._pending.pop(next(iter(self._pending))).cancel()
        callback = self._pending[state] = asyncio.get_running_loop().create_future()
        return callback

    def resolve(self, query: dict[str, str]) -> bool:
        """The person's browser came back; False if no login expects this state, or no longer does."""
        waiting = self._pending.pop(query.get("state", ""), None)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(query)
        return True
