"""Frames of other sites: what an agent does in one is judged by its site too, and the stricter rule counts."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.e2e.live import Caller, LiveHub
from tests.e2e.live_settings import set_sites
from tests.e2e.zoo import Zoo
from tests.harness.agent import client
from tests.harness.waiting import eventually

SHOP, PAY, NEAR = "shop.localhost", "pay.localhost", "pay.shop.localhost"
"""NEAR is of the shop's domain, and so in the same process."""
RULES = {SHOP: "act", "fine.localhost": "act", PAY: "read", NEAR: "read"}
ASK = {**RULES, PAY: "ask", NEAR: "ask"}
Arguments = dict[str, Any]


@pytest.fixture(scope="module")
async def ruled(live_hub: LiveHub) -> AsyncIterator[LiveHub]:
    (live_hub.home / "files").mkdir(exist_ok=True)
    (live_hub.home / "files" / "note.txt").write_text("note")
    set_sites(live_hub, RULES)
    yield live_hub
    set_sites(live_hub, None)


async def visit(guest: Caller, zoo: Zoo, framed: str) -> dict[str, str]:
    """Open the shop's page with frames of a site; returns the refs of the buttons in them, by place."""
    await guest.visit(f"http://{SHOP}:{zoo.port}/pages/sites.html?{framed}")
    await guest.get("browser_wait_for", networkIdle=True)

    async def both() -> list[str]:
        text = (await guest.get("browser_snapshot"))["snapshot"]
        found = re.findall(r'button "Inside" \[ref=(f[0-9]+e[0-9]+)', text)
        return found if len(found) == 2 else []

    direct, nested = await eventually(both)
    await guest.run("got.length = 0")
    return {"direct": direct, "nested": nested}


def acts(refs: dict[str, str], url: str) -> list[tuple[str, Arguments]]:
    """Every way to act in the frames: by element, by point, by focus, in a batch, by script."""
    inside, point, nested = {"selector": "#inside"}, {"x": 130, "y": 120}, {"x": 480, "y": 170}
    return [
        ("browser_click_element", inside),
        ("browser_click_element", {"ref": refs["direct"]}),
        ("browser_click_element", {"ref": refs["nested"]}),
        ("browser_click_element", {"selector": "#inside-nested"}),
        ("browser_hover_element", inside),
        ("browser_type_text", {"label": "Field inside", "selector": "#field", "text": "x"}),
        ("browser_press_key", {**inside, "key": "Enter"}),
        ("browser_fill_form", {"fields": [{"selector": "#field", "value": "x"}]}),
        ("browser_select_option", {"selector": "#choice", "value": "two"}),
        ("browser_upload_file", {"selector": "#file", "paths": ["note.txt"]}),
        ("browser_scroll", {"ref": refs["direct"]}),
        ("browser_scroll", {"container": "#box", "direction": "down"}),
        ("browser_drag", {"from": "#inside", "to": "#outside"}),
        ("browser_drag", {"from": "#outside", "to": "#inside"}),
        ("browser_drag", {"from": point, "to": "#outside"}),
        ("browser_drag", {"from": "#outside", "to": nested}),
        *(("browser_mouse", {"action": action, **point}) for action in ("move", "down", "up", "click", "wheel")),
        ("browser_mouse", {"action": "click", **nested}),
        ("browser_act", {"actions": [{"action": "click", "selector": "#inside"}]}),
        ("browser_act", {"actions": [{"action": "mouse", "do": "click", **nested}]}),
        ("browser_execute_script", {"code": "document.getElementById('field').focus()", "frame": url}),
        ("browser_execute_script", {"code": "inside.click()", "frame": "nested"}),
        ("browser_force_pseudo_state", {**inside, "pseudoClasses": ["hover"]}),
    ]


@pytest.mark.req("B25")
@pytest.mark.parametrize("framed", [PAY, NEAR])
async def test_nothing_acts_in_a_frame_of_a_site_that_agents_may_only_read(
    guest: Caller, zoo: Zoo, ruled: LiveHub, framed: str
) -> None:
    refs = await visit(guest, zoo, framed)
    site = f"http://{framed}:{zoo.port}"
    for name, arguments in acts(refs, f"{site}/pages/sites_inner.html"):

        async def refusal(name: str = name, arguments: Arguments = arguments) -> str:
            """Why it is refused; a frame that is busy may not be found at first."""
            text = str((await guest.fail(name, **arguments))["text"])
            return text if f"lets agents only read on {framed}" in text else ""

        text = await eventually(refusal)
        assert f"acted in a frame of {site} inside the page" in text, (name, arguments)
    for focused in ("#direct", "#around"):
        await guest.run(f"document.querySelector('{focused}').focus()")
        if focused == "#around":
            await guest.run("document.querySelector('iframe').focus()", frame="sites_around.html")
        assert "only read" in (await guest.fail("browser_press_key", key="a"))["text"], focused
    heard = set(await guest.run("return got"))
    assert heard <= {"focusin"}, heard
    # What is not in those frames is not affected.
    await guest.run("document.activeElement.blur(); document.body.focus()")
    for name, arguments in (
        ("browser_click_element", {"selector": "#outside"}),
        ("browser_mouse", {"action": "click", "x": 10, "y": 10}),
        ("browser_mouse", {"action": "move", "x": 470, "y": 110}),
        ("browser_execute_script", {"code": "return 1", "frame": "sites_around.html"}),
        ("browser_press_key", {"key": "a"}),
    ):
        answer = await guest.call(name, **arguments)
        assert not answer.get("isError"), (name, arguments, answer)


@pytest.mark.req("B25")
async def test_a_dialog_is_judged_by_the_frame_that_opened_it(guest: Caller, zoo: Zoo, ruled: LiveHub) -> None:
    await visit(guest, zoo, PAY)
    await guest.call("browser_execute_script", code="frames[0].postMessage('alert', '*')")
    await eventually(lambda: asks(guest))
    failed = await guest.fail("browser_handle_dialog", action="accept")
    assert f"lets agents only read on {PAY}" in failed["text"]
    set_sites(ruled, {**RULES, PAY: "act"})
    try:
        await guest.get("browser_handle_dialog", action="accept")
        assert await eventually(lambda: guest.run("return got.includes('confirmed true')"))
    finally:
        set_sites(ruled, RULES)


async def asks(guest: Caller) -> bool:
    return "dialog" in str(await guest.call("browser_snapshot"))


@pytest.mark.req("B25")
async def test_the_question_names_the_frame_and_approves_its_site(guest: Caller, zoo: Zoo, ruled: LiveHub) -> None:
    set_sites(ruled, ASK)
    try:
        await visit(guest, zoo, PAY)
        site = f"http://{PAY}:{zoo.port}"
        batch = {"actions": [{"action": "click", "selector": "#outside"}, {"action": "click", "selector": "#inside"}]}
        failed = await guest.fail("browser_act", **batch)
        assert f"was not run in a frame of {site}: there it needs an approval" in failed["text"]
        assert "Done before: 1. Clicked button" in failed["text"]
        request = await answered(ruled, guest, "allow_session", "browser_click_element", {"selector": "#inside"})
        assert f"It acts in a frame of {site} inside the page." in request["message"]
        assert await guest.run("return got.filter((what) => what === 'click').length") == 1
        for name, arguments in (("browser_mouse", {"action": "click", "x": 130, "y": 120}), ("browser_act", batch)):
            answer = await guest.call(name, **arguments)
            assert not answer.get("isError"), answer
        async with client(ruled) as person:
            lines = (await person.get("/audit", params={"limit": 20})).json()
        line = next(line for line in lines if line["tool"] == "browser_click_element" and line["success"])
        assert (line["origin"], line["frames"]) == (f"http://{SHOP}:{zoo.port}", [site])
        assert line["approval"]["decision"] == "allow_session"
        await visit(guest, zoo, NEAR)
        await answered(ruled, guest, "deny", "browser_mouse", {"action": "click", "x": 480, "y": 170})
        assert await guest.run("return got") == []
    finally:
        set_sites(ruled, RULES)


@pytest.mark.req("B25")
async def test_what_a_frame_writes_into_its_popup_is_of_the_frames_site(
    guest: Caller, zoo: Zoo, ruled: LiveHub
) -> None:
    set_sites(ruled, {**RULES, PAY: "act"})
    try:
        await visit(guest, zoo, PAY)
        opened = (await guest.get("browser_click_element", selector="#popup"))["opened"]
        guest.opened += opened
        await guest.get("browser_wait_for", tabId=opened[0], text="Made")
        set_sites(ruled, RULES)

        async def refused() -> bool:
            answer = await guest.call("browser_click_element", tabId=opened[0], text="Made")
            return f"lets agents only read on {PAY}" in answer["content"][0]["text"]

        assert await eventually(refused)
        set_sites(ruled, {**RULES, PAY: "block"})
        listed = str(await guest.get("browser_list_tabs"))
        assert "Made by a frame" not in listed
        assert "1 tab is on a site" in listed
    finally:
        set_sites(ruled, RULES)


async def answered(hub: LiveHub, guest: Caller, decision: str, name: str, arguments: Arguments) -> dict[str, Any]:
    """The request that a call makes; it is answered."""
    calling = asyncio.ensure_future(guest.call(name, **arguments))
    async with client(hub) as http:

        async def waiting() -> Any:
            assert not calling.done(), calling.result()
            return (await http.get("/approvals")).json()["approvals"]

        (request,) = await eventually(waiting)
        reply = await http.post(f"/approvals/{request['id']}", json={"decision": decision})
        assert reply.status_code == 200, reply.text
    assert (await calling).get("isError", False) is (decision == "deny")
    found: dict[str, Any] = request
    return found
