"""The stdio server's mind, played out without a process: what comes in on either side, and what must go out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tabhub.cli.bridge import PATIENCE, Bridge, Broken

VERSION = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
SESSION = "ab" * 16
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "me"}}


class Play:
    """A bridge between a client and a hub that are both the test."""

    def __init__(self, surface: str = "all", tools: str | None = None) -> None:
        self.now = 100.0
        self._said: list[bytes] = []
        self._sent: list[bytes] = []
        self.bridge = Bridge(self._said.append, surface=surface, tools=tools)

    @property
    def said(self) -> list[Any]:
        """What the client was told since the last look."""
        lines, self._said[:] = [json.loads(line) for line in self._said], []
        return lines

    @property
    def sent(self) -> list[Any]:
        """What the hub was sent since the last look."""
        lines, self._sent[:] = [json.loads(line) for line in self._sent], []
        return lines

    def client(self, *messages: Any) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.bridge.client_line(line, self.now)

    def request(self, method: str, ident: Any, **params: Any) -> None:
        self.client({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})

    def notify(self, method: str, **params: Any) -> None:
        self.client({"jsonrpc": "2.0", "method": method, "params": params})

    def hub(self, **message: Any) -> None:
        self.bridge.hub_line(json.dumps(message, separators=(",", ":")).encode(), self.now)

    def answer(self, rid: str, **data: Any) -> None:
        self.hub(type="RESPONSE", id=rid, success=True, data=data)

    def connect(self, session: str = SESSION, *, initialized: bool = False) -> Any:
        """Connect and register; what was sent to register."""
        self.bridge.connected(self._sent.append, None)
        (hello,) = self.sent
        self.hub(type="REGISTER_OK", sessionId=session, resumed=False, initialized=initialized)
        return hello

    def greet(self, version: str = "2025-11-25") -> None:
        self.request("initialize", "hello", **{**HELLO, "protocolVersion": version})
        (asked,) = self.sent
        self.answer(asked["id"], protocolVersion=version)
        self.notify("notifications/initialized")
        assert [line["event"] for line in self.sent] == ["notifications/initialized"]
        assert self.said[0]["result"] == {"protocolVersion": version}


@pytest.fixture
def play() -> Play:
    made = Play()
    made.connect()
    return made


@pytest.mark.req("S004-architecture-03", "S004-flow-02")
def test_a_session_is_registered_and_a_call_wrapped_under_an_id_of_its_own() -> None:
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
    play.bridge.goodbye()
    assert play.sent == [{"type": "DISCONNECT"}]


def test_the_gateway_and_a_token_are_part_of_the_registration() -> None:
    play = Play("gateway", "core")
    play.bridge.connected(play._sent.append, "secret")
    assert play.sent == [{"type": "REGISTER", "surface": "gateway", "tools": "core", "token": "secret"}]


def test_what_is_said_before_the_hub_is_there_waits_in_order() -> None:
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


def test_errors_and_answers_in_another_order_of_keys_are_understood(play: Play) -> None:
    play.request("x", 1)
    play.request("y", 2)
    play.hub(type="RESPONSE", id=f"{SESSION}:1", success=False, error={"code": -32601, "message": "no"})
    play.hub(id=f"{SESSION}:2", type="RESPONSE", data={"a": 1}, success=True)
    assert play.said == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}},
        {"jsonrpc": "2.0", "id": 2, "result": {"a": 1}},
    ]


def test_a_line_of_ours_the_hub_does_not_take_answers_its_request(play: Play) -> None:
    play.request("x", 1)
    play.hub(type="ERROR", id=f"{SESSION}:1", error={"code": -32700, "message": "twice", "data": {}})
    assert play.said[0]["error"]["code"] == -32700
    play.hub(type="ERROR", id=None, error={"code": -32600, "message": "out of turn"})
    play.hub(type="PONG")
    assert play.said == []


@pytest.mark.parametrize("line", [b"nope", b"[]", b"{}", b'{"type":"RESPONSE"}', b'{"type":"EVENT"}', b"\xff"])
def test_what_no_hub_says_is_found_out(play: Play, line: bytes) -> None:
    with pytest.raises(Broken):
        play.bridge.hub_line(line, play.now)


@pytest.mark.req("B1")
def test_broken_json_is_answered_and_the_pipe_stays_usable(play: Play) -> None:
    play.client(b"{broken", b"", b"  ", b"\xff\xfe", b"[" * 100_000)
    wanted = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Not valid JSON."}}
    assert play.said == [wanted] * 3
    play.client({"id": 1, "method": "x"}, {"jsonrpc": "2.0", "id": True, "method": "x"})
    assert [(line["id"], line["error"]["code"]) for line in play.said] == [(1, -32600), (None, -32600)]
    play.bridge.too_long(10)
    assert "10 bytes" in play.said[0]["error"]["message"]
    play.request("tools/list", 1)
    assert len(play.sent) == 1


def test_an_id_in_flight_is_not_taken_twice(play: Play) -> None:
    play.request("x", 1)
    play.request("x", 1)
    assert play.said[0]["error"]["code"] == -32600
    play.answer(f"{SESSION}:1")
    play.request("x", 1)
    assert [line["id"] for line in play.sent] == [f"{SESSION}:1", f"{SESSION}:2"]


# batches


@pytest.mark.req("B3")
def test_a_batch_is_answered_together_in_the_revision_that_has_them(play: Play) -> None:
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
def test_a_batch_is_refused_where_there_is_none(play: Play, version: str | None) -> None:
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


def test_progress_and_other_notifications_reach_the_client(play: Play) -> None:
    play.request("tools/call", 1, name="x")
    rid = play.sent[0]["id"]
    play.hub(type="EVENT", sessionId=SESSION, id=rid, event="notifications/progress", params={"progress": 1})
    play.hub(type="EVENT", sessionId=SESSION, event="notifications/tools/list_changed", params={})
    assert play.said == [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}},
    ]


def test_a_question_of_the_hub_is_answered_by_the_client_once(play: Play) -> None:
    play.hub(type="EVENT", sessionId=SESSION, ask="q1", event="elicitation/create", params={"message": "?"})
    assert play.said == [{"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": {"message": "?"}}]
    for _ in range(2):
        play.client({"jsonrpc": "2.0", "id": "q1", "result": {"action": "decline"}})
    play.client({"jsonrpc": "2.0", "id": "q2", "result": {}})
    params = {"id": "q1", "result": {"action": "decline"}}
    assert play.sent == [{"type": "EVENT", "sessionId": SESSION, "event": "answer", "params": params}]


def test_a_request_that_was_taken_back_is_not_answered(play: Play) -> None:
    play.request("tools/call", 1, name="x")
    play.notify("notifications/cancelled", requestId=1)
    play.notify("notifications/cancelled", requestId=1)
    play.notify("notifications/cancelled", requestId=[])
    assert play.sent[1:] == [{"type": "CANCEL", "id": f"{SESSION}:1"}]
    play.hub(type="EVENT", sessionId=SESSION, id=f"{SESSION}:1", event="notifications/progress", params={})
    play.answer(f"{SESSION}:1", isError=True)
    assert play.said == []
    assert play.bridge.idle


def test_a_subscription_carries_the_clients_own_id(play: Play) -> None:
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


# a hub that goes and comes back


def test_a_call_under_way_fails_at_once_and_the_rest_is_asked_again(play: Play) -> None:
    play.greet()
    play.request("tools/call", 1, name="x")
    play.request("tools/list", 2)
    assert len(play.sent) == 2
    play.bridge.lost(play.now)
    (said,) = play.said
    assert (said["id"], said["error"]["data"]) == (1, {"outcome": "unknown"})
    hello = play.connect(initialized=True)
    assert hello["sessionId"] == SESSION
    (asked,) = play.sent
    assert (asked["action"], asked["id"]) == ("tools/list", f"{SESSION}:4")
    play.answer(asked["id"], tools=[])
    assert play.said == [{"jsonrpc": "2.0", "id": 2, "result": {"tools": []}}]


def test_a_call_made_while_the_hub_is_down_waits_and_then_fails(play: Play) -> None:
    play.bridge.lost(play.now)
    play.request("tools/call", 1, name="x")
    play.now += 1
    play.request("tools/call", 2, name="x")
    assert play.bridge.deadline() == pytest.approx(100.0 + PATIENCE)
    play.bridge.tick(play.now)
    assert play.said == []
    play.now = 100.0 + PATIENCE
    play.bridge.tick(play.now)
    (said,) = play.said
    assert (said["id"], said["error"]["data"]) == (1, {"outcome": "not_sent"})
    assert "tabhub start" in said["error"]["message"]
    play.connect()
    assert [line["params"]["name"] for line in play.sent] == ["x"]
    assert play.bridge.deadline() is None


def test_a_hub_that_hangs_is_told_from_one_that_does_not_run() -> None:
    play = Play()
    play.bridge.connected(lambda _: None, None)
    play.request("tools/call", 1, name="x")
    play.bridge.tick(play.now + PATIENCE)
    (said,) = play.said
    assert said["error"]["data"] == {"outcome": "not_sent"}
    assert "does not answer" in said["error"]["message"]
    assert "not running" not in said["error"]["message"]


def test_a_hub_that_has_forgotten_the_client_is_told_who_it_is(play: Play) -> None:
    play.greet()
    play.request("logging/setLevel", 1, level="error")
    play.request("resources/subscribe", 3, uri="a:2")
    for line in play.sent:
        play.answer(line["id"])
    play.bridge.lost(play.now)
    play.request("tools/call", 2, name="x")
    assert len(play.said) == 2
    play.connect("cd" * 16)
    sent = play.sent
    assert [line.get("action", line.get("event")) for line in sent] == [
        "initialize",
        "notifications/initialized",
        "logging/setLevel",
        "resources/subscribe",
        "tools/call",
    ]
    assert all(line["sessionId"] == "cd" * 16 for line in sent)
    assert [sent[number]["params"] for number in (0, 2, 3)] == [HELLO, {"level": "error"}, {"uri": "a:2"}]
    assert play.said == [{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}]
    play.answer(sent[0]["id"], protocolVersion="2025-11-25")
    for line in (sent[2], sent[3]):
        play.answer(line["id"])
    assert play.said == []  # the client has had these answers
    play.answer(sent[4]["id"], ok=True)
    assert play.said == [{"jsonrpc": "2.0", "id": 2, "result": {"ok": True}}]


def test_a_session_that_was_ended_is_replaced_without_losing_the_call(play: Play) -> None:
    play.request("tools/call", 1, name="x", _meta=VERSION)
    rid = play.sent[0]["id"]
    play.hub(type="ERROR", id=rid, error={"code": -32012, "message": "ended"})
    play.bridge.lost(play.now)
    assert play.said == []
    play.connect("cd" * 16)
    (asked,) = play.sent
    assert (asked["sessionId"], asked["action"]) == ("cd" * 16, "tools/call")


def test_a_subscription_goes_on_at_the_next_hub(play: Play) -> None:
    honoured = {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}
    play.request("subscriptions/listen", 1, **honoured, _meta=VERSION)
    first = play.sent[0]["id"]
    acknowledged = "notifications/subscriptions/acknowledged"
    play.hub(type="EVENT", sessionId=SESSION, id=first, event=acknowledged, params=honoured)
    assert len(play.said) == 1
    play.bridge.lost(play.now)
    play.bridge.tick(play.now + 3600)
    play.connect("cd" * 16)
    (asked,) = play.sent
    play.hub(type="EVENT", sessionId="cd" * 16, id=asked["id"], event=acknowledged, params=honoured)
    said = play.said
    assert [line["method"] for line in said] == [f"notifications/{kind}/list_changed" for kind in ("tools", "prompts")]
    assert all(line["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": 1} for line in said)


def test_the_lists_a_client_has_read_are_told_anew_at_the_next_hub(play: Play) -> None:
    play.greet()
    play.request("resources/templates/list", 1)
    play.answer(play.sent[0]["id"], resourceTemplates=[])
    play.bridge.lost(play.now)
    assert len(play.said) == 1
    play.connect("cd" * 16)
    told = [f"notifications/{kind}/list_changed" for kind in ("tools", "resources")]
    assert [line["method"] for line in play.said] == told


def test_a_refused_registration_is_what_the_waiting_calls_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    play = Play()
    play.bridge.connected(play._sent.append, None)
    play.request("tools/list", 1)
    refused = {"code": -32004, "message": "Too many new sessions.", "data": {"retryable": True}}
    play.hub(type="ERROR", id=None, error=refused)
    play.bridge.lost(play.now)
    play.bridge.tick(play.now + PATIENCE)
    assert play.said[0]["error"]["message"] == "Too many new sessions."
    assert "Too many new sessions." in capsys.readouterr().err


def test_a_registration_that_cannot_succeed_is_told_at_once() -> None:
    play = Play()
    play.request("initialize", 1, **HELLO)
    play.bridge.connected(play._sent.append, None)
    play.hub(type="ERROR", id=None, error={"code": -32602, "message": "No such tools.", "data": {"retryable": False}})
    play.bridge.tick(play.now)
    play.request("tools/list", 2)
    play.bridge.tick(play.now)
    assert [(line["id"], line["error"]["message"]) for line in play.said] == [
        (1, "No such tools."),
        (2, "No such tools."),
    ]


def test_a_greeting_that_fails_at_the_next_hub_is_said_on_stderr(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    play.greet()
    play.bridge.lost(play.now)
    play.connect()
    rid = play.sent[0]["id"]
    play.hub(type="RESPONSE", id=rid, success=False, error={"code": -32602, "message": "no"})
    assert "initialize was refused" in capsys.readouterr().err
