"""The waiting tools in real Chromium: what they see, how long they wait, and what they say when it was in vain."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tabhub.errors import CommandFailed
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.zoo import Zoo
from tests.harness.waiting import until_outside

WAIT, ELEMENT, RESPONSE = "browser_wait_for", "browser_wait_for_element", "browser_wait_for_response"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"selector": "#words"}, "document.getElementById('words').checkVisibility()"),
        ({"text": "The words"}, "document.getElementById('words').checkVisibility()"),
        ({"text": "Loading", "gone": True}, "!document.getElementById('spinner')"),
        ({"selector": "#spinner", "gone": True}, "!document.getElementById('spinner')"),
        ({"loadState": "load"}, "document.readyState === 'complete'"),
        ({"networkIdle": True}, "document.body.dataset.late"),
        ({"url": "*/pages/act_slow*", "selector": "#words"}, "document.getElementById('words').checkVisibility()"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
async def test_a_wait_ends_when_what_is_waited_for_is_so(
    agent: Caller, zoo: Zoo, condition: dict[str, Any], holds: str
) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    await agent.run("return 1")
    await agent.get("browser_navigate_tab", url=zoo.at("act_slow.html"), waitUntil="commit")
    answer = await agent.get(WAIT, **condition)
    assert answer["did"].startswith("Waited")
    assert await agent.run(f"return Boolean({holds})") is True


async def test_an_element_may_be_waited_for_before_it_is_visible(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_slow.html"))
    await agent.get(ELEMENT, selector="#words", visible=False)
    answer = await agent.get(ELEMENT, selector="#words")
    assert "The words" in answer["element"]


async def test_words_that_stand_in_no_element_of_their_own_are_seen(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    await agent.run("document.body.insertAdjacentHTML('beforeend', 'All is <b>done</b>')")
    assert (await agent.get(WAIT, text="All is done"))["did"].startswith("Waited")
    assert (await agent.get(WAIT, text="Nothing is done", gone=True))["did"].startswith("Waited")


async def test_elements_in_frames_are_seen(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_frames.html"))
    assert "Press" in (await agent.get(WAIT, selector="#press-other"))["element"]
    assert "Press" in (await agent.get(WAIT, selector="#press-near"))["element"]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ({"selector": "#never"}, "no such element"),
        ({"selector": "#gone"}, "there, but not visible"),
        ({"text": "Plain", "gone": True}, "still there"),
        ({"url": "*/elsewhere"}, "the tab is at"),
    ],
    ids=["absent", "hidden", "stays", "address"],
)
async def test_a_wait_in_vain_tells_what_was_there(
    agent: Caller, zoo: Zoo, condition: dict[str, Any], words: str
) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    await agent.run("document.getElementById('never').remove()")
    error = await agent.fail(WAIT, timeout=400, **condition)
    assert "Waited 0.4 s for" in error["text"]
    assert words in error["text"]


@pytest.mark.parametrize("arguments", [{}, {"gone": True}, {"selector": "##"}], ids=["nothing", "gone", "invalid"])
async def test_what_cannot_be_waited_for_fails_at_once(agent: Caller, zoo: Zoo, arguments: dict[str, Any]) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    assert (await agent.fail(WAIT, **arguments))["outcome"] == "not_sent"


async def test_a_wait_outlives_the_page_it_began_on(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_buttons.html"))
    await agent.run(f"setTimeout(() => location = '{zoo.at('act_slow.html')}', 200)")
    assert "The words" in (await agent.get(WAIT, text="The words"))["element"]
    assert await agent.run("return location.pathname") == "/pages/act_slow.html"


async def test_a_response_is_waited_for_and_one_just_come_counts(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_slow.html"))
    await agent.get("browser_reload_tab")
    answer = await agent.get(RESPONSE, urlPattern="*/hit/late")
    assert (answer["status"], answer["method"]) == (200, "GET")
    assert (await agent.get(RESPONSE, urlPattern="/hit/api"))["url"].endswith("/hit/api?x=1")
    error = await agent.fail(RESPONSE, urlPattern="/nowhere", timeout=300)
    assert "/hit/late" in error["text"]


@pytest.mark.req("F9")
@pytest.mark.parametrize("end", ["closed", "crashed"])
async def test_a_tab_that_ends_under_a_wait_ends_it(
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
