"""A hub that is killed, and one that is started where one runs already."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tabhub.store.audit import digest
from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension
from tests.harness.process import HubProcess, hub_process, tabhub

ROUNDS = 20
AGENTS = 6


async def work(hub: HubProcess, agent: Agent, name: str, answered: list[dict[str, Any]], enough: asyncio.Event) -> None:
    """Call until the hub is gone, and note every answer that came."""
    number = 0
    while True:
        number += 1
        arguments = {"tabId": 7, "code": f"return '{name}-{number}'"}
        try:
            answer = await agent.call("browser_execute_script", arguments)
        except (httpx2.TransportError, json.JSONDecodeError):
            return
        assert "result" in answer
        answered.append(arguments)
        if len(answered) >= 40 * AGENTS:
            enough.set()


@pytest.mark.req("F10", "S002-audit-03")
async def test_after_a_kill_under_load_every_answered_call_is_in_the_audit_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    answered: list[dict[str, Any]] = []
    starts = []
    for turn in range(ROUNDS):
        this_turn: list[dict[str, Any]] = []
        enough = asyncio.Event()
        async with hub_process(home) as hub:
            starts.append(hub.started_in)
            async with FakeExtension(hub):
                agents = [Agent(hub) for _ in range(AGENTS)]
                for agent in agents:
                    await agent.__aenter__()
                tasks = [
                    asyncio.create_task(work(hub, agent, f"{turn}-{n}", this_turn, enough))
                    for n, agent in enumerate(agents)
                ]
                async with asyncio.timeout(20):
                    await enough.wait()
                os.kill(hub.process.pid, signal.SIGKILL)
                await asyncio.gather(*tasks)
                for agent in agents:
                    await agent.http.aclose()
            log = hub.home.hub_log.read_text()
            assert ("torn" in log) is (turn > 0)
        answered += this_turn
        lines = (home / "audit.log").read_bytes().splitlines()
        audited = {json.loads(line)["argsDigest"] for line in lines if line.endswith(b"}")}
        missing = [arguments for arguments in answered if digest(arguments) not in audited]
        assert missing == []
        with (home / "audit.log").open("ab") as file:
            file.write(b'{"timestamp":"2026-01-01T00:00:00.000Z","tool":"to')  # as a kill within a write leaves it
    async with hub_process(home) as hub, httpx2.AsyncClient(base_url=hub.url, headers=hub.bearer) as http:
        starts.append(hub.started_in)
        shown = (await http.get("/audit", params={"limit": 500})).json()
        assert len(shown) > 40 * AGENTS
        assert all(entry["tool"] == "browser_execute_script" for entry in shown)
    assert statistics.median(starts[1:]) <= 2


@pytest.mark.req("F20")
async def test_a_second_hub_on_the_same_home_is_told_who_runs_there(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with hub_process(home) as first:
        second = await tabhub(home, "start", "--port", "0", "--no-launch")
        out, errors = await second.communicate()
        assert second.returncode != 0
        assert out == b""
        assert str(first.process.pid) in errors.decode()
        assert str(first.port) in errors.decode()
        assert "tabhub stop" in errors.decode()
        async with httpx2.AsyncClient(base_url=first.url, headers=first.bearer) as http:
            assert (await http.get("/health")).json()["status"] == "ok"


@pytest.mark.req("F20")
async def test_a_hub_on_a_port_that_is_taken_is_told_who_holds_it(tmp_path: Path) -> None:
    async with hub_process(tmp_path / "one") as first:
        second = await tabhub(tmp_path / "two", "start", "--port", str(first.port), "--no-launch")
        _, errors = await second.communicate()
        assert second.returncode != 0
        assert str(first.port) in errors.decode()
        assert f"pid {first.process.pid}" in errors.decode()
        assert "--port" in errors.decode()


async def test_a_hub_that_is_asked_to_end_tells_its_browser_and_leaves_in_order(tmp_path: Path) -> None:
    async with hub_process(tmp_path / "home") as hub, FakeExtension(hub) as browser, Agent(hub) as agent:
        async with agent.listening() as events:
            await events.next()
            hub.process.terminate()
            assert await events.rest() == []
            assert (await browser.ended())[0] == 4004
            async with asyncio.timeout(10):
                assert await hub.process.wait() == 0
        assert not hub.home.hub_json.exists()


async def test_no_log_of_a_hub_shows_the_secret(tmp_path: Path) -> None:
    async with hub_process(tmp_path / "home") as hub, FakeExtension(hub), Agent(hub) as agent:
        async with httpx2.AsyncClient(base_url=hub.url) as http:
            for headers in ({"Authorization": f"Bearer {hub.secret}x"}, {"Authorization": hub.secret}, {}):
                for path in ("/mcp", "/tools", f"/tools?token={hub.secret}", f"/{hub.secret}", f"/ws?t={hub.secret}"):
                    await http.get(path, headers=headers)
        await agent.call(hub.secret, {"token": hub.secret})
        await agent.call("browser_execute_script", {"tabId": 7, "code": hub.secret})
        for file in (hub.home.hub_log, hub.home.audit, hub.home.hub_json):
            assert hub.secret not in file.read_text(), file.name
