"""Faults of the link to a browser: it ends, becomes silent, sends wrong or duplicate replies, or loses the tab."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tabhub.limits import Limits
from tests.harness.agent import Agent, client, message
from tests.harness.fake_extension import FakeExtension, Silent, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.waiting import until

SCRIPT = "browser_execute_script"


@asynccontextmanager
async def pending(hub: RunningHub, browser: FakeExtension, agent: Agent, tab_id: int = 7) -> AsyncIterator[Any]:
    """A script that runs in the browser without end: its command and the task that awaits the agent's answer."""

    def hold(params: dict[str, Any]) -> object:
        return Silent if params["method"] == "Runtime.evaluate" else {}

    browser.handlers["forwardCDPCommand"] = hold
    call = asyncio.create_task(agent.call(SCRIPT, {"tabId": tab_id, "code": "return 1"}))
    while (asked := await browser.next_request("forwardCDPCommand"))["params"]["method"] != "Runtime.evaluate":
        pass
    try:
        yield asked, call
    finally:
        call.cancel()


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[RunningHub]:
    """A hub whose deadlines are far longer than a client waits, so that no call fails because of one."""
    async with running_hub(tmp_path, limits={"call_timeout": 300.0}) as running:
        yield running


async def failed(call: asyncio.Task[dict[str, Any]]) -> dict[str, Any]:
    """The error that a call ended with."""
    result = (await call)["result"]
    assert result["isError"] is True
    facts: dict[str, Any] = result["_meta"]["tabhub/error"]
    facts["text"] = result["content"][0]["text"]
    return facts


async def health(hub: RunningHub) -> dict[str, Any]:
    async with client(hub) as http:
        found: dict[str, Any] = (await http.get("/health")).json()
        return found


@pytest.mark.req("F1")
async def test_call_fails_at_once_with_unknown_outcome_when_its_link_is_lost(hub: RunningHub) -> None:
    async with Agent(hub) as agent, FakeExtension(hub) as browser, pending(hub, browser, agent) as (_, call):
        browser.cut()
        facts = await failed(call)
        assert (facts["category"], facts["outcome"]) == ("browser", "unknown")
        assert "look at the tab" in facts["text"]
        report = await health(hub)
        assert report["extensionConnected"] is False
        assert report["legs"]["extension"] == {"ok": False, "connections": 0}
        assert [b["connected"] for b in report["legs"]["browsers"]] == [False]
        assert report["callsInFlight"] == 0
        later = await agent.call(SCRIPT, {"tabId": 7, "code": "return 1"})
        assert later["result"]["_meta"]["tabhub/error"]["outcome"] == "not_sent"


@pytest.mark.req("F1")
async def test_losing_one_browser_does_not_affect_calls_in_another(hub: RunningHub) -> None:
    async with (
        Agent(hub) as agent,
        FakeExtension(hub, "one") as one,
        FakeExtension(hub, "two", [tab(8)]) as two,
        pending(hub, one, agent) as (_, first),
        pending(hub, two, agent, 8) as (asked, second),
    ):
        one.cut()
        assert (await failed(first))["outcome"] == "unknown"
        assert not second.done()
        await two.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"result": {"type": "number", "value": 2}}})
        assert (await second)["result"]["structuredContent"] == {"value": 2}


async def test_reconnected_browser_keeps_its_tab_ids(hub: RunningHub) -> None:
    async with Agent(hub) as agent:
        async with FakeExtension(hub, "one", [tab(7), tab(9)]):
            before = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
        async with FakeExtension(hub, "one", [tab(7), tab(9)]):
            after = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
        assert [t["tabId"] for t in after] == [t["tabId"] for t in before]


@pytest.mark.req("F3")
async def test_half_open_link_is_detected_and_its_calls_fail(tmp_path: Path) -> None:
    standard = Limits()
    assert standard.ping_interval + standard.ping_timeout <= 40
    async with (
        running_hub(tmp_path, limits={"ping_interval": 0.5, "ping_timeout": 3, "call_timeout": 300.0}) as hub,
        Agent(hub) as agent,
        FakeExtension(hub) as browser,
        FakeExtension(hub, "alive", [tab(8)]),
        pending(hub, browser, agent) as (_, call),
    ):
        browser.socket.transport.pause_reading()  # nothing is read or answered, and nothing is closed
        result = (await call)["result"]
        assert result["_meta"]["tabhub/error"]["outcome"] == "unknown"
        assert "no message received" in result["content"][0]["text"]
        report = await health(hub)
        assert {b["browserId"]: b["connected"] for b in report["legs"]["browsers"]} == {
            "fake-browser": False,
            "alive": True,  # its pongs are signs of life
        }
        browser.socket.transport.resume_reading()
        assert (await browser.ended())[0] == 1011


@pytest.mark.req("F5")
async def test_replies_in_another_order_reach_their_own_calls(hub: RunningHub) -> None:
    count = 30
    waiting: list[tuple[asyncio.Future[Any], str]] = []
    all_here = asyncio.Event()

    def hold(params: dict[str, Any]) -> Any:
        if params["method"] != "Runtime.evaluate":
            return {}
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        number = params["params"]["expression"].split("return ")[1].split(";")[0]
        waiting.append((answer, number))
        if len(waiting) == count:
            all_here.set()
        return answer

    async with Agent(hub) as agent, FakeExtension(hub) as browser:
        browser.handlers["forwardCDPCommand"] = hold
        calls = [asyncio.create_task(agent.call(SCRIPT, {"tabId": 7, "code": f"return {n};"})) for n in range(count)]
        async with asyncio.timeout(30):
            await all_here.wait()
        for answer, number in reversed(waiting):
            answer.set_result({"result": {"type": "number", "value": int(number)}})
        values = [answer["result"]["structuredContent"]["value"] for answer in await asyncio.gather(*calls)]
        assert values == list(range(count))


@pytest.mark.req("F6")
async def test_duplicate_and_late_replies_are_dropped_and_counted(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Agent(hub) as agent, FakeExtension(hub) as browser:

        def reply(ident: int, value: int) -> dict[str, Any]:
            return {"jsonrpc": "2.0", "id": ident, "result": {"result": {"type": "number", "value": value}}}

        async with pending(hub, browser, agent) as (asked, call):
            for value in (1, 2, 3):
                await browser.send(reply(asked["id"], value))
            assert (await call)["result"]["structuredContent"] == {"value": 1}
        await browser.settle()
        [link] = hub.hub.browsers.links()
        assert link.dropped == 2
        async with pending(hub, browser, agent) as (asked, call):
            now = hub.hub.engine.clock
            monkeypatch.setattr(hub.hub.engine, "clock", lambda: now() + 300)  # past the deadline
            assert (await failed(call))["category"] == "timeout"
            assert (await browser.next_notification("cancel"))["params"] == {"id": asked["id"]}
            for value in (4, 5):  # the reply every cancelled command still gets, and one more
                await browser.send(reply(asked["id"], value))
        await browser.settle()
        assert link.dropped == 3
        report = await health(hub)
        assert report["legs"]["browsers"][0]["socket"]["droppedReplies"] == 3
        async with client(hub) as http:
            assert "tabhub_replies_dropped 3.0" in (await http.get("/metrics")).text


@pytest.mark.req("F7")
@pytest.mark.parametrize("ident", [999, 0, -1, "1", 1.0, True, None, {"a": 1}, 2**70])
async def test_reply_with_an_unknown_id_is_dropped(hub: RunningHub, ident: Any) -> None:
    async with Agent(hub) as agent, FakeExtension(hub) as browser, pending(hub, browser, agent) as (asked, call):
        await browser.send({"jsonrpc": "2.0", "id": ident, "result": {"result": {"value": "forged"}}})
        await browser.settle()
        assert not call.done()
        [link] = hub.hub.browsers.links()
        assert link.dropped + link.counts.malformed >= 1
        await browser.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"result": {"value": "true"}}})
        assert (await call)["result"]["structuredContent"] == {"value": "true"}


@pytest.mark.req("F7")
async def test_one_browser_cannot_answer_for_another(hub: RunningHub) -> None:
    async with (
        Agent(hub) as agent,
        FakeExtension(hub, "one") as one,
        FakeExtension(hub, "two", [tab(8)]) as two,
        pending(hub, one, agent) as (asked, call),
    ):
        await two.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"result": {"value": "forged"}}})
        await two.settle()
        assert not call.done()
        assert {link.browser_id: link.dropped for link in hub.hub.browsers.links()} == {"one": 0, "two": 1}
        await one.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"result": {"value": "true"}}})
        assert (await call)["result"]["structuredContent"] == {"value": "true"}


@pytest.mark.req("F8")
async def test_a_second_connection_of_a_browser_replaces_the_first(hub: RunningHub) -> None:
    async with (
        Agent(hub) as agent,
        FakeExtension(hub) as old,
        pending(hub, old, agent) as (asked, call),
        FakeExtension(hub) as new,
    ):
        assert await old.ended() == (4000, "replaced by a newer connection of the same browser")
        assert (await failed(call))["outcome"] == "unknown"
        assert len(hub.hub.browsers.links()) == 1
        await new.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"result": {"value": "stale"}}})
        again = await agent.call(SCRIPT, {"tabId": 7, "code": "return 1"})
        assert again["result"]["structuredContent"] == {"value": "fake"}
        tabs = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
        assert [t["tabId"] for t in tabs] == [7]  # no duplicates


@pytest.mark.req("F9")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tab.stateChanged", {"tabId": 7, "change": "removed"}),
        ("cdp.event", {"tabId": 7, "method": "Inspector.targetCrashed", "params": {}}),
        ("cdp.detached", {"tabId": 7, "reason": "target_closed"}),
        ("cdp.detached", {"tabId": 7, "reason": "replaced_with_devtools"}),
        ("tab.syncAll", {"tabs": [tab(9)], "plugins": {}, "debugger": {"attached": []}}),
    ],
)
async def test_call_fails_at_once_when_its_tab_closes_and_nothing_runs_twice(
    hub: RunningHub, method: str, params: dict[str, Any]
) -> None:
    async with (
        Agent(hub) as agent,
        FakeExtension(hub, tabs=[tab(7), tab(9)]) as browser,
        pending(hub, browser, agent) as (_, call),
        pending(hub, browser, agent, 9) as (asked, other),
    ):
        await browser.notify(method, params)
        facts = await failed(call)
        assert facts["category"] != "timeout"
        assert facts["outcome"] == "unknown"
        await browser.settle()
        assert not other.done()
        assert browser.seen.empty()  # the script was not sent again
        await browser.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"result": {"value": 9}}})
        assert (await other)["result"]["structuredContent"] == {"value": 9}


@pytest.mark.req("F9")
async def test_navigation_during_a_script_fails_it_with_unknown_outcome(hub: RunningHub) -> None:
    async with Agent(hub) as agent, FakeExtension(hub) as browser, pending(hub, browser, agent) as (asked, call):
        error = {"code": -32000, "message": '{"code":-32000,"message":"Inspected target navigated or closed"}'}
        await browser.send({"jsonrpc": "2.0", "id": asked["id"], "error": error})
        facts = await failed(call)
        assert facts["outcome"] == "unknown"
        assert "another page" in facts["text"]
        await browser.settle()
        assert browser.seen.empty()


async def test_session_with_a_closed_tab_gets_one_error_and_then_a_new_tab(hub: RunningHub) -> None:
    async with Agent(hub) as agent, FakeExtension(hub) as browser:
        await agent.call(SCRIPT, {"code": "return 1"})
        [session] = hub.hub.sessions.all()
        lost = session.tab
        browser.tabs = [t for t in browser.tabs if t["tabId"] != lost]
        await browser.notify("tab.stateChanged", {"tabId": lost, "change": "removed"})
        await browser.settle()
        result = (await agent.call(SCRIPT, {"code": "return 1"}))["result"]
        assert result["isError"] is True
        assert f"Tab {lost}" in result["content"][0]["text"]
        assert "isError" not in (await agent.call(SCRIPT, {"code": "return 1"}))["result"]
        assert session.tab not in (None, lost)


async def test_agent_that_disconnects_while_its_tab_opens_leaves_nothing_behind(hub: RunningHub) -> None:
    async with Agent(hub) as agent, FakeExtension(hub) as browser:
        opened: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        browser.handlers["createTab"] = lambda params: opened
        call = asyncio.create_task(agent.post(message("tools/call", {"name": SCRIPT, "arguments": {"code": "1"}})))
        await browser.next_request("createTab")
        call.cancel()
        await until(lambda: len(hub.hub.engine.calls) == 0)
        opened.set_result(tab(1001, "about:blank"))
        await browser.settle()
        assert [link.pending for link in hub.hub.browsers.links()] == [0]
        sent = [browser.seen.get_nowait()["method"] for _ in range(browser.seen.qsize())]
        assert "forwardCDPCommand" not in sent  # the script itself was never sent
