"""`tabhub approve`: only a person at a terminal can decide."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tabhub.store import grants
from tests.harness.agent import Agent, client
from tests.harness.hub import AGENT, RunningHub, running_hub
from tests.harness.panel import Panel
from tests.harness.process import tabhub
from tests.harness.terminal import Terminal
from tests.harness.waiting import until

TOOL = "browser_execute_script"
ARGUMENTS = {"tabId": 7, "code": "return 1\u001b[2J"}


def found(hub: RunningHub) -> None:
    """Let the command line find the hub."""
    hub.home.hub_json.write_text(json.dumps({"pid": os.getpid(), "port": hub.port}))


async def test_a_person_decides_in_the_terminal(tmp_path: Path) -> None:
    async with running_hub(tmp_path, permissions={"default": "ask"}) as hub, Panel(hub), Agent(hub) as agent:
        found(hub)
        calling = asyncio.create_task(agent.call(TOOL, ARGUMENTS))
        await until(lambda: len(hub.hub.approvals) == 1)
        async with Terminal(hub.home.root, "approve") as terminal:
            await terminal.sees("[l]ater:")
            shown = terminal.shown.decode()
            assert 'test (raw) wants to run JavaScript in the page: "return 1\\x1b[2J"' in shown
            assert "Tab 7, https://example.com/ (tab 7)" in shown
            assert f"Details: {TOOL}" in shown
            assert "For this session would mean: run scripts on example.com." in shown
            assert '"code": "return 1' in shown
            assert "\x1b[2J" not in shown
            terminal.type("x\n")
            await terminal.sees("Type one of the letters in brackets: y, s, w, n, l.")
            terminal.type("n\n")
            await terminal.sees("Reason")
            terminal.type("not like this\n")
            await terminal.sees("Denied.")
            assert await terminal.process.wait() == 0
        assert "They said: not like this" in (await calling)["result"]["content"][0]["text"]
        assert hub.hub.engine.audit.recent(1)[0]["approval"] == {"decision": "deny", "by": "terminal"}


async def test_the_end_of_input_decides_nothing(tmp_path: Path) -> None:
    async with running_hub(tmp_path, permissions={"default": "ask"}) as hub, Panel(hub) as panel, Agent(hub) as agent:
        found(hub)
        calling = asyncio.create_task(agent.call(TOOL, ARGUMENTS))
        await until(lambda: len(hub.hub.approvals) == 1)
        for typed, asked in (("d\n", "Reason"), ("w\n", "for a wider scope"), ("", "[l]ater:")):
            async with Terminal(hub.home.root, "approve") as terminal:
                await terminal.sees("[l]ater:")
                terminal.type(typed)
                await terminal.sees(asked)
                terminal.type("\x04")
                assert await terminal.process.wait() == 130
                assert b"Traceback" not in terminal.shown
            assert len(hub.hub.approvals) == 1
        await panel.decide("allow_once")
        assert not (await calling)["result"].get("isError")


async def test_watch_reports_a_decision_that_came_too_late(tmp_path: Path) -> None:
    async with running_hub(tmp_path, permissions={"default": "ask"}) as hub, Panel(hub) as panel, Agent(hub) as agent:
        found(hub)
        async with Terminal(hub.home.root, "approve", "--watch") as terminal:
            calling = asyncio.create_task(agent.call(TOOL, ARGUMENTS))
            await terminal.sees("[l]ater:")
            await panel.decide("allow_once")
            assert not (await calling)["result"].get("isError")
            terminal.type("a\n")
            await terminal.sees("Too late")
            calling = asyncio.create_task(agent.call(TOOL, ARGUMENTS))
            await until(lambda: terminal.shown.count(b"[l]ater:") == 2)
            terminal.type("s\n")
            await terminal.sees("Allowed.")
            assert not (await calling)["result"].get("isError")
        assert hub.hub.engine.audit.recent(1)[0]["approval"] == {"decision": "allow_session", "by": "terminal"}


async def test_always_says_what_it_means_and_is_widened_only_on_request(tmp_path: Path) -> None:
    async with running_hub(tmp_path, permissions={"default": "ask"}) as hub, Panel(hub), Agent(hub) as agent:
        found(hub)
        for typed, site in (("\n", "https://example.com"), ("every site\n", "every site")):
            for grant in grants.listed(hub.home):
                grants.revoke(hub.home, grant.id)
            calling = asyncio.create_task(agent.call(TOOL, ARGUMENTS))
            await until(lambda: len(hub.hub.approvals) == 1)
            async with Terminal(hub.home.root, "approve") as terminal:
                await terminal.sees("[l]ater:")
                assert f"Always would mean: {AGENT} may always run scripts on https".encode() in terminal.shown
                terminal.type("w\n")
                await terminal.sees("or type every site or every agent")
                terminal.type(typed)
                await terminal.sees("Allowed.")
            assert not (await calling)["result"].get("isError")
            (grant,) = grants.listed(hub.home)
            assert grant.text == f"{AGENT} may always run scripts on {site}"


async def test_an_answer_cannot_be_piped_in(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        found(hub)
        process = await tabhub(hub.home.root, "approve")
        _, errors = await process.communicate()
    assert process.returncode == 2
    assert b"needs an interactive terminal" in errors


@pytest.mark.parametrize("key", ["agent", "extension", "wrong"])
async def test_only_the_persons_key_approves(tmp_path: Path, key: str) -> None:
    asks = running_hub(tmp_path, permissions={"default": "ask"})
    async with asks as hub, Panel(hub) as panel, client(hub) as http, Agent(hub) as agent:
        path = hub.home.person_key
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        calling = asyncio.create_task(agent.call(TOOL, ARGUMENTS))
        request = await panel.request()
        token = {"agent": hub.token, "extension": hub.extension_key, "wrong": "0" * 64}[key]
        headers = {"Authorization": f"Bearer {token}"}
        refused = 403 if key == "agent" else 401
        answer: Any = await http.get("/approvals", headers=headers)
        assert answer.status_code == refused
        body = {"decision": "allow_once"}
        answer = await http.post(f"/approvals/{request['id']}", json=body, headers=headers)
        assert answer.status_code == refused
        right = {"Authorization": f"Bearer {path.read_text()}"}
        assert (await http.post("/approvals/other", json=body, headers=right)).status_code == 404
        assert (await http.post(f"/approvals/{request['id']}", json={}, headers=right)).status_code == 400
        assert len(hub.hub.approvals) == 1
        await panel.answer(request["id"], "deny")
        await calling
    assert not path.exists()
