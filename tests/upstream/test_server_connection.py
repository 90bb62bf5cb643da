"""The life of one server's connection, with a connection made for the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tabhub.limits import Limits
from tabhub.store.upstream_servers import Server
from tabhub.upstream import server_connection as connection
from tabhub.upstream.server_connection import ServerConnection
from tests.harness.virtual_time import VirtualLoop
from tests.harness.waiting import until

if TYPE_CHECKING:
    from tabhub.upstream.sdk_session import Hooks, SdkSession

SERVER = Server(id="1", name="s", enabled=True, url="http://127.0.0.1:1/mcp")


class Deaf:
    """Connections that take so many cancels for something of their own."""

    def __init__(self, misses: int) -> None:
        self.left = misses
        self.begun = False

    def open(
        self, connection: ServerConnection, hooks_of: Callable[[], Hooks]
    ) -> AbstractAsyncContextManager[SdkSession]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[SdkSession]:
        self.begun = True
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.left == 0:
                    raise
                self.left -= 1
        yield  # type: ignore[unreachable]


class Failing:
    """A server that cannot be reached; notes when it was tried."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.tried: list[float] = []

    @asynccontextmanager
    async def open(self, connection: ServerConnection, hooks_of: Callable[[], Hooks]) -> AsyncIterator[SdkSession]:
        self.tried.append(self._loop.now)
        raise ConnectionRefusedError("nobody is there")
        yield  # type: ignore[unreachable]


async def nothing(*_: object) -> None:
    """Nobody wants to know."""


@pytest.mark.parametrize("misses", [0, 1, 3])
async def test_a_connection_that_misses_its_cancel_is_ended_all_the_same(
    misses: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_CANCEL", 0.02)
    deaf = Deaf(misses)
    one = ServerConnection(SERVER, deaf, Limits(), nothing, lambda _: None)
    one.start()
    await until(lambda: deaf.begun)
    async with asyncio.timeout(30):
        await one.stop()
    assert (one.state, deaf.left) == ("off", 0)


@pytest.mark.req("F14")
def test_a_server_that_keeps_failing_is_tried_with_a_backoff_from_one_second_to_a_minute() -> None:
    loop = VirtualLoop()
    failing = Failing(loop)
    one = loop.act(lambda: ServerConnection(SERVER, failing, Limits(), nothing, lambda _: None))
    loop.act(one.start)
    loop.run_for(600)
    pauses = [later - before for before, later in pairwise(failing.tried)]
    wanted = [min(2.0**number, 60.0) for number in range(len(pauses))]
    assert len(pauses) >= 12
    assert all(0.8 * grown <= pause <= 1.2 * grown for pause, grown in zip(pauses, wanted, strict=True))
    assert 1.0 <= min(pauses) < max(pauses) <= 60.0
    loop.run_until_complete(one.stop())
    loop.close()
