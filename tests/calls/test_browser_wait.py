"""Calls made before a browser is connected: they wait for one that is expected, and run once."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.harness.agent import Agent, client
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until


def text(answer: dict[str, Any]) -> str:
    """The text of a result."""
    content: str = answer["result"]["content"][0]["text"]
    return content


def lines(hub: RunningHub, tool: str) -> list[bool]:
    """Whether each call of a tool in the audit log succeeded."""
    return [line["success"] for line in hub.hub.engine.audit.recent(50) if line["tool"] == tool]


async def test_calls_made_before_the_browser_connects_wait_for_it_and_run_once(hub: RunningHub) -> None:
    hub.hub.engine.browser_wait.expect(20)
    async with Agent(hub) as agent:
        calls = [asyncio.create_task(agent.call("browser_open_tab", {"url": "about:blank"})) for _ in range(3)]
        await until(lambda: len(hub.hub.engine.browser_wait.held_calls) == 3)
        async with FakeExtension(hub, tabs=[tab(7)]) as browser:
            for call in calls:
                assert not (await call)["result"].get("isError")
            assert len(browser.tabs) == 4
    assert lines(hub, "browser_open_tab") == [True] * 3


async def test_an_approved_call_is_not_asked_for_again_when_the_browser_connects(tmp_path: Path) -> None:
    asks = {"default": "auto", "browser": {"tools": {"browser_open_tab": "ask"}}}
    async with running_hub(tmp_path, permissions=asks) as hub, Agent(hub) as agent:
        engine, approvals = hub.hub.engine, hub.hub.approvals
        engine.browser_wait.expect(20)
        call = asyncio.create_task(agent.call("browser_open_tab", {"url": "about:blank"}))
        await until(lambda: len(approvals) == 1)
        assert approvals.answer(approvals.pending()[0]["id"], "allow_once", "terminal")
        await until(lambda: len(engine.browser_wait.held_calls) == 1)
        async with FakeExtension(hub):
            assert not (await call)["result"].get("isError")
        assert lines(hub, "browser_open_tab") == [True]


async def test_calls_wait_for_an_extension_the_person_reloads(hub: RunningHub) -> None:
    async with Agent(hub) as agent, client(hub) as http:
        async with FakeExtension(hub):
            assert (await http.post("/extension/reload")).status_code == 200
        await until(lambda: not hub.hub.browsers.links())
        call = asyncio.create_task(agent.call("browser_list_tabs"))
        await until(lambda: len(hub.hub.engine.browser_wait.held_calls) == 1)
        async with FakeExtension(hub):
            assert not (await call)["result"].get("isError")


async def test_without_an_expected_browser_a_call_fails_at_once_with_a_hint(hub: RunningHub) -> None:
    async with Agent(hub) as agent:
        assert "no browser is connected" in text(await agent.call("browser_open_tab", {"url": "about:blank"}))
    assert lines(hub, "browser_open_tab") == [False]


async def test_the_wait_for_a_browser_ends_at_its_timeout(hub: RunningHub) -> None:
    hub.hub.engine.browser_wait.expect(0.05)
    async with Agent(hub) as agent:
        assert "no browser is connected" in text(await agent.call("browser_open_tab", {"url": "about:blank"}))
        assert len(hub.hub.engine.browser_wait.held_calls) == 0
    assert lines(hub, "browser_open_tab") == [False]


async def test_a_browser_that_failed_to_start_ends_the_wait(hub: RunningHub) -> None:
    hub.hub.engine.browser_wait.expect(60)
    async with Agent(hub) as agent:
        call = asyncio.create_task(agent.call("browser_open_tab", {"url": "about:blank"}))
        await until(lambda: len(hub.hub.engine.browser_wait.held_calls) == 1)
        hub.hub.engine.browser_wait.stop_waiting()
        assert "no browser is connected" in text(await call)


async def test_a_waiting_call_can_be_cancelled(hub: RunningHub) -> None:
    hub.hub.engine.browser_wait.expect(60)
    async with client(hub, **{"Tabhub-Session": "me"}) as http:
        call = asyncio.create_task(http.post("/tools/browser_open_tab/call", json={"url": "about:blank"}))
        await until(lambda: len(hub.hub.engine.browser_wait.held_calls) == 1)
        call.cancel()
        await until(lambda: len(hub.hub.engine.browser_wait.held_calls) == 0)
        async with FakeExtension(hub, tabs=[tab(7)]) as browser:
            assert len(browser.tabs) == 1
