"""Conversations with a relay as playbooks: which facts produce which effects."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.relay.bus.interface import Presence
from tabhub.relay.records import Announce
from tests.relay.playbook import Play, codes, methods


@pytest.mark.req("S003-authenticate-01", "S003-authenticate-02", "S003-auth-04")
@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"name": "Chrome", "accessToken": "!"}},
        {"result": {"name": "Chrome"}},
        {"result": {"name": "Chrome", "accessToken": 7}},
        {"result": {"name": "Chrome", "accessToken": ""}},
        {"result": {"accessToken": "ann"}},
        {"result": {"name": "", "accessToken": "ann"}},
        {"result": {"name": 7, "accessToken": "ann"}},
        {"result": "ann"},
        {"result": None},
        {"error": {"code": -32000, "message": "no"}},
        {},
        {"result": {}, "error": {"code": 1, "message": ""}},
    ],
)
def test_a_browser_without_name_or_valid_token_is_disconnected(answer: dict[str, Any]) -> None:
    play = Play()
    browser = play.browser()
    play.say(browser, {"id": "proxy:1", **answer})
    code, reason = play.closed[browser]
    assert code == 4001
    assert reason.startswith("Authentication failed")
    assert methods(play.take(browser)) == ["authenticate"]
    assert play.relay.tables.counts.auth_failed == 1


@pytest.mark.parametrize("key", ["accessToken", "access_token"])
def test_both_spellings_of_the_token_are_accepted(key: str) -> None:
    play = Play()
    browser, agent = play.browser(), play.agent()
    play.say(browser, {"id": "proxy:1", "result": {"name": "Chrome", key: "ann"}})
    play.say(agent, {"id": 1, "method": "mcp_handshake", "params": {key: "ann"}})
    assert methods(play.take(browser)) == ["authenticate", "authenticated"]
    assert play.take(agent)[0]["result"]["authenticated"] is True


@pytest.mark.req("S003-handshake-02", "S003-codes-06")
def test_an_invalid_token_of_an_agent_is_answered_and_the_agent_disconnected() -> None:
    play = Play()
    agent = play.agent("!")
    error = play.take(agent)[0]["error"]
    assert (error["code"], error["message"]) == (-32000, "Authentication failed: Invalid token")
    assert play.closed[agent] == (4001, "Authentication failed: Invalid token")
    play.say(agent, {"id": 2, "method": "list_extensions"})
    assert play.take(agent) == []


@pytest.mark.req("S003-codes-04")
@pytest.mark.parametrize("params", [{}, {"extension_id": 7}, {"extension_id": ""}, {"extension_id": None}, [], "x"])
def test_invalid_or_missing_params_are_refused_without_effect(params: Any) -> None:
    play = Play()
    agent, browser = play.agent("ann"), play.browser("ann")
    play.take(agent)
    play.say(agent, {"id": 1, "method": "connect", "params": params})
    assert codes(play.take(agent)) == [(1, -32602)]
    assert play.relay.tables.connections == {}
    play.say(agent, {"id": 2, "method": "refresh_token", "params": {}})
    assert codes(play.take(agent)) == [(2, -32602)]
    assert play.closed == {}
    play.connect(agent, browser)


@pytest.mark.parametrize("params", [{}, {"accessToken": 7}, {"accessToken": ""}, {"accessToken": None}])
def test_a_handshake_without_a_token_has_invalid_params(params: dict[str, Any]) -> None:
    play = Play()
    agent = play.agent()
    play.say(agent, {"id": 1, "method": "mcp_handshake", "params": params})
    assert codes(play.take(agent)) == [(1, -32602)]
    assert agent not in play.closed


@pytest.mark.req("S003-security-02", "B11")
def test_before_authentication_everything_is_refused_and_the_deadline_is_ten_seconds() -> None:
    play = Play()
    agent, browser = play.agent(), play.browser()
    play.take(browser)
    for number, method in enumerate(("list_extensions", "connect", "disconnect", "refresh_token", "createTab", "ping")):
        play.say(agent, {"id": number, "method": method, "params": {"accessToken": "x", "extension_id": "x"}})
        (refused,) = play.take(agent)
        assert (refused["id"], refused["error"]["code"]) == (number, -32000)
        assert refused["error"]["message"] == "Not authenticated: send mcp_handshake first."
    for method in ("createTab", "list_extensions", "mcp_handshake"):  # a notification has no reply
        play.say(agent, {"method": method, "params": {"accessToken": "ann"}})
    play.say(browser, {"id": "ext:1", "method": "list_extensions"})
    assert codes(play.take(browser)) == [("ext:1", -32601)]
    play.say(browser, {"method": "tab.stateChanged", "params": {}})
    play.say(browser, {"id": "conn-x:1", "result": {}})
    assert play.take(agent) == play.take(browser) == []
    play.tick(9.9)
    assert play.closed == {}
    play.tick(10.0)
    assert {code for code, _ in play.closed.values()} == {4001}
    assert set(play.closed) == {agent, browser}
    assert play.relay.tables.agents == {}
    assert play.relay.tables.browsers == {}


@pytest.mark.req("S003-principles-04", "S003-forwarded-05", "S003-compat-02", "S003-proxies-05")
def test_control_methods_are_answered_here_and_all_others_forwarded() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    for number, method in enumerate(("createTab", "forwardCDPCommand", "tools/call", "screenshot", "anything")):
        play.say(agent, {"id": number, "method": method, "params": {"n": number}})
        assert play.take(browser) == [
            {"jsonrpc": "2.0", "id": f"{connection}:{number}", "method": method, "params": {"n": number}}
        ]
        play.say(browser, {"id": f"{connection}:{number}", "result": {"ok": number}})
        assert play.take(agent) == [{"jsonrpc": "2.0", "id": number, "result": {"ok": number}}]
    play.say(agent, {"id": 9, "method": "list_extensions"})
    assert play.take(browser) == []
    kept = play.relay.tables.connections[connection]
    assert kept.agent is play.relay.tables.agents[agent]
    assert kept.browser is play.relay.tables.browsers[browser]
    assert (kept.extension_id, kept.user.name) == (kept.browser.ident, "ann")


@pytest.mark.parametrize("method", ["authenticate", "authenticated", "status", "disconnected"])
def test_the_relays_own_methods_are_never_forwarded(method: str) -> None:
    play = Play()
    agent, browser, _ = play.pair()
    play.say(agent, {"id": 1, "method": method})
    play.say(agent, {"method": method})
    assert codes(play.take(agent)) == [(1, -32601)]
    play.say(browser, {"method": method, "params": {}})
    assert play.take(agent) == play.take(browser) == []


@pytest.mark.req("S003-codes-03")
def test_requests_of_a_browser_are_refused() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.say(browser, {"id": "ext:1", "method": "list_extensions"})
    play.say(browser, {"id": 5, "method": "anything"})
    play.say(browser, {"id": f"{connection}:1", "method": "anything"})
    play.say(browser, {"id": "proxy:7", "method": "anything"})
    assert codes(play.take(browser)) == [
        ("ext:1", -32601),
        (5, -32601),
        (f"{connection}:1", -32600),
        ("proxy:7", -32600),
    ]
    assert play.take(agent) == []


@pytest.mark.req("S003-forwarding-05")
@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"result": 1, "error": {"code": 1, "message": ""}},
        {"error": "no"},
        {"error": {"code": 1}},
        {"result": 1, "jsonrpc": "1.0"},
    ],
)
def test_a_malformed_reply_fails_its_request(answer: dict[str, Any]) -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.say(agent, {"id": 4, "method": "createTab"})
    play.say(browser, {"id": f"{connection}:4", **answer})
    (message,) = play.take(agent)
    assert message["id"] == 4
    assert message["error"]["message"].startswith("Invalid response")
    assert message["error"]["data"]["outcome"] == "unknown"
    play.say(browser, {"id": f"{connection}:4", "result": {}})
    assert play.take(agent) == []
    assert play.relay.tables.counts.late == 1


@pytest.mark.req("S003-proxies-04")
def test_late_duplicate_unknown_and_foreign_replies_are_dropped_and_counted() -> None:
    play = Play()
    agent, browser, connection = play.pair("ann")
    other_agent, other_browser, other_connection = play.pair("bob")
    play.say(agent, {"id": 1, "method": "x"})
    play.say(other_agent, {"id": 1, "method": "x"})
    for ident in (f"{other_connection}:1", f"{connection}:2", "nonsense", 1, "conn-x:1", "proxy:1", "proxy:9"):
        play.say(browser, {"id": ident, "result": {"stolen": True}})
    assert play.take(agent) == play.take(other_agent) == []
    play.say(browser, {"id": f"{connection}:1", "result": {}})
    play.say(browser, {"id": f"{connection}:1", "result": {"again": True}})
    assert play.take(agent) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    play.say(other_browser, {"id": f"{other_connection}:1", "result": {}})
    assert play.take(other_agent) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert (play.relay.tables.counts.late, play.relay.tables.counts.foreign) == (4, 4)


def test_the_id_of_a_pending_request_cannot_be_used_again() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.say(agent, {"id": 1, "method": "x"})
    play.say(agent, {"id": 1, "method": "y"})
    assert codes(play.take(agent)) == [(None, -32600)]
    play.say(browser, {"id": f"{connection}:1", "result": {}})
    play.say(agent, {"id": 1, "method": "y"})
    assert methods(play.take(browser)) == ["x", "y"]


def test_an_unanswered_request_fails_at_its_deadline_and_is_cancelled_in_the_browser() -> None:
    play = Play(call_timeout_max=300.0)
    agent, browser, connection = play.pair()
    play.say(agent, {"id": 1, "method": "x"})
    play.take(browser)
    play.tick(299.0)
    assert play.take(agent) == []
    play.tick(300.0)
    assert codes(play.take(agent)) == [(1, -32009)]
    assert play.take(browser) == [{"jsonrpc": "2.0", "method": "cancel", "params": {"id": f"{connection}:1"}}]
    play.say(browser, {"id": f"{connection}:1", "result": {}})
    assert play.take(agent) == []


def test_a_cancellation_carries_the_mapped_id() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.say(agent, {"id": "1", "method": "x"})
    play.take(browser)
    play.say(agent, {"method": "cancel", "params": {"id": "1"}})
    play.say(agent, {"method": "notifications/cancelled", "params": {"requestId": "1", "reason": "no"}})
    assert [m["params"] for m in play.take(browser)] == [
        {"id": f'{connection}:"1"'},
        {"requestId": f'{connection}:"1"', "reason": "no"},
    ]


def test_a_notification_that_names_a_connection_reaches_that_agent_only() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    other, elsewhere = play.agent("ann"), play.agent("ann")
    play.connect(other, browser)
    foreign = play.connect(elsewhere, play.browser("ann", "Other"))
    for client in (agent, other, elsewhere):
        play.take(client)
    event = {"method": "tool.progress", "params": {"progress": 1}}
    play.say(browser, {**event, "connectionId": connection})
    for wrong in (foreign, "", "conn-00000000-0000-4000-8000-000000000000"):
        play.say(browser, {**event, "connectionId": wrong})
    assert play.take(agent) == [{"jsonrpc": "2.0", **event}]
    assert play.take(other) == play.take(elsewhere) == []
    assert play.relay.tables.counts.foreign == 3
    play.say(browser, event)
    assert methods(play.take(agent)) == methods(play.take(other)) == ["tool.progress"]


def test_a_browser_is_told_which_agent_a_notification_comes_from() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.say(agent, {"method": "sync.full", "params": {"plugins": []}, "connectionId": connection})
    play.say(agent, {"method": "cancel", "params": {"id": 1}})
    assert [m["connectionId"] for m in play.take(browser)] == [connection] * 2
    play.say(agent, {"method": "sync.full", "params": {"plugins": []}, "connectionId": "conn-other"})
    assert play.take(browser) == []


def test_requests_of_a_disconnected_agent_are_cancelled() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.say(agent, {"id": 1, "method": "x"})
    play.take(browser)
    play.run(play.relay.client_disconnected(agent, "gone"))
    assert methods(play.take(browser)) == ["cancel", "status"]
    assert play.relay.tables.connections == {}
    play.say(browser, {"id": f"{connection}:1", "result": {}})
    assert play.take(agent) == []


def test_a_browser_with_an_instance_id_keeps_its_extension_id() -> None:
    play = Play()
    first = play.browser("ann", instanceId="profile-1")
    ident = play.take(first)[1]["params"]["extension_id"]
    agent = play.agent("ann")
    connection = play.connect(agent, first)
    play.say(agent, {"id": 1, "method": "x"})
    second = play.browser("ann", instanceId="profile-1")
    assert play.take(second)[1]["params"]["extension_id"] == ident
    assert play.closed[first][0] == 4000
    messages = play.take(agent)
    assert codes(messages) == [(1, -32006)]
    assert [m["params"]["connection_id"] for m in messages if m.get("method") == "disconnected"] == [connection]
    for other in (play.browser("ann", instanceId="profile-2"), play.browser("bob", instanceId="profile-1")):
        assert play.take(other)[1]["params"]["extension_id"] != ident
    assert play.connect(agent, second)


@pytest.mark.parametrize(
    ("node", "admitted", "stays"),
    [("far", 4999, True), ("far", 5000, True), ("near", 5000, False), ("far", 5001, False)],
)
def test_of_two_connections_of_a_browser_to_two_nodes_both_nodes_keep_the_newer_one(
    node: str, admitted: int, stays: bool
) -> None:
    play = Play("here")
    play.now = 5.0
    browser, other = play.browser("ann", instanceId="p"), play.browser("ann", instanceId="q")
    ident = play.relay.tables.browsers[browser].ident
    (announced,) = [
        note.browser for note in play.notes if isinstance(note, Announce) and note.browser.extension_id == ident
    ]
    there = Presence("ann", ident, "Chrome", node, admitted)
    play.run(play.relay.remote_browsers_changed("ann", (there, Presence("ann", "ext-else", "Edge", node, 9000))))
    assert (browser not in play.closed) is stays
    assert (announced.age > there.age) is stays  # by which the other node decides
    if not stays:
        assert play.closed[browser][0] == 4000
    assert other not in play.closed


def test_at_shutdown_both_sides_are_asked_to_reconnect() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    idle = play.agent("ann")
    play.take(idle)
    play.say(agent, {"id": 1, "method": "x"})
    play.take(browser)
    play.run(play.relay.shutting_down())
    messages = play.take(agent)
    assert codes(messages) == [(1, -32006)]
    assert methods(messages) == ["disconnected", "status"]
    assert messages[1]["params"] == {"connection_id": connection, "reason": "The relay restarts: reconnect"}
    assert methods(play.take(browser)) == ["cancel", "status"]
    assert methods(play.take(idle)) == ["status"]
    assert set(play.closed.values()) == {(1012, "reconnect")}
    assert set(play.closed) == {agent, browser, idle}


def test_agents_are_notified_when_a_browser_connects_or_disconnects() -> None:
    play = Play()
    agent = play.agent("ann")
    play.take(agent)
    browser = play.browser("ann")
    (status,) = play.take(agent)
    assert status["params"] == {"connected": False, "peer_count": 1, "timestamp": "2025-10-20T21:43:53.163+0200"}
    play.run(play.relay.client_disconnected(browser, "gone"))
    (status,) = play.take(agent)
    assert status["params"]["peer_count"] == 0


@pytest.mark.req("S003-codes-01", "S003-codes-02")
def test_malformed_messages_are_answered_and_the_connection_stays_open() -> None:
    play = Play()
    agent, browser, _ = play.pair()
    for client in (agent, browser):
        play.say(client, "{")
        assert codes(play.take(client)) == [(None, -32700)]
        play.say(client, b'{"id":1,"method":"x"}')
        assert codes(play.take(client)) == [(1, -32600)]
        play.say(client, b"[]")
        assert codes(play.take(client)) == [(None, -32600)]
    play.say(agent, {"id": 3, "result": {}})
    assert codes(play.take(agent)) == [(None, -32600)]
    play.say(agent, {"id": 4, "method": "x", "params": {"__proto__": {"a": 1}, "constructor": 1}})
    assert play.take(browser)[0]["params"] == {"__proto__": {"a": 1}, "constructor": 1}
    for name in ("__proto__", "constructor", "prototype"):
        play.say(agent, {"id": name, "method": name})
        play.say(agent, {"id": 7, "method": "connect", "params": {"extension_id": name}})
    assert methods(play.take(browser)) == ["__proto__", "constructor", "prototype"]


def test_keepalive_is_answered_and_not_forwarded() -> None:
    play = Play()
    agent, browser, _ = play.pair()
    play.say(browser, {"method": "ping"})
    play.say(agent, {"method": "ping"})
    assert methods(play.take(browser)) == methods(play.take(agent)) == ["pong"]
