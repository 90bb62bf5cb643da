"""Acting tools with `changes: true`: their answer also says what they changed in the page."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from tests.e2e.live import Caller

PAGE = """<title>List</title><main><h1>List</h1><ul id=list><li><a href="#one">One</a></ul>
<label>Name <input id=name></label>
<button onclick="list.insertAdjacentHTML('beforeend', '<li><a href=#new>' + document.title + '</a>')">Add</button>
<button onclick="document.title = document.querySelector('#name').value">Rename</button></main>"""


def url(body: str = PAGE) -> str:
    return f"data:text/html,{quote(body)}"


def added(changes: str) -> list[str]:
    return re.findall(r'^\+ .*link "(\w+)"', changes, re.MULTILINE)


async def test_an_action_answers_what_it_changed(guest: Caller) -> None:
    await guest.visit(url())
    clicked = await guest.get("browser_click_element", text="Add", changes=True)
    assert added(clicked["changes"]) == ["List"]
    assert "One" not in clicked["changes"], "it was there before"
    assert "changes" not in await guest.get("browser_click_element", text="Add")
    again = await guest.get("browser_hover_element", text="Add", changes=True)
    assert added(again["changes"]) == ["List"], "also what the agent has not been told yet"


async def test_a_batch_answers_what_all_its_actions_changed(guest: Caller) -> None:
    await guest.visit(url())
    actions: list[dict[str, Any]] = [
        {"action": "type_text", "label": "Name", "text": "Fresh"},
        {"action": "click_element", "text": "Rename"},
        {"action": "click_element", "text": "Add"},
    ]
    done = await guest.get("browser_act", actions=actions, changes=True)
    assert added(done["changes"]) == ["Fresh"]


async def test_agents_read_the_changes_in_a_text_of_their_own(guest: Caller) -> None:
    await guest.visit(url())
    reply = await guest.http.post(
        "/tools/browser_click_element/call", json={"text": "Add", "changes": True}, headers={"Tabhub-Answer": "text"}
    )
    facts, changes = (block["text"] for block in reply.json()["content"])
    assert 'Clicked button "Add"' in facts
    assert added(changes) == ["List"]


async def test_a_new_page_is_shown_within_the_budget(guest: Caller) -> None:
    await guest.visit(url())
    long = "<title>Long</title><h1>Far</h1>" + "".join(f"<p>Paragraph {n} of the long page.</p>" for n in range(2000))
    gone = await guest.get("browser_navigate_tab", url="about:blank", changes=True)
    assert gone["url"] == "about:blank"
    filled = f"document.documentElement.innerHTML = {long!r}"
    await guest.get("browser_execute_script", code=filled)
    pressed = await guest.get("browser_press_key", key="Home", changes=True)
    assert 'heading "Far"' in pressed["changes"]
    assert len(pressed["changes"]) < 20_000
