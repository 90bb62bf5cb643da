"""Connecting and closing, with fake sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
    from tabhub.upstream.sdk_session import SdkSession

SERVER = Server(id="1", name="s", enabled=True, url="http://127.0.0.1:1/mcp")


class UncancellableSessions:
    """Sessions that ignore the first cancellations while they are opened."""

    def __init__(self, ignored: int) -> None:
        self.left = ignored
        self.begun = False

    @asynccontextmanager
    async def open(self, connection: ServerConnection) -> AsyncIterator[SdkSession]:
        self.begun = True
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self.left == 0:
                    raise
                self.left -= 1
        yield  # type: ignore[unreachable]


class FailingSessions:
    """A server that cannot be reached; records when a connection was tried."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.tried: list[float] = []

    @asynccontextmanager
    async def open(self, connection: ServerConnection) -> AsyncIterator[SdkSession]:
        self.tried.append(self._loop.now)
        raise ConnectionRefusedError("connection refused")
        yield  # type: ignore[unreachable]


async def ignore(*_: object) -> None:
    pass


@pytest.mark.parametrize("ignored", [0, 1, 3])
async def test_a_connection_that_ignores_a_cancellation_is_closed(
    ignored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_CANCEL", 0.02)
    sessions = UncancellableSessions(ignored)
    one = ServerConnection(SERVER, sessions.open, Limits(), ignore, lambda _: None)
    one.start()
    await until(lambda: sessions.begun)
    async with asyncio.timeout(30):
        await one.stop()
    assert (one.state, sessions.left) == ("off", 0)


@pytest.mark.req("F14")
def test_a_failing_server_is_retried_with_a_backoff_from_one_second_to_a_minute() -> None:
    loop = VirtualLoop()
    failing = FailingSessions(loop)
    one = loop.act(lambda: ServerConnection(SERVER, failing.open, Limits(), ignore, lambda _: None))
    loop.act(one.start)
    loop.run_for(600)
    pauses = [later - before for before, later in pairwise(failing.tried)]
    wanted = [min(2.0**number, 60.0) for number in range(len(pauses))]
    assert len(pauses) >= 12
    assert all(0.8 * grown <= pause <= 1.2 * grown for pause, grown in zip(pauses, wanted, strict=True))
    assert 1.0 <= min(pauses) < max(pauses) <= 60.0
    loop.run_until_complete(one.stop())
    loop.close()
