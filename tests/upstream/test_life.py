"""The life of one server's connection, with a connection made for the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from tabhub.limits import Limits
from tabhub.store.upstream import Server
from tabhub.upstream import life
from tabhub.upstream.life import Life
from tests.harness.waiting import until

if TYPE_CHECKING:
    from tabhub.upstream.link import Hooks, Link

SERVER = Server(id="1", name="s", enabled=True, url="http://127.0.0.1:1/mcp")


class Deaf:
    """Connections that take so many cancels for something of their own."""

    def __init__(self, misses: int) -> None:
        self.left = misses
        self.begun = False

    def open(self, life: Life, hooks_of: Callable[[], Hooks]) -> AbstractAsyncContextManager[Link]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[Link]:
        self.begun = True
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.left == 0:
                    raise
                self.left -= 1
        yield  # type: ignore[unreachable]


async def nothing(*_: object) -> None:
    """Nobody wants to know."""


@pytest.mark.parametrize("misses", [0, 1, 3])
async def test_a_connection_that_misses_its_cancel_is_ended_all_the_same(
    misses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "_CANCEL", 0.02)
    deaf = Deaf(misses)
    one = Life(SERVER, deaf, Limits(), nothing, lambda _: None)
    one.start()
    await until(lambda: deaf.begun)
    async with asyncio.timeout(5):
        await one.stop()
    assert (one.state, deaf.left) == ("off", 0)
