"""Oversized bodies, false lengths and frames: refused early, and never buffered."""

from __future__ import annotations

import gc
import json
import tracemalloc

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError
from websockets.typing import Subprotocol

from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub
from tests.harness.raw import request, wire
from tests.security.surfaces import Surface

MB = 1024 * 1024


@pytest.mark.req("B4")
async def test_a_length_over_the_limit_is_413_before_the_body_is_sent(hub: RunningHub, surface: Surface) -> None:
    headers = await surface.headers(hub)
    for length in (str(4 * MB + 1), str(2**40), "9" * 15):
        async with wire(hub.port) as line:
            await line.send(request("POST", surface.path, [*headers, ("Content-Length", length)]))
            answer = await line.answer()
            assert (answer.status, json.loads(answer.body)["error"]["code"]) == (413, -32600)


@pytest.mark.req("B4")
async def test_a_body_without_a_length_is_cut_off_at_the_limit_and_memory_stays_flat(
    hub: RunningHub, surface: Surface
) -> None:
    headers = await surface.headers(hub)
    chunk = b"%x\r\n%b\r\n" % (MB, b" " * MB)
    gc.collect()
    tracemalloc.start(1)
    try:
        for _ in range(3):
            async with wire(hub.port) as line:
                await line.send(request("POST", surface.path, [*headers, ("Transfer-Encoding", "chunked")]))
                for _ in range(8):
                    await line.send(chunk)
                assert (await line.head())[0] == 413
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 * MB  # a body of 4 MB, in pieces and joined, on both sides of the connection
    assert held < 8 * MB


@pytest.mark.req("B4")
async def test_a_length_that_is_too_small_is_400_and_nothing_runs(hub: RunningHub, surface: Surface) -> None:
    headers = await surface.headers(hub)
    body = surface.body('"fine"')
    async with wire(hub.port) as line:
        lying = [*headers, ("Content-Length", str(len(body) - 5))]
        await line.send(request("POST", surface.path, lying, body))
        assert (await line.answer()).status == 400  # the remaining bytes are not a request
        assert await line.closed() == b""
    assert hub.home.audit.read_bytes() == b""


@pytest.mark.req("B4")
@pytest.mark.parametrize("length", ["-1", "0x10", "1e3", "five", "1,2", "+5"])
async def test_a_length_that_is_not_a_number_is_400(hub: RunningHub, length: str) -> None:
    async with wire(hub.port) as line:
        headers = [("Host", f"127.0.0.1:{hub.port}"), *hub.bearer.items(), ("Content-Length", length)]
        await line.send(request("POST", "/mcp", headers, b"{}"))
        assert (await line.head())[0] == 400


@pytest.mark.req("B4", "S002-ws-05")
@pytest.mark.parametrize("pieces", [1, 5])
async def test_a_message_over_10_mb_closes_the_socket_with_1009(hub: RunningHub, pieces: int) -> None:
    protocols = [Subprotocol("tabhub"), Subprotocol(hub.extension_key), Subprotocol("large")]
    size = 10 * MB + 1
    text = "x" * (size // pieces + 1)
    async with FakeExtension(hub, "other") as other:
        async with connect(hub.ws_url, subprotocols=protocols, ping_interval=None) as socket:

            async def send_and_read() -> None:
                await socket.send(text if pieces == 1 else [text] * pieces)
                await socket.recv()

            with pytest.raises(ConnectionClosedError) as closed:
                await send_and_read()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
        await other.settle()
        assert [link.browser_id for link in hub.hub.browsers.links()] == ["other"]


@pytest.mark.req("B4")
async def test_oversized_frame_is_rejected_by_its_header(hub: RunningHub) -> None:
    protocols = [Subprotocol("tabhub"), Subprotocol(hub.extension_key), Subprotocol("large")]
    async with connect(hub.ws_url, subprotocols=protocols, ping_interval=None) as socket:
        socket.transport.write(b"\x81\xff" + (2**62).to_bytes(8, "big") + b"\x00\x00\x00\x00" + b"x" * 100)
        with pytest.raises(ConnectionClosedError) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009
