"""The stateless era, 2026-07-28, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.agent import PROGRAM, client, stateless, streamed
from tests.harness.fake_extension import FakeExtension, Silent
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import QUESTION, Probe
from tests.harness.raw import exchange, request

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


async def ask(
    http: httpx2.AsyncClient,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    path: str = PROGRAM,
    meta: dict[str, Any] | None = None,
) -> httpx2.Response:
    body, headers = stateless(method, params, **(meta or {}))
    return await http.post(path, json=body, headers=headers)


async def call(http: httpx2.AsyncClient, name: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = (await ask(http, "tools/call", {"name": name, "arguments": arguments}, **more)).json()
    return answer


@pytest.mark.parametrize("path", ["/mcp", "/mcp/gateway"])
async def test_discover_lists_versions_capabilities_and_server_info(hub: RunningHub, path: str) -> None:
    async with client(hub) as http:
        answer = await ask(http, "server/discover", path=path)
        result = answer.json()["result"]
        assert result["resultType"] == "complete"
        assert result["supportedVersions"] == ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
        assert result["capabilities"]["tools"] == {"listChanged": True}
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "tabhub"
        assert "mcp-session-id" not in answer.headers
    assert len(hub.hub.sessions) == 0


async def test_every_result_is_marked_complete_and_lists_have_a_ttl(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        listed = (await ask(http, "tools/list")).json()["result"]
        assert listed["resultType"] == "complete"
        assert listed["ttlMs"] > 0
        assert listed["cacheScope"] == "private"
        script = next(tool for tool in listed["tools"] if tool["name"] == "browser_execute_script")
        assert "session" in script["inputSchema"]["properties"]
        echoed = await ask(http, "tools/call", {"name": "probe_echo", "arguments": {"value": "x"}})
        assert echoed.headers["content-type"] == "application/json"
        assert echoed.json()["result"]["resultType"] == "complete"
        assert echoed.json()["result"]["structuredContent"] == {"value": "x"}


@pytest.mark.req("B23")
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", None),
        ("Mcp-Name", "browser_list_tabs"),
        ("Mcp-Name", None),
        ("Mcp-Name", "=?base64?%%%?="),
        ("Mcp-Method", "TOOLS/CALL"),
    ],
)
async def test_a_header_that_differs_from_the_body_is_refused(hub: RunningHub, header: str, value: str | None) -> None:
    probe = Probe(hub)
    async with client(hub) as http:
        body, headers = stateless("tools/call", {"name": "probe_wait", "arguments": {}})
        headers.pop(header)
        if value is not None:
            headers[header] = value
        answer = await http.post("/mcp", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32020)
        assert answer.json()["id"] == body["id"]
    assert probe.started.empty()


@pytest.mark.req("B23")
@pytest.mark.parametrize("header", ["MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id"])
async def test_a_duplicate_routing_header_is_refused(hub: RunningHub, header: str) -> None:
    body, headers = stateless("tools/call", {"name": "browser_list_tabs"})
    headers |= {"Mcp-Session-Id": "x", "Host": f"127.0.0.1:{hub.port}", **hub.bearer}
    data = json.dumps(body).encode()
    doubled = [*headers.items(), (header, headers[header]), ("Content-Length", str(len(data)))]
    answer = await exchange(hub.port, request("POST", "/mcp", doubled, data))
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, -32020)


async def test_a_name_may_be_sent_in_base64(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        body, headers = stateless("tools/call", {"name": "probe_echo", "arguments": {"value": "x"}})
        headers["Mcp-Name"] = "=?base64?cHJvYmVfZWNobw==?="
        assert (await http.post("/mcp", json=body, headers=headers)).status_code == 200


@pytest.mark.req("B23")
@pytest.mark.parametrize("missing", ["_meta", VERSION, CAPABILITIES])
async def test_a_request_without_its_envelope_is_refused_with_the_missing_fields(hub: RunningHub, missing: str) -> None:
    async with client(hub) as http:
        body, headers = stateless("tools/list")
        (body["params"] if missing == "_meta" else body["params"]["_meta"]).pop(missing)
        answer = await http.post("/mcp", json=body, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
        assert missing in answer.json()["error"]["message"]


@pytest.mark.req("B23")
async def test_unsupported_and_mismatched_versions_are_different_errors(hub: RunningHub) -> None:
    async with client(hub) as http:
        body, headers = stateless("tools/list", None, **{VERSION: "2031-01-01"})
        headers["MCP-Protocol-Version"] = "2031-01-01"
        unknown = await http.post("/mcp", json=body, headers=headers)
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, -32022)
        data = unknown.json()["error"]["data"]
        assert data["requested"] == "2031-01-01"
        assert "2026-07-28" in data["supported"]
        body, headers = stateless("tools/list", None, **{VERSION: "2025-11-25"})
        different = await http.post("/mcp", json=body, headers=headers)
        assert (different.status_code, different.json()["error"]["code"]) == (400, -32020)


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "x" * 5000])
async def test_methods_this_revision_does_not_have_are_404(hub: RunningHub, method: str) -> None:
    async with client(hub) as http:
        answer = await ask(http, method)
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)
        assert len(answer.content) < 500


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_only_post_is_used(hub: RunningHub, method: str) -> None:
    async with client(hub) as http:
        answer = await http.request(method, "/mcp", headers={"MCP-Protocol-Version": "2026-07-28"})
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.req("B3")
async def test_batches_and_responses_are_not_part_of_this_revision(hub: RunningHub) -> None:
    async with client(hub) as http:
        body, headers = stateless("tools/list")
        batch = await http.post("/mcp", json=[body], headers=headers)
        assert (batch.status_code, batch.json()["error"]["code"]) == (400, -32600)
        response = await http.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "result": {}}, headers=headers)
        assert response.status_code == 400
        note = await http.post("/mcp", json={"jsonrpc": "2.0", "method": "notifications/cancelled"}, headers=headers)
        assert (note.status_code, note.content) == (202, b"")


async def test_an_unknown_tool_is_a_protocol_error_and_invalid_arguments_are_a_tool_error(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        unknown = await ask(http, "tools/call", {"name": "probe_ecko", "arguments": {}})
        assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, -32602)
        assert "probe_echo" in unknown.json()["error"]["data"]["nearest"]
        unfit = await ask(http, "tools/call", {"name": "probe_echo", "arguments": {"value": 1}})
        assert unfit.status_code == 200
        assert unfit.json()["result"]["isError"] is True
        assert unfit.json()["result"]["resultType"] == "complete"


async def test_progress_is_sent_on_the_requests_own_stream(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        body, headers = stateless("tools/call", {"name": "probe_report"}, progressToken="p")
        async with streamed(http, "POST", "/mcp", json=body, headers=headers) as events:
            found = await events.rest()
        assert [event.id for event in found] == [None] * 4  # this revision resumes nothing
        messages = [event.message for event in found if event.message]
        assert [m["params"]["progress"] for m in messages[:3]] == [1, 2, 3]
        assert messages[3]["id"] == body["id"]
        assert messages[3]["result"]["resultType"] == "complete"


async def test_log_messages_are_sent_only_for_a_request_with_a_level(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        quiet = await ask(http, "tools/call", {"name": "probe_log"})
        assert quiet.headers["content-type"] == "application/json"
        level = {"io.modelcontextprotocol/logLevel": "info"}
        body, headers = stateless("tools/call", {"name": "probe_log"}, **level)
        async with streamed(http, "POST", "/mcp", json=body, headers=headers) as events:
            messages = [event.message for event in await events.rest() if event.message]
        assert [m["params"]["data"] for m in messages if "params" in m] == ["coarse"]


async def test_a_listener_is_notified_under_its_own_id_until_the_end(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub:
        probe = Probe(hub)
        async with client(hub) as http:
            body, headers = stateless(
                "subscriptions/listen", {"notifications": {"toolsListChanged": True, "other": True}}
            )
            async with streamed(http, "POST", "/mcp", json=body, headers=headers) as events:
                acknowledged = await events.message()
                assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
                assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
                probe.change()
                changed = await events.message()
                assert changed["method"] == "notifications/tools/list_changed"
                assert changed["params"]["_meta"] == {SUBSCRIPTION: body["id"]}
                hub.hub.closing()
                last = await events.message()
                assert (last["id"], last["result"]["resultType"]) == (body["id"], "complete")
            refused = await ask(http, "subscriptions/listen", {"notifications": []})
            assert refused.status_code == 400


@pytest.mark.parametrize("path", ["/mcp", "/mcp/gateway"])
async def test_closing_the_request_cancels_the_call_in_the_browser(hub: RunningHub, path: str) -> None:
    async with FakeExtension(hub) as browser, client(hub) as http:
        evaluate = asyncio.Event()

        def hold(params: dict[str, Any]) -> object:
            if params["method"] != "Runtime.evaluate":
                return {}
            evaluate.set()
            return Silent

        browser.handlers["forwardCDPCommand"] = hold
        name, arguments = "browser_execute_script", {"tabId": 7, "code": "return 1"}
        if path == "/mcp/gateway":
            name, arguments = "tabhub_call", {"name": name, "arguments": arguments}
        running = asyncio.create_task(call(http, name, arguments, path=path))
        await evaluate.wait()
        running.cancel()
        cancelled = (await browser.next_notification("cancel"))["params"]["id"]
        requests = {r["id"]: r for r in (browser.seen.get_nowait() for _ in range(browser.seen.qsize()))}
        assert requests[cancelled]["params"]["method"] == "Runtime.evaluate"
        await browser.settle()
        assert len(hub.hub.engine.calls) == 0
        assert len(hub.hub.sessions) == 0


async def test_required_input_is_sent_with_the_next_request(hub: RunningHub) -> None:
    Probe(hub)
    able: dict[str, Any] = {CAPABILITIES: {"elicitation": {}}}
    async with client(hub) as http:
        unable = await ask(http, "tools/call", {"name": "probe_ask"})
        assert (unable.status_code, unable.json()["error"]["code"]) == (400, -32021)
        first = (await ask(http, "tools/call", {"name": "probe_ask"}, meta=able)).json()["result"]
        assert first["resultType"] == "input_required"
        assert first["inputRequests"] == {"colour": {"method": "elicitation/create", "params": QUESTION}}
        given = {"colour": {"action": "accept", "content": {"colour": "blue"}}}
        params = {"name": "probe_ask", "inputResponses": given, "requestState": first["requestState"]}
        second = (await ask(http, "tools/call", params, meta=able)).json()["result"]
        assert second["resultType"] == "complete"
        assert second["structuredContent"] == {"answer": given["colour"]}


@pytest.mark.parametrize("state", ["", "zz", "00" * 32, "00" * 40, 7, {"a": 1}])
async def test_a_forged_request_state_is_refused(hub: RunningHub, state: Any) -> None:
    Probe(hub)
    async with client(hub) as http:
        params = {"name": "probe_ask", "inputResponses": {}, "requestState": state}
        answer = await ask(http, "tools/call", params, meta={CAPABILITIES: {"elicitation": {}}})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("given", [None, [], {"colour": "red"}, "x"])
async def test_input_of_the_wrong_shape_is_refused(hub: RunningHub, given: Any) -> None:
    Probe(hub)
    async with client(hub) as http:
        answer = await ask(http, "tools/call", {"name": "probe_ask", "inputResponses": given})
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("path", ["/mcp", "/mcp/gateway"])
async def test_a_first_call_opens_a_background_tab_and_its_handle_leads_back_to_it(hub: RunningHub, path: str) -> None:
    async with FakeExtension(hub) as browser, client(hub) as http:

        async def run(session: str | None = None) -> dict[str, Any]:
            arguments: dict[str, Any] = {"code": "return 1"}
            name = "browser_execute_script"
            if path == "/mcp/gateway":
                name, arguments = "tabhub_call", {"name": name, "arguments": arguments}
            if session is not None:
                arguments["session"] = session
            answer: dict[str, Any] = (await call(http, name, arguments, path=path))["result"]
            assert answer.get("isError") is not True, answer
            return answer

        first = await run()
        handle = first["_meta"]["tabhub/session"]
        assert any(handle in part["text"] for part in first["content"])
        created = await browser.next_request("createTab")
        assert created["params"]["active"] is False
        used = (await browser.next_request("forwardCDPCommand"))["params"]["tabId"]
        await browser.settle()
        while not browser.seen.empty():
            browser.seen.get_nowait()
        await run(handle)
        assert (await browser.next_request("forwardCDPCommand"))["params"]["tabId"] == used
        assert browser.seen.empty()
        await run()
        assert (await browser.next_request("createTab"))["params"]["active"] is False  # without a handle: another tab


@pytest.mark.req("C3")
async def test_a_second_tab_opened_with_the_handle_belongs_to_the_same_session(hub: RunningHub) -> None:
    async with FakeExtension(hub), client(hub) as http:
        listed = (await ask(http, "tools/list")).json()["result"]["tools"]
        (open_tab,) = [tool for tool in listed if tool["name"] == "browser_open_tab"]
        assert "session" in open_tab["inputSchema"]["properties"]
        page = {"url": "about:blank"}
        first = (await call(http, "browser_open_tab", page))["result"]
        handle = first["_meta"]["tabhub/session"]
        second = (await call(http, "browser_open_tab", {**page, "session": handle}))["result"]
        tabs = [each["structuredContent"]["tabId"] for each in (first, second)]
        assert len(set(tabs)) == 2
        assert [session.id for session in hub.hub.sessions.all()] == [handle]
        for tab in tabs:
            script = {"code": "return 1", "tabId": tab, "session": handle}
            assert "isError" not in (await call(http, "browser_execute_script", script))["result"]


async def test_a_failed_call_that_opened_a_tab_gives_the_handle_too(hub: RunningHub) -> None:
    async with FakeExtension(hub), client(hub) as http:
        failed = (await call(http, "browser_open_tab", {"url": "https://shop.example/"}))["result"]
        assert failed["isError"] is True
        assert failed["_meta"]["tabhub/session"] in [session.id for session in hub.hub.sessions.all()]
        assert failed["_meta"]["tabhub/error"]["outcome"] == "failed"


@pytest.mark.parametrize("handle", ["s_nothing", "", 7, None, {"a": 1}])
async def test_an_unknown_handle_is_refused_and_nothing_is_sent(hub: RunningHub, handle: Any) -> None:
    async with FakeExtension(hub) as browser, client(hub) as http:
        answer = await call(http, "browser_execute_script", {"code": "return 1", "session": handle})
        assert answer["error"]["code"] in (-32602, -32012)
        await browser.settle()
        assert browser.seen.empty()


async def test_the_session_id_of_a_handshake_client_is_not_a_handle(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser, client(hub) as http:
        hub.hub.sessions.open("0" * 32, "mcp", "other", hub.hub.engine.clock())
        answer = await call(http, "browser_execute_script", {"code": "return 1", "session": "0" * 32})
        assert answer["error"]["code"] == -32012
        await browser.settle()
        assert browser.seen.empty()
