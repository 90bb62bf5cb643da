"""The handshake era over real HTTP."""

from __future__ import annotations

from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub


async def test_a_call_goes_to_the_browser_and_back(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser, Agent(hub) as agent:
        answer = await agent.call("browser_execute_script", {"tabId": 7, "code": "return 1"})
        assert answer["result"]["structuredContent"]["value"] == "fake", answer
        sent = await browser.seen.get()
        assert sent["method"] in ("subscribeCDPEvents", "forwardCDPCommand")
