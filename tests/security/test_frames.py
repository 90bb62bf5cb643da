"""Invalid frames on the browser's socket: refused one by one, the link stays, and only the call they reply to fails."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import Close, Frame, Opcode
from websockets.typing import Subprotocol

from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, Silent
from tests.harness.hub import RunningHub
from tests.security.test_json import AMBIGUOUS, BROKEN, TOO_MUCH


async def socket(hub: RunningHub) -> ClientConnection:
    protocols = [Subprotocol("tabhub"), Subprotocol(hub.extension_key), Subprotocol("raw")]
    return await connect(hub.ws_url, subprotocols=protocols, ping_interval=None, max_size=None)


async def said(line: ClientConnection, text: str) -> dict[str, Any]:
    await line.send(text)
    async with asyncio.timeout(30):
        answer: dict[str, Any] = json.loads(await line.recv())
    return answer


def log_message(value: str) -> str:
    """A request of the extension around `value`, which is inserted unchanged."""
    return f'{{"jsonrpc":"2.0","id":"ext:1","method":"log","params":{{"level":"info","message":{value}}}}}'


async def usable(line: ClientConnection) -> bool:
    answer = await said(line, '{"jsonrpc":"2.0","method":"ping","params":{}}')
    return answer == {"jsonrpc": "2.0", "method": "pong", "params": {}}


@pytest.mark.req("B1")
async def test_broken_json_is_a_parse_error_and_the_link_stays(hub: RunningHub) -> None:
    async with await socket(hub) as line:
        for text in BROKEN:
            answer = await said(line, text.decode())
            assert (answer["id"], answer["error"]["code"]) == (None, -32700), text
        assert await usable(line)


@pytest.mark.req("B5")
@pytest.mark.parametrize("what", TOO_MUCH)
async def test_json_beyond_the_bounds_is_refused_before_it_is_parsed(
    hub: RunningHub, what: str, parsed: list[bytes]
) -> None:
    text = log_message(TOO_MUCH[what])
    async with await socket(hub) as line:
        answer = await said(line, text)
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        assert text.encode() not in parsed, "a value was built although the text exceeds a bound"
        assert (await said(line, log_message('"fine"')))["result"] == {}
        assert log_message('"fine"').encode() in parsed, "the parser in use is not the one that is observed"
        assert await usable(line)


@pytest.mark.req("B5")
@pytest.mark.parametrize("what", AMBIGUOUS)
async def test_ambiguous_json_is_refused_and_the_link_stays(hub: RunningHub, what: str) -> None:
    async with await socket(hub) as line:
        answer = await said(line, log_message(AMBIGUOUS[what]))
        assert (answer["id"], answer["error"]["code"]) == (None, -32700)
        assert await usable(line)


@pytest.mark.req("B2", "B3")
@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "1.0", "id": "ext:1", "method": "log", "params": {}},
        {"id": "ext:1", "method": "log", "params": {}},
        {"jsonrpc": "2.0", "id": True, "method": "log", "params": {}},
        {"jsonrpc": "2.0", "id": 1.5, "method": "log", "params": {}},
        {"jsonrpc": "2.0", "id": {}, "method": "log", "params": {}},
        {"jsonrpc": "2.0", "id": None, "method": "log", "params": {}},
        {"jsonrpc": "2.0", "id": "ext:1", "method": 7, "params": {}},
        {"jsonrpc": "2.0", "id": "ext:1", "method": "log", "params": {}, "result": {}},
        {"jsonrpc": "2.0", "id": "ext:1", "method": "log", "params": {}, "error": {}},
        [],
        [{"jsonrpc": "2.0", "method": "ping", "params": {}}],
        "ping",
        7,
        None,
    ],
)
async def test_json_that_is_not_a_message_is_an_invalid_request(hub: RunningHub, message: Any) -> None:
    async with await socket(hub) as line:
        answer = await said(line, json.dumps(message))
        assert answer["error"]["code"] == -32600
        assert await usable(line)


@pytest.mark.req("B2")
@pytest.mark.parametrize(
    "reply",
    [
        {"result": {}, "error": {"code": 1, "message": "both"}},
        {},
        {"result": {}, "jsonrpc": "1.0"},
        {"error": "text"},
        {"error": {"code": "1", "message": "x"}},
        {"error": {"code": True, "message": "x"}},
        {"error": {"code": 1}},
        {"error": None},
    ],
)
async def test_an_invalid_response_fails_the_call_it_answers_and_no_other(
    hub: RunningHub, reply: dict[str, Any]
) -> None:
    async with FakeExtension(hub) as browser, Agent(hub) as agent:
        browser.handlers["browser_navigate"] = lambda params: Silent
        call = asyncio.create_task(agent.call("browser_navigate_tab", {"tabId": 7, "url": "https://example.com/x"}))
        asked = await browser.next_request("browser_navigate")
        await browser.send({"jsonrpc": "2.0", "id": asked["id"], **reply})
        result = (await call)["result"]
        assert result["isError"] is True
        assert "invalid response" in result["content"][0]["text"]
        other = await agent.call("browser_execute_script", {"tabId": 7, "code": "return 1"})
        assert other["result"]["structuredContent"] == {"value": "fake"}


@pytest.mark.req("B5")
@pytest.mark.parametrize("what", [*TOO_MUCH, *AMBIGUOUS, "lone surrogate"])
async def test_a_result_beyond_the_bounds_fails_its_call_as_an_invalid_response(hub: RunningHub, what: str) -> None:
    value = {**TOO_MUCH, **AMBIGUOUS, "lone surrogate": '"\\ud800"'}[what]
    async with FakeExtension(hub) as browser, Agent(hub) as agent:
        browser.handlers["browser_navigate"] = lambda params: Silent
        call = asyncio.create_task(agent.call("browser_navigate_tab", {"tabId": 7, "url": "https://example.com/x"}))
        asked = await browser.next_request("browser_navigate")
        await browser.send(f'{{"jsonrpc":"2.0","id":{asked["id"]},"result":{{"url":"https://x/","value":{value}}}}}')
        result = (await call)["result"]
        assert result["isError"] is True
        assert "invalid response" in result["content"][0]["text"]
        await browser.settle()


def _cut(data: bytes, *places: int) -> list[bytes]:
    """The message in fragments."""
    parts = [data[begin:end] for begin, end in zip((0, *places), (*places, len(data)), strict=True)]
    kinds = [Opcode.TEXT, *[Opcode.CONT] * (len(parts) - 1)]
    return [
        Frame(kind, part, fin=number == len(parts) - 1).serialize(mask=True, extensions=[])
        for number, (kind, part) in enumerate(zip(kinds, parts, strict=True))
    ]


@pytest.mark.req("B6", "B32")
@pytest.mark.parametrize("fragments", [1, 2, 3])
@pytest.mark.parametrize("size", [10, 400_000])
async def test_text_that_is_not_utf8_closes_the_connection_with_1007(
    hub: RunningHub, size: int, fragments: int
) -> None:
    async with await socket(hub) as line:
        data = b'{"jsonrpc":"2.0","method":"log","params":{"message":"' + b"x" * size + b'\xff\xfe"}}'
        line.transport.write(b"".join(_cut(data, *[len(data) - 3, len(data) - 1][: fragments - 1])))
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(30):
                await line.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1007


@pytest.mark.req("B32")
async def test_a_character_may_be_cut_by_fragments(hub: RunningHub) -> None:
    async with await socket(hub) as line:
        data = log_message('"\U0001f600"').encode()
        at = data.index("\U0001f600".encode())
        line.transport.write(b"".join(_cut(data, at + 1, at + 3)))
        assert json.loads(await line.recv())["result"] == {}
        line.transport.write(b"".join(_cut(log_message('"\\ud83d"').encode(), 5)))
        assert json.loads(await line.recv())["error"]["code"] == -32700
        assert await usable(line)


@pytest.mark.req("B32")
async def test_a_close_frame_between_fragments_is_answered_as_any_other(hub: RunningHub) -> None:
    async with await socket(hub) as line:
        (link,) = hub.hub.browsers.links()
        seen: list[object] = []
        link.handlers["log"] = lambda _, entry: seen.append(entry)
        first = Frame(Opcode.TEXT, log_message('"x"').encode(), fin=False).serialize(mask=True, extensions=[])
        closing = Frame(Opcode.CLOSE, Close(1000, "enough").serialize()).serialize(mask=True, extensions=[])
        line.transport.write(first + closing[:3])
        line.transport.write(closing[3:])
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(30):
                await line.recv()
    assert closed.value.rcvd == Close(1000, "enough")
    assert not seen


@pytest.mark.req("B6")
@pytest.mark.parametrize("size", [10, 400_000])
async def test_a_result_that_is_not_utf8_fails_its_call_at_once(hub: RunningHub, size: int) -> None:
    async with FakeExtension(hub) as browser, Agent(hub) as agent:
        browser.handlers["forwardCDPCommand"] = lambda params: Silent if "evaluate" in params["method"] else {}
        call = asyncio.create_task(agent.call("browser_execute_script", {"tabId": 7, "code": "return 1"}))
        while (asked := await browser.next_request("forwardCDPCommand"))["params"]["method"] != "Runtime.evaluate":
            pass
        value = b'{"result":{"type":"string","value":"' + b"x" * size + b'\xff"}}'
        data = b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (asked["id"], value)
        browser.socket.transport.write(Frame(Opcode.TEXT, data).serialize(mask=True))
        result = (await call)["result"]
        assert result["isError"] is True
        assert "outcome: unknown" in result["content"][0]["text"]
    assert all(json.loads(line) for line in hub.home.audit.read_bytes().splitlines())


@pytest.mark.req("B6")
async def test_escaped_surrogates_and_a_bom_are_parse_errors(hub: RunningHub) -> None:
    async with await socket(hub) as line:
        for text in ('{"jsonrpc":"2.0","method":"log","params":{"message":"\\ud800"}}', "\ufeff{}"):
            assert (await said(line, text))["error"]["code"] == -32700
        assert await usable(line)


@pytest.mark.req("B14")
@pytest.mark.parametrize("name", ["__proto__", "constructor", "prototype", "toString", "__class__"])
async def test_javascript_names_are_not_methods_and_are_harmless_as_keys(hub: RunningHub, name: str) -> None:
    async with await socket(hub) as line:
        answer = await said(line, json.dumps({"jsonrpc": "2.0", "id": "ext:1", "method": name, "params": {}}))
        assert (answer["id"], answer["error"]["code"]) == ("ext:1", -32601)
        info = {"tabId": 3, "url": "https://example.com/", "title": name, name: {"admin": True}}
        change = {"tabId": 3, "change": "created", "tab": info, name: 1}
        request = {"jsonrpc": "2.0", "id": "ext:2", "method": "tab.stateChanged", "params": change, name: 1}
        assert (await said(line, json.dumps(request)))["result"] == {}
    assert hub.hub.browsers.book.find("raw", 3) is None  # its browser is disconnected again, and nothing else remains


async def test_malformed_tab_descriptions_do_not_affect_other_tabs(hub: RunningHub) -> None:
    odd: list[Any] = [None, 7, "x", [], {}, {"tabId": "7"}, {"tabId": True}, {"tabId": -1}, {"tabId": 2**70}]
    async with FakeExtension(hub) as browser:
        browser.tabs = [*odd, {"tabId": 8, "url": 7, "title": {}}, *browser.tabs]
        await browser.sync()
        known = {tab.chrome_id for tab in hub.hub.browsers.book}
        assert 7 in known
        assert known <= {7, 8}
        strange: list[dict[str, Any]] = [
            {},
            {"tabId": 7},
            {"tabId": "7", "change": "removed"},
            {"change": "removed"},
            {"tabs": {}},
        ]
        for params in strange:
            for method in ("tab.stateChanged", "tab.syncAll", "cdp.event", "cdp.detached", "debugger.changed", "log"):
                await browser.notify(method, params)
        await browser.settle()
        assert 7 in {tab.chrome_id for tab in hub.hub.browsers.book}
