"""Several agents in one fake browser: their actions, and the hub's answers."""

from __future__ import annotations

from typing import Any

from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub


def closing_browser(hub: RunningHub) -> FakeExtension:
    """A browser whose tabs can be closed."""
    browser = FakeExtension(hub, tabs=[tab(7, active=True), tab(8)])

    def close(params: dict[str, Any]) -> dict[str, Any]:
        browser.tabs[:] = [each for each in browser.tabs if each["tabId"] != params["tabId"]]
        return {"closed": True}

    browser.handlers["closeTab"] = close
    return browser


async def act(agent: Agent, **arguments: Any) -> dict[str, Any]:
    """Act in a tab, and return the result."""
    answer: dict[str, Any] = (await agent.call("browser_execute_script", {"code": "return 1", **arguments}))["result"]
    return answer


async def tab_of(agent: Agent, **arguments: Any) -> int:
    """The tab that a reading call went to."""
    answer = (await agent.call("browser_get_tab_info", arguments))["result"]
    tab_id: int = answer["structuredContent"]["tabId"]
    return tab_id


def refused(answer: dict[str, Any]) -> dict[str, Any]:
    """The details of an error."""
    assert answer.get("isError"), answer
    facts: dict[str, Any] = answer["_meta"]["tabhub/error"]
    return {**facts, "text": answer["content"][0]["text"]}


def holders(hub: RunningHub) -> dict[int, str]:
    return {lease.tab: lease.holder.id for lease in hub.hub.leases}
