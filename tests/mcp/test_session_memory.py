"""Sessions that have ended: nothing of them stays in memory, and freeing them needs no garbage collector."""

from __future__ import annotations

import gc
from collections import Counter

import pytest

from tabhub.core.sessions import Session
from tabhub.http.event_streams import EventStream
from tabhub.mcp.handshake_session import HandshakeCaller, McpSession
from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub
from tests.harness.waiting import until

KINDS = (Session, McpSession, HandshakeCaller, EventStream)


def living() -> Counter[str]:
    return Counter(type(each).__name__ for each in gc.get_objects() if isinstance(each, KINDS))


@pytest.mark.req("B27")
async def test_nothing_of_ended_sessions_is_left(hub: RunningHub) -> None:
    async with FakeExtension(hub):
        gc.collect()
        before = living()
        gc.disable()  # what is freed at once forms no cycles
        try:
            for _ in range(10):
                async with Agent(hub) as agent:
                    await agent.request("tools/list")
                    await agent.call("browser_list_tabs")
                    await agent.http.delete("/mcp", headers=agent.headers)
            assert len(hub.hub.sessions) == 0
            await until(lambda: living() == before)
        finally:
            gc.enable()
