"""The transport between page tools and tabs: over links to browsers, and in memory, with the same behaviour."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tabhub.errors import CallTimeout, InvalidParams, LinkLost, NotConnected, TabFailed, TabNotFound
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.transport import LinkTransport, TabHubTransport
from tabhub.wire.page_tools import (
    ElicitConfirmation,
    PageDisconnected,
    PageMessage,
    PluginRequest,
    RegisterTools,
    ToolProgress,
)
from tests.browser.fake_browser import FakeBrowser, settle, tab
from tests.harness.memory_tabs import MemoryTabs

EXECUTE: dict[str, Any] = {"method": "browser/executeTool", "params": {"toolName": "add", "args": {}}}
WHERE: dict[str, Any] = {"frameId": 0, "documentId": "d"}
PAGE: dict[str, Any] = {**WHERE, "origin": "https://a.b", "url": "https://a.b/", "tools": []}


class Sender:
    """A sender of requests that records what it receives."""

    def __init__(self) -> None:
        self.all: list[ToolProgress | ElicitConfirmation] = []

    def progress(self, progress: ToolProgress) -> None:
        self.all.append(progress)

    def requested(self, request: PluginRequest) -> Any:
        """The call of a plugin's tool answers it."""

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
async def test_a_request_reaches_its_tab_and_returns_the_result() -> None:
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


async def test_the_error_for_an_unknown_tab_says_that_nothing_was_sent() -> None:
    _, _, transport = joined(1)
    with pytest.raises(TabNotFound) as failed:
        await transport.send_request(99, EXECUTE)
    assert failed.value.data == {"sent": False}
    with pytest.raises(NotConnected):
        await LinkTransport(Browsers()).send_request(1, EXECUTE)


@pytest.mark.req("S000-spec-transport-04")
async def test_a_request_times_out_and_is_cancelled_in_the_tab() -> None:
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
    # nothing of them remains, however long the browser is silent
    assert (browser.link.pending, transport._listeners) == (0, {})


@pytest.mark.parametrize("sent", [True, False, None])
async def test_the_error_for_a_removed_frame_says_whether_the_call_was_sent(sent: bool | None) -> None:
    _, browser, transport = joined(1)
    call = asyncio.ensure_future(transport.send_request(1, EXECUTE))
    await settle()
    data = {} if sent is None else {"data": {"sent": sent, "code": 7}}
    browser.text(id=browser.commands("browser/executeTool")[0]["id"], error={"code": -32001, "message": "x", **data})
    with pytest.raises(TabNotFound) as failed:
        await call
    assert failed.value.data == (None if sent is None else {"sent": sent})


async def test_progress_and_questions_reach_only_the_sender_of_the_request() -> None:
    _, browser, transport = joined(1)
    first, second = Sender(), Sender()
    calls = [asyncio.ensure_future(transport.send_request(1, EXECUTE, listener=sender)) for sender in (first, second)]
    await settle()
    number = browser.commands("browser/executeTool")[0]["id"]
    browser.notify("tool.progress", dispatchId=number, progress=1)
    for wrong in (99, None, "x", True, number + 0.5):
        browser.notify("tool.progress", dispatchId=wrong, progress=2)
    question = {"tabId": 1, **WHERE, "toolName": "add", "callId": str(number), "message": "?"}
    browser.text(id="ext:1", method="browser/elicitConfirmation", params=question)
    await settle()
    assert [type(each) for each in first.all] == [ToolProgress, ElicitConfirmation]
    assert second.all == []
    assert {"jsonrpc": "2.0", "id": "ext:1", "result": {"confirmed": True}} in browser.sent
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.req("S000-spec-cleanup-01", "S000-spec-cleanup-08")
async def test_messages_and_disconnects_carry_the_hubs_tab_ids() -> None:
    browsers, browser, transport = joined(1, 2)
    messages: list[tuple[int, type[PageMessage]]] = []
    disconnected: list[int] = []
    transport.on_message(lambda tab_id, message: messages.append((tab_id, type(message))))
    for tab_id in (1, 2):
        transport.on_disconnect(tab_id, disconnected.append)
    browser.notify("browser/registerTools", tabId=1, **PAGE)
    browser.notify("browser/registerTools", tabId="1", **PAGE)
    browser.notify("browser/registerTools", tabId=1, **{**PAGE, "frameId": "0"})
    assert messages == [(1, RegisterTools)]
    assert browser.link.counts.refused == 2
    browser.notify("tab.stateChanged", tabId=1, change="removed")
    browser.notify("tab.stateChanged", tabId=2, change="updated", tab=tab(2, title="new"))
    assert disconnected == [1]
    browsers.detach(browser.link)
    assert disconnected == [1, 2]


async def test_messages_of_a_page_wait_until_its_tab_is_known() -> None:
    _, browser, transport = joined(1)
    messages: list[tuple[int, type[PageMessage]]] = []

    def receive(tab_id: int, message: PageMessage) -> None:
        messages.append((tab_id, type(message)))
        if isinstance(message, RegisterTools) and message.title == "bad":
            raise InvalidParams("bad")

    transport.on_message(receive)
    browser.notify("browser/registerTools", tabId=5, title="bad", **PAGE)
    browser.notify("browser/registerTools", tabId=5, **PAGE)
    assert messages == []
    browser.notify("tab.stateChanged", tabId=5, change="created", tab=tab(5))
    assert messages == [(5, RegisterTools)] * 2
    for number in range(1000):
        browser.notify("browser/registerTools", tabId=100 + number, **PAGE)
    messages.clear()
    for number in range(1000):
        browser.notify("tab.stateChanged", tabId=100 + number, change="created", tab=tab(100 + number))
    assert messages == [(100 + number, RegisterTools) for number in range(800, 1000)]


async def test_early_messages_are_bounded_in_bytes_and_the_tab_with_the_most_loses() -> None:
    _, browser, transport = joined(1)
    titles: list[str] = []
    transport.on_message(lambda _, message: titles.append(str(getattr(message, "title", ""))))
    browser.notify("browser/registerTools", tabId=5, title="small", **PAGE)
    large = browser.link.limits.page_early_bytes // 10
    for number in range(50):
        browser.notify("browser/registerTools", tabId=6, title=f"{number}".ljust(large), **PAGE)
    for tab_id in (5, 6):
        browser.notify("tab.stateChanged", tabId=tab_id, change="created", tab=tab(tab_id))
    assert [title.strip() for title in titles] == ["small", *(str(number) for number in range(41, 50))]
    assert transport._early[browser.link.browser_id].bytes == 0


async def test_a_document_disconnects_from_a_tab_that_was_renumbered() -> None:
    _, browser, transport = joined(1)
    messages: list[tuple[int, type[PageMessage]]] = []
    transport.on_message(lambda tab_id, message: messages.append((tab_id, type(message))))
    browser.notify("browser/registerTools", tabId=1, **PAGE)
    browser.notify("tab.stateChanged", tabId=9, change="replaced", removedTabId=1, tab=tab(9))
    browser.notify("browser/disconnected", tabId=1, **WHERE)
    assert messages[-1] == (1, PageDisconnected)


@pytest.mark.req("S000-spec-transport-07")
async def test_disconnecting_a_tab_fails_its_calls_and_calls_the_callbacks() -> None:
    _, browser, transport = joined(1, 2)
    disconnected: list[int] = []
    transport.on_disconnect(1, disconnected.append)
    transport.on_disconnect(2, disconnected.append)
    calls = [asyncio.ensure_future(transport.send_request(tab_id, EXECUTE)) for tab_id in (1, 2)]
    await settle()
    transport.disconnect(1)
    with pytest.raises(TabFailed):
        await calls[0]
    assert disconnected == [1]
    assert not calls[1].done()
    transport.disconnect(77)
    browser.link.connection_lost("disconnected")
    with pytest.raises(LinkLost):
        await calls[1]


async def test_settings_reach_connected_and_later_browsers() -> None:
    browsers, browser, transport = joined(1)
    transport.settings({"modelContext": True})
    other = FakeBrowser("b2").join(browsers)
    for fake in (browser, other):
        assert [each["params"] for each in fake.commands("pages.settings")] == [{"modelContext": True}]


async def test_a_site_is_opened_in_a_background_tab_and_reloaded_there() -> None:
    _, browser, transport = joined(1)
    browser.answers["createTab"] = lambda params: tab(50, url=params["url"])
    browser.answers["browser_navigate"] = lambda params: {"tabId": 50}
    assert await transport.open("https://a.b/") == 50
    await transport.revisit(50, "https://a.b/")
    assert browser.commands("createTab")[0]["params"] == {"url": "https://a.b/", "active": False}
    assert browser.commands("browser_navigate")[0]["params"]["waitUntil"] == "none"


@pytest.mark.req("S000-transports-02", "S000-notes-02")
async def test_the_in_memory_transport_behaves_the_same() -> None:
    tabs = MemoryTabs()
    transport: TabHubTransport = tabs
    tabs.add(1, "https://a.b/")
    disconnected: list[int] = []
    transport.on_disconnect(1, disconnected.append)
    tabs.answer[1] = lambda params: {"got": params["toolName"]}
    assert await transport.send_request(1, EXECUTE) == {"got": "add"}
    tabs.answer[1] = lambda params: asyncio.get_running_loop().create_future()
    with pytest.raises(CallTimeout):
        await transport.send_request(1, EXECUTE, 0.01)
    transport.disconnect(1)
    assert disconnected == [1]
    with pytest.raises(TabNotFound):
        await transport.send_request(2, EXECUTE)
