"""Invalid messages to the extension."""

from __future__ import annotations

from typing import Any

import pytest

from tests.extension.fakehub import FakeHub, Refused, Wire


async def first_error(wire: Wire, message: Any) -> dict[str, Any]:
    """The error reply to a message; the connection must stay usable."""
    before = len(wire.seen)
    await wire.raw(message)
    answer = await wire.next(lambda m: "error" in m, after=before)
    assert (await wire.ask("getTabs"))["tabs"]
    return answer


@pytest.mark.req("B1")
@pytest.mark.parametrize("text", ["{", "", "nonsense", '{"jsonrpc":"2.0","id":1,"method":"getTabs"}}', "[" * 200_000])
async def test_invalid_json_is_answered_and_the_connection_stays(wire: Wire, text: str) -> None:
    answer = await first_error(wire, text)
    assert answer["error"]["code"] == -32700
    assert answer["id"] is None


@pytest.mark.req("B1")
async def test_a_binary_frame_is_refused(wire: Wire) -> None:
    before = len(wire.seen)
    await wire.socket.send(b'{"jsonrpc":"2.0","id":1,"method":"getTabs"}')
    assert (await wire.next(lambda m: "error" in m, after=before))["error"]["code"] == -32700


@pytest.mark.req("B2", "B3")
@pytest.mark.parametrize(
    ("message", "number"),
    [
        ([{"jsonrpc": "2.0", "id": 900, "method": "getTabs"}], None),
        (None, None),
        (5, None),
        ({"id": 900, "method": "getTabs"}, None),
        ({"jsonrpc": "1.0", "id": 900, "method": "getTabs"}, None),
        ({"jsonrpc": "2.0", "id": 900}, 900),
        ({"jsonrpc": "2.0", "id": True, "method": "getTabs"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "getTabs"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "getTabs"}, None),
        ({"jsonrpc": "2.0", "id": None, "method": "getTabs"}, None),
        ({"jsonrpc": "2.0", "id": 900, "method": 5}, 900),
        ({"jsonrpc": "2.0", "id": 900, "method": "getTabs", "result": 1}, 900),
    ],
)
async def test_invalid_requests_are_refused(wire: Wire, message: Any, number: int | None) -> None:
    answer = await first_error(wire, message)
    assert answer["error"]["code"] == -32600
    assert answer["id"] == number


async def test_parameters_that_are_a_list_are_refused(wire: Wire) -> None:
    answer = await first_error(wire, {"jsonrpc": "2.0", "id": 900, "method": "getTabs", "params": [1]})
    assert answer["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["reload", "executeScript", "chrome.tabs.query", "gettabs", ""])
async def test_a_method_that_is_not_listed_is_refused(wire: Wire, method: str) -> None:
    with pytest.raises(Refused, match=f"-32601: Method not found: {method}"):
        await wire.ask(method)


@pytest.mark.req("B14")
@pytest.mark.parametrize("name", ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"])
async def test_names_every_object_inherits_are_inert(wire: Wire, name: str) -> None:
    with pytest.raises(Refused, match="-32601"):
        await wire.ask(name)
    await wire.notify(name)
    inherited: dict[str, Any] = {name: {"tabId": 1}}
    with pytest.raises(Refused, match="-32602: tabId must be the number of a tab"):
        await wire.ask("selectTab", **inherited)
    polluting = '{"jsonrpc":"2.0","id":"p","method":"getTabs","params":{"%s":{"polluted":1}},"%s":{"polluted":1}}'
    before = len(wire.seen)
    await wire.raw(polluting % (name, name))
    answer = await wire.next(lambda m: m.get("id") == "p", after=before)
    assert all("polluted" not in tab for tab in answer["result"]["tabs"])


@pytest.mark.req("F7")
async def test_an_unexpected_reply_is_dropped_and_logged(wire: Wire) -> None:
    before = len(wire.seen)
    await wire.raw({"jsonrpc": "2.0", "id": "ext:999999", "result": {}})
    remark = await wire.notified("log", after=before)
    assert remark["level"] == "warning"
    assert "reply" in remark["message"]


async def test_the_same_id_twice_at_once_is_refused_and_the_first_is_answered(wire: Wire, tab: int) -> None:
    before = len(wire.seen)
    script = {"expression": "new Promise(end => setTimeout(() => end(7), 200))", "awaitPromise": True}
    params = {"tabId": tab, "method": "Runtime.evaluate", "params": script}
    request = {"jsonrpc": "2.0", "id": "conn-a:1", "method": "forwardCDPCommand", "params": params}
    await wire.raw(request)
    await wire.raw(request)
    refused = await wire.next(lambda m: m.get("id") == "conn-a:1" and "error" in m, after=before)
    assert refused["error"]["code"] == -32600
    answer = await wire.next(lambda m: m.get("id") == "conn-a:1" and "result" in m, after=before)
    assert answer["result"]["result"]["value"] == 7


async def test_a_ping_is_answered(wire: Wire) -> None:
    before = len(wire.seen)
    await wire.notify("ping")
    await wire.notified("pong", after=before)


@pytest.mark.req("B4")
async def test_a_result_that_is_too_large_is_an_error_and_the_connection_stays(
    wire: Wire, hub: FakeHub, tab: int
) -> None:
    with pytest.raises(Refused, match="larger than 10485760 bytes"):
        await wire.cdp(tab, "Runtime.evaluate", expression="'é'.repeat(6e6)", returnByValue=True)
    big = await wire.cdp(tab, "Runtime.evaluate", expression="'x'.repeat(9e6)", returnByValue=True)
    assert len(big["result"]["value"]) == 9_000_000
    assert hub.wires[-1] is wire
