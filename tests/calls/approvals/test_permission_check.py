"""Whose browser and page a call reaches: agents do not act in the panel, and no page can lock an agent out with it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.calls.approvals.shop import SHOP, at_work, holds
from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import running_hub
from tests.harness.tenants import act
from tests.harness.waiting import until

PANEL = "chrome-extension://fbfngjfcbbkgoepkeecjnefoncaahigp/x"


async def test_page_cannot_lock_a_session_by_sending_its_tab_to_the_panel(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, at_work(hub) as browser, Agent(hub) as agent:
        await holds(agent, 7)
        browser.tabs[0] = tab(7, PANEL)
        await browser.sync()
        locked = await agent.call("browser_press_key", {"key": "Enter"})
        assert "cannot be used in a tab that shows Tabhub's own panel" in str(locked)
        browser.handlers["browser_navigate"] = lambda params: {"tabId": 1001, "url": params["url"]}
        browser.handlers["closeTab"] = lambda _: {"closed": True}
        for name, arguments in (
            ("browser_release_tab", {"tabId": 7}),
            ("browser_open_tab", {"url": f"{SHOP}/"}),
        ):
            assert not (await agent.call(name, arguments))["result"].get("isError"), name
        # somebody else's panel is not the agent's to close
        assert "own panel" in str(await agent.call("browser_close_tab", {"tabId": 7}))


async def test_agent_closes_its_own_tab_that_a_page_sent_to_the_panel(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, at_work(hub) as browser, Agent(hub) as agent:
        await holds(agent, 7)
        browser.tabs[0] = tab(7, PANEL)
        await browser.sync()
        browser.handlers["closeTab"] = lambda _: {"closed": True}
        assert not (await agent.call("browser_close_tab"))["result"].get("isError")


async def test_a_browser_that_has_just_connected_is_not_taken_for_the_persons_own(tmp_path: Path) -> None:
    async with running_hub(tmp_path, permissions=None) as hub, Agent(hub) as agent:
        browser = FakeExtension(hub)
        await browser.connect()
        calling = asyncio.create_task(act(agent, tabId=7))
        await until(lambda: len(hub.hub.engine.browser_wait.held_calls) == 1)
        await browser.notify("extension.hello", {"managed": True})
        await browser.sync()
        assert not (await calling).get("isError")
        await browser.socket.close()
