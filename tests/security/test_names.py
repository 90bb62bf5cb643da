"""Names chosen by an attacker, wherever a name is looked up."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.harness.agent import Agent, client, message, stateless
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub
from tests.harness.probe import Probe

NAMES = ["__proto__", "constructor", "prototype", "toString", "__class__", "hasOwnProperty"]


@pytest.mark.req("B14")
@pytest.mark.parametrize("name", NAMES)
async def test_javascript_names_are_not_tools_sessions_plugins_or_methods(hub: RunningHub, name: str) -> None:
    async with Agent(hub) as agent, client(hub) as http:
        assert (await agent.call(name))["error"]["code"] == -32602
        assert (await agent.request(name))["error"]["code"] == -32601
        agent.headers["Mcp-Session-Id"] = name
        assert (await agent.post(message("ping"))).status_code == 404
        body, headers = stateless("tools/call", {"name": name, "arguments": {name: 1}})
        assert (await http.post("/mcp", json=body, headers=headers)).status_code == 400
        gateway = {"name": "tabhub_call", "arguments": {"name": name, "session": name}}
        body, headers = stateless("tools/call", gateway)
        assert (await http.post("/mcp/gateway", json=body, headers=headers)).json()["error"]["code"] == -32012
        assert (await http.post(f"/tools/{name}/call", json={})).status_code == 404
        settings = await http.post("/plugin-settings", json={"plugin": name, "settings": {name: name}})
        assert settings.status_code == 404
        assert (await http.get("/tools", params={"plugin": name})).json() == []
        assert (await http.get("/audit", params={name: "1"})).status_code == 400
        assert (await http.get(f"/{name}")).status_code == 404


@pytest.mark.req("B14")
@pytest.mark.parametrize("name", NAMES)
async def test_a_session_or_browser_may_have_a_javascript_name(hub: RunningHub, name: str) -> None:
    async with FakeExtension(hub, browser_id=name), client(hub, **{"Tabhub-Session": name}) as http:
        listed = (await http.post("/tools/browser_list_tabs/call", json={})).json()
        assert [tab["browserId"] for tab in listed["structuredContent"]["tabs"]] == [name]


async def test_ids_of_one_session_keep_their_exact_type(hub: RunningHub) -> None:
    probe = Probe(hub)
    idents: list[str | int] = [
        1,
        "1",
        0,
        "0",
        -1,
        "",
        "01",
        2**53,
        "__proto__",
        "tabhub-1",
        "ext:1",
        "proxy:1",
        "conn-1:1",
    ]
    async with Agent(hub) as agent:

        async def call(ident: str | int) -> dict[str, object]:
            params = {"name": "probe_wait", "arguments": {"mine": ident}}
            body = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}
            answer: dict[str, object] = (await agent.post(body)).json()
            return answer

        calls = [asyncio.create_task(call(ident)) for ident in idents]
        for _ in idents:
            await probe.begun()
        probe.release.set()
        for ident, answer in zip(idents, await asyncio.gather(*calls), strict=True):
            assert type(answer["id"]) is type(ident)
            assert answer["id"] == ident
            assert answer["result"]["structuredContent"] == {"mine": ident}  # type: ignore[index]


async def test_two_agents_with_the_same_id_each_get_their_own(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as one, Agent(hub) as two:

        async def call(agent: Agent, who: str) -> str:
            params = {"name": "probe_wait", "arguments": {"who": who}}
            answer = await agent.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            name: str = answer.json()["result"]["structuredContent"]["who"]
            return name

        calls = [asyncio.create_task(call(agent, who)) for agent, who in ((one, "one"), (two, "two"))]
        for _ in calls:
            await probe.begun()
        probe.release.set()
        assert await asyncio.gather(*calls) == ["one", "two"]


async def test_client_name_stays_on_one_line_of_the_audit_log(hub: RunningHub) -> None:
    names = ['x\n{"tool":"forged"}', "a\r\nb", "\u202eevil", "\x1b[31m", "é" * 500]
    async with client(hub) as http:
        for name in names:
            body, headers = stateless(
                "tools/call",
                {"name": "probe_echo", "arguments": {"value": name}},
                **{"io.modelcontextprotocol/clientInfo": {"name": name, "version": name}},
            )
            assert (await http.post("/mcp", json=body, headers=headers)).status_code == 200
        await http.post("/tools/no%0Asuch%0Dtool%ED%A0%80%FF/call", json={})
    lines = hub.home.audit.read_bytes().split(b"\n")
    assert lines.pop() == b""
    entries = [json.loads(line) for line in lines]
    assert [entry["tool"] for entry in entries[:-1]] == ["probe_echo"] * len(names)
    assert all(entry["client"].isprintable() and len(entry["client"]) <= 100 for entry in entries)
    assert len(entries) == len(names) + 1
