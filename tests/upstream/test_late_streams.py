"""Servers whose answers come late or never: ready as soon as POST works, and a limit that says what did not come."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until
from tests.upstream.recorder import Recorder
from tests.upstream.servers import text


class LateServer(Recorder):
    """Holds back the head of the GET stream, or the answers to one method, until `release` is set."""

    def __init__(self, held: str) -> None:
        super().__init__("late", "now")
        self.held = held
        self.release = threading.Event()
        self.asked = threading.Event()

    def hold(self, method: str) -> None:
        if method == self.held:
            self.asked.set()
            self.release.wait()

    def stream(self) -> None:
        self.hold("GET")

    def answer(self, body: dict[str, Any], session: str | None) -> tuple[int, dict[str, Any] | None, dict[str, str]]:
        self.hold(body["method"])
        return super().answer(body, session)


@pytest.mark.req("F26")
async def test_a_server_whose_stream_sends_its_head_late_is_ready_at_once(hub: RunningHub) -> None:
    with LateServer("GET") as server:
        try:
            (facts,) = await hub.hub.upstream.add(json.dumps({"late": {"url": server.url}}))
            assert facts["state"] == "ready", facts
            async with Agent(hub) as agent:
                assert text((await agent.call("mcp__late__now"))["result"]) == "late: now"
            await until(server.asked.is_set)
        finally:
            server.release.set()


@pytest.mark.req("F26")
@pytest.mark.parametrize("held", ["initialize", "tools/list"])
async def test_a_server_that_does_not_answer_is_given_up_with_the_reason(tmp_path: Path, held: str) -> None:
    async with running_hub(tmp_path, limits={"upstream_connect": 0.3}) as hub:
        with LateServer(held) as server:
            try:
                await hub.hub.upstream.add(json.dumps({"late": {"url": server.url}}))
                connection = hub.hub.upstream.pool.get("late")
                assert connection is not None
                await until(lambda: connection.error is not None)
                assert "within 0.3 s" in str(connection.error) or "in time" in str(connection.error)
                assert "late" in str(hub.hub.upstream.describe(hub.hub.upstream.get("late")))
                server.release.set()
                await until(lambda: connection.state == "ready")
            finally:
                server.release.set()
