"""Bytes that arrive one at a time, slowly, or not at all."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode
from websockets.typing import Subprotocol

from tests.harness.agent import ACCEPT, Agent, message, stateless
from tests.harness.hub import RunningHub, running_hub
from tests.harness.probe import Probe
from tests.harness.raw import Header, request, wire


def good(hub: RunningHub) -> bytes:
    body, headers = stateless("tools/call", {"name": "probe_echo", "arguments": {"value": "é€😀"}})
    data = json.dumps(body, ensure_ascii=False).encode()
    head: list[Header] = [("Host", f"127.0.0.1:{hub.port}"), *hub.bearer.items(), *headers.items()]
    return request("POST", "/mcp", [*head, ("Content-Length", str(len(data)))], data)


@pytest.mark.req("F18")
async def test_a_request_byte_by_byte_is_served_like_any_other(hub: RunningHub) -> None:
    Probe(hub)
    async with wire(hub.port) as line:
        for _ in range(2):
            await line.trickle(good(hub))
            answer = await line.answer()
            assert json.loads(answer.body)["result"]["structuredContent"] == {"value": "é€😀"}


@pytest.mark.req("F18")
async def test_a_frame_byte_by_byte_is_received(hub: RunningHub) -> None:
    protocols = [Subprotocol("tabhub"), Subprotocol(hub.extension_key), Subprotocol("slow")]
    async with connect(hub.ws_url, subprotocols=protocols, ping_interval=None) as socket:
        text = '{"jsonrpc":"2.0","id":"ext:é€😀","method":"nothing","params":{}}'
        for byte in Frame(Opcode.TEXT, text.encode()).serialize(mask=True):
            socket.transport.write(bytes([byte]))
            await asyncio.sleep(0)
        assert json.loads(await socket.recv())["id"] == "ext:é€😀"


@pytest.mark.req("F18")
async def test_several_requests_in_one_piece_are_answered_in_order(hub: RunningHub) -> None:
    Probe(hub)
    async with wire(hub.port) as line:
        await line.send(good(hub) * 10)
        for _ in range(10):
            assert (await line.answer()).status == 200


@pytest.mark.req("F18")
async def test_incomplete_request_times_out_cleanly(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"header_timeout": 3}) as hub:
        probe = Probe(hub)
        whole = good(hub)
        head = whole.index(b"\r\n\r\n") + 4
        parts = {
            "nothing": 0,
            "the request line": whole.index(b"\r\n") + 2,
            "half a header": head // 2,
            "the headers": head,
            "half the body": (head + len(whole)) // 2,
        }

        async def sent(length: int) -> bytes:
            async with wire(hub.port) as line:
                await line.send(whole[:length])
                return await line.closed()

        received = dict(zip(parts, await asyncio.gather(*map(sent, parts.values())), strict=True))
        assert received.pop("nothing") == b""
        for upto, answer in received.items():
            assert answer.startswith(b"HTTP/1.1 408 "), (upto, answer)
            error = json.loads(answer.split(b"\r\n\r\n")[1])["error"]
            assert (error["category"], error["outcome"]) == ("timeout", "not_sent"), upto
        async with Agent(hub) as other:
            assert (await other.request("ping"))["result"] == {}
        assert probe.started.empty()
        assert not [entry for entry in hub.hub.engine.audit.recent() if entry["tool"] == "probe_echo"]


@pytest.mark.req("F18")
async def test_slow_body_is_cut_at_the_deadline_despite_steady_progress(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"header_timeout": 1}) as hub:
        Probe(hub)
        async with wire(hub.port) as line:
            whole = good(hub).replace(b"Content-Length: ", b"Content-Length: 1")
            await line.send(whole)
            answer = asyncio.create_task(line.answer())
            while not answer.done():
                await line.send(b" ")
                await asyncio.wait([answer], timeout=0.01)
            assert (await answer).status == 408


async def test_idle_connection_between_requests_has_no_request_deadline(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"header_timeout": 1}) as hub:
        probe = Probe(hub)
        async with wire(hub.port) as line, Agent(hub) as agent:
            await line.send(good(hub))
            assert (await line.answer()).status == 200
            waiting = asyncio.create_task(agent.call("probe_wait"))
            await probe.begun()
            passed = asyncio.Event()
            asyncio.get_running_loop().call_later(1.5, passed.set)
            await passed.wait()
            await line.send(good(hub))  # longer idle than a request may take
            assert (await line.answer()).status == 200
            probe.release.set()
            assert "isError" not in (await waiting)["result"]  # an answer may take longer than a request


async def test_rejected_request_with_a_missing_body_releases_its_connection(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"header_timeout": 1}) as hub, wire(hub.port) as line:
        head = [("Host", f"127.0.0.1:{hub.port}"), *ACCEPT.items(), ("Content-Length", "100")]
        await line.send(request("POST", "/mcp", head, json.dumps(message("ping")).encode()[:10]))
        assert (await line.answer()).status == 401
        assert await line.closed() == b""
