"""Agents over HTTP at a relay: isolated by user and token, bounded, and ended when idle; browsers that come and go."""

from __future__ import annotations

import asyncio
import gc
import re
import weakref
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import Agent, message, stateless
from tests.harness.fake_extension import tab
from tests.harness.waiting import until
from tests.relay.engines.httpworld import browser, http_relay, sdk
from tests.relay.engines.test_endpoint import PAGE_TOOLS
from tests.relay.independent import IndependentAgent, IndependentExtension
from tests.relay.memory_bus import MemoryBus, MemoryNetwork
from tests.relay.world import token

LIST = message("tools/list")
_NO_BROWSER = "ext-00000000-0000-0000-0000-000000000000"
_HANDLE = re.compile(r"r_[A-Za-z0-9_-]{20}")


async def tabs(agent: Agent) -> list[dict[str, Any]]:
    """The tabs that an agent sees."""
    found: list[dict[str, Any]] = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
    return found


def failure(answer: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The text and the details of a failed call."""
    result = answer["result"]
    assert result["isError"], result
    return result["content"][0]["text"], result["_meta"]["tabhub/error"]


async def test_two_users_never_see_each_other() -> None:
    async with (
        http_relay() as relay,
        browser(relay.ws, token("ann")) as anns,
        browser(relay.ws, token("bob")) as bobs,
        relay.agent(token("ann")) as ann,
        relay.agent(token("bob")) as bob,
    ):
        assert [each["browserId"] for each in await tabs(ann)] == [anns.extension_id]
        assert [each["browserId"] for each in await tabs(bob)] == [bobs.extension_id]
        await bob.call("browser_close_tab", {"tabId": 7})
        assert not anns.asked("closeTab")
        assert len(bobs.asked("closeTab")) == 1


@pytest.mark.req("B13")
async def test_resources_of_another_user_look_like_missing_ones(tmp_path: Path) -> None:
    async with (
        http_relay(audit_file=tmp_path / "audit.log") as relay,
        browser(relay.ws, token("ann")) as anns,
        browser(relay.ws, token("bob")),
        relay.agent(token("ann")) as ann,
        relay.agent(token("bob")) as bob,
        IndependentAgent(relay.ws, token("bob")) as far_bob,
    ):
        # a browser, over HTTP and over WebSocket
        tries = [
            failure(await bob.call("browser_open_tab", {"url": "about:blank", "browserId": ident}))[0].replace(
                ident, ""
            )
            for ident in (anns.extension_id, _NO_BROWSER)
        ]
        assert tries[0] == tries[1]
        await far_bob.handshake()
        refused = [
            await far_bob.error("connect", {"extension_id": ident}) for ident in (anns.extension_id, _NO_BROWSER)
        ]
        assert refused[0] == refused[1]
        assert not anns.asked("createTab")
        # a session, whatever the method
        for method in ("POST", "GET", "DELETE"):
            answers = [
                await bob.http.request(method, "/mcp", json=LIST, headers={**bob.headers, "Mcp-Session-Id": ident})
                for ident in (ann.headers["Mcp-Session-Id"], "0" * 32)
            ]
            assert [answer.status_code for answer in answers] == [404, 404]
            assert answers[0].content == answers[1].content
        assert (await ann.post(LIST)).status_code == 200
        # a result
        await anns.notify("tab.syncAll", {"tabs": [tab(n, title="x" * 8000) for n in range(7, 200)]})
        (engine,) = relay.engines("ann")
        await until(lambda: len(engine.browsers.book) > 70)
        handle = _HANDLE.findall(str(await ann.call("browser_list_tabs")))[0]
        assert not (await ann.call("tabhub_read_result", {"handle": handle, "limit": 10}))["result"].get("isError")
        read = [
            failure(await bob.call("tabhub_read_result", {"handle": each}))[0].replace(each, "")
            for each in (handle, f"r_{'A' * 20}")
        ]
        assert read[0] == read[1]
        # the audit log, which the relay does not serve
        paths = ("/audit", "/audit?user=ann", "/nothing")
        logs = [await bob.http.get(path) for path in paths]
        assert {(answer.status_code, answer.content) for answer in logs} == {(404, logs[0].content)}


async def test_several_browsers_of_a_user_are_chosen_by_their_id() -> None:
    async with (
        http_relay() as relay,
        browser(relay.ws, instance="one") as one,
        browser(relay.ws, instance="two") as two,
        relay.agent() as agent,
    ):
        assert {each["browserId"] for each in await tabs(agent)} == {one.extension_id, two.extension_id}
        for far in (one, two):
            (there,) = [each["tabId"] for each in await tabs(agent) if each["browserId"] == far.extension_id]
            await agent.call("browser_close_tab", {"tabId": there})
            assert len(far.asked("closeTab")) == 1


async def test_without_a_browser_the_error_says_what_to_do_and_a_later_browser_is_used() -> None:
    async with http_relay() as relay, relay.agent() as agent:
        message, facts = failure(await agent.call("browser_open_tab", {"url": "about:blank"}))
        assert "no browser is connected" in message
        assert "this relay's URL and one of your tokens" in message
        assert facts["outcome"] == "not_sent"
        async with browser(relay.ws):
            (engine,) = relay.engines()
            await until(lambda: bool(engine.browsers.links()) and len(engine.browsers.book) == 1)
            assert await tabs(agent)


async def test_a_browser_lost_during_a_call_ends_it_and_is_used_again_once_back() -> None:
    async with http_relay() as relay, relay.agent() as agent:
        async with browser(relay.ws) as far:
            (engine,) = relay.engines()
            await until(lambda: len(engine.browsers.book) == 1)
            far.silent.add("goBack")
            under_way = asyncio.create_task(agent.call("browser_go_back", {"tabId": 7}))
            await until(lambda: bool(far.asked("goBack")))
            far.ws.transport.abort()
            message, facts = failure(await asyncio.wait_for(under_way, 30))
            assert facts["outcome"] == "unknown"
            assert "The connection to the browser ended" in message
            assert message.count("(outcome: unknown)") == 1
        message, facts = failure(await agent.call("browser_go_back", {"tabId": 7}))
        assert facts["outcome"] == "not_sent"
        async with browser(relay.ws) as far:
            await until(lambda: bool(engine.browsers.links()) and len(engine.browsers.book) == 1)
            assert not (await agent.call("browser_close_tab", {"tabId": 7}))["result"].get("isError")
            assert not far.asked("goBack")  # at most once


async def test_denied_and_undecided_approvals_are_reported() -> None:
    async with http_relay(call_timeout=2) as relay, browser(relay.ws) as far, relay.agent() as agent:

        def refuse(method: str, params: dict[str, Any]) -> Any:
            if method == "closeTab":
                raise LookupError("The person at the browser did not allow it.")
            return far.answers.get(method, {}) if method not in far.silent else None

        far.handle = refuse
        assert (
            "The person at the browser did not allow it."
            in failure(await agent.call("browser_close_tab", {"tabId": 7}))[0]
        )
        far.silent.add("goBack")
        message, facts = failure(await agent.call("browser_go_back", {"tabId": 7}))
        assert facts["category"] == "timeout"
        assert "may have been asked" in message


async def test_a_browser_that_never_replies_does_not_delay_others() -> None:
    async with (
        http_relay(relay_open=2) as relay,
        browser(relay.ws) as far,
        browser(relay.ws, instance="good") as good,
    ):
        far.silent |= {"getState"}
        async with relay.agent() as agent:
            assert [each["browserId"] for each in await tabs(agent)] == [good.extension_id]


async def test_page_tools_of_the_browser_are_listed_and_run() -> None:
    async with http_relay() as relay, browser(relay.ws) as far, relay.agent() as agent:
        await tabs(agent)
        async with agent.listening() as stream:
            await far.notify("browser/registerTools", PAGE_TOOLS)
            assert (await stream.message())["method"] == "notifications/tools/list_changed"
        names = [each["name"] for each in (await agent.request("tools/list"))["result"]["tools"]]
        (name,) = [name for name in names if name.startswith("website_tool_")]
        far.answers["browser/executeTool"] = {"success": True, "payload": {"content": [{"type": "text", "text": "5"}]}}
        called = await agent.call(name, {})
        assert called["result"]["content"][0]["text"] == "5", called
        assert len(far.asked("browser/executeTool")) == 1


async def test_a_newer_token_of_the_same_user_continues_the_session() -> None:
    async with http_relay() as relay, browser(relay.ws) as far, relay.agent(token(ttl=60, ident="first")) as agent:
        await tabs(agent)
        (engine,) = relay.engines()
        agent.http.headers["Authorization"] = f"Bearer {token(ttl=900, ident='second')}"
        assert await tabs(agent)
        assert relay.engines() == [engine]
        assert engine.links.claims.token_id == "second"
        relay.relay.node.tokens_revoked(["first 99999999999"])
        assert not (await agent.call("browser_close_tab", {"tabId": 7}))["result"].get("isError")
        assert len(far.asked("closeTab")) == 1


async def test_a_token_with_an_engine_can_continue_the_session_of_another_token() -> None:
    second = token(ttl=700)
    async with http_relay() as relay, relay.agent(token(ttl=600)) as one, relay.agent(second) as two:
        for access in (second, token(ttl=800), second):
            one.http.headers["Authorization"] = f"Bearer {access}"
            assert (await one.post(LIST)).status_code == 200
            assert (await two.post(LIST)).status_code == 200
            assert len(relay.engines()) == 2


async def test_an_engine_with_an_expired_token_ends_after_the_idle_limit() -> None:
    async with http_relay(relay_engine_idle=0.0) as relay, relay.agent(token(ttl=2)) as agent:
        assert (await agent.post(LIST)).status_code == 200
        await until(lambda: not relay.engines())
        agent.http.headers["Authorization"] = f"Bearer {token()}"
        assert (await agent.post(LIST)).status_code == 404


async def test_each_token_has_its_own_engine_and_connection() -> None:
    async with http_relay() as relay, browser(relay.ws) as far, relay.agent() as one, relay.agent() as two:
        for agent in (one, two):
            await agent.call("browser_close_tab", {"tabId": 7})
        assert len(relay.engines()) == 2
        asked = {request["id"].partition(":")[0] for request in far.asked("closeTab")}
        assert len(asked) == 2  # so an approval for one does not apply to the other


async def test_the_engine_unused_for_longest_is_replaced() -> None:
    async with (
        http_relay(relay_user_engines=2) as relay,
        relay.agent() as first,
        relay.agent() as second,
        relay.agent() as third,
        relay.client() as fourth,
    ):
        assert len(relay.engines()) == 2
        assert [(await each.post(LIST)).status_code for each in (first, second, third)] == [404, 200, 200]
        async with second.listening(), third.listening():
            body, headers = stateless("tools/list")
            refused = await fourth.post("/mcp", json=body, headers=headers)
            assert refused.status_code == 503
            assert "2 tokens of this user are in use" in refused.json()["error"]["message"]
        async with relay.agent(token("bob")) as other:
            assert (await other.post(LIST)).status_code == 200


async def test_a_full_node_refuses_new_agents_and_keeps_existing_ones() -> None:
    async with http_relay(relay_engines=1) as relay, relay.agent() as agent, relay.client(token("bob")) as http:
        body, headers = stateless("tools/list")
        refused = await http.post("/mcp", json=body, headers=headers)
        assert (refused.status_code, refused.json()["error"]["data"]["retryable"]) == (503, True)
        assert (await agent.post(LIST)).status_code == 200


async def test_open_requests_of_one_engine_are_bounded() -> None:
    access = token()
    async with (
        http_relay(relay_engine_requests=2) as relay,
        relay.agent(access) as agent,
        relay.agent(access) as another,
    ):
        async with agent.listening():
            assert (await agent.post(LIST)).status_code == 200
            async with another.listening():
                assert (await agent.post(LIST)).status_code == 503
        await until(lambda: relay.engines()[0].open == 0)
        assert (await agent.post(LIST)).status_code == 200


async def test_an_idle_engine_is_freed() -> None:
    async with http_relay(relay_engine_idle=0.0) as relay, browser(relay.ws), relay.client() as http:
        body, headers = stateless("tools/list")
        assert (await http.post("/mcp", json=body, headers=headers)).status_code == 200
        (engine,) = relay.engines()
        gone = weakref.ref(engine)
        del engine
        await until(lambda: not relay.engines() and not len(relay.http.engines))
        await until(lambda: not relay.relay.node.state.tables.agents)

        def collected() -> bool:
            gc.collect()
            return gone() is None

        await until(collected)


async def test_ending_a_session_closes_the_tab_it_opened() -> None:
    async with http_relay() as relay, browser(relay.ws) as far, relay.agent() as agent:
        opened = await agent.call("browser_open_tab", {"url": "about:blank"})
        assert far.asked("createTab"), opened
        assert (await agent.http.delete("/mcp", headers=agent.headers)).status_code == 204
        await until(lambda: any(each["params"]["tabId"] == 90 for each in far.asked("closeTab")))


async def test_http_on_one_node_and_the_browser_on_another() -> None:
    network = MemoryNetwork()
    async with (
        http_relay(bus=MemoryBus("one", network)) as one,
        http_relay(bus=MemoryBus("two", network)) as two,
        browser(two.ws) as far,
        one.agent() as agent,
    ):
        assert [each["browserId"] for each in await tabs(agent)] == [far.extension_id]
        await agent.call("browser_close_tab", {"tabId": 7})
        assert len(far.asked("closeTab")) == 1


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_relay_that_shuts_down_notifies_its_clients(mode: str) -> None:
    async with http_relay() as relay, browser(relay.ws), sdk(relay.url, token(), mode) as client:
        await client.list_tools()
        relay.relay.node.shut_down()
        await until(lambda: not relay.engines())


async def test_a_browser_that_floods_or_sends_invalid_data_affects_only_its_own_calls(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with http_relay() as relay, browser(relay.ws) as good, relay.agent() as agent:
        async with IndependentExtension(relay.ws, token(), "Bad", instanceId="bad") as bad:
            bad.handle = lambda method, params: {"tabs": [{"tabId": "x"}, 5, None], "debugger": 7}
            await until(lambda: len(bad.requests) >= 2)
            lies: list[dict[str, Any]] = [
                {},
                {"tabId": {}},
                {"tabs": 5},
                {"tabId": 7, "documentId": "d", "frameId": -1},
            ]
            for params in lies:
                for method in ("tab.syncAll", "tab.stateChanged", "cdp.event", "browser/registerTools", "log"):
                    await bad.notify(method, params)
            assert [each["browserId"] for each in await tabs(agent)] == [good.extension_id]
        assert not [record for record in caplog.records if record.exc_info]
