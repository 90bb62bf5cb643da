"""`/ws`: how a browser's extension connects, what it may send, and how the hub closes a connection."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.frames import Frame, Opcode
from websockets.typing import Origin, Subprotocol

from tabhub.trust.guard import EXTENSION_ORIGIN
from tests.harness.agent import Agent, client, stateless
from tests.harness.fake_extension import FakeExtension
from tests.harness.hub import RunningHub
from tests.harness.panel import Panel

REQUESTS = (
    "tab.stateChanged",
    "config.getState",
    "config.setToolPermission",
    "config.setPluginPermission",
    "config.setSkipPermissions",
    "config.setPluginSettings",
    "plugin.search",
    "plugin.install",
    "plugin.updateFromRegistry",
    "plugin.remove",
    "plugin.checkUpdates",
    "plugin.removeBySpecifier",
    "folder.open",
)


def offer(*names: str) -> list[Subprotocol]:
    return [Subprotocol(name) for name in names]


@pytest.mark.req("S000-security-03", "S002-ws-04", "S002-auth-02", "S002-endpoints-06")
@pytest.mark.parametrize(
    ("names", "browser"),
    [(["tabhub", "{}", "my-id_1"], "my-id_1"), (["tabhub", "{}"], "default"), (["opentabs", "{}"], "default")],
)
async def test_an_extension_with_its_key_is_admitted(hub: RunningHub, names: list[str], browser: str) -> None:
    protocols = offer(*(name.format(hub.extension_key) for name in names))
    origin = Origin(EXTENSION_ORIGIN.decode())
    async with connect(hub.ws_url, subprotocols=protocols, origin=origin) as socket:
        assert socket.subprotocol == names[0]
        await socket.send('{"jsonrpc":"2.0","method":"ping","params":{}}')
        assert json.loads(await socket.recv())["method"] == "pong"
        assert [link.browser_id for link in hub.hub.browsers.links()] == [browser]


@pytest.mark.req("S002-ws-03")
@pytest.mark.parametrize(("path", "status"), [("/ws", 401), ("/mcp", 404), ("/", 404), ("/ws/", 404)])
async def test_others_are_refused_with_an_http_status(hub: RunningHub, path: str, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://127.0.0.1:{hub.port}{path}", subprotocols=offer("tabhub", "wrong", "id"))
    assert refused.value.response.status_code == status
    assert hub.hub.browsers.links() == []


@pytest.mark.req("S000-messages-01", "S002-ws-01", "S002-ws-extension-03")
async def test_requests_of_the_extension_are_answered_under_their_id(hub: RunningHub) -> None:
    async with connect(hub.ws_url, subprotocols=offer("tabhub", hub.extension_key, "raw")) as socket:

        async def ask(message: dict[str, object]) -> dict[str, object]:
            await socket.send(json.dumps({"jsonrpc": "2.0", **message}))
            answer: dict[str, object] = json.loads(await socket.recv())
            return answer

        info = {"tabId": 3, "url": "https://example.com/", "title": "x"}
        change = {"tabId": 3, "change": "created", "tab": info}
        answer = await ask({"id": "ext:1", "method": "tab.stateChanged", "params": change})
        assert answer == {"jsonrpc": "2.0", "id": "ext:1", "result": {}}
        unknown = await ask({"id": 7, "method": "tools/call", "params": {}})
        assert unknown["id"] == 7
        assert unknown["error"]["code"] == -32601  # type: ignore[index]


@pytest.mark.parametrize("method", REQUESTS)
async def test_every_request_of_the_extension_has_a_handler(hub: RunningHub, method: str) -> None:
    async with Panel(hub) as panel:
        answer = await panel.ask(method, {})
        assert answer.get("error", {}).get("code") != -32601, answer
        assert (await panel.ask("config.nothing", {}))["error"]["code"] == -32601


async def test_a_message_in_many_frames_is_one_message(hub: RunningHub) -> None:
    async with connect(hub.ws_url, subprotocols=offer("tabhub", hub.extension_key, "raw")) as socket:
        text = '{"jsonrpc":"2.0","id":"ext:é","method":"nothing","params":{}}'
        await socket.send(list(text))
        assert json.loads(await socket.recv())["id"] == "ext:é"
        first, rest = text.encode()[:30], text.encode()[30:]  # é is split
        socket.transport.write(Frame(Opcode.TEXT, first, fin=False).serialize(mask=True))
        socket.transport.write(Frame(Opcode.PING, b"between").serialize(mask=True))
        socket.transport.write(Frame(Opcode.CONT, rest, fin=True).serialize(mask=True))
        assert json.loads(await socket.recv())["id"] == "ext:é"


async def test_a_binary_message_is_a_protocol_error(hub: RunningHub) -> None:
    async with connect(hub.ws_url, subprotocols=offer("tabhub", hub.extension_key, "raw")) as socket:
        await socket.send(b"{}")
        with pytest.raises(ConnectionClosedError) as closed:
            await socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4002


@pytest.mark.req("S002-ws-extension-01", "S002-ws-06")
async def test_browsers_with_different_ids_are_connected_at_once(hub: RunningHub) -> None:
    async with FakeExtension(hub, "one"), FakeExtension(hub, "two"), Agent(hub) as agent:
        tabs = (await agent.call("browser_list_tabs"))["result"]["structuredContent"]["tabs"]
        assert sorted(tab["browserId"] for tab in tabs) == ["one", "two"]
        assert len({tab["tabId"] for tab in tabs}) == 2  # the same number in both browsers, but different ids here


async def test_shutdown_closes_the_socket_with_its_code(hub: RunningHub) -> None:
    async with FakeExtension(hub) as browser:
        hub.hub.closing()
        assert (await browser.ended())[0] == 4004


@pytest.mark.req("S004-goals-05", "S004-status-01", "S004-status-03", "S004-verification-04")
async def test_status_follows_the_socket(hub: RunningHub) -> None:
    async with Agent(hub) as agent, client(hub) as http:

        async def status() -> tuple[bool, bool]:
            status = (await agent.call("browser_get_connection_status"))["result"]["structuredContent"]
            health = (await http.get("/health")).json()
            return status["connected"], health["extensionConnected"]

        assert await status() == (False, False)
        async with FakeExtension(hub) as browser:
            assert await status() == (True, True)
            gone = asyncio.Event()
            hub.hub.browsers.on_change(lambda change: gone.set() if change.kind == "disconnected" else None)
            browser.cut()
            await gone.wait()
            assert await status() == (False, False)


async def test_a_call_without_a_browser_fails_with_a_hint(hub: RunningHub) -> None:
    async with Agent(hub) as agent:
        for arguments in ({"code": "return 1"}, {"tabId": 7, "code": "return 1"}):
            result = (await agent.call("browser_execute_script", arguments))["result"]
            assert result["isError"] is True
            assert "o browser is connected" in result["content"][0]["text"]
            assert result["_meta"]["tabhub/error"]["outcome"] == "not_sent"
            assert "tabhub doctor" in result["content"][0]["text"]


@pytest.mark.req("S000-notes-03")
async def test_messages_are_logged_if_enabled_and_capabilities_are_readable(
    hub: RunningHub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tabhub.messages")
    async with client(hub) as http, Agent(hub) as agent:
        async with FakeExtension(hub):
            await agent.call("browser_execute_script", {"tabId": 7, "code": "return 1"})
        assert not [record for record in caplog.records if record.name == "tabhub.messages"]
        hub.home.config.write_text(json.dumps({"logMessages": True, "permissions": {"default": "auto"}}))
        assert (await http.post("/reload")).status_code == 200
        async with FakeExtension(hub) as browser:
            code = f"return '{'x' * 5000}{hub.extension_key}'; // password=hunter22"
            answer = await agent.call("browser_execute_script", {"tabId": 7, "code": code})
            assert answer["result"]["structuredContent"] == {"value": "fake"}
            await browser.notify("log", {"level": "info", "message": f"line\n{hub.extension_key}"})
            await browser.settle()
        lines = [record.getMessage() for record in caplog.records if record.name == "tabhub.messages"]
        assert any(line.startswith("to fake-browser, ") and '"method":"forwardCDPCommand"' in line for line in lines)
        assert any(line.startswith("from fake-browser, ") and '"tab.syncAll"' in line for line in lines)
        assert any('"value": "fake"' in line for line in lines)
        assert max(map(len, lines)) < 1100
        assert not [line for line in lines if hub.extension_key in line or "hunter22" in line or "\n" in line]
        body, headers = stateless("server/discover")
        found = (await http.post("/mcp", json=body, headers=headers)).json()["result"]["capabilities"]
        assert set(found["experimental"]["browser"]) == {"multiTabSupport", "cacheSupported", "elicitation"}
