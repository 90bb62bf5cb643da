"""The extension's socket: frames of every size arrive whole and in order."""

from __future__ import annotations

import asyncio
import json

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.uri import parse_uri

from tabhub.server.socket import text_frame
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 65535, 65536, 70_000, 300_000])
def test_a_frame_written_by_hand_reads_back(size: int) -> None:
    reader = ClientProtocol(parse_uri("ws://localhost/"), state=State.OPEN, max_size=None)
    data = b"x" * size
    reader.receive_data(text_frame(data) + text_frame(b"next"))
    first, second = reader.events_received()
    assert isinstance(first, Frame)
    assert isinstance(second, Frame)
    assert (first.opcode, first.fin, first.data) == (Opcode.TEXT, True, data)
    assert second.data == b"next"


@pytest.mark.parametrize("count", [1, 3, 500])
async def test_what_is_sent_in_one_turn_arrives_in_order(hub: RunningHub, count: int) -> None:
    async with FakeExtension(hub) as browser:
        (link,) = hub.hub.browsers.links()
        sizes = [(7, 130, 66_000)[i % 3] if i < 9 else i % 300 for i in range(count)]
        for number, size in enumerate(sizes):
            link.notify("note", {"number": number, "text": "ü" * size})
        async with asyncio.timeout(10):
            got = [await browser.notices.get() for _ in range(count)]
    assert [note["params"]["number"] for note in got] == list(range(count))
    assert [len(note["params"]["text"]) for note in got] == sizes


async def test_a_command_and_its_reply_keep_every_character(hub: RunningHub) -> None:
    text = 'a"\\\u2028\u00e9\U0001f600\x7f\n' * 20_000
    async with FakeExtension(hub) as browser:
        browser.handlers["getTabs"] = lambda params: {"echo": params["text"]}
        (link,) = hub.hub.browsers.links()
        answer = await link.request("getTabs", {"text": text})
        raw = await link.request("getTabs", {"text": text}, raw=True)
    assert answer == {"echo": text}
    assert json.loads(raw) == {"echo": text}
