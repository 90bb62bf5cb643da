"""Calls of page tools in a running hub: exactly one answer each, and confirmations requested by pages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tabhub.limits import Limits
from tests.harness.agent import Agent, client, stateless
from tests.harness.fake_extension import Silent, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.pages import ADD, SHOP, Browser, page, text, text_of, tool


@pytest.fixture
async def patient_hub(tmp_path: Path) -> AsyncIterator[RunningHub]:
    """A hub whose deadlines are far longer than a client waits, so that no call fails because of one."""
    async with running_hub(tmp_path, limits={"page_call_timeout": 300.0, "call_timeout": 300.0}) as running:
        yield running


@pytest.mark.req("S000-spec-architecture-09")
async def test_calls_share_no_state(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add"))
        for arguments in ({"id": "x"}, {}, {"id": "y"}):
            await agent.call(ADD, arguments)
            sent = (await browser.next_request("browser/executeTool"))["params"]
            assert sent == {"tabId": 7, "frameId": 0, "documentId": "doc-7-0", "toolName": "add", "args": arguments}


@pytest.mark.req("F9", "S000-spec-routing-14")
async def test_a_call_fails_at_once_when_its_tab_closes_and_is_not_retried(patient_hub: RunningHub) -> None:
    hub = patient_hub
    tabs = [tab(7, f"{SHOP}/p", active=True), tab(8, f"{SHOP}/q")]
    async with Browser(hub, *tabs) as browser, Agent(hub) as agent:
        browser.handlers["browser/executeTool"] = lambda params: Silent if params["tabId"] == 7 else text("other")
        reading = {"annotations": {"readOnlyHint": True}}
        for tab_id in (7, 8):
            await browser.offer(tab_id, tool("add"), tool("look", **reading))
        calls = {
            name: asyncio.create_task(agent.call(f"website_tool_shop_example_{name}"))
            for name in ("add", "look", "tab1_look")
        }
        for _ in calls:
            await browser.next_request("browser/executeTool")
        await browser.change(7, "removed")
        failed = (await calls["add"])["result"]["_meta"]["tabhub/error"]
        assert failed["category"] != "timeout"
        assert failed["outcome"] == "unknown"
        assert text_of(await calls["look"]) == "other"
        exact = await calls["tab1_look"]
        assert exact["result"]["isError"]
        assert sum(1 for _ in range(browser.seen.qsize())) == 1  # the one reading call in the other tab


@pytest.mark.req("F9")
async def test_a_call_fails_at_once_when_its_page_navigates(patient_hub: RunningHub) -> None:
    async with Browser(patient_hub) as browser, Agent(patient_hub) as agent:
        browser.handlers["browser/executeTool"] = lambda params: Silent
        await browser.offer(7, tool("add"))
        call = asyncio.create_task(agent.call(ADD))
        await browser.next_request("browser/executeTool")
        await browser.notify("browser/disconnected", {"tabId": 7, "frameId": 0, "documentId": "doc-7-0"})
        failed = (await call)["result"]["_meta"]["tabhub/error"]
        assert failed["category"] != "timeout"
        assert failed["outcome"] == "unknown"
        assert (await browser.next_notification("cancel"))["params"]["id"] == 1


@pytest.mark.req("S000-spec-routing-12")
async def test_a_call_times_out_and_is_cancelled_in_the_page(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"page_call_timeout": 0.2}) as hub:
        assert Limits().page_call_timeout == 10
        async with Browser(hub) as browser, Agent(hub) as agent:
            browser.handlers["browser/executeTool"] = lambda params: Silent
            await browser.offer(7, tool("add", annotations={"readOnlyHint": True}))
            facts = (await agent.call(ADD))["result"]["_meta"]["tabhub/error"]
            assert (facts["category"], facts["outcome"]) == ("timeout", "unknown")
            assert (await browser.next_notification("cancel"))["params"]["id"] == 1


async def test_a_call_that_was_not_sent_is_retried(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add"))
        browser.handlers.pop("browser/executeTool")
        calls = []

        async def answer(message: dict[str, Any]) -> None:
            calls.append(message)
            error = {"code": -32001, "message": "frame gone", "data": {"sent": len(calls) > 1}}
            await browser.send({"jsonrpc": "2.0", "id": message["id"], "error": error})
            await browser.notify("browser/registerTools", {**page(7, tool("add")), "documentId": f"new{len(calls)}"})

        browser._answer = answer  # type: ignore[method-assign]
        failed = await agent.call(ADD)
        assert [each["params"]["documentId"] for each in calls] == ["doc-7-0", "new1"]
        assert failed["result"]["_meta"]["tabhub/error"]["outcome"] == "unknown"


@pytest.mark.req("S000-messages-04", "S000-messages-05", "S000-spec-transport-06", "S000-extensibility-02")
@pytest.mark.parametrize(
    ("reply", "words", "is_error"),
    [
        ({"success": False, "payload": "out of stock\u202e"}, "says: out of stock", True),
        ({"success": True, "payload": {"content": [], "isError": True}}, "", True),
        ({"success": True, "payload": "text"}, "not a tool result", True),
        ({"success": True, "payload": {"content": [{"type": "magic"}]}}, "magic", False),
        ({"nonsense": 1}, "not a tool result", True),
        (text("fine", _meta={"io.modelcontextprotocol/x": 1, "tabhub/untrusted": 0, "shop/y": 2}), "fine", False),
    ],
)
async def test_every_answer_of_a_page_becomes_one_result(
    hub: RunningHub, reply: dict[str, Any], words: str, is_error: bool
) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add"))
        browser.handlers["browser/executeTool"] = lambda params: reply
        result = (await agent.call(ADD))["result"]
        assert result.get("isError", False) is is_error
        assert words in json.dumps(result["content"], ensure_ascii=False)
        assert "\u202e" not in json.dumps(result["content"], ensure_ascii=False)
        if words == "fine":
            assert result["_meta"] == {"tabhub/untrusted": {"origin": SHOP}, "shop/y": 2}


async def test_structured_content_must_match_the_output_schema(hub: RunningHub) -> None:
    promise = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add", outputSchema=promise))
        for structured, good in (({"n": 1}, True), ({"n": "1"}, False), (None, False)):
            reply = text("x", **({} if structured is None else {"structuredContent": structured}))
            browser.handlers["browser/executeTool"] = partial(lambda reply, params: reply, reply)
            result = (await agent.call(ADD))["result"]
            assert result.get("structuredContent") == (structured if good else None)
            assert result.get("isError", False) is not good


@pytest.mark.req("S000-extensibility-01", "S000-extensibility-02")
async def test_extensions_and_meta_pass_through_and_what_mcp_reserves_does_not(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add"), extensions={"token": "t"})
        meta = {"progressToken": 1, "io.modelcontextprotocol/x": 1, "mcp.dev/x": 1, "shop.example/trace": "abc"}
        own = {"deep": [1, {"x": None}]}
        await agent.request("tools/call", {"name": ADD, "arguments": {}, "_meta": meta, "extensions": own})
        sent = (await browser.next_request("browser/executeTool"))["params"]
        assert sent["_meta"] == {"shop.example/trace": "abc"}
        assert sent["extensions"] == own
        await agent.call(ADD)
        assert (await browser.next_request("browser/executeTool"))["params"]["extensions"] == {"token": "t"}


async def test_progress_of_the_page_reaches_the_agent(hub: RunningHub) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add"))
        browser.handlers["browser/executeTool"] = lambda params: Silent
        params = {"name": ADD, "arguments": {}, "_meta": {"progressToken": "p"}}
        async with asyncio.TaskGroup() as group:

            async def work() -> None:
                asked = await browser.next_request("browser/executeTool")
                progress = {"dispatchId": asked["id"], "progress": 1, "total": 2, "message": "half"}
                await browser.notify("tool.progress", progress)
                await browser.send({"jsonrpc": "2.0", "id": asked["id"], "result": text("done")})

            group.create_task(work())
            async with agent.streamed("tools/call", params) as events:
                progress = await events.message()
                assert progress["params"] == {"progressToken": "p", "progress": 1, "total": 2, "message": "half"}
                assert text_of(await events.message()) == "done"


async def confirming(browser: Browser) -> dict[str, Any]:
    """A page that asks before it acts."""
    asked = await browser.next_request("browser/executeTool")
    where = {key: asked["params"][key] for key in ("tabId", "frameId", "documentId", "toolName")}
    question = {**where, "callId": str(asked["id"]), "message": "Pay 20 EUR?"}
    answered: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
    take = browser._take

    def watch(message: dict[str, Any], running: Any) -> None:
        if message.get("id") == "ext:1" and "method" not in message:
            answered.set_result(message["result"])
        take(message, running)

    browser._take = watch  # type: ignore[method-assign]
    await browser.ask("ext:1", "browser/elicitConfirmation", question)
    verdict = await answered
    browser._take = take  # type: ignore[method-assign]
    await browser.send({"jsonrpc": "2.0", "id": asked["id"], "result": text(f"paid: {verdict['confirmed']}")})
    return verdict


@pytest.mark.req("S000-extensibility-03", "S000-spec-security-06")
@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
async def test_a_page_that_asks_to_confirm_reaches_the_agents_own_person(hub: RunningHub, action: str) -> None:
    async with Browser(hub) as browser, Agent(hub, capabilities={"elicitation": {}}) as agent:
        await browser.offer(7, tool("add"))
        browser.handlers["browser/executeTool"] = lambda params: Silent
        asking = asyncio.create_task(confirming(browser))
        async with agent.streamed("tools/call", {"name": ADD, "arguments": {}}) as events:
            question = await events.message()
            assert question["method"] == "elicitation/create"
            assert question["params"]["message"] == f"{SHOP} asks you to confirm, for its tool 'add': Pay 20 EUR?"
            await agent.post({"jsonrpc": "2.0", "id": question["id"], "result": {"action": action, "content": {}}})
            assert text_of(await events.message()) == f"paid: {action == 'accept'}"
        assert (await asking)["confirmed"] is (action == "accept")


@pytest.mark.parametrize("decision", ["allow_once", "deny"])
async def test_a_confirmation_of_a_page_is_shown_in_the_panel_too(hub: RunningHub, decision: str) -> None:
    async with Browser(hub) as browser, Agent(hub) as agent:
        await browser.offer(7, tool("add"))
        browser.handlers["browser/executeTool"] = lambda params: Silent
        asking = asyncio.create_task(confirming(browser))
        calling = asyncio.create_task(agent.call(ADD))
        request = (await browser.next_notification("confirmation.request"))["params"]
        assert (request["reason"], request["choices"]) == ("page", ["allow_once", "deny"])
        assert request["message"] == f"{SHOP} asks you to confirm, for its tool 'add': Pay 20 EUR?"
        answer = {"id": request["id"], "decision": decision, "reason": "too dear"}
        await browser.notify("confirmation.response", answer)
        assert text_of(await calling) == f"paid: {decision == 'allow_once'}"
        verdict = await asking
        assert verdict["confirmed"] is (decision == "allow_once")
        assert verdict.get("reason") == (None if verdict["confirmed"] else "The person did not confirm. too dear")


async def test_a_stateless_agent_confirms_by_calling_again(hub: RunningHub) -> None:
    async with Browser(hub) as browser, client(hub) as http:
        await browser.offer(7, tool("add"))
        browser.handlers["browser/executeTool"] = lambda params: Silent
        can: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
        asking = asyncio.create_task(confirming(browser))
        body, headers = stateless("tools/call", {"name": ADD, "arguments": {}}, **can)
        result = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
        assert (await asking)["confirmed"] is False
        assert result["resultType"] == "input_required"
        (key,) = result["inputRequests"]
        more = {"inputResponses": {key: {"action": "accept"}}, "requestState": result["requestState"]}
        asking = asyncio.create_task(confirming(browser))
        body, headers = stateless("tools/call", {"name": ADD, "arguments": {}, **more}, **can)
        result = (await http.post("/mcp", json=body, headers=headers)).json()["result"]
        assert (await asking)["confirmed"] is True
        assert result["content"][0]["text"] == "paid: True"
