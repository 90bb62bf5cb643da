"""`/tools` and `/tools/<name>/call`, as scripts use them."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from tests.harness.agent import Agent, client
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe


@pytest.mark.req("S002-endpoints-04")
async def test_tools_are_listed_with_schema_and_plugin_and_filtered_by_plugin(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        everything = (await http.get("/tools")).json()
        probes = (await http.get("/tools", params={"plugin": "probe"})).json()
        nothing = (await http.get("/tools", params={"plugin": "nobody"})).json()
        bare = await http.get("/tools", headers={"Authorization": ""})
    assert [t["name"] for t in everything] == [t.name for t in hub.hub.registry.tools()]
    assert {t["plugin"] for t in everything} == {"browser", "hub", "probe"}
    assert all(t["description"] and t["inputSchema"]["type"] == "object" for t in everything)
    assert [t["name"] for t in probes] == [t["name"] for t in everything if t["name"].startswith("probe_")] != []
    assert all(t["source"] == "plugin" for t in probes)
    assert nothing == []
    assert bare.status_code == 401


@pytest.mark.req("S002-endpoints-05", "S002-dispatch-05")
async def test_a_call_returns_the_browsers_result(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser, client(hub) as http:
        answer = await http.post("/tools/browser_execute_script/call", json={"arguments": {"tabId": 7, "code": "1"}})
        bare = await http.post("/tools/browser_execute_script/call", json={"tabId": 7, "code": "1"})
        refused = await http.post("/tools/browser_list_tabs/call", headers={"Authorization": "Bearer x"})
        sent = await browser.next_request("forwardCDPCommand")
    assert (answer.status_code, bare.status_code, refused.status_code) == (200, 200, 401)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["structuredContent"]["value"] == "fake"
    assert bare.json()["structuredContent"] == answer.json()["structuredContent"]
    assert sent["params"]["tabId"] == 7


@pytest.mark.parametrize("body", [None, b"", b"{}", b'{"arguments":{}}'], ids=["none", "empty", "{}", "wrapped"])
async def test_a_tool_without_arguments_needs_no_body(hub: RunningHub, body: bytes | None) -> None:
    async with FakeExtension(hub), client(hub) as http:
        answer = await http.post("/tools/browser_list_tabs/call", content=body)
    assert answer.status_code == 200
    assert answer.json()["structuredContent"]["tabs"][0]["tabId"] == 7


async def test_an_argument_named_arguments_is_not_unwrapped(hub: RunningHub) -> None:
    Probe(hub)
    async with client(hub) as http:
        mixed = await http.post("/tools/probe_echo/call", json={"value": "x", "arguments": {"value": "y"}})
        wrapped = await http.post("/tools/probe_echo/call", json={"arguments": {"value": "y"}})
    assert mixed.json()["structuredContent"] == {"value": "x", "arguments": {"value": "y"}}
    assert wrapped.json()["structuredContent"] == {"value": "y"}


async def test_an_unknown_tool_is_404_with_the_nearest_names(hub: RunningHub) -> None:
    async with client(hub) as http:
        answer = await http.post("/tools/browser_list_tab/call", json={})
        far = await http.post("/tools/zzzzqqqq/call", json={})
        odd = await http.post(f"/tools/{quote('a b%41/ü', safe='')}/call", json={})
    assert answer.status_code == far.status_code == odd.status_code == 404
    error = answer.json()["error"]
    assert "browser_list_tabs" in error["nearest"]
    assert "Did you mean" in error["hint"]
    assert error["category"] == "not_found"
    assert answer.json()["isError"] is True
    assert "List the tools" in far.json()["error"]["hint"]
    assert "'a b%41/ü'" in odd.json()["error"]["message"]


@pytest.mark.req("S002-dispatch-01")
async def test_invalid_arguments_are_422_with_the_field_and_nothing_is_sent(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser, client(hub) as http:
        answer = await http.post("/tools/browser_execute_script/call", json={"tabId": "seven", "code": "1"})
        missing = await http.post("/tools/browser_execute_script/call", json={"arguments": {}})
    assert (answer.status_code, missing.status_code) == (422, 422)
    error = answer.json()["error"]
    assert [each["field"] for each in error["errors"]] == ["tabId"]
    assert error["outcome"] == "not_sent"
    assert "tabId" in answer.json()["content"][0]["text"]
    assert "code" in missing.json()["error"]["errors"][0]["problem"]
    assert browser.seen.empty()


@pytest.mark.parametrize("body", [b"[]", b'"x"', b'{"arguments": []}', b'{"arguments": null}'])
async def test_a_body_that_is_not_an_object_is_refused(hub: RunningHub, body: bytes) -> None:
    async with client(hub) as http:
        answer = await http.post("/tools/browser_list_tabs/call", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32602


async def test_failures_have_the_status_of_their_kind(hub: RunningHub) -> None:
    async with client(hub) as http:
        nobody = await http.post("/tools/browser_get_tab_info/call", json={"tabId": 7})
        async with FakeExtension(hub) as browser:
            absent = await http.post("/tools/browser_get_tab_info/call", json={"tabId": 8})
            browser.handlers["forwardCDPCommand"] = lambda params: {
                "exceptionDetails": {"text": "Uncaught", "exception": {"description": "Error: no"}},
                "result": {"type": "object"},
            }
            failed = await http.post("/tools/browser_execute_script/call", json={"tabId": 7, "code": "throw 1"})
    assert (nobody.status_code, absent.status_code, failed.status_code) == (503, 404, 422)
    assert nobody.json()["error"]["outcome"] == "not_sent"
    assert "tabhub doctor" in nobody.json()["error"]["hint"]
    assert "7" in absent.json()["error"]["hint"]


async def test_callers_with_a_session_name_have_their_own_tab(hub: RunningHub) -> None:
    async with FakeExtension(hub, tabs=[tab(7)]), client(hub) as http:
        tabs: list[Any] = []
        for name in ("a", "b", "a"):
            answer = await http.post(
                "/tools/browser_get_tab_info/call", json={}, headers={"Tabhub-Session": name, "Tabhub-Client": "me"}
            )
            tabs.append(answer.json()["structuredContent"]["tabId"])
        wrong = await http.post("/tools/browser_list_tabs/call", headers={"Tabhub-Session": "x" * 65})
    assert tabs[0] == tabs[2] != tabs[1]
    assert 7 not in tabs
    assert wrong.status_code == 400
    entry = hub.hub.engine.audit.recent(1)[0]
    assert (entry["session"], entry["client"]) == ("rest:test:a", "me")


async def test_disconnecting_cancels_the_call(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with client(hub) as http:
        call = asyncio.create_task(http.post("/tools/probe_wait/call", json={"n": 1}))
        assert await probe.begun() == {"n": 1}
        call.cancel()
        assert await probe.cancelled() == {"n": 1}
        after = await http.post("/tools/probe_echo/call", json={"value": "still here"})
    assert after.status_code == 200
    assert len(hub.hub.engine.calls) == 0


@pytest.mark.req("S002-endpoints-14")
async def test_wrong_methods_are_405_and_unknown_paths_404(hub: RunningHub) -> None:
    async with client(hub) as http:
        for method, path in [
            ("POST", "/tools"),
            ("GET", "/tools/browser_list_tabs/call"),
            ("POST", "/health"),
            ("POST", "/ws-info"),
            ("DELETE", "/audit"),
            ("POST", "/metrics"),
            ("GET", "/reload"),
            ("GET", "/extension/reload"),
            ("PUT", "/plugin-settings"),
            ("PUT", "/mcp"),
            ("PATCH", "/mcp/gateway"),
        ]:
            assert (await http.request(method, path)).status_code == 405, (method, path)
        for path in ("/", "/tools/", "/tools/x", "/mcp/", "/nothing", "/health/", "/extension"):
            answer = await http.get(path)
            assert answer.status_code == 404, path
            assert answer.json()["error"]["hint"]


@pytest.mark.req("S002-full-03")
async def test_a_disabled_tool_is_refused_and_hidden_or_marked(tmp_path: Any) -> None:
    off = {"permissions": {"browser": {"tools": {"browser_close_tab": "off"}}}}
    for shown in (False, True):
        async with (
            running_hub(tmp_path / str(shown), **off, showDisabled=shown) as hub,
            FakeExtension(hub) as browser,
            client(hub) as http,
            Agent(hub) as agent,
        ):
            at_mcp = {t["name"]: t["description"] for t in (await agent.request("tools/list"))["result"]["tools"]}
            listed = {t["name"]: t for t in (await http.get("/tools")).json()}
            refused = await http.post("/tools/browser_close_tab/call", json={"tabId": 7})
            assert browser.seen.empty()
        assert at_mcp == {name: t["description"] for name, t in listed.items()}
        assert ("browser_close_tab" in listed) is shown
        if shown:
            assert listed["browser_close_tab"]["description"].startswith("[Disabled] ")
            assert not listed["browser_list_tabs"]["description"].startswith("[Disabled]")
        assert refused.status_code == 403
        assert refused.json()["error"]["category"] == "permission"
        assert "tabhub config set permissions.browser.tools.browser_close_tab auto" in refused.json()["error"]["hint"]


@pytest.mark.req("S004-errors-01")
@pytest.mark.parametrize("tool", ["browser_list_tabs", "browser_execute_script"])
async def test_without_an_extension_a_call_fails_as_not_sent(hub: RunningHub, tool: str) -> None:
    arguments = {"code": "return 1"} if tool == "browser_execute_script" else {}
    async with client(hub) as http:
        answer = await http.post(f"/tools/{tool}/call", json=arguments)
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert error["message"].startswith("Browser extension not connected")
    assert error["outcome"] == "not_sent"
    assert "tabhub doctor" in error["hint"]
