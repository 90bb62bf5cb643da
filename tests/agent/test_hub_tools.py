"""The hub as a toolbox: listed tools, calls, questions answered here or elsewhere, and calls that are given up."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tabhub.agent.hub_tools import HubTools
from tabhub.errors import HubError, HubUnreachable
from tests.harness.approver import Panel
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until

ASKED = "browser_execute_script"
SCRIPT = {"tabId": 7, "code": "return 1"}
ASKING: dict[str, Any] = {"permissions": {"browser": {"tools": {ASKED: "ask"}}}}


def toolbox(hub: RunningHub, ask: Any = None) -> HubTools:
    return HubTools(f"127.0.0.1:{hub.port}", lambda: hub.secret, "test", ask)


async def test_tools_are_listed_page_by_page_and_those_that_are_off_are_marked(tmp_path: Path) -> None:
    settings = {
        "showDisabled": True,
        "permissions": {"browser": {"tools": {ASKED: "off"}}},
        "limits": {"list_page": 20},
    }
    async with running_hub(tmp_path, **settings) as hub:
        tools = toolbox(hub)
        await tools.open()
        offers = {offer.tool.name: offer for offer in await tools.offers()}
        assert len(offers) > 60
        assert [name for name, offer in offers.items() if offer.disabled] == [ASKED]
        again = {offer.tool.name: offer for offer in await tools.offers()}
        assert again["browser_list_tabs"].tool is offers["browser_list_tabs"].tool, "read and compiled once"
        await tools.close()
        await until(lambda: len(hub.hub.sessions) == 0)


async def test_results_refusals_and_wrong_arguments_come_back_as_they_are(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Panel(hub):
        tools = toolbox(hub)
        await tools.open()
        assert (await tools.call("browser_list_tabs", {}))["structuredContent"]["tabs"]
        wrong = await tools.call("browser_open_tab", {"url": 5})
        assert wrong["isError"] is True
        assert "Invalid arguments for browser_open_tab: url" in wrong["content"][0]["text"]
        with pytest.raises(HubError, match="browser_list_tabs"):
            await tools.call("browser_list_tab", {})


async def test_a_session_that_ended_is_opened_anew(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Panel(hub):
        tools = toolbox(hub)
        await tools.open()
        assert hub.hub.end_session(str(tools._session), "idle")
        assert (await tools.call("browser_list_tabs", {}))["structuredContent"]["tabs"]


async def test_the_person_is_asked_and_the_answer_counts(tmp_path: Path) -> None:
    asked: list[dict[str, Any]] = []

    async def ask(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        return {"action": "accept", "content": {"decision": "allow_once"}}

    async with running_hub(tmp_path, **ASKING) as hub, Panel(hub):
        tools = toolbox(hub, ask)
        await tools.open()
        assert not (await tools.call(ASKED, SCRIPT)).get("isError")
    assert ASKED in asked[0]["message"]


async def test_a_question_that_was_answered_in_the_panel_is_taken_back(tmp_path: Path) -> None:
    taken_back = asyncio.Event()

    async def ask(params: dict[str, Any]) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            taken_back.set()
        raise AssertionError

    async with running_hub(tmp_path, **ASKING) as hub, Panel(hub) as panel:
        tools = toolbox(hub, ask)
        await tools.open()
        call = asyncio.ensure_future(tools.call(ASKED, SCRIPT))
        await panel.decide("allow_once")
        assert not (await call).get("isError")
        assert taken_back.is_set()


async def test_a_call_that_is_given_up_is_cancelled_at_the_hub(tmp_path: Path) -> None:
    async with running_hub(tmp_path, **ASKING) as hub, Panel(hub) as panel:
        tools = toolbox(hub)
        await tools.open()
        call = asyncio.ensure_future(tools.call(ASKED, SCRIPT))
        await panel.request()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: not hub.hub.trust.approvals.pending())


async def test_a_hub_that_is_not_there_or_refuses_says_so(tmp_path: Path) -> None:
    with pytest.raises(HubUnreachable, match="does not answer"):
        await HubTools("127.0.0.1:1", lambda: None, "test").open()
    async with running_hub(tmp_path) as hub:
        with pytest.raises(HubError, match="The hub answered 401"):
            await HubTools(f"127.0.0.1:{hub.port}", lambda: "wrong", "test").open()
