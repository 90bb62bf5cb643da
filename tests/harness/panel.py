"""A fake panel through which a test approves or denies calls."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from tests.harness.fake_extension import FakeExtension

_ids = itertools.count(1)


class Panel(FakeExtension):
    """A fake extension whose panel a test controls."""

    async def request(self) -> dict[str, Any]:
        """The next approval request."""
        params: dict[str, Any] = (await self.next_notification("confirmation.request"))["params"]
        return params

    async def decide(self, decision: str, reason: str = "") -> dict[str, Any]:
        """Answer the next request and return it."""
        request = await self.request()
        await self.answer(request["id"], decision, reason)
        return request

    async def answer(self, ident: str, decision: str, reason: str = "") -> None:
        answer = {"id": ident, "decision": decision} | ({"reason": reason} if reason else {})
        await self.notify("confirmation.response", answer)

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request to the hub like the panel; returns the whole reply."""
        number = f"panel-{next(_ids)}"
        answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        take = self._take

        def watch(message: dict[str, Any], running: set[asyncio.Task[None]]) -> None:
            if message.get("id") == number and "method" not in message:
                answered.set_result(message)
            else:
                take(message, running)

        self._take = watch  # type: ignore[method-assign]
        try:
            await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
            async with asyncio.timeout(30):
                return await answered
        finally:
            self._take = take  # type: ignore[method-assign]

    async def get(self, method: str, params: dict[str, Any] | None = None) -> Any:
        answer = await self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]
