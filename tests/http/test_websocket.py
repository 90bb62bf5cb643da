"""The extension's socket: frames of every size arrive whole and in order."""

from __future__ import annotations

import asyncio
import json

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub
from tests.harness.raw import request, wire


@pytest.mark.parametrize("count", [1, 3, 500])
async def test_messages_sent_together_arrive_in_order(hub: RunningHub, count: int) -> None:
    async with FakeExtension(hub) as browser:
        (link,) = hub.hub.browsers.links()
        sizes = [(7, 130, 66_000)[i % 3] if i < 9 else i % 300 for i in range(count)]
        for number, size in enumerate(sizes):
            link.notify("agent.event", {"number": number, "text": "ü" * size})
        got = [await browser.next_notification("agent.event") for _ in range(count)]
    assert [note["params"]["number"] for note in got] == list(range(count))
    assert [len(note["params"]["text"]) for note in got] == sizes


async def test_a_command_and_its_reply_keep_every_character(hub: RunningHub) -> None:
    text = 'a"\\\u2028\u00e9\U0001f600\x7f\n' * 20_000
    async with FakeExtension(hub) as browser:
        browser.handlers["forwardCDPCommand"] = lambda params: {"echo": params["params"]["text"]}
        command = {"tabId": 7, "method": "Input.insertText", "params": {"text": text}}
        (link,) = hub.hub.browsers.links()
        answer = await link.request("forwardCDPCommand", command)
        raw = await link.request("forwardCDPCommand", command, raw=True)
    assert answer == {"echo": text}
    assert json.loads(raw) == {"echo": text}


async def _talk(hub: RunningHub, *chunks: bytes) -> tuple[list[object], list[Frame]]:
    """Send these bytes on a raw connection after its handshake; returns what the link received, and the answers."""
    client = ClientProtocol(
        parse_uri(hub.ws_url), subprotocols=[Subprotocol(p) for p in ("tabhub", hub.extension_key, "raw-browser")]
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", hub.port)
    client.send_request(client.connect())
    writer.write(b"".join(client.data_to_send()))
    async with asyncio.timeout(30):
        while client.state is not State.OPEN:
            client.receive_data(await reader.read(65536))
        (link,) = hub.hub.browsers.links()
        seen: list[object] = []
        link.handlers["log"] = lambda _, entry: seen.append(int(entry.source))
        for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
        ping = Frame(Opcode.PING, b"end").serialize(mask=True, extensions=[])
        writer.write(ping)
        answers: list[Frame] = []
        while not any(frame.opcode in (Opcode.PONG, Opcode.CLOSE) for frame in answers):
            data = await reader.read(65536)
            if not data:
                break
            client.receive_data(data)
            frames = [event for event in client.events_received() if isinstance(event, Frame)]
            answers += [
                frame for frame in frames if frame.opcode is not Opcode.TEXT
            ]  # messages that the hub sends by itself
    writer.close()
    return seen, answers


def _note(number: int, filler: int = 0) -> bytes:
    params = {"source": str(number), "message": "x" * filler}
    return json.dumps({"jsonrpc": "2.0", "method": "log", "params": params}).encode()


def _frame(data: bytes, opcode: Opcode = Opcode.TEXT, *, fin: bool = True, mask: bool = True) -> bytes:
    return Frame(opcode, data, fin=fin).serialize(mask=mask, extensions=[])


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7, 64, 1000, 100_000])
async def test_frames_arrive_whole_however_the_bytes_are_cut(hub: RunningHub, step: int) -> None:
    stream = b"".join(_frame(_note(n, (0, 40, 130, 900)[n % 4])) for n in range(8))
    if step > 64:
        stream += _frame(_note(8, 70_000)) + _frame(_note(9))
    seen, answers = await _talk(hub, *(stream[at : at + step] for at in range(0, len(stream), step)))
    assert seen == list(range(10 if step > 64 else 8))
    assert [frame.opcode for frame in answers] == [Opcode.PONG]


async def test_fragments_and_control_frames_between_them_make_one_message(hub: RunningHub) -> None:
    whole = _note(1, 50)
    parts = [whole[:20], whole[20:60], whole[60:]]
    seen, answers = await _talk(
        hub,
        _frame(_note(0)),
        _frame(parts[0], fin=False),
        _frame(b"between", Opcode.PING),
        _frame(parts[1], Opcode.CONT, fin=False),
        _frame(parts[2], Opcode.CONT),
        _frame(_note(2)),
    )
    assert seen == [0, 1, 2]
    assert b"between" in [bytes(frame.data) for frame in answers]


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (_frame(_note(1), mask=False), 1002),
        (_frame(b"x", Opcode.CONT), 1002),
        (bytes((0x81, 0xFF)) + (1 << 40).to_bytes(8, "big") + b"mask", 1009),
        (_frame(_note(1)[:10], fin=False) + _frame(_note(2)), 1002),
        (bytes((0xC1, 0x80)) + b"mask", 1002),
    ],
    ids=["unmasked", "continuation of nothing", "far too large", "text inside fragments", "reserved bit"],
)
async def test_invalid_frames_close_the_connection_with_their_code(hub: RunningHub, bad: bytes, code: int) -> None:
    seen, answers = await _talk(hub, _frame(_note(0)), bad)
    assert seen == [0]
    assert answers[-1].opcode is Opcode.CLOSE
    assert int.from_bytes(bytes(answers[-1].data)[:2], "big") == code


_KEY = "dGhlIHNhbXBsZSBub25jZQ=="
_HANDSHAKE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": _KEY}


@pytest.mark.parametrize(
    ("version", "changed", "status"),
    [
        ("1.0", {}, 400),
        ("1.1", {"Sec-WebSocket-Version": "8"}, 400),
        ("1.1", {"Sec-WebSocket-Key": "short"}, 400),
        ("1.1", {"Origin": "https://evil.example"}, 403),
    ],
    ids=["HTTP/1.0", "another version", "an invalid key", "a web page"],
)
async def test_a_refused_handshake_states_the_version_that_is_spoken(
    hub: RunningHub, version: str, changed: dict[str, str], status: int
) -> None:
    protocols = {"Sec-WebSocket-Protocol": f"tabhub, {hub.extension_key}, raw-browser"}
    headers = {"Host": f"127.0.0.1:{hub.port}"} | _HANDSHAKE | protocols | changed
    async with wire(hub.port) as line:
        await line.send(request("GET", "/ws", headers.items(), version=version))
        answer = await line.answer()
    assert answer.status == status
    assert answer.headers["sec-websocket-version"] == "13"
