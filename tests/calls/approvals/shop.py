"""A browser of the hub's own that shows a shop and a mailbox, and an agent that works in one of them."""

from __future__ import annotations

from tests.harness.agent import Agent
from tests.harness.fake_extension import tab
from tests.harness.hub import RunningHub
from tests.harness.panel import Panel

SHOP = "https://www.shop.example"


def at_work(hub: RunningHub) -> Panel:
    """A browser of the hub's own, in which everything runs unasked."""
    browser = Panel(hub, tabs=[tab(7, f"{SHOP}/"), tab(8, "https://mail.example/")])
    browser.handlers |= {
        "clearSiteData": lambda params: {"origin": params["origin"], "cleared": ["cookies"]},
        "deleteCookies": lambda _: {"deleted": 1},
        "setCookie": lambda _: {"name": "sid", "domain": "www.shop.example", "path": "/"},
    }
    return browser


async def holds(agent: Agent, tab_id: int) -> None:
    answer = await agent.call("browser_execute_script", {"tabId": tab_id, "code": "1"})
    assert not answer["result"].get("isError"), answer
