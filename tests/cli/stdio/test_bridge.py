"""The stdio bridge without a process: what arrives on either side, and what it sends."""

from __future__ import annotations

import pytest

from tabhub.cli.stdio.bridge import MAX_LINE
from tabhub.client_errors import BridgeProtocolError
from tests.cli.stdio.bridgeplay import HELLO, SESSION, VERSION, Play


@pytest.fixture
def play() -> Play:
    made = Play()
    made.connect()
    return made


@pytest.mark.req("S004-architecture-03", "S004-flow-02")
def test_session_is_registered_and_calls_get_their_own_ids() -> None:
    play = Play()
    assert play.connect() == {"type": "REGISTER", "surface": "all"}
    play.request("tools/call", 7, name="x", arguments={"a": 1})
    play.request("tools/call", "7", name="y")
    assert play.sent == [
        {
            "type": "REQUEST",
            "id": f"{SESSION}:1",
            "sessionId": SESSION,
            "action": "tools/call",
            "params": {"name": "x", "arguments": {"a": 1}},
        },
        {
            "type": "REQUEST",
            "id": f"{SESSION}:2",
            "sessionId": SESSION,
            "action": "tools/call",
            "params": {"name": "y"},
        },
    ]
    play.answer(f"{SESSION}:2", b=2)
    play.answer(f"{SESSION}:1", a=1)
    assert play.said == [
        {"jsonrpc": "2.0", "id": "7", "result": {"b": 2}},
        {"jsonrpc": "2.0", "id": 7, "result": {"a": 1}},
    ]
    play.bridge.disconnect()
    assert play.sent == [{"type": "DISCONNECT"}]


def test_registration_contains_surface_and_token() -> None:
    play = Play("gateway", "core")
    play.bridge.connected(play._to_hub.append, "secret")
    assert play.sent == [{"type": "REGISTER", "surface": "gateway", "tools": "core", "token": "secret"}]


def test_messages_before_registration_wait_in_order() -> None:
    play = Play()
    play.request("initialize", 1, **HELLO)
    play.notify("notifications/initialized")
    play.request("tools/list", 2)
    play.connect()
    assert [line.get("action", line.get("event")) for line in play.sent] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
    ]


def test_responses_with_another_key_order_are_parsed(play: Play) -> None:
    play.request("x", 1)
    play.request("y", 2)
    play.hub(type="RESPONSE", id=f"{SESSION}:1", success=False, error={"code": -32601, "message": "no"})
    play.hub(id=f"{SESSION}:2", type="RESPONSE", data={"a": 1}, success=True)
    assert play.said == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}},
        {"jsonrpc": "2.0", "id": 2, "result": {"a": 1}},
    ]


def test_line_rejected_by_the_hub_fails_its_request(play: Play) -> None:
    play.request("x", 1)
    play.hub(type="ERROR", id=f"{SESSION}:1", error={"code": -32700, "message": "twice", "data": {}})
    assert play.said[0]["error"]["code"] == -32700
    play.hub(type="ERROR", id=None, error={"code": -32600, "message": "out of turn"})
    play.hub(type="PONG")
    assert play.said == []


@pytest.mark.parametrize("line", [b"nope", b"[]", b"{}", b'{"type":"RESPONSE"}', b'{"type":"EVENT"}', b"\xff"])
def test_client_detects_a_server_that_is_not_a_hub(play: Play, line: bytes) -> None:
    with pytest.raises(BridgeProtocolError):
        play.bridge.hub_line(line, play.now)


@pytest.mark.req("B1")
def test_invalid_json_gets_an_error_and_the_pipe_stays_usable(play: Play) -> None:
    play.client(b"{broken", b"", b"  ", b"\xff\xfe", b"[" * 100_000)
    wanted = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Not valid JSON."}}
    assert play.said == [wanted] * 3
    play.client({"id": 1, "method": "x"}, {"jsonrpc": "2.0", "id": True, "method": "x"})
    assert [(line["id"], line["error"]["code"]) for line in play.said] == [(1, -32600), (None, -32600)]
    play.bridge.line_too_long(b"xx")
    assert f"{MAX_LINE} bytes" in play.said[0]["error"]["message"]
    play.client(b'{"jsonrpc":"2.0","id":"mine","method":"x","params":{"a":1,"a":2}}')
    assert [(line["id"], line["error"]["code"]) for line in play.said] == [("mine", -32700)]
    play.request("tools/list", 1)
    assert len(play.sent) == 1


def test_duplicate_id_in_flight_is_rejected(play: Play) -> None:
    play.request("x", 1)
    play.request("x", 1)
    assert play.said[0]["error"]["code"] == -32600
    play.answer(f"{SESSION}:1")
    play.request("x", 1)
    assert [line["id"] for line in play.sent] == [f"{SESSION}:1", f"{SESSION}:2"]


# batches


@pytest.mark.req("B3")
def test_batch_is_answered_together_in_2025_03_26(play: Play) -> None:
    play.greet("2025-03-26")
    ping = {"jsonrpc": "2.0", "method": "ping"}
    play.client([{**ping, "id": 1}, 7, {"jsonrpc": "2.0", "method": "notifications/x"}, {**ping, "id": 2}])
    one, notice, two = play.sent
    assert notice["event"] == "notifications/x"
    play.answer(two["id"])
    assert play.said == []
    play.answer(one["id"])
    (batch,) = play.said
    assert [(line["id"], "result" in line) for line in batch] == [(None, False), (2, True), (1, True)]
    play.client([{**ping, "id": 3}, {**ping, "id": 4}])
    play.notify("notifications/cancelled", requestId=3)
    play.answer(play.sent[1]["id"])
    assert [[line["id"] for line in batch] for batch in play.said] == [[4]]
    play.client([{"jsonrpc": "2.0", "method": "notifications/x"}])
    assert play.said == []


@pytest.mark.req("B3")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", None, "2025-03-26"])
def test_batch_is_rejected_in_other_revisions(play: Play, version: str | None) -> None:
    if version is not None:
        play.greet(version)
    if version != "2025-03-26":
        play.client([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
        assert [(line["id"], line["error"]["code"]) for line in play.said] == [(1, -32600), (2, -32600)]
    play.client([])
    assert play.said[0]["id"] is None
    play.client([{"jsonrpc": "2.0", "id": 1, "method": "initialize"}])
    assert play.said[0]["error"]["code"] == -32600
    assert play.sent == []


# while a call runs


def test_notifications_reach_the_client(play: Play) -> None:
    play.request("tools/call", 1, name="x")
    rid = play.sent[0]["id"]
    play.hub(type="EVENT", sessionId=SESSION, id=rid, event="notifications/progress", params={"progress": 1})
    play.hub(type="EVENT", sessionId=SESSION, event="notifications/tools/list_changed", params={})
    assert play.said == [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}},
    ]


def test_hub_request_is_answered_by_the_client_once(play: Play) -> None:
    play.hub(type="EVENT", sessionId=SESSION, ask="q1", event="elicitation/create", params={"message": "?"})
    assert play.said == [{"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"message": "?"}}]
    for _ in range(2):
        play.client({"jsonrpc": "2.0", "id": "q1", "result": {"action": "decline"}})
    play.client({"jsonrpc": "2.0", "id": "q2", "result": {}})
    params = {"id": "q1", "result": {"action": "decline"}}
    assert play.sent == [{"type": "EVENT", "sessionId": SESSION, "event": "answer", "params": params}]


def test_cancelled_request_is_not_answered(play: Play) -> None:
    play.request("tools/call", 1, name="x")
    play.notify("notifications/cancelled", requestId=1)
    play.notify("notifications/cancelled", requestId=1)
    play.notify("notifications/cancelled", requestId=[])
    assert play.sent[1:] == [{"type": "CANCEL", "id": f"{SESSION}:1"}]
    play.hub(type="EVENT", sessionId=SESSION, id=f"{SESSION}:1", event="notifications/progress", params={})
    play.answer(f"{SESSION}:1", isError=True)
    assert play.said == []
    assert play.bridge.idle


def test_subscription_carries_the_clients_id(play: Play) -> None:
    play.request("subscriptions/listen", "sub", notifications={"toolsListChanged": True}, _meta=VERSION)
    rid = play.sent[0]["id"]
    play.hub(type="EVENT", sessionId=SESSION, id=rid, event="notifications/subscriptions/acknowledged", params={})
    play.hub(type="EVENT", sessionId=SESSION, id=rid, event="notifications/tools/list_changed", params={})
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": "sub"}}
    assert [(line["method"].rpartition("/")[2], line["params"]) for line in play.said] == [
        ("acknowledged", meta),
        ("list_changed", meta),
    ]
    assert play.bridge.idle  # whoever listens is not waited for
