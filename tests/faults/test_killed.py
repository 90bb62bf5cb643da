"""A hub that is killed, and one that is started while another is running."""

from __future__ import annotations

import asyncio
import itertools
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tabhub.store.audit import digest
from tests.harness.agent import Agent, client
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.process import HubProcess, hub_process, tabhub
from tests.harness.waiting import until

KILLS = 3
"""`python -m bench rows F10` kills twenty times."""
AGENTS = 6
CALLS = 60
"""Answers to wait for before a kill."""


async def call_until_killed(agent: Agent, tab_id: int, answered: list[dict[str, Any]], killed: asyncio.Event) -> None:
    """Call until the hub is killed, and record the arguments of every answered call."""
    for number in itertools.count(1):
        arguments = {"tabId": tab_id, "code": f"return '{tab_id}-{number}'"}
        try:
            answer = await agent.call("browser_execute_script", arguments)
        except Exception:
            # A kill may end a call in any state: refused, reset, or with half an answer.
            if not killed.is_set():
                raise
            return
        assert answer["result"]["structuredContent"] == {"value": "fake"}
        answered.append(arguments)


async def kill_under_load(hub: HubProcess, kill: int) -> list[dict[str, Any]]:
    """Kill a hub while agents call continuously; returns the arguments of all answered calls."""
    tabs = range(kill * AGENTS + 1, (kill + 1) * AGENTS + 1)  # new sessions: leases survive a kill
    answered: list[dict[str, Any]] = []
    killed = asyncio.Event()
    async with (
        FakeExtension(hub, f"browser-{kill}", [tab(tab_id) for tab_id in tabs]),
        AsyncExitStack() as stack,
        asyncio.TaskGroup() as group,
    ):
        for tab_id in tabs:
            agent = await stack.enter_async_context(Agent(hub))
            group.create_task(call_until_killed(agent, tab_id, answered, killed))
        await until(lambda: len(answered) >= CALLS)
        killed.set()
        hub.process.kill()
    return answered


@pytest.mark.req("F10", "S002-audit-03")
async def test_after_a_kill_under_load_every_answered_call_is_in_the_audit_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    audit = home / "audit.log"
    answered: list[dict[str, Any]] = []
    for kill in range(KILLS):
        async with hub_process(home) as hub:
            answered += await kill_under_load(hub, kill)
            assert ("incomplete, as after a crash" in hub.home.hub_log.read_text()) is (kill > 0)
        lines = audit.read_bytes().splitlines()
        audited = {json.loads(line)["argsDigest"] for line in lines if line.endswith(b"}")}
        assert [arguments for arguments in answered if digest(arguments) not in audited] == []
        with audit.open("ab") as file:
            file.write(b'{"timestamp":"2026-01-01T00:00:00.000Z","tool":"to')  # as left by a kill during a write
    async with hub_process(home) as hub, client(hub) as http:
        shown = (await http.get("/audit", params={"limit": 500})).json()
        assert len(shown) >= KILLS * CALLS
        assert all(entry["tool"] == "browser_execute_script" for entry in shown)


@pytest.mark.req("F20")
async def test_second_hub_on_the_same_home_reports_the_running_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with hub_process(home) as first:
        second = await tabhub(home, "start", "--port", "0", "--no-launch")
        out, errors = await second.communicate()
        assert second.returncode != 0
        assert out == b""
        assert str(first.process.pid) in errors.decode()
        assert str(first.port) in errors.decode()
        assert "tabhub stop" in errors.decode()
        async with httpx2.AsyncClient(verify=False, base_url=first.url, headers=first.person.bearer) as http:
            assert (await http.get("/health")).json()["status"] == "ok"


@pytest.mark.req("F20")
async def test_hub_on_an_occupied_port_reports_the_process_that_holds_it(tmp_path: Path) -> None:
    async with hub_process(tmp_path / "one") as first:
        second = await tabhub(tmp_path / "two", "start", "--port", str(first.port), "--no-launch")
        _, errors = await second.communicate()
        assert second.returncode != 0
        assert str(first.port) in errors.decode()
        assert f"pid {first.process.pid}" in errors.decode()
        assert "--port" in errors.decode()


async def test_hub_that_is_stopped_notifies_its_browser_and_exits_cleanly(tmp_path: Path) -> None:
    async with hub_process(tmp_path / "home") as hub, FakeExtension(hub) as browser, Agent(hub) as agent:
        async with agent.listening() as events:
            await events.next()
            hub.process.terminate()
            assert await events.rest() == []
            assert (await browser.ended())[0] == 4004
            async with asyncio.timeout(30):
                assert await hub.process.wait() == 0
        assert not hub.home.hub_json.exists()


@pytest.mark.parametrize("secret", ["token", "extension_key", "person_key"])
async def test_no_log_of_a_hub_shows_a_key_or_token(tmp_path: Path, secret: str) -> None:
    async with hub_process(tmp_path / "home") as hub, FakeExtension(hub), Agent(hub) as agent:
        shown: str = getattr(hub, secret)
        async with httpx2.AsyncClient(verify=False, base_url=hub.url) as http:
            for headers in ({"Authorization": f"Bearer {shown}x"}, {"Authorization": shown}, {}):
                for path in ("/mcp", "/tools", f"/tools?token={shown}", f"/{shown}", f"/ws?t={shown}"):
                    await http.get(path, headers=headers)
        await agent.call(shown, {"token": shown})
        await agent.call("browser_execute_script", {"tabId": 7, "code": shown})
        for file in (hub.home.hub_log, hub.home.audit, hub.home.hub_json):
            assert shown not in file.read_text(), file.name
