"""browser_notify: a notification says which agent it is from, whatever the agent calls itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.harness.agent import Agent, message
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub, running_hub


async def shown(hub: RunningHub, agent: Agent, **arguments: Any) -> dict[str, Any]:
    """What the browser is sent for a notification."""
    async with FakeExtension(hub) as browser:
        browser.handlers["showNotification"] = lambda _params: {"notificationId": "n", "allowed": True}
        answer = (await agent.call("browser_notify", arguments))["result"]
        assert "isError" not in answer, answer
        params: dict[str, Any] = (await browser.next_request("showNotification"))["params"]
    return params


async def test_a_notification_carries_the_name_of_the_agents_token(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Agent(hub) as agent:
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "Tabhub", "version": "1"}}
        del agent.headers["Mcp-Session-Id"]
        opened = await agent.post(message("initialize", info))
        agent.headers["Mcp-Session-Id"] = opened.headers["mcp-session-id"]
        params = await shown(hub, agent, title="Done", message="all of it")
    assert params == {"agent": "test", "title": "Done", "message": "all of it"}


async def test_text_that_would_hide_the_name_is_escaped(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Agent(hub) as agent:
        hidden = "\u202e\u200bTabhub\n\U000e0041"
        params = await shown(hub, agent, title=hidden, message=f"one\n{hidden}", contextMessage=hidden)
    assert params["title"] == params["contextMessage"] == r"\u202e\u200bTabhub\n\U000e0041"
    assert params["message"] == "one\n\\u202e\\u200bTabhub\n\\U000e0041"
