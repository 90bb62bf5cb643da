"""The way back of a login: which logins are awaited, and what the person's browser brings back to the hub.

Owns the states that are awaited, each good for one answer. It knows nothing of OAuth beyond that, and no SDK.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

PATH = "/oauth/callback"
_MOST = 100


class PendingLogins:
    """Logins under way."""

    def __init__(self, folder: Path, port: int, show: Callable[[str], Awaitable[None]]) -> None:
        self._folder = folder
        self.redirect = f"http://127.0.0.1:{port}{PATH}"
        self.show = show
        """Bring an address before the person, where a browser of theirs is connected."""
        self._pending: dict[str, asyncio.Future[dict[str, str]]] = {}

    def file(self, server_id: str) -> Path:
        """Where a server's login is kept."""
        return self._folder / f"{server_id}.json"

    def forget(self, server_id: str) -> None:
        """The server was removed, and its login with it."""
        self.file(server_id).unlink(missing_ok=True)

    def expect(self, state: str) -> None:
        """A login begins."""
        while len(self._pending) >= _MOST:
            self._pending.pop(next(iter(self._pending))).cancel()
        self._pending[state] = asyncio.get_running_loop().create_future()

    async def wait(self, state: str) -> dict[str, str]:
        """What came back."""
        try:
            return await self._pending[state]
        finally:
            self._pending.pop(state, None)

    def resolve(self, query: dict[str, str]) -> bool:
        """The person's browser came back; False if nobody waits for it, or no more."""
        waiting = self._pending.get(query.get("state", ""))
        if waiting is None or waiting.done():
            return False
        waiting.set_result(query)
        return True
