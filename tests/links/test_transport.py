"""The transport between page tools and tabs: over links to browsers, and in memory, with the same promises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tabhub.errors import CallTimeout, InvalidParams, LinkLost, NotConnected, TabFailed, TabNotFound
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.sites import LinkSites
from tabhub.links.transport import LinkTransport, TabHubTransport
from tabhub.wire.page_tools import ElicitConfirmation, PageDisconnected, PageMessage, RegisterTools, ToolProgress
from tests.browser.fake_browser import FakeBrowser, settle, tab
from tests.harness.memory_tabs import MemoryTabs

EXECUTE: dict[str, Any] = {"method": "browser/executeTool", "params": {"toolName": "add", "args": {}}}
WHERE: dict[str, Any] = {"frameId": 0, "documentId": "d"}
PAGE: dict[str, Any] = {**WHERE, "origin": "https://a.b", "url": "https://a.b/", "tools": []}


class Heard:
    """Someone who sent a request."""

    def __init__(self) -> None:
        self.all: list[ToolProgress | ElicitConfirmation] = []

    def progress(self, progress: ToolProgress) -> None:
        self.all.append(progress)

    def asked(self, question: ElicitConfirmation) -> Any:
        self.all.append(question)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        future.set_result({"confirmed": True})
        return future


def joined(*tabs: int, browser_id: str = "b1") -> tuple[Browsers, FakeBrowser, LinkTransport]:
    browsers = Browsers()
    transport = LinkTransport(browsers)
    return browsers, FakeBrowser(browser_id).join(browsers, *map(tab, tabs)), transport


@pytest.mark.req("S000-transports-01", "S000-spec-transport-01", "S000-spec-architecture-03")
async def test_a_request_reaches_its_tab_and_its_answer_comes_back() -> None:
    browsers, one, transport = joined(1)
    other = FakeBrowser("b2").join(browsers, tab(1))
    other_id = browsers.book.of("b2")[0].tab_id
    for fake, tab_id in ((one, 1), (other, other_id)):
        call = asyncio.ensure_future(transport.send_request(tab_id, EXECUTE))
        await settle()
        (sent,) = fake.commands("browser/executeTool")
        assert sent["params"] == {"toolName": "add", "args": {}, "tabId": 1}
        fake.reply(sent["id"], {"success": True, "payload": {}})
        assert await call == {"success": True, "payload": {}}


async def test_a_tab_that_is_not_there_is_an_error_that_says_nothing_was_sent() -> None:
    _, _, transport = joined(1)
    with pytest.raises(TabNotFound) as failed:
        await transport.send_request(99, EXECUTE)
    assert failed.value.data == {"sent": False}
    with pytest.raises(NotConnected):
        await LinkTransport(Browsers()).send_request(1, EXECUTE)


@pytest.mark.req("S000-spec-transport-04")
async def test_a_request_ends_after_its_time_and_the_tab_is_told() -> None:
    _, browser, transport = joined(1)
    with pytest.raises(CallTimeout):
        await transport.send_request(1, EXECUTE, 0.01)
    (sent,) = browser.commands("browser/executeTool")
    assert browser.commands("cancel")[0]["params"] == {"id": sent["id"]}
    assert Limits().page_call_timeout == 10
    calls = [asyncio.ensure_future(transport.send_request(1, EXECUTE, 0.01)) for _ in range(50)]
    assert {type(error) for error in await asyncio.gather(*calls, return_exceptions=True)} == {CallTimeout}
    numbers = [each["id"] for each in browser.commands("browser/executeTool")]
    assert len(set(numbers)) == len(numbers) == 51
    # nothing of them is left, however long the browser stays silent
    assert (browser.link.pending, transport._listeners) == (0, {})


@pytest.mark.parametrize("sent", [True, False, None])
async def test_a_frame_that_is_gone_says_whether_it_got_the_call(sent: bool | None) -> None:
    _, browser, transport = joined(1)
    call = asyncio.ensure_future(transport.send_request(1, EXECUTE))
    await settle()
    data = {} if sent is None else {"data": {"sent": sent, "code": 7}}
    browser.text(id=browser.commands("browser/executeTool")[0]["id"], error={"code": -32001, "message": "x", **data})
    with pytest.raises(TabNotFound) as failed:
        await call
    assert failed.value.data == (None if sent is None else {"sent": sent})


async def test_what_a_tab_says_of_a_request_reaches_who_sent_it_and_no_one_else() -> None:
    _, browser, transport = joined(1)
    heard, deaf = Heard(), Heard()
    calls = [asyncio.ensure_future(transport.send_request(1, EXECUTE, listener=who)) for who in (heard, deaf)]
    await settle()
    number = browser.commands("browser/executeTool")[0]["id"]
    browser.tell("tool.progress", dispatchId=number, progress=1)
    for wrong in (99, None, "x", True, number + 0.5):
        browser.tell("tool.progress", dispatchId=wrong, progress=2)
    question = {"tabId": 1, **WHERE, "toolName": "add", "callId": str(number), "message": "?"}
    browser.text(id="ext:1", method="browser/elicitConfirmation", params=question)
    await settle()
    assert [type(each) for each in heard.all] == [ToolProgress, ElicitConfirmation]
    assert deaf.all == []
    assert {"jsonrpc": "2.0", "id": "ext:1", "result": {"confirmed": True}} in browser.sent
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.req("S000-spec-cleanup-01", "S000-spec-cleanup-08")
async def test_messages_and_the_end_of_tabs_are_passed_on_with_the_hubs_own_ids() -> None:
    browsers, browser, transport = joined(1, 2)
    said: list[tuple[int, type[PageMessage]]] = []
    gone: list[int] = []
    transport.on_message(lambda tab_id, message: said.append((tab_id, type(message))))
    for tab_id in (1, 2):
        transport.on_disconnect(tab_id, gone.append)
    browser.tell("browser/registerTools", tabId=1, **PAGE)
    browser.tell("browser/registerTools", tabId="1", **PAGE)
    browser.tell("browser/registerTools", tabId=1, **{**PAGE, "frameId": "0"})
    assert said == [(1, RegisterTools)]
    assert browser.link.counts.refused == 2
    browser.tell("tab.stateChanged", tabId=1, change="removed")
    browser.tell("tab.stateChanged", tabId=2, change="updated", tab=tab(2, title="new"))
    assert gone == [1]
    browsers.detach(browser.link)
    assert gone == [1, 2]


async def test_what_a_page_says_before_its_tab_is_known_waits_for_the_tab() -> None:
    _, browser, transport = joined(1)
    said: list[tuple[int, type[PageMessage]]] = []

    def receive(tab_id: int, message: PageMessage) -> None:
        said.append((tab_id, type(message)))
        if isinstance(message, RegisterTools) and message.title == "bad":
            raise InvalidParams("bad")

    transport.on_message(receive)
    browser.tell("browser/registerTools", tabId=5, title="bad", **PAGE)
    browser.tell("browser/registerTools", tabId=5, **PAGE)
    assert said == []
    browser.tell("tab.stateChanged", tabId=5, change="created", tab=tab(5))
    assert said == [(5, RegisterTools)] * 2
    for number in range(1000):
        browser.tell("browser/registerTools", tabId=100 + number, **PAGE)
    assert len(transport._early) == 200


async def test_a_document_says_goodbye_though_its_tab_has_another_number_by_now() -> None:
    _, browser, transport = joined(1)
    said: list[tuple[int, type[PageMessage]]] = []
    transport.on_message(lambda tab_id, message: said.append((tab_id, type(message))))
    browser.tell("browser/registerTools", tabId=1, **PAGE)
    browser.tell("tab.stateChanged", tabId=9, change="replaced", removedTabId=1, tab=tab(9))
    browser.tell("browser/disconnected", tabId=1, **WHERE)
    assert said[-1] == (1, PageDisconnected)


@pytest.mark.req("S000-spec-transport-07")
async def test_a_tab_that_is_given_up_fails_what_runs_there_and_is_told_as_gone() -> None:
    _, browser, transport = joined(1, 2)
    gone: list[int] = []
    transport.on_disconnect(1, gone.append)
    transport.on_disconnect(2, gone.append)
    calls = [asyncio.ensure_future(transport.send_request(tab_id, EXECUTE)) for tab_id in (1, 2)]
    await settle()
    transport.disconnect(1)
    with pytest.raises(TabFailed):
        await calls[0]
    assert gone == [1]
    assert not calls[1].done()
    transport.disconnect(77)
    browser.link.connection_lost("gone")
    with pytest.raises(LinkLost):
        await calls[1]


async def test_settings_reach_browsers_that_are_there_and_that_come() -> None:
    browsers, browser, transport = joined(1)
    transport.settings({"modelContext": True})
    other = FakeBrowser("b2").join(browsers)
    for fake in (browser, other):
        assert [each["params"] for each in fake.commands("pages.settings")] == [{"modelContext": True}]


async def test_a_site_is_opened_in_the_background_and_loaded_anew_in_its_tab() -> None:
    browsers, browser, _ = joined(1)
    browser.answers["createTab"] = lambda params: tab(50, url=params["url"])
    browser.answers["browser_navigate"] = lambda params: {}
    sites = LinkSites(browsers)
    assert await sites.open("https://a.b/") == 50
    await sites.revisit(50, "https://a.b/")
    assert browser.commands("createTab")[0]["params"] == {"url": "https://a.b/", "active": False}
    assert browser.commands("browser_navigate")[0]["params"]["waitUntil"] == "none"


@pytest.mark.req("S000-transports-02", "S000-notes-02")
async def test_the_transport_in_memory_keeps_the_same_promises() -> None:
    tabs = MemoryTabs()
    transport: TabHubTransport = tabs
    tabs.add(1, "https://a.b/")
    gone: list[int] = []
    transport.on_disconnect(1, gone.append)
    tabs.answer[1] = lambda params: {"got": params["toolName"]}
    assert await transport.send_request(1, EXECUTE) == {"got": "add"}
    tabs.answer[1] = lambda params: asyncio.get_running_loop().create_future()
    with pytest.raises(CallTimeout):
        await transport.send_request(1, EXECUTE, 0.01)
    transport.disconnect(1)
    assert gone == [1]
    with pytest.raises(TabNotFound):
        await transport.send_request(2, EXECUTE)
