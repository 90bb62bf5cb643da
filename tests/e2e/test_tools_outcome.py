"""The result of an action: dialogs, form submissions, opened tabs, navigation, batches, closed tabs."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tabhub.errors import CommandFailed
from tests.e2e.live import Caller, DevTools, LiveHub
from tests.e2e.zoo import Zoo
from tests.harness.waiting import becomes, until_outside

CLICK, TYPE, HOVER = "browser_click_element", "browser_type_text", "browser_hover_element"
DIALOG, ACT = "browser_handle_dialog", "browser_act"


async def test_a_click_that_opens_a_dialog_returns_immediately(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_dialogs.html"))
    answer = await guest.get(CLICK, selector="#confirm")
    assert answer["dialog"] == {"type": "confirm", "message": "Sure?"}
    assert "browser_handle_dialog" in answer["note"]
    blocked = await guest.fail(CLICK, selector="#alert")
    assert (blocked["outcome"], "Sure?" in blocked["text"]) == ("not_sent", True)
    then = await guest.get(DIALOG, action="accept")
    assert then["dialog"] == {"type": "alert", "message": "Really done"}
    await guest.get(DIALOG, action="accept")
    assert await guest.run("return said") == "true"
    none = await guest.fail(DIALOG, action="accept")
    assert "No dialog is open" in none["text"]


async def test_dialogs_are_dismissed_and_prompts_answered(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_dialogs.html"))
    await guest.get(CLICK, selector="#confirm")
    await guest.get(DIALOG, action="dismiss")
    assert await guest.run("return said") == "false"
    assert (await guest.get(CLICK, selector="#prompt"))["dialog"]["default"] == "Anna"
    await guest.get(DIALOG, action="accept", promptText="Bob")
    assert await guest.run("return said") == "Bob"
    await guest.get(CLICK, selector="#prompt")
    await guest.get(DIALOG, action="accept")
    assert await guest.run("return said") == "Anna"


async def test_a_dialog_on_load_can_be_answered(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_dialogs.html"))
    await guest.run("return 1")
    assert "Welcome" in (await guest.fail("browser_navigate_tab", url=zoo.at("act_onload.html")))["text"]
    await guest.get(DIALOG, action="accept")
    await guest.get(CLICK, selector="#go")


async def test_a_beforeunload_dialog_can_be_answered(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_dialogs.html"))
    assert (await guest.get(CLICK, selector="#leave"))["dialog"]["type"] == "beforeunload"
    await guest.get(DIALOG, action="dismiss")
    assert await guest.run("return location.pathname") == "/pages/act_dialogs.html"
    await guest.get(CLICK, selector="#leave")
    assert (await guest.get(DIALOG, action="accept"))["navigated"] == f"{zoo.url}/other"


async def test_a_click_reports_what_it_caused(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_dialogs.html"))
    assert (await guest.get(CLICK, selector="#push"))["navigated"].endswith("?pushed")
    assert [file["name"] for file in (await guest.get(CLICK, selector="#load"))["downloads"]] == ["report.bin"]
    assert (await guest.get(CLICK, selector="#link"))["navigated"] == f"{zoo.url}/other"
    assert await guest.run("return document.title") == "Other page"


async def test_a_tab_opened_by_a_click_is_reported_and_not_focused(
    agent: Caller, zoo: Zoo, subtests: pytest.Subtests
) -> None:
    tab_id = await agent.open(zoo.at("act_dialogs.html"))

    async def in_front() -> list[int]:
        return [tab["tabId"] for tab in (await agent.get("browser_list_tabs"))["tabs"] if tab["active"]]

    before = await in_front()
    ways: dict[str, dict[str, Any]] = {
        "window.open": {"selector": "#popup"},
        "blank": {"selector": "#blank"},
        "control": {"selector": "#link", "modifiers": ["Control"]},
    }
    for way, how in ways.items():
        with subtests.test(way):
            (opened,) = (await agent.get(CLICK, tabId=tab_id, **how))["opened"]
            agent.opened.append(opened)
            await agent.get("browser_wait_for", tabId=opened, url="/other", text="other words")
            assert await agent.run("return document.title", tabId=opened) == "Other page"
            await becomes(in_front, before)


async def test_every_form_submission_is_reported(guest: Caller, zoo: Zoo) -> None:
    """The browser submits it in a separate task after the click or key."""
    for submit in (True, False) * 4:
        await guest.visit(zoo.at("act_form.html"))
        done = await guest.get(TYPE, selector="#name", text="Eve", submit=submit)
        if not submit:
            done = await guest.get(CLICK, selector="#send")
        assert "/form-sent?name=" in done.get("navigated", ""), (submit, done)


async def test_failed_form_validation_is_reported(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    result = await guest.get(CLICK, selector="#send")
    assert "navigated" not in result
    name = re.escape('The form was not submitted. The browser reports: textbox "Name"')
    assert re.fullmatch(name + r" \[\w+\]: Please fill out this field\.", result["note"])
    await guest.get(TYPE, selector="#mail", text="nobody")
    await guest.get(TYPE, selector="#name", text="Eve")
    assert 'textbox "E-mail"' in (await guest.get(CLICK, selector="#send"))["note"]
    assert 'textbox "E-mail"' in (await guest.get(TYPE, selector="#name", text="!", submit=True))["note"]
    assert "note" not in await guest.get(CLICK, selector="#small")


async def test_an_action_does_not_wait_long_for_a_slow_page(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_dialogs.html"))
    answer = await guest.get(CLICK, selector="#slow")  # the site holds that page back until it is released
    zoo.release.set()
    assert "navigating to another page" in answer["note"]
    await guest.get("browser_wait_for", url="/held", loadState="load")
    zoo.release.clear()


async def test_a_batch_runs_in_order(guest: Caller, zoo: Zoo) -> None:
    answer = await guest.get(
        ACT,
        tabId=await guest.visit(zoo.at("act_buttons.html")),
        actions=[
            {"action": "navigate", "url": zoo.at("act_form.html")},
            {"action": "type", "selector": "#name", "text": "Eve"},
            {"action": "press", "key": "Tab"},
            {"action": "select", "selector": "#colour", "value": "g"},
            {"action": "fill", "fields": [{"selector": "#news", "value": True}]},
            {"action": "scroll", "position": "bottom"},
            {"action": "wait", "text": "Newsletter"},
            {"action": "click", "selector": "#send"},
        ],
    )
    assert answer["did"] == "Did 8 of 8 actions"
    assert answer["results"][-1]["navigated"].startswith(f"{zoo.url}/form-sent?name=Eve")


async def test_a_batch_stops_at_a_failure_and_lists_completed_actions(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("act_form.html"))
    steps = [
        {"action": "type", "selector": "#name", "text": "x"},
        {"action": "click", "selector": "#colour option"},
        {"action": "type", "selector": "#mail", "text": "y"},
    ]
    error = await guest.fail(ACT, actions=steps)
    assert "Action 2 of 3 (click)" in error["text"]
    assert 'Done before: 1. Typed into textbox "Name"' in error["text"]
    assert await guest.run("return document.getElementById('mail').value") == ""
    answer = await guest.get(ACT, actions=steps, onError="continue")
    assert answer["did"] == "Did 2 of 3 actions"
    assert "option of a select" in answer["results"][1]["error"]
    wrong = await guest.fail(ACT, actions=[steps[0], {"action": "click", "selctor": "#x"}])
    assert ("selctor" in wrong["text"], wrong["outcome"]) == (True, "not_sent")
    assert await guest.run("return document.getElementById('name').value") == "xx"


@pytest.mark.req("F9")
@pytest.mark.parametrize("end", ["closed", "crashed", "left"])
async def test_closing_the_tab_fails_a_running_action(
    live_hub: LiveHub, agent: Caller, devtools: DevTools, zoo: Zoo, end: str
) -> None:
    url = zoo.at(f"act_buttons.html?{end}")
    tab_id = await agent.open(url)
    await agent.get(HOVER, selector="#plain")
    call = asyncio.create_task(agent.fail(CLICK, selector="#never"))
    await until_outside(lambda: live_hub.health()["callsInFlight"] > 0)
    await agent.run("return 1")
    if end == "closed":
        await agent.get("browser_close_tab", tabId=tab_id)
    elif end == "crashed":
        await devtools.crash(url)
    else:
        await agent.get("browser_navigate_tab", url=f"{zoo.url}/other")
    error = await call
    # Giving up on the element, which stays hidden, would give the outcome "failed".
    assert (error["code"], error["outcome"]) == (CommandFailed.code, "unknown"), error


async def test_a_click_that_closes_its_tab_succeeds(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("act_dialogs.html"))
    (opened,) = (await agent.get(CLICK, selector="#popup"))["opened"]
    await agent.get("browser_navigate_tab", tabId=opened, url=zoo.at("act_dialogs.html"))
    answer = await agent.get(CLICK, tabId=opened, selector="#close")
    assert answer["did"].startswith('Clicked button "Close"')


@pytest.mark.req("A7")
async def test_an_answer_reports_failed_requests_and_errors_of_the_page(
    guest: Caller, zoo: Zoo, subtests: pytest.Subtests
) -> None:
    await guest.visit(zoo.at("target_trouble.html"))
    for selector, problem in {
        "#save": "POST {url}/broken returned 50",
        "#throw": "Uncaught TypeError: Cannot read properties of undefined (reading 'total')",
        "#log": "Console error: The cart is out of date",
        "a": "GET {url}/broken returned 500",
    }.items():
        with subtests.test(selector):
            (reported,) = (await guest.get(CLICK, selector=selector))["problems"]
            assert reported.startswith(problem.format(url=zoo.url))


async def test_reported_problems_are_bounded_and_reported_once(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_trouble.html"))
    reported = (await guest.get(CLICK, selector="#many"))["problems"]
    assert len(reported) == 6
    assert reported[-1] == "… 15 more: browser_get_console_logs"
    assert "problems" not in await guest.get(CLICK, selector="#fine")


async def test_reported_problems_do_not_repeat_what_was_typed_into_secret_fields(guest: Caller, zoo: Zoo) -> None:
    await guest.visit(zoo.at("target_trouble.html"))
    await guest.get(TYPE, selector="#password", text="correct horse")
    (reported,) = (await guest.get(CLICK, selector="#leak"))["problems"]
    assert reported.startswith("Console error: Wrong password: ")
    assert "horse" not in reported
    assert "correct" not in reported
