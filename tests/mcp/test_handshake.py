"""The handshake era over real HTTP: sessions, lists, calls and batches."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.harness.agent import ACCEPT, Agent, client, message
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe

VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
PATHS = ["/mcp", "/mcp/gateway"]


def initialize(version: Any) -> dict[str, Any]:
    return message("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw"}})


@pytest.mark.req("S002-dispatch-05", "S004-flow-03", "S004-flow-07")
async def test_a_call_goes_to_the_browser_and_back(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser, Agent(hub) as agent:
        body = message("tools/call", {"name": "browser_execute_script", "arguments": {"tabId": 7, "code": "return 1"}})
        answer = await agent.post(body)
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["id"] == body["id"]
        assert answer.json()["result"]["structuredContent"]["value"] == "fake", answer
        sent = await browser.next_request("forwardCDPCommand")
        assert sent["params"]["tabId"] == 7


@pytest.mark.req("S002-mcp-04")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("asked", "given"), [*zip(VERSIONS, VERSIONS, strict=True), ("1999-01-01", VERSIONS[-1])])
async def test_initialize_agrees_on_a_version_and_opens_a_session(
    hub: RunningHub, path: str, asked: str, given: str
) -> None:
    async with client(hub) as http:
        answer = await http.post(path, json=initialize(asked), headers=ACCEPT)
        result = answer.json()["result"]
        assert (answer.status_code, result["protocolVersion"]) == (200, given)
        assert result["serverInfo"]["name"] == "tabhub"
        assert result["capabilities"]["tools"] == {"listChanged": True}
        assert len(answer.headers["mcp-session-id"]) >= 32


@pytest.mark.parametrize("version", [None, 20251125, ["2025-11-25"]])
async def test_initialize_without_a_readable_version_opens_no_session(hub: RunningHub, version: Any) -> None:
    async with client(hub) as http:
        answer = await http.post("/mcp", json=initialize(version), headers=ACCEPT)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    assert len(hub.hub.sessions) == 0


async def test_initialize_inside_a_session_is_refused(hub: RunningHub) -> None:
    async with Agent(hub) as agent:
        answer = await agent.post(initialize("2025-11-25"))
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


@pytest.mark.req("B23")
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize(("session", "status", "code"), [(None, 400, -32600), ("0" * 32, 404, -32012)])
async def test_a_missing_session_is_400_and_a_stale_one_404(
    hub: RunningHub, path: str, method: str, session: str | None, status: int, code: int
) -> None:
    headers = ACCEPT | {"MCP-Protocol-Version": "2025-11-25"} | ({"Mcp-Session-Id": session} if session else {})
    async with client(hub) as http:
        answer = await http.request(method, path, headers=headers, json=message("ping") if method == "POST" else None)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
        assert "initialize" in answer.json()["error"]["message"]


async def test_a_session_belongs_to_one_endpoint(hub: RunningHub) -> None:
    async with Agent(hub, "/mcp") as agent:
        agent.path = "/mcp/gateway"
        assert (await agent.post(message("ping"))).status_code == 404


@pytest.mark.req("B23")
async def test_an_unknown_version_header_is_a_400(hub: RunningHub) -> None:
    async with Agent(hub) as agent:
        answer = await agent.post(message("ping"), **{"MCP-Protocol-Version": "2024-01-01"})
        assert answer.status_code == 400
        del agent.headers["MCP-Protocol-Version"]  # older clients do not send one
        assert (await agent.post(message("ping"))).status_code == 200


@pytest.mark.req("C5")
@pytest.mark.req("F16")
@pytest.mark.parametrize("meta", [{}, {"_meta": {"progressToken": 1}}])
async def test_a_cancelled_request_has_no_answer(hub: RunningHub, meta: dict[str, Any]) -> None:
    probe = Probe(hub)
    async with Agent(hub) as agent:
        request = message("tools/call", {"name": "probe_wait", "arguments": {"report": bool(meta)}, **meta})
        ident = request["id"]
        sending = asyncio.create_task(agent.post(request))
        await probe.begun()
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}}
        assert (await agent.post(cancel)).status_code == 202
        await probe.cancelled()
        answer = await sending
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        assert f'"id":{ident}' not in answer.text
        if ids := re.findall(r"^id: ?(.+)$", answer.text, re.MULTILINE):  # clients would resume the stream for ever
            headers = {**agent.headers, "Accept": "text/event-stream", "Last-Event-ID": ids[-1]}
            assert (await agent.http.get("/mcp", headers=headers)).status_code == 405
        assert (await agent.request("ping"))["result"] == {}


@pytest.mark.req("S002-mcp-06")
async def test_delete_ends_the_session_and_its_calls(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as agent:
        call = asyncio.create_task(agent.call("probe_wait", {"who": "me"}))
        await probe.begun()
        assert (await agent.http.delete("/mcp", headers=agent.headers)).status_code == 204
        assert await probe.cancelled() == {"who": "me"}
        assert (await call)["result"]["isError"] is True
        assert (await agent.post(message("ping"))).status_code == 404
        assert len(hub.hub.sessions) == 0


@pytest.mark.parametrize("version", VERSIONS)
async def test_ping_is_answered_and_an_unknown_method_named(hub: RunningHub, version: str) -> None:
    async with Agent(hub, version=version) as agent:
        assert (await agent.request("ping"))["result"] == {}
        error = (await agent.request("resources/forget"))["error"]
        assert error["code"] == -32601
        assert "resources/forget" in error["message"]


async def test_methods_and_media_types_that_are_not_used_are_refused(hub: RunningHub) -> None:
    async with Agent(hub) as agent:
        put = await agent.http.put("/mcp", headers=agent.headers, json={})
        assert (put.status_code, put.headers["allow"]) == (405, "POST, GET, DELETE")
        assert (await agent.post(message("ping"), **{"Content-Type": "text/plain"})).status_code == 415
        assert (await agent.post(message("ping"), Accept="text/html")).status_code == 406


@pytest.mark.req("B3")
async def test_the_first_revision_answers_batches(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub, version="2025-03-26") as agent:
        batch = [
            {"jsonrpc": "2.0", "id": "a", "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "nothing/like_it"},
            {"id": 3},
            {
                "jsonrpc": "2.0",
                "id": 4,
                "method": "tools/call",
                "params": {"name": "probe_echo", "arguments": {"value": "x"}},
            },
        ]
        answers = (await agent.post(batch)).json()
        by_id = {answer["id"]: answer for answer in answers}
        assert by_id["a"]["result"] == {}
        assert by_id[2]["error"]["code"] == -32601
        assert by_id[None]["error"]["code"] == -32600
        assert by_id[4]["result"]["structuredContent"] == {"value": "x"}
        assert len(answers) == 4
        assert probe.started.empty()
        only_notes = await agent.post([{"jsonrpc": "2.0", "method": "notifications/initialized"}])
        assert (only_notes.status_code, only_notes.content) == (202, b"")


@pytest.mark.req("B3")
async def test_invalid_batches_are_refused(hub: RunningHub) -> None:
    async with Agent(hub, version="2025-03-26") as agent:
        for batch in ([], [initialize("2025-03-26")]):
            answer = await agent.post(batch)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
        twice = [message("ping"), {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}]
        answers = (await agent.post(twice)).json()
        assert {"result", "error"} == {key for answer in answers for key in answer} - {"jsonrpc", "id"}


@pytest.mark.req("B3")
@pytest.mark.parametrize("version", VERSIONS[1:])
async def test_later_revisions_refuse_batches(hub: RunningHub, version: str) -> None:
    async with Agent(hub, version=version) as agent:
        answer = await agent.post([message("ping")])
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)
        assert version in answer.json()["error"]["message"]
        assert (await agent.request("ping"))["result"] == {}


async def test_disconnecting_during_a_batch_cancels_all_its_calls(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub, version="2025-03-26") as agent:
        batch = [message("tools/call", {"name": "probe_wait", "arguments": {"n": n}}) for n in (1, 2, 3)]
        sending = asyncio.create_task(agent.post(batch))
        for _ in batch:
            await probe.begun()
        sending.cancel()
        stopped = [(await probe.cancelled())["n"] for _ in batch]
        assert sorted(stopped) == [1, 2, 3]


async def test_an_id_that_is_still_in_flight_is_refused(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as agent:
        body = message("tools/call", {"name": "probe_wait"})
        first = asyncio.create_task(agent.post(body))
        await probe.begun()
        second = (await agent.post(body)).json()
        assert second["error"]["code"] == -32600
        assert "in flight" in second["error"]["message"]
        probe.release.set()
        assert (await first).json()["result"].get("isError") is not True
        assert (await agent.post(body)).json()["result"]["content"]  # available again once answered


async def test_a_list_in_pages_shows_every_tool_once(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"list_page": 3}) as hub, Agent(hub) as agent:
        whole = [tool.name for tool in hub.hub.registry.tools()]
        seen: list[str] = []
        params: dict[str, Any] = {}
        while True:
            page = (await agent.request("tools/list", params))["result"]
            assert len(page["tools"]) <= 3
            seen += [tool["name"] for tool in page["tools"]]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
        assert seen == whole
        for cursor in ("nonsense", "é", 7):
            assert (await agent.request("tools/list", {"cursor": cursor}))["error"]["code"] == -32602


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_unknown_tool_is_an_error_that_suggests_the_nearest(hub: RunningHub, version: str) -> None:
    async with Agent(hub, version=version) as agent:
        error = (await agent.call("browser_list_tab"))["error"]
        assert error["code"] == -32602
        assert "browser_list_tabs" in error["data"]["nearest"]


@pytest.mark.req("S002-dispatch-01")
@pytest.mark.parametrize("version", VERSIONS)
async def test_invalid_arguments_are_a_tool_result_in_every_revision(hub: RunningHub, version: str) -> None:
    async with FakeExtension(hub) as browser, Agent(hub, version=version) as agent:
        answer = await agent.call("browser_execute_script", {"tabId": "seven", "code": ""})
        assert answer["result"]["isError"] is True
        text = answer["result"]["content"][0]["text"]
        assert "Arguments: tabId? (integer), code (string)" in text
        assert 'Example: {"code":"text"}' in text
        assert "tabId" in text
        assert "code" in text
        assert "not_sent" in text
        assert browser.seen.empty()


@pytest.mark.parametrize("params", [{}, {"name": 7}, {"name": "probe_echo", "arguments": [1]}])
async def test_a_call_without_name_or_object_arguments_is_refused(hub: RunningHub, params: dict[str, Any]) -> None:
    async with Agent(hub) as agent:
        assert (await agent.request("tools/call", params))["error"]["code"] == -32602


@pytest.mark.req("S004-goals-06", "S002-mcp-05")
async def test_each_session_without_tab_id_works_in_its_own_background_tab(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser, Agent(hub) as one, Agent(hub) as two:
        for agent in (one, two, one):
            await agent.call("browser_execute_script", {"code": "return 1"})
        created = [await browser.next_request("createTab") for _ in range(2)]
        assert all(request["params"]["active"] is False for request in created)
        bound = {session.tab for session in hub.hub.sessions.all()}
        assert len(bound) == 2
        assert None not in bound


async def test_only_an_idle_session_expires(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, limits={"session_idle": 0}) as hub,
        Agent(hub) as idle,
        Agent(hub) as busy,
        busy.listening(),
    ):
        hub.hub.session_control.expire()
        assert (await idle.post(message("ping"))).status_code == 404
        assert len(hub.hub.sessions) == 1
