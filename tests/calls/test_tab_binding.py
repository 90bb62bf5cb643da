"""Sessions in a running hub: their own tabs, leases between agents, and the end of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest

from tabhub.core.agent_colours import COLOURS
from tests.harness.agent import PROGRAM, Agent, client, message, stateless
from tests.harness.fake_extension import FakeExtension, Refuses, Silent, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.tenants import act, closing_browser, holders, refused, tab_of
from tests.harness.waiting import until

ELICITS: dict[str, Any] = {"elicitation": {}}


@pytest.fixture
async def browser(hub: RunningHub) -> AsyncIterator[FakeExtension]:
    async with closing_browser(hub) as browser:
        yield browser


async def test_an_agents_tab_is_in_a_group_named_after_the_client(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as agent:
        await tab_of(agent)
        asked = (await browser.next_request("createTab"))["params"]
        group = asked.pop("group")
        assert asked == {"active": False}
        assert (group["key"], group["title"]) == ("agent test (raw)", "test (raw)")
        assert group["color"] in COLOURS
        await agent.call("browser_open_tab", {"url": "data:text/html,x"})
        assert (await browser.next_request("createTab"))["params"]["group"] == group


async def test_acting_in_a_leased_tab_is_refused_and_names_its_holder(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as one, Agent(hub) as two, client(hub) as http:
        assert not (await act(one, tabId=7)).get("isError")
        error = refused(await act(two, tabId=7))
        assert (error["code"], error["category"], error["outcome"]) == (-32007, "conflict", "not_sent")
        assert error["holder"] == {"client": "raw 1", "session": f"{one.headers['Mcp-Session-Id'][:8]}…"}
        assert "browser_request_tab" in error["text"]
        assert one.headers["Mcp-Session-Id"] not in error["text"]
        closing = refused((await two.call("browser_close_tab", {"tabId": 7}))["result"])
        assert closing["code"] == -32007
        assert [each["tabId"] for each in browser.tabs] == [7, 8]
        rest = await http.post("/tools/browser_execute_script/call", json={"tabId": 7, "code": "1"})
        assert rest.status_code == 409
        body, headers = stateless(
            "tools/call", {"name": "browser_execute_script", "arguments": {"tabId": 7, "code": "1"}}
        )
        assert refused((await http.post("/mcp", json=body, headers=headers)).json()["result"])["code"] == -32007


async def test_reading_binds_a_free_tab_but_not_a_leased_one(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as one, Agent(hub) as two:
        await act(one, tabId=7)
        assert await tab_of(two, tabId=8) == 8
        assert await tab_of(two, tabId=7) == 7
        assert await tab_of(two) == 8
        assert holders(hub) == {7: one.headers["Mcp-Session-Id"], 8: two.headers["Mcp-Session-Id"]}


@pytest.mark.req("A18")
async def test_the_list_of_tabs_marks_own_and_leased_ones(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as one, Agent(hub) as two:
        await act(one, tabId=7)
        for agent, mark in ((one, "own"), (two, "leased")):
            tabs = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
            assert [each["tabId"] for each in tabs if each.get(mark)] == [7]


async def test_reading_can_be_refused_too(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, readLeasedTabs=False) as hub,
        closing_browser(hub),
        Agent(hub) as one,
        Agent(hub) as two,
    ):
        await act(one, tabId=7)
        assert refused((await two.call("browser_get_tab_info", {"tabId": 7}))["result"])["code"] == -32007


async def test_a_released_tab_is_free_and_stays_open_after_the_session(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as one, Agent(hub) as two:
        mine = await tab_of(one)
        released = (await one.call("browser_release_tab"))["result"]["structuredContent"]
        assert released == {"tabId": mine, "released": True}
        assert not (await act(two, tabId=mine)).get("isError")
        error = refused((await one.call("browser_release_tab", {"tabId": mine}))["result"])
        assert "does not hold" in error["text"]
        assert "raw 1" in error["text"]
        await one.http.delete("/mcp", headers=one.headers)
        await browser.settle()
        assert mine in [each["tabId"] for each in browser.tabs]
        assert await tab_of(two) == mine


async def test_an_idle_holder_loses_its_tab_on_request_and_is_notified(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, limits={"lease_idle": 0}) as hub,
        closing_browser(hub) as browser,
        Agent(hub) as one,
        Agent(hub) as two,
    ):
        await act(one, tabId=7)
        assert await tab_of(two, tabId=7) == 7
        assert holders(hub) == {7: one.headers["Mcp-Session-Id"]}, "looking takes nothing"
        assert not (await act(two, tabId=7)).get("isError")
        assert "was taken over by raw 1" in refused(await act(one))["text"]
        assert not (await act(one)).get("isError")
        await browser.next_request("createTab")


@pytest.mark.req("S004-binding-04")
async def test_a_session_that_ends_closes_only_the_tabs_it_opened(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as one, Agent(hub) as two:
        mine, his = await tab_of(one), await tab_of(two)
        await act(one, tabId=7)
        await one.http.delete("/mcp", headers=one.headers)
        assert (await browser.next_request("closeTab"))["params"] == {"tabId": mine}
        await until(lambda: sorted(each["tabId"] for each in browser.tabs) == [7, 8, his])
        assert holders(hub) == {his: two.headers["Mcp-Session-Id"]}
    async with running_hub(hub.home.root / "keeping", keepTabs=True) as other, closing_browser(other) as elsewhere:
        async with Agent(other) as three:
            mine = await tab_of(three)
            await three.http.delete("/mcp", headers=three.headers)
        await elsewhere.settle()
        assert mine in [each["tabId"] for each in elsewhere.tabs]


async def test_an_expired_session_closes_its_tabs_too(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as one:
        mine = await tab_of(one)
        session = hub.hub.sessions.all()[0]
        session.seen = hub.hub.engine.clock() - hub.hub.engine.limits.session_idle
        hub.hub.session_control.expire()
        assert (await browser.next_request("closeTab"))["params"] == {"tabId": mine}
        assert holders(hub) == {}


async def test_a_tab_of_a_disconnected_browser_is_closed_when_it_reconnects(hub: RunningHub) -> None:
    async with Agent(hub) as one:
        async with closing_browser(hub) as browser:
            mine = await tab_of(one)
        await until(lambda: not hub.hub.browsers.links())
        await one.http.delete("/mcp", headers=one.headers)
        back = closing_browser(hub)
        back.tabs = browser.tabs
        async with back as browser:
            assert (await browser.next_request("closeTab"))["params"] == {"tabId": mine}


async def test_a_tab_that_opens_after_its_session_ended_is_closed(hub: RunningHub, browser: FakeExtension) -> None:
    go = asyncio.Event()
    create = browser.handlers["createTab"]

    async def slowly(params: dict[str, Any]) -> Any:
        await go.wait()
        return create(params)

    browser.handlers["createTab"] = slowly
    async with Agent(hub) as one:
        call = asyncio.create_task(act(one))
        await browser.next_request("createTab")
        await one.http.delete("/mcp", headers=one.headers)
        go.set()
        await browser.next_request("closeTab")
        await call
    assert holders(hub) == {}


async def test_an_agent_sees_its_own_session_and_no_other(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as one, Agent(hub) as two:
        mine = await tab_of(one)
        await act(one, tabId=7)
        await tab_of(two)
        (own,) = (await one.call("browser_list_sessions"))["result"]["structuredContent"]["sessions"]
        assert own["session"] == one.headers["Mcp-Session-Id"]
        assert (own["client"], own["tabId"], own["ownTabs"]) == ("raw 1", 7, [mine])
        assert [(held["tabId"], held["reachable"]) for held in own["leases"]] == [(mine, True), (7, True)]
        status = (await one.call("browser_get_connection_status"))["result"]["structuredContent"]
        assert status["session"]["tabId"] == 7


async def test_a_stateless_agent_sees_the_session_whose_handle_it_has(hub: RunningHub, browser: FakeExtension) -> None:
    async with client(hub) as http:

        async def call(name: str, **arguments: Any) -> dict[str, Any]:
            body, headers = stateless("tools/call", {"name": name, "arguments": arguments})
            result: dict[str, Any] = (await http.post(PROGRAM, json=body, headers=headers)).json()["result"]
            return result

        assert (await call("browser_list_sessions"))["structuredContent"]["sessions"] == []
        asked = await call("browser_request_tab", tabId=8, reason="to read it")
        handle = asked["_meta"]["tabhub/session"]
        (own,) = (await call("browser_list_sessions", session=handle))["structuredContent"]["sessions"]
        assert (own["session"], own["tabId"]) == (handle, 8)
        assert not (await call("browser_release_tab", session=handle)).get("isError")
        assert refused(await call("browser_list_sessions", session="s_nobody"))["category"] == "not_found"


async def test_a_stateless_client_can_name_its_own_tab(hub: RunningHub, browser: FakeExtension) -> None:
    async with client(hub) as http, Agent(hub) as other:
        for arguments in ({"url": "data:text/html,x"}, {"tabId": 1001, "code": "return 1"}):
            name = "browser_execute_script" if "code" in arguments else "browser_open_tab"
            body, headers = stateless("tools/call", {"name": name, "arguments": arguments})
            assert not (await http.post("/mcp", json=body, headers=headers)).json()["result"].get("isError")
        assert refused(await act(other, tabId=1001))["code"] == -32007
        info = {"io.modelcontextprotocol/clientInfo": {"name": "someone else", "version": "1"}}
        body, headers = stateless("tools/call", {"name": name, "arguments": arguments}, **info)
        assert refused((await http.post("/mcp", json=body, headers=headers)).json()["result"])["code"] == -32007


# asking for a tab


async def request_tab(agent: Agent, tab_id: int = 7) -> dict[str, Any]:
    """Request a tab where nobody can be asked."""
    answer = await agent.call("browser_request_tab", {"tabId": tab_id, "reason": "the report"})
    result: dict[str, Any] = answer["result"]
    return result


async def test_a_free_tab_is_granted_at_once_and_a_held_one_refused_without_anyone_to_ask(
    hub: RunningHub, browser: FakeExtension, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub.hub.browsers, "is_managed", lambda _: True)
    async with Agent(hub) as one, Agent(hub) as two:
        assert (await request_tab(one))["structuredContent"]["by"] == "free"
        assert (await request_tab(one))["structuredContent"]["by"] == "free", "one's own too"
        error = refused(await request_tab(two))
        assert error["text"].startswith("No one could be asked")
        assert "held by another session: raw 1" in error["text"]
        assert error["code"] == -32007


@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_the_holders_person_is_asked_if_its_client_has_a_stream(
    hub: RunningHub, browser: FakeExtension, action: str
) -> None:
    async with Agent(hub, capabilities=ELICITS) as one, Agent(hub, capabilities=ELICITS) as two:
        await act(one, tabId=7)
        async with one.listening() as events:
            await events.next()
            asking = asyncio.create_task(request_tab(two))
            question = await events.message()
            assert question["method"] == "elicitation/create"
            assert "the report" in question["params"]["message"]
            await one.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": {}}})
            answer = await asking
        if action == "accept":
            assert answer["structuredContent"]["by"] == "holder"
            assert holders(hub) == {7: two.headers["Mcp-Session-Id"]}
            assert "was taken over by raw 1" in refused(await act(one))["text"]
        else:
            assert "did not agree" in refused(answer)["text"]
            assert holders(hub) == {7: one.headers["Mcp-Session-Id"]}


async def test_a_holder_that_disconnects_during_the_question_releases_the_tab(
    hub: RunningHub, browser: FakeExtension
) -> None:
    async with Agent(hub, capabilities=ELICITS) as one, Agent(hub) as two:
        await act(one, tabId=7)
        async with one.listening() as events:
            await events.next()
            asking = asyncio.create_task(request_tab(two))
            await events.message()
            await one.http.delete("/mcp", headers=one.headers)
            assert (await asking)["structuredContent"]["granted"] is True
        assert holders(hub) == {7: two.headers["Mcp-Session-Id"]}


@pytest.mark.parametrize("action", ["accept", "cancel"])
async def test_the_requesting_agents_person_decides_if_the_holder_cannot_be_asked(
    hub: RunningHub, browser: FakeExtension, action: str
) -> None:
    async with Agent(hub) as one, Agent(hub, capabilities=ELICITS) as two:
        await act(one, tabId=7)
        arguments = {"name": "browser_request_tab", "arguments": {"tabId": 7, "reason": "the report"}}
        async with two.streamed("tools/call", arguments) as events:
            question = await events.message()
            await two.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action}})
            answer = (await events.message())["result"]
        if action == "accept":
            assert answer["structuredContent"]["by"] == "person"
            assert holders(hub) == {7: two.headers["Mcp-Session-Id"]}
        else:
            assert "did not agree" in refused(answer)["text"]


async def test_a_person_has_longer_to_answer_than_the_call_timeout(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, limits={"call_timeout": 2}) as hub,
        closing_browser(hub),
        Agent(hub) as one,
        Agent(hub, capabilities=ELICITS) as two,
    ):
        await act(one, tabId=7)
        call = {"name": "browser_request_tab", "arguments": {"tabId": 7, "reason": "the report"}}
        async with two.streamed("tools/call", {**call, "_meta": {"progressToken": 1}}) as events:
            question = await events.message()
            while (await events.message())["params"]["progress"] < 2.5:
                pass
            await two.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
            while "result" not in (reply := await events.message()):
                pass
        assert reply["result"]["structuredContent"]["by"] == "person"


async def test_a_refused_requester_gets_no_hint_to_ask_but_gets_a_tab_that_is_released(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, skipPermissions=True, limits={"call_timeout": 3}) as hub,
        closing_browser(hub),
        Agent(hub) as one,
        Agent(hub) as two,
        Agent(hub, capabilities=ELICITS) as three,
    ):
        await act(one, tabId=7)
        assert "browser_request_tab" not in refused(await request_tab(two))["text"]
        call = {"name": "browser_request_tab", "arguments": {"tabId": 7, "reason": "the report"}}
        async with three.streamed("tools/call", call) as events:
            question = await events.message()
            await one.call("browser_release_tab")
            assert (await events.message())["params"]["requestId"] == question["id"], "the question is taken back"
            assert (await events.message())["result"]["structuredContent"]["by"] == "free"


@pytest.mark.parametrize("decision", ["allow_once", "deny"])
async def test_the_person_at_the_browser_decides_if_no_client_can_ask(
    hub: RunningHub, browser: FakeExtension, decision: Literal["allow_once", "deny"]
) -> None:
    approvals = hub.hub.approvals
    async with Agent(hub) as one, Agent(hub) as two:
        await act(one, tabId=7)
        asking = asyncio.create_task(request_tab(two))
        await until(lambda: len(approvals) == 1)
        (asked,) = approvals.pending()
        assert (asked["reason"], asked["tabId"], asked["choices"]) == ("tab", 7, ["allow_once", "deny"])
        assert "the report" in asked["message"]
        approvals.answer(asked["id"], decision, "panel")
        answer = await asking
        if decision == "allow_once":
            assert answer["structuredContent"]["by"] == "person"
            assert holders(hub) == {7: two.headers["Mcp-Session-Id"]}
        else:
            assert "did not agree" in refused(answer)["text"]


async def test_a_question_without_an_answer_times_out(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, limits={"tab_request": 0.2, "call_timeout": 3}) as hub,
        closing_browser(hub),
        Agent(hub) as one,
        Agent(hub) as two,
    ):
        await act(one, tabId=7)
        assert refused(await request_tab(two))["text"].startswith("The person was asked and gave no answer. Tab 7 is")
        await until(lambda: len(hub.hub.approvals) == 0)


@pytest.mark.req("F16")
async def test_a_cancelled_or_disconnected_requester_leaves_no_call_and_no_lease(
    hub: RunningHub, browser: FakeExtension
) -> None:
    never = asyncio.Event()
    browser.handlers["forwardCDPCommand"] = lambda params: (
        never.wait() if params["method"] == "Runtime.evaluate" else {}
    )
    async with Agent(hub) as one, client(hub) as http:
        request = message(
            "tools/call", {"name": "browser_execute_script", "arguments": {"tabId": 7, "code": "return 1"}}
        )
        call = asyncio.create_task(one.post(request))
        evaluating = await browser.next_request("forwardCDPCommand")
        while evaluating["params"]["method"] != "Runtime.evaluate":
            evaluating = await browser.next_request("forwardCDPCommand")
        await one.notify("notifications/cancelled", {"requestId": request["id"]})
        assert (await browser.next_notification("cancel"))["params"] == {"id": evaluating["id"]}
        await call
        assert len(hub.hub.engine.calls) == 0
        assert holders(hub) == {7: one.headers["Mcp-Session-Id"]}
        gone = asyncio.create_task(one.post({**request, "id": "again"}))
        await browser.next_request("forwardCDPCommand")
        await one.http.delete("/mcp", headers=one.headers)
        await browser.next_notification("cancel")
        await gone
        assert (len(hub.hub.engine.calls), holders(hub)) == (0, {})
        browser.handlers["forwardCDPCommand"] = lambda params: {"result": {"type": "string", "value": "x"}}
        free = await http.post("/tools/browser_execute_script/call", json={"tabId": 7, "code": "return 1"})
        assert free.status_code == 200


async def stops(browser: FakeExtension, tab_id: int) -> None:
    """The person presses the browser's Cancel button."""
    browser.tabs[:] = [{**each, "stopped": each["tabId"] == tab_id} for each in browser.tabs]
    await browser.notify("cdp.detached", {"tabId": tab_id, "reason": "canceled_by_user"})
    await browser.settle()


@pytest.mark.req("F22")
async def test_person_takes_a_tab_from_its_agent_with_the_cancel_button(
    hub: RunningHub, browser: FakeExtension
) -> None:
    async with Agent(hub) as one, Agent(hub) as two, client(hub) as http:
        assert not (await act(one, tabId=7)).get("isError")
        browser.handlers["forwardCDPCommand"] = lambda _: Silent
        calling = asyncio.create_task(act(one))
        await browser.next_request("forwardCDPCommand")
        await until(lambda: len(hub.hub.engine.calls) == 1)
        await stops(browser, 7)
        running = refused(await calling)
        assert running["text"].startswith("The person stopped you in this tab.")
        assert (running["category"], running["outcome"]) == ("permission", "unknown")
        assert holders(hub) == {}
        # neither agent can use it, whether or not it names the tab
        for agent, arguments in ((one, {}), (one, {"tabId": 7}), (two, {"tabId": 7})):
            error = refused(await act(agent, **arguments))
            assert error["text"].startswith("The person stopped you in this tab."), arguments
            assert error["outcome"] == "not_sent"
        for name in ("browser_get_tab_info", "browser_close_tab", "browser_request_tab", "browser_release_tab"):
            answer = await two.call(name, {"tabId": 7, "reason": "please"} if "request" in name else {"tabId": 7})
            assert answer["result"]["isError"], name
        listed = (await two.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
        assert [each["tabId"] for each in listed if each.get("stopped")] == [7]
        # it stays so when the extension reconnects
        await browser.sync()
        assert refused(await act(two, tabId=7))["category"] == "permission"
        # only the person returns it
        browser.handlers["resumeTab"] = lambda params: tab(params["tabId"])
        assert (await http.post("/resume", json={"tabId": 7})).json() == {"ok": True, "tabId": 7}
        assert (await tab_of(two, tabId=7)) == 7
        assert (await http.post("/resume", json={"tabId": 7})).status_code == 404


@pytest.mark.req("F23")
async def test_session_whose_popup_closes_continues_in_the_tab_that_opened_it(
    hub: RunningHub, browser: FakeExtension
) -> None:
    async with Agent(hub) as agent:
        opener = await tab_of(agent)
        browser.tabs.append(tab(30, "https://login.example/", openerTabId=opener))
        await browser.sync()
        assert not (await act(agent, tabId=30)).get("isError")
        browser.tabs.pop()
        await browser.sync()
        error = refused(await act(agent))
        assert "Tab 30, which this session was working in, has been closed." in error["text"]
        assert f"continue in tab {opener}, which opened it" in error["text"]
        assert await tab_of(agent) == opener


@pytest.mark.req("F23")
async def test_session_continues_in_its_tab_when_the_browser_discards_or_replaces_it(
    hub: RunningHub, browser: FakeExtension
) -> None:
    async with Agent(hub) as agent:
        held = await tab_of(agent)
        assert not (await act(agent)).get("isError")
        await browser.notify("tab.stateChanged", {"tabId": 40, "change": "replaced", "removedTabId": held})
        browser.tabs[:] = [{**each, "tabId": 40} if each["tabId"] == held else each for each in browser.tabs]
        await browser.sync()
        assert await tab_of(agent) == held
        browser.handlers["forwardCDPCommand"] = discarded
        error = refused(await act(agent))
        assert f"unloaded the page of tab {held} to save memory" in error["text"]
        assert "browser_reload_tab" in error["text"]
        assert list(holders(hub)) == [held]


@pytest.mark.req("F22")
async def test_call_in_a_tab_that_the_person_closes_fails_and_says_so(hub: RunningHub, browser: FakeExtension) -> None:
    async with Agent(hub) as agent:
        held = await tab_of(agent)
        browser.handlers["forwardCDPCommand"] = lambda _: Silent
        calling = asyncio.create_task(act(agent))
        await browser.next_request("forwardCDPCommand")
        await browser.notify("tab.stateChanged", {"tabId": held, "change": "removed"})
        error = refused(await calling)
        assert f"Tab {held} failed during the call: it was closed." in error["text"]
        assert f"Tab {held}, which this session was working in, has been closed." in refused(await act(agent))["text"]


def discarded(params: dict[str, Any]) -> Any:
    raise Refuses(-32000, f"Tab {params['tabId']} is unloaded to save memory. Reload it first.")
