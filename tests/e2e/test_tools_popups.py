"""Popups that close themselves, in real Chromium: the session continues in the page that opened them."""

from __future__ import annotations

import pytest

from tests.e2e.live import Caller
from tests.e2e.zoo import Zoo
from tests.harness.waiting import eventually

CLICK = "browser_click_element"


async def open_popup(agent: Caller, zoo: Zoo) -> tuple[int, int]:
    """The tabs of the page and of the popup that it has opened; the session works in the popup then."""
    opener = await agent.open(zoo.at("popup_opener.html"))
    (popup,) = (await agent.get(CLICK, text="Add another group"))["opened"]
    return opener, popup


@pytest.mark.req("F23")
async def test_the_answer_says_that_the_popup_closed_and_where_the_session_continues(agent: Caller, zoo: Zoo) -> None:
    opener, popup = await open_popup(agent, zoo)
    answer = await agent.get(CLICK, tabId=popup, text="Save")
    assert (answer["closed"], answer["continuesIn"]) == (True, opener)
    assert f"You are in tab {opener} again" in answer["note"]
    seen = await agent.get("browser_snapshot")
    assert (seen["tabId"], '"Staff"' in seen["snapshot"]) == (opener, True)


@pytest.mark.req("F23")
async def test_a_popup_that_closes_after_the_answer_is_reported_by_the_next_call(agent: Caller, zoo: Zoo) -> None:
    opener, popup = await open_popup(agent, zoo)
    await agent.get(CLICK, tabId=popup, text="Cancel")

    async def refused() -> str | None:
        answer = await agent.call("browser_snapshot")
        return str(answer["content"][0]["text"]) if answer.get("isError") else None

    assert f"continue in tab {opener}, which opened it" in await eventually(refused)
    assert (await agent.get("browser_snapshot"))["tabId"] == opener
