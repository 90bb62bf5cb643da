"""What a link may send to the extension and what is returned: commands, ids, empty results and errors."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest

from tabhub.wire.browser_commands import COMMANDS
from tests.extension.conftest import Site
from tests.extension.fakehub import Refused, Wire

PROTOCOL = Path(__file__).parents[2] / "docs" / "protocol.md"


@pytest.mark.req("S003-forwarded-01")
async def test_tabs_are_created_listed_selected_activated_and_closed(wire: Wire) -> None:
    made = (await wire.ask("createTab"))["tabId"]
    assert made in [tab["tabId"] for tab in (await wire.ask("getTabs"))["tabs"]]
    assert (await wire.ask("selectTab", tabId=made))["tabId"] == made
    assert (await wire.ask("activateTab", tabId=made))["active"] is True
    assert await wire.ask("closeTab", tabId=made) == {"closed": True}
    assert made not in [tab["tabId"] for tab in (await wire.ask("getTabs"))["tabs"]]


@pytest.mark.req("S003-forwarded-02")
async def test_a_tab_navigates_to_a_url_back_and_forward(wire: Wire, tab: int, site: Site) -> None:
    home, other = f"{site.url}/", f"{site.url}/other"
    assert (await wire.ask("browser_navigate", tabId=tab, url=home))["url"] == home
    assert (await wire.ask("browser_navigate", tabId=tab, url=other))["url"] == other
    assert (await wire.ask("goBack", tabId=tab))["url"] == home
    assert (await wire.ask("goForward", tabId=tab))["url"] == other


@pytest.mark.req("S003-forwarded-03")
async def test_any_method_of_the_devtools_protocol_reaches_the_browser(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    assert (await wire.cdp(tab, "Runtime.evaluate", expression="6 * 7"))["result"]["value"] == 42
    assert (await wire.cdp(tab, "DOM.getDocument"))["root"]["nodeName"] == "#document"
    assert (await wire.cdp(tab, "Page.getLayoutMetrics"))["cssContentSize"]["width"] > 0
    assert (await wire.cdp(tab, "Accessibility.getFullAXTree"))["nodes"]
    # The browser itself validates the method: none is filtered on the way.
    with pytest.raises(Refused, match=r"'Nothing\.there' wasn't found"):
        await wire.cdp(tab, "Nothing.there")


PAGE = (
    "document.body.innerHTML = `<div style='height:3000px'></div><button id=go>Go</button><input id=field value=old>"
    "<p id=cover style='position:fixed;inset:0;display:none'></p>`; window.log = [];"
    "for (const type of ['click', 'dblclick', 'contextmenu', 'mouseover', 'keydown', 'keyup', 'input'])"
    " addEventListener(type, (e) => e.isTrusted && log.push(type + (e.key ? ' ' + e.key : '')), true)"
)


async def page_events(wire: Wire, tab: int) -> list[str]:
    answer = await wire.cdp(tab, "Runtime.evaluate", expression="log.splice(0)", returnByValue=True)
    events: list[str] = answer["result"]["value"]
    return events


@pytest.mark.req("S003-forwarded-04")
async def test_click_hover_type_and_screenshot_use_real_events_in_the_background(
    wire: Wire, tab: int, site: Site
) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await wire.cdp(tab, "Runtime.evaluate", expression=PAGE)
    at = await wire.ask("hover", tabId=tab, selector="#go")
    assert await page_events(wire, tab) == ["mouseover"]
    await wire.ask("click", tabId=tab, selector="#go")
    assert await page_events(wire, tab) == ["click"]
    await wire.ask("click", tabId=tab, x=at["x"], y=at["y"], clickCount=2)
    assert await page_events(wire, tab) == ["click", "click", "dblclick"]
    await wire.ask("click", tabId=tab, selector="#go", button="right")
    assert "contextmenu" in await page_events(wire, tab)
    assert await wire.ask("type", tabId=tab, selector="#field", text="A1é") == {"typed": 3}
    strokes = [(f"keydown {key}", "input", f"keyup {key}") for key in "A1é"]
    assert await page_events(wire, tab) == [event for stroke in strokes for event in stroke]
    await wire.ask("type", tabId=tab, selector="#field", text="x", clear=True)
    await wire.ask("type", tabId=tab, text="y")
    value = await wire.cdp(tab, "Runtime.evaluate", expression="document.getElementById('field').value")
    assert value["result"]["value"] == "xy"
    picture = await wire.ask("screenshot", tabId=tab)
    assert picture["mimeType"] == "image/png"
    assert base64.b64decode(picture["data"]).startswith(b"\x89PNG")
    whole = await wire.ask("screenshot", tabId=tab, format="jpeg", fullPage=True)
    assert base64.b64decode(whole["data"]).startswith(b"\xff\xd8")
    assert not (await wire.ask("selectTab", tabId=tab))["active"]


async def test_impossible_input_is_refused_with_a_reason(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await wire.cdp(tab, "Runtime.evaluate", expression=PAGE)
    for command, params, reason in (
        ("click", {"selector": "#nothing"}, "No element matches"),
        ("hover", {"selector": "##"}, "not valid CSS"),
        ("click", {}, "Give `selector`"),
        ("click", {"x": -1, "y": 2}, "Give `selector`"),
        ("click", {"selector": "#cover"}, "is not visible"),
        ("click", {"selector": "#go", "button": "fourth"}, "button"),
        ("click", {"selector": "#go", "clickCount": 9}, "clickCount"),
        ("type", {"selector": "#cover", "text": "x"}, "cannot receive keyboard input"),
        ("type", {"selector": "#nothing", "text": "x"}, "No element matches"),
        ("type", {"text": 5}, "text"),
        ("screenshot", {"format": "gif"}, "format"),
    ):
        with pytest.raises(Refused, match=reason):
            await wire.ask(command, tabId=tab, **params)
    await wire.cdp(tab, "Runtime.evaluate", expression="document.getElementById('cover').style.display = 'block'")
    with pytest.raises(Refused, match="covered by <p>"):
        await wire.ask("click", tabId=tab, selector="#go")
    assert "click" not in await page_events(wire, tab)


@pytest.mark.req("S003-extensions-02")
async def test_requests_of_the_extension_have_their_own_id_prefix(wire: Wire) -> None:
    before = len(wire.seen)
    made = (await wire.ask("createTab"))["tabId"]
    await wire.notified("tab.stateChanged", after=before, tabId=made)
    await wire.ask("closeTab", tabId=made)
    asked = [message for message in wire.seen if "method" in message and "id" in message]
    assert asked
    assert all(message["id"].startswith("ext:") for message in asked)
    assert len({message["id"] for message in asked}) == len(asked)


@pytest.mark.req("S003-extensions-03")
async def test_a_command_without_a_result_is_answered_with_an_empty_one(wire: Wire, tab: int) -> None:
    assert await wire.ask("subscribeCDPEvents", tabId=tab, events=[]) == {}
    assert await wire.cdp(tab, "Page.enable") == {}
    assert await wire.ask("removeFromGroup", tabIds=[tab]) == {}


@pytest.mark.req("S003-extensions-04")
async def test_a_command_that_fails_is_answered_with_32000_and_the_reason(wire: Wire, tab: int) -> None:
    for command, params, reason in (
        ("goForward", {"tabId": tab}, "The tab's history has no page after this one."),
        ("addToGroup", {"groupId": 999999, "tabIds": [tab]}, "No group with id: 999999"),
        ("closeWindow", {"windowId": 999999}, "No window with id: 999999"),
        ("getDownload", {"downloadId": 999999}, "There is no download 999999."),
    ):
        _, reply = await wire.start(command, **params)
        answer = await reply
        assert "error" in answer, (command, answer)
        error = answer["error"]
        assert error["code"] == -32000, command
        assert reason in error["message"], command


async def test_the_extension_and_the_protocols_page_know_every_command(wire: Wire) -> None:
    page = PROTOCOL.read_text(encoding="utf-8")
    for command in sorted(COMMANDS):
        assert f"`{command}`" in page, command
        # Parameters that no command accepts: nothing is done, but the command is known.
        _, reply = await wire.start(
            command, tabId="x", tabIds="x", windowId="x", groupId="x", downloadId="x", url="", origin="", sessionId="",
            title="", name="", level="x", state=5, group=5, query=5, incognito=5, maxResults=0, maxDepth=0, limit=0,
        )  # fmt: skip
        assert (await reply).get("error", {}).get("code") != -32601, command


async def test_hovering_where_the_mouse_is_already_is_answered(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await wire.cdp(tab, "Runtime.evaluate", expression=PAGE)
    first = await wire.ask("hover", tabId=tab, selector="#go")
    for _ in range(5):
        assert await wire.ask("hover", tabId=tab, **first) == first


async def test_screenshots_of_a_background_tab_are_taken_one_by_one_and_concurrently(
    wire: Wire, tab: int, site: Site
) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    one = (await wire.ask("screenshot", tabId=tab))["data"]
    for _ in range(10):
        assert (await wire.ask("screenshot", tabId=tab))["data"] == one
    many = await asyncio.gather(*(wire.ask("screenshot", tabId=tab) for _ in range(5)))
    assert {picture["data"] for picture in many} == {one}


async def test_a_field_is_cleared_with_an_empty_text(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await wire.cdp(tab, "Runtime.evaluate", expression=PAGE)
    assert await wire.ask("type", tabId=tab, selector="#field", text="", clear=True) == {"typed": 0}
    value = await wire.cdp(tab, "Runtime.evaluate", expression="document.getElementById('field').value")
    assert value["result"]["value"] == ""
    assert await page_events(wire, tab) == ["keydown Delete", "input", "keyup Delete"]
    with pytest.raises(Refused, match="`clear` needs the `selector`"):
        await wire.ask("type", tabId=tab, text="x", clear=True)


async def test_a_click_that_opens_a_dialog_reports_it(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await wire.cdp(tab, "Runtime.evaluate", expression=PAGE)
    await wire.cdp(tab, "Runtime.evaluate", expression="document.getElementById('go').onclick = () => alert('Well?')")
    assert (await wire.ask("click", tabId=tab, selector="#go"))["dialog"] == "Well?"
    await wire.cdp(tab, "Page.handleJavaScriptDialog", accept=True)
    assert await page_events(wire, tab) == ["mouseover", "click"]


async def test_typing_does_not_continue_in_the_next_page(wire: Wire, tab: int, site: Site) -> None:
    await wire.ask("browser_navigate", tabId=tab, url=f"{site.url}/")
    await wire.cdp(tab, "Runtime.evaluate", expression=PAGE)
    leave = "document.getElementById('field').onkeydown = () => { location.href = '/other' }"
    await wire.cdp(tab, "Runtime.evaluate", expression=leave)
    with pytest.raises(Refused, match="navigated to another page after"):
        await wire.ask("type", tabId=tab, selector="#field", text="x" * 5000)
