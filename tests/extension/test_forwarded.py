"""What a link may send to the extension and what comes back: the commands, the ids, the empty results, the errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from tabhub.links.link import COMMANDS
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
async def test_a_tab_goes_to_an_address_back_and_forward(wire: Wire, tab: int, site: Site) -> None:
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
    # The browser itself judges the method: none is held back on the way.
    with pytest.raises(Refused, match=r"'Nothing\.there' wasn't found"):
        await wire.cdp(tab, "Nothing.there")


@pytest.mark.req("S003-extensions-02")
async def test_requests_of_the_extensions_own_have_ids_that_say_so(wire: Wire) -> None:
    before = len(wire.seen)
    made = (await wire.ask("createTab"))["tabId"]
    await wire.told("tab.stateChanged", after=before, tabId=made)
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
        # Parameters that none of them takes: nothing is done, but it is known.
        _, reply = await wire.start(
            command, tabId="x", tabIds="x", windowId="x", groupId="x", downloadId="x", url="", origin="", sessionId="",
            title="", name="", level="x", state=5, group=5, query=5, incognito=5, maxResults=0, maxDepth=0, limit=0,
        )  # fmt: skip
        assert (await reply).get("error", {}).get("code") != -32601, command
