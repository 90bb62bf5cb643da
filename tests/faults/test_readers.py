"""Clients that stop reading are disconnected at the limit; others are unaffected."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.harness.agent import ACCEPT, Agent, client, message
from tests.harness.fake_extension import FakeExtension, Silent, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe
from tests.harness.raw import request, wire


@pytest.mark.req("F4", "S000-spec-architecture-10")
async def test_an_extension_that_stops_reading_is_cut_and_others_are_unaffected(tmp_path: Path) -> None:
    async with (
        running_hub(tmp_path, limits={"send_queue": 1_000_000, "call_timeout": 300.0}) as hub,
        Agent(hub) as agent,
        FakeExtension(hub, "stuck") as stuck,
        FakeExtension(hub, "well", [tab(8)]),
    ):
        stuck.handlers["forwardCDPCommand"] = lambda params: Silent
        stuck.socket.transport.pause_reading()
        filler = "//" + "x" * 900_000
        calls = [
            asyncio.create_task(agent.call("browser_execute_script", {"tabId": 7, "code": filler})) for _ in range(24)
        ]
        results = [answer["result"] for answer in await asyncio.gather(*calls)]
        outcomes = {result["_meta"]["tabhub/error"]["outcome"] for result in results}
        assert outcomes <= {"unknown", "not_sent"}
        assert "unknown" in outcomes
        assert any("does not read" in result["content"][0]["text"] for result in results)
        well = await agent.call("browser_execute_script", {"tabId": 8, "code": "return 1"})
        assert well["result"]["structuredContent"] == {"value": "fake"}
        async with client(hub) as http:
            browsers = (await http.get("/health")).json()["legs"]["browsers"]
        assert {b["browserId"]: b["connected"] for b in browsers} == {"stuck": False, "well": True}
        stuck.socket.transport.resume_reading()
        assert (await stuck.ended())[0] in (4003, 1006)  # the close itself may be queued behind unread data


@pytest.mark.req("F4")
async def test_an_agent_that_stops_reading_its_stream_is_cut_and_others_are_unaffected(hub: RunningHub) -> None:
    probe = Probe(hub)
    async with Agent(hub) as agent, Agent(hub) as other, wire(hub.port) as line:
        headers = {**agent.headers, **hub.bearer, "Host": f"127.0.0.1:{hub.port}"}
        params = {"name": "probe_flood", "arguments": {"times": 2000}, "_meta": {"progressToken": 1}}
        body = json.dumps(message("tools/call", params)).encode()
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await line.send(request("POST", "/mcp", [*headers.items(), ("Content-Length", str(len(body)))], body))
        await probe.begun()
        for _ in range(20):
            echoed = await other.call("probe_echo", {"value": "x"})
            assert echoed["result"]["structuredContent"] == {"value": "x"}
        session = hub.hub.sessions.get(agent.headers["Mcp-Session-Id"])
        assert session is not None
        async with asyncio.timeout(30):
            while session.busy:  # its request ends only when the connection is cut
                await other.call("probe_echo", {"value": "x"})
        assert len(hub.hub.engine.calls) == 0
        line.writer.transport.resume_reading()  # type: ignore[attr-defined]
        received = await line.closed()
        assert not received.endswith(b"0\r\n\r\n")  # a clean end would hide that something is missing
        assert (await agent.request("ping"))["result"] == {}


async def test_an_agent_that_reads_slowly_but_reads_gets_everything(hub: RunningHub) -> None:
    Probe(hub)
    async with Agent(hub) as agent:
        params = {"name": "probe_flood", "arguments": {"times": 300}, "_meta": {"progressToken": 1}}
        async with agent.streamed("tools/call", params) as events:
            found = [event.message for event in await events.rest() if event.message]
        assert [m["params"]["progress"] for m in found[:-1]] == list(range(300))
        assert found[-1]["result"]["content"][0]["text"] == "flooded"


async def test_client_that_never_reads_its_answer_does_not_affect_others(hub: RunningHub) -> None:
    Probe(hub)
    async with Agent(hub) as agent, wire(hub.port) as line:
        headers = [("Host", f"127.0.0.1:{hub.port}"), *hub.bearer.items(), *ACCEPT.items()]
        line.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await line.send(request("GET", "/tools", headers) * 500)
        for _ in range(20):
            assert (await agent.call("probe_echo", {"value": "x"}))["result"]["structuredContent"] == {"value": "x"}
