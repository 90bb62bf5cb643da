"""The waiting tools in real Chromium: conditions, time limits and errors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tabhub.errors import CommandFailed
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.zoo import Zoo
from tests.harness.waiting import until_outside

WAIT, ELEMENT, RESPONSE = "browser_wait_for", "browser_wait_for_element", "browser_wait_for_response"


SHOWN = "document.getElementById('words').checkVisibility()"
SPUN = "!document.getElementById('spinner')"
ENDS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"selector": "#words"}, SHOWN),
    ({"text": "The words"}, SHOWN),
    ({"text": "Loading", "gone": True}, SPUN),
    ({"selector": "#spinner", "gone": True}, SPUN),
    ({"loadState": "load"}, "document.readyState === 'complete'"),
    ({"networkIdle": True}, "document.body.dataset.late"),
    ({"url": "*/pages/act_slow*", "selector": "#words"}, SHOWN),
)


async def test_a_wait_ends_when_its_condition_holds(guest: Caller, zoo: Zoo, subtests: pytest.Subtests) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    for condition, holds in ENDS:
        with subtests.test(condition=condition):
            await guest.get("browser_navigate_tab", url=zoo.at("act_slow.html"), waitUntil="commit")
            answer = await guest.get(WAIT, **condition)
            assert answer["did"].startswith("Waited")
            assert await guest.run(f"return Boolean({holds})") is True


async def test_an_element_can_be_awaited_before_it_is_visible(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_slow.html"))
    await guest.get(ELEMENT, selector="#words", visible=False)
    answer = await guest.get(ELEMENT, selector="#words")
    assert "The words" in answer["element"]


async def test_text_split_over_several_elements_is_found(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    await guest.run("document.body.insertAdjacentHTML('beforeend', 'All is <b>done</b>')")
    assert (await guest.get(WAIT, text="All is done"))["did"].startswith("Waited")
    assert (await guest.get(WAIT, text="Nothing is done", gone=True))["did"].startswith("Waited")


async def test_elements_in_frames_are_found(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_frames.html"))
    assert "Press" in (await guest.get(WAIT, selector="#press-other"))["element"]
    assert "Press" in (await guest.get(WAIT, selector="#press-near"))["element"]


async def test_a_timed_out_wait_reports_the_last_state(guest: Caller, zoo: Zoo, subtests: pytest.Subtests) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    await guest.run("document.getElementById('never').remove()")
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"selector": "#never"}, "no such element"),
        ({"selector": "#gone"}, "exists but is not visible"),
        ({"text": "Plain", "gone": True}, "still there"),
        ({"url": "*/elsewhere"}, "the tab is at"),
    )
    for condition, expected in cases:
        with subtests.test(condition=condition):
            error = await guest.fail(WAIT, timeout=400, **condition)
            assert "Timed out after 0.4 s waiting for" in error["text"]
            assert expected in error["text"]


async def test_an_impossible_wait_fails_immediately(guest: Caller, zoo: Zoo, subtests: pytest.Subtests) -> None:
    await guest.read(zoo.at("act_buttons.html"))
    for arguments in ({}, {"gone": True}, {"selector": "##"}):
        with subtests.test(arguments=arguments):
            assert (await guest.fail(WAIT, **arguments))["outcome"] == "not_sent"


async def test_a_wait_survives_a_navigation(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_buttons.html"))
    await guest.run(f"setTimeout(() => location = '{zoo.at('act_slow.html')}', 200)")
    assert "The words" in (await guest.get(WAIT, text="The words"))["element"]
    assert await guest.run("return location.pathname") == "/pages/act_slow.html"


async def test_a_wait_for_a_response_accepts_one_that_just_arrived(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_slow.html"))
    await agent.get("browser_reload_tab")
    answer = await agent.get(RESPONSE, urlPattern="*/hit/late")
    assert (answer["status"], answer["method"]) == (200, "GET")
    assert (await agent.get(RESPONSE, urlPattern="/hit/api"))["url"].endswith("/hit/api?x=1")
    error = await agent.fail(RESPONSE, urlPattern="/nowhere", timeout=300)
    assert "/hit/late" in error["text"]


@pytest.mark.req("F9")
@pytest.mark.parametrize("end", ["closed", "crashed"])
async def test_closing_the_tab_ends_a_wait(
    live_hub: LiveHub, agent: Caller, devtools: DevTools, zoo: Zoo, end: str
) -> None:
    url = zoo.at(f"act_buttons.html?wait-{end}")
    tab_id = await agent.open(url)
    # Far longer than the test may take: it ends because of the tab, or not at all.
    call = asyncio.create_task(agent.fail(WAIT, selector="#nothing", timeout=290_000))
    await until_outside(lambda: live_hub.health()["callsInFlight"] > 0)
    await agent.run("return 1")
    if end == "closed":
        await agent.get("browser_close_tab", tabId=tab_id)
    else:
        await devtools.crash(url)
    error = await call
    assert (error["code"], end in error["text"]) == (CommandFailed.code, True), error
