"""browser_act and other tools: the same permissions apply to each of its steps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent
from tests.harness.fake_extension import tab
from tests.harness.hub import running_hub
from tests.harness.panel import Panel

MAIL, EVIL, WORSE = "https://mail.example", "https://evil.example", "https://worse.example"


def goes(*urls: str) -> dict[str, Any]:
    """A batch that navigates to these URLs."""
    return {"tabId": 7, "actions": [{"action": "navigate", "url": f"{url}/?stolen"} for url in urls]}


class Browser(Panel):
    """A person's browser with one tab that follows every navigation."""

    def __init__(self, hub: Any) -> None:
        super().__init__(hub, tabs=[tab(7, f"{MAIL}/")])
        self.visited: list[str] = []
        self.handlers["browser_navigate"] = self._visit

    def _visit(self, params: dict[str, Any]) -> dict[str, Any]:
        self.visited.append(params["url"])
        return {"tabId": 7, "url": params["url"], "title": "There", "status": "complete"}


def set_to(level: str, **more: Any) -> dict[str, Any]:
    return {"permissions": {"browser": {"tools": {"browser_navigate_tab": level}}}, **more}


async def test_disabled_tool_in_a_batch_runs_nothing_of_the_batch(tmp_path: Path) -> None:
    async with running_hub(tmp_path, **set_to("off")) as hub, Browser(hub) as browser, Agent(hub) as agent:
        steps = {"tabId": 7, "actions": [{"action": "scroll", "direction": "down"}, *goes(EVIL)["actions"]]}
        refused = (await agent.call("browser_act", steps))["result"]
        assert refused["isError"]
        assert "browser_navigate_tab is switched off" in refused["content"][0]["text"]
        assert refused["_meta"]["tabhub/error"]["outcome"] == "not_sent"
        assert browser.visited == []
        others = {"tabId": 7, "actions": [{"action": "scroll", "direction": "down"}]}
        assert "switched off" not in str(await agent.call("browser_act", others))


async def test_each_step_of_a_batch_needs_its_own_approval(tmp_path: Path) -> None:
    async with running_hub(tmp_path, **set_to("ask")) as hub, Browser(hub) as browser, Agent(hub) as agent:
        for number in (1, 2):
            calling = asyncio.create_task(agent.call("browser_act", goes(EVIL)))
            request = await browser.decide("allow_once")
            assert "browser_navigate_tab" in request["message"]
            assert request["choices"] == ["allow_once", "deny"]
            assert not (await calling)["result"].get("isError")
            assert len(browser.visited) == number
        calling = asyncio.create_task(agent.call("browser_act", goes(EVIL)))
        await browser.decide("deny")
        assert (await calling)["result"]["isError"]
        assert len(browser.visited) == 2
        # What was allowed for the session on its own holds in a batch, on that site.
        calling = asyncio.create_task(agent.call("browser_navigate_tab", {"tabId": 7, "url": f"{EVIL}/"}))
        await browser.decide("allow_session")
        await calling
        assert not (await agent.call("browser_act", goes(EVIL)))["result"].get("isError")
        calling = asyncio.create_task(agent.call("browser_act", goes(EVIL, WORSE)))
        await browser.decide("deny")
        assert (await calling)["result"]["isError"]


@pytest.mark.parametrize("decision", ["deny", "allow_once"])
async def test_site_a_batch_navigates_to_counts_as_its_target(tmp_path: Path, decision: str) -> None:
    async with running_hub(tmp_path, dataflow="ask") as hub, Browser(hub) as browser, Agent(hub) as agent:
        assert not (await agent.call("browser_execute_script", {"tabId": 7, "code": "1"}))["result"].get("isError")
        calling = asyncio.create_task(agent.call("browser_act", goes(MAIL, EVIL, WORSE)))
        request = await browser.decide(decision)
        assert request["reason"] == "dataflow"
        assert f"has read {MAIL}, and now acts on {EVIL} and {WORSE}" in request["message"]
        assert (await calling)["result"].get("isError", False) is (decision == "deny")
        assert len(browser.visited) == (0 if decision == "deny" else 3)
