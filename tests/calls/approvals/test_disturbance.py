"""A person is asked before one agent disturbs another, in a browser of the hub's own as well."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.calls.approvals.shop import SHOP, at_work, holds
from tests.harness.agent import Agent
from tests.harness.hub import running_hub

CLEAR = ("browser_clear_site_data", {"origin": "https://pay.shop.example"})
DELETE = ("browser_delete_cookies", {"url": f"{SHOP}/", "name": "sid"})
SET = ("browser_set_cookie", {"url": f"{SHOP}/", "name": "sid", "value": "mine"})
RESTARTS: list[tuple[str, dict[str, Any]]] = [("extension_reload", {}), ("extension_force_reconnect", {})]


@pytest.mark.parametrize(("name", "arguments"), [CLEAR, DELETE, SET, *RESTARTS])
async def test_person_is_asked_before_an_agent_disturbs_another_session(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    async with running_hub(tmp_path) as hub, at_work(hub) as browser, Agent(hub) as one, Agent(hub) as two:
        await browser.notify("extension.hello", {"managed": True})
        await holds(one, 7)
        calling = asyncio.create_task(two.call(name, arguments))
        request = await browser.decide("deny")
        assert request["choices"] == ["allow_once", "deny"]
        assert "raw 1 works" in request["message"]
        assert (await calling)["result"]["isError"]


@pytest.mark.parametrize(("name", "arguments"), [CLEAR, DELETE, SET])
async def test_agent_changes_the_data_of_a_site_unasked_where_only_itself_works(
    tmp_path: Path, name: str, arguments: dict[str, Any]
) -> None:
    async with running_hub(tmp_path) as hub, at_work(hub), Agent(hub) as one, Agent(hub) as two:
        await holds(one, 7)
        await holds(two, 8)
        assert not (await one.call(name, arguments))["result"].get("isError")
