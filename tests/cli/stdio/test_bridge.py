"""The stdio bridge without a process: what arrives on either side, and what it sends."""

from __future__ import annotations

import pytest

from tabhub.cli.stdio.bridge import HUB_WAIT, MAX_LINE, MAX_SILENCE
from tabhub.client_errors import BridgeProtocolError
from tabhub.limits import Limits
from tests.cli.stdio.bridge_play import HELLO, SESSION, VERSION, Play


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
    assert play.to_hub == [
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
    assert play.to_client == [
        {"jsonrpc": "2.0", "id": "7", "result": {"b": 2}},
        {"jsonrpc": "2.0", "id": 7, "result": {"a": 1}},
    ]
    play.bridge.disconnect()
    assert play.to_hub == [{"type": "DISCONNECT"}]


def test_registration_contains_surface_and_token() -> None:
    play = Play("gateway", "core")
    play.bridge.connected(play._to_hub.append, "secret", "thb_1")
    assert play.to_hub == [
        {"type": "REGISTER", "surface": "gateway", "tools": "core", "token": "secret", "agentToken": "thb_1"}
    ]


def test_messages_before_registration_wait_in_order() -> None:
    play = Play()
    play.request("initialize", 1, **HELLO)
    play.notify("notifications/initialized")
    play.request("tools/list", 2)
    play.connect()
    assert [line.get("action", line.get("event")) for line in play.to_hub] == [
        "initialize",
        "notifications/initialized",
        "tools/list",
    ]


def test_responses_with_another_key_order_are_parsed(play: Play) -> None:
    play.request("x", 1)
    play.request("y", 2)
    play.hub(type="RESPONSE", id=f"{SESSION}:1", success=False, error={"code": -32601, "message": "no"})
    play.hub(id=f"{SESSION}:2", type="RESPONSE", data={"a": 1}, success=True)
    assert play.to_client == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}},
        {"jsonrpc": "2.0", "id": 2, "result": {"a": 1}},
    ]


def test_line_rejected_by_the_hub_fails_its_request(play: Play) -> None:
    play.request("x", 1)
    play.hub(type="ERROR", id=f"{SESSION}:1", error={"code": -32700, "message": "twice", "data": {}})
    assert play.to_client[0]["error"]["code"] == -32700
    play.hub(type="ERROR", id=None, error={"code": -32600, "message": "out of turn"})
    play.hub(type="PONG")
    assert play.to_client == []


@pytest.mark.parametrize("line", [b"nope", b"[]", b"{}", b'{"type":"RESPONSE"}', b'{"type":"EVENT"}', b"\xff"])
def test_client_detects_a_server_that_is_not_a_hub(play: Play, line: bytes) -> None:
    with pytest.raises(BridgeProtocolError):
        play.bridge.hub_line(line, play.now)


@pytest.mark.req("B1")
def test_invalid_json_gets_an_error_and_the_pipe_stays_usable(play: Play) -> None:
    play.client(b"{broken", b"", b"  ", b"\xff\xfe", b"[" * 100_000)
    wanted = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Not valid JSON."}}
    assert play.to_client == [wanted] * 3
    play.client({"id": 1, "method": "x"}, {"jsonrpc": "2.0", "id": True, "method": "x"})
    assert [(line["id"], line["error"]["code"]) for line in play.to_client] == [(1, -32600), (None, -32600)]
    play.bridge.line_too_long(b"xx")
    assert f"{MAX_LINE} bytes" in play.to_client[0]["error"]["message"]
    play.client(b'{"jsonrpc":"2.0","id":"mine","method":"x","params":{"a":1,"a":2}}')
    assert [(line["id"], line["error"]["code"]) for line in play.to_client] == [("mine", -32700)]
    play.request("tools/list", 1)
    assert len(play.to_hub) == 1


def test_duplicate_id_in_flight_is_rejected(play: Play) -> None:
    play.request("x", 1)
    play.request("x", 1)
    assert play.to_client[0]["error"]["code"] == -32600
    play.answer(f"{SESSION}:1")
    play.request("x", 1)
    assert [line["id"] for line in play.to_hub] == [f"{SESSION}:1", f"{SESSION}:2"]


# batches


@pytest.mark.req("B3")
def test_batch_is_answered_together_in_2025_03_26(play: Play) -> None:
    play.greet("2025-03-26")
    ping = {"jsonrpc": "2.0", "method": "ping"}
    play.client([{**ping, "id": 1}, 7, {"jsonrpc": "2.0", "method": "notifications/x"}, {**ping, "id": 2}])
    one, notice, two = play.to_hub
    assert notice["event"] == "notifications/x"
    play.answer(two["id"])
    assert play.to_client == []
    play.answer(one["id"])
    (batch,) = play.to_client
    assert [(line["id"], "result" in line) for line in batch] == [(None, False), (2, True), (1, True)]
    play.client([{**ping, "id": 3}, {**ping, "id": 4}])
    play.notify("notifications/cancelled", requestId=3)
    play.answer(play.to_hub[1]["id"])
    assert [[line["id"] for line in batch] for batch in play.to_client] == [[4]]
    play.client([{"jsonrpc": "2.0", "method": "notifications/x"}])
    assert play.to_client == []


@pytest.mark.req("B3")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", None, "2025-03-26"])
def test_batch_is_rejected_in_other_revisions(play: Play, version: str | None) -> None:
    if version is not None:
        play.greet(version)
    if version != "2025-03-26":
        play.client([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
        assert [(line["id"], line["error"]["code"]) for line in play.to_client] == [(1, -32600), (2, -32600)]
    play.client([])
    assert play.to_client[0]["id"] is None
    play.client([{"jsonrpc": "2.0", "id": 1, "method": "initialize"}])
    assert play.to_client[0]["error"]["code"] == -32600
    assert play.to_hub == []


# while a call runs


def test_notifications_reach_the_client(play: Play) -> None:
    play.request("tools/call", 1, name="x")
    rid = play.to_hub[0]["id"]
    play.hub(type="EVENT", sessionId=SESSION, id=rid, event="notifications/progress", params={"progress": 1})
    play.hub(type="EVENT", sessionId=SESSION, event="notifications/tools/list_changed", params={})
    assert play.to_client == [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}},
    ]


def test_hub_request_is_answered_by_the_client_once(play: Play) -> None:
    play.hub(type="EVENT", sessionId=SESSION, ask="q1", event="elicitation/create", params={"message": "?"})
    assert play.to_client == [
        {"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"message": "?"}}
    ]
    for _ in range(2):
        play.client({"jsonrpc": "2.0", "id": "q1", "result": {"action": "decline"}})
    play.client({"jsonrpc": "2.0", "id": "q2", "result": {}})
    params = {"id": "q1", "result": {"action": "decline"}}
    assert play.to_hub == [{"type": "EVENT", "sessionId": SESSION, "event": "answer", "params": params}]


def test_cancelled_request_is_not_answered(play: Play) -> None:
    play.request("tools/call", 1, name="x")
    play.notify("notifications/cancelled", requestId=1)
    play.notify("notifications/cancelled", requestId=1)
    play.notify("notifications/cancelled", requestId=[])
    assert play.to_hub[1:] == [{"type": "CANCEL", "id": f"{SESSION}:1"}]
    play.hub(type="EVENT", sessionId=SESSION, id=f"{SESSION}:1", event="notifications/progress", params={})
    play.answer(f"{SESSION}:1", isError=True)
    assert play.to_client == []
    assert play.bridge.idle


def test_subscription_carries_the_clients_id(play: Play) -> None:
    play.request("subscriptions/listen", "sub", notifications={"toolsListChanged": True}, _meta=VERSION)
    rid = play.to_hub[0]["id"]
    play.hub(type="EVENT", sessionId=SESSION, id=rid, event="notifications/subscriptions/acknowledged", params={})
    play.hub(type="EVENT", sessionId=SESSION, id=rid, event="notifications/tools/list_changed", params={})
    meta = {"_meta": {"io.modelcontextprotocol/subscriptionId": "sub"}}
    assert [(line["method"].rpartition("/")[2], line["params"]) for line in play.to_client] == [
        ("acknowledged", meta),
        ("list_changed", meta),
    ]
    assert play.bridge.idle  # subscriptions do not count


# a hub that disconnects, hangs, comes back or rejects the session


def test_disconnect_fails_running_calls_and_repeats_other_requests(play: Play) -> None:
    play.greet()
    play.request("tools/call", 1, name="x")
    play.request("tools/list", 2)
    assert len(play.to_hub) == 2
    play.bridge.disconnected(play.now)
    (reply,) = play.to_client
    assert (reply["id"], reply["error"]["data"]) == (1, {"outcome": "unknown"})
    hello = play.connect(initialized=True)
    assert hello["sessionId"] == SESSION
    (request,) = play.to_hub
    assert (request["action"], request["id"]) == ("tools/list", f"{SESSION}:4")
    play.answer(request["id"], tools=[])
    assert play.to_client == [{"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}]


def test_call_while_the_hub_is_down_waits_then_fails(play: Play) -> None:
    play.bridge.disconnected(play.now)
    play.request("tools/call", 1, name="x")
    play.now += 1
    play.request("tools/call", 2, name="x")
    assert play.bridge.deadline() == pytest.approx(100.0 + HUB_WAIT)
    play.bridge.tick(play.now)
    assert play.to_client == []
    play.now = 100.0 + HUB_WAIT
    play.bridge.tick(play.now)
    (reply,) = play.to_client
    assert (reply["id"], reply["error"]["data"]) == (1, {"outcome": "not_sent"})
    assert "tabhub start" in reply["error"]["message"]
    play.connect()
    assert [line["params"]["name"] for line in play.to_hub] == ["x"]
    assert play.bridge.deadline() is None


def test_hanging_hub_and_stopped_hub_give_different_errors() -> None:
    play = Play()
    play.bridge.connected(lambda _: None, None, None)
    play.request("tools/call", 1, name="x")
    play.bridge.tick(play.now + HUB_WAIT)
    (reply,) = play.to_client
    assert reply["error"]["data"] == {"outcome": "not_sent"}
    assert "does not respond" in reply["error"]["message"]
    assert "not running" not in reply["error"]["message"]


def test_handshake_is_replayed_to_a_hub_without_the_session(play: Play) -> None:
    play.greet()
    for ident, (method, params) in enumerate(
        [
            ("logging/setLevel", {"level": "info"}),
            ("logging/setLevel", {"level": "error"}),
            ("resources/subscribe", {"uri": "a:1"}),
            ("resources/subscribe", {"uri": "a:2"}),
            ("resources/unsubscribe", {"uri": "a:1"}),
            ("resources/unsubscribe", {}),
        ]
    ):
        play.request(method, f"setup {ident}", **params)
    for line in play.to_hub:
        play.answer(line["id"])
    play.bridge.disconnected(play.now)
    play.request("tools/call", 2, name="x")
    assert len(play.to_client) == 6
    play.connect("cd" * 16)
    sent = play.to_hub
    assert [line.get("action", line.get("event")) for line in sent] == [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "tools/call",
    ]
    assert all(line["sessionId"] == "cd" * 16 for line in sent)
    assert [sent[number]["params"] for number in (0, 2, 3)] == [HELLO, {"level": "error"}, {"uri": "a:2"}]
    assert play.to_client == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
    play.answer(sent[0]["id"], protocolVersion="2025-11-25")
    for line in (sent[2], sent[3]):
        play.answer(line["id"])
    assert play.to_client == []  # the client already has these answers
    play.answer(sent[4]["id"], ok=True)
    assert play.to_client == [{"jsonrpc": "2.0", "id": 2, "result": {"ok": True}}]


def test_ended_session_is_replaced_without_losing_the_call(play: Play) -> None:
    play.request("tools/call", 1, name="x", _meta=VERSION)
    rid = play.to_hub[0]["id"]
    play.hub(type="ERROR", id=rid, error={"code": -32012, "message": "ended"})
    play.bridge.disconnected(play.now)
    assert play.to_client == []
    play.connect("cd" * 16)
    (request,) = play.to_hub
    assert (request["sessionId"], request["action"]) == ("cd" * 16, "tools/call")


def test_subscription_continues_at_the_next_hub(play: Play) -> None:
    honoured = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    play.request("subscriptions/listen", 1, **honoured, _meta=VERSION)
    first = play.to_hub[0]["id"]
    acknowledged = "notifications/subscriptions/acknowledged"
    play.hub(type="EVENT", sessionId=SESSION, id=first, event=acknowledged, params=honoured)
    assert len(play.to_client) == 1
    play.bridge.disconnected(play.now)
    play.bridge.tick(play.now + 3600)
    play.connect("cd" * 16)
    (request,) = play.to_hub
    play.hub(type="EVENT", sessionId="cd" * 16, id=request["id"], event=acknowledged, params=honoured)
    reply = play.to_client
    assert [line["method"] for line in reply] == [f"notifications/{kind}/list_changed" for kind in ("tools", "prompts")]
    assert all(line["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 1} for line in reply)


def test_next_hub_triggers_list_changed_for_lists_the_client_read(play: Play) -> None:
    play.greet()
    play.request("resources/templates/list", 1)
    play.answer(play.to_hub[0]["id"], resourceTemplates=[])
    play.bridge.disconnected(play.now)
    assert len(play.to_client) == 1
    play.connect("cd" * 16)
    changed = [f"notifications/{kind}/list_changed" for kind in ("tools", "resources")]
    assert [line["method"] for line in play.to_client] == changed


def test_waiting_calls_fail_with_the_reason_of_a_rejected_registration(capsys: pytest.CaptureFixture[str]) -> None:
    play = Play()
    play.bridge.connected(play._to_hub.append, None, None)
    play.request("tools/list", 1)
    refused = {"code": -32004, "message": "Too many new sessions.", "data": {"retryable": True}}
    play.hub(type="ERROR", id=None, error=refused)
    play.bridge.disconnected(play.now)
    play.bridge.tick(play.now + HUB_WAIT)
    assert play.to_client[0]["error"]["message"] == "Too many new sessions."
    assert "Too many new sessions." in capsys.readouterr().err


def test_permanently_rejected_registration_fails_calls_at_once() -> None:
    play = Play()
    play.request("initialize", 1, **HELLO)
    play.bridge.connected(play._to_hub.append, None, None)
    play.hub(type="ERROR", id=None, error={"code": -32602, "message": "No such tools.", "data": {"retryable": False}})
    play.bridge.tick(play.now)
    play.request("tools/list", 2)
    play.bridge.tick(play.now)
    assert [(line["id"], line["error"]["message"]) for line in play.to_client] == [
        (1, "No such tools."),
        (2, "No such tools."),
    ]


def test_failed_handshake_with_the_next_hub_is_reported_on_stderr(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    play.greet()
    play.bridge.disconnected(play.now)
    play.connect()
    rid = play.to_hub[0]["id"]
    play.hub(type="RESPONSE", id=rid, success=False, error={"code": -32602, "message": "no"})
    assert "initialize was rejected" in capsys.readouterr().err


@pytest.mark.req("S004-errors-03")
def test_hanging_hub_is_pinged_and_dead_after_the_call_timeout(play: Play) -> None:
    assert MAX_SILENCE == Limits().call_timeout == 30
    play.request("tools/call", 1, name="x")
    assert len(play.to_hub) == 1
    play.bridge.tick(100)
    assert play.bridge.deadline() == 115
    play.bridge.tick(114.9)
    assert play.to_hub == []
    play.bridge.tick(115)
    play.bridge.tick(116)
    assert play.to_hub == [{"type": "PING", "id": "silence"}], "only one ping"
    assert play.bridge.deadline() == 130
    with pytest.raises(BridgeProtocolError, match="sent nothing for 30 s"):
        play.bridge.tick(130)
    assert play.bridge.deadline() is None


def test_data_from_the_hub_restarts_the_silence(play: Play) -> None:
    play.request("tools/call", 1, name="x")
    for now in range(0, 280, 14):
        play.bridge.tick(now)
        play.bridge.data_received()
        play.bridge.tick(now)
    assert [line["type"] for line in play.to_hub] == ["REQUEST"]


def test_hub_is_not_pinged_without_pending_requests(play: Play) -> None:
    play.request("tools/call", 1, name="x")
    play.bridge.tick(0)
    play.answer(f"{SESSION}:1")
    play.bridge.tick(14)
    assert play.bridge.deadline() is None
    play.bridge.tick(100)
    assert [line["type"] for line in play.to_hub] == ["REQUEST"]
