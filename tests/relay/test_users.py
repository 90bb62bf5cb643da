"""Limits of the relay as playbooks: token lifetimes, rates and maximum numbers."""

from __future__ import annotations

import pytest

from tests.relay.playbook import Play, codes


@pytest.mark.req("S003-principles-07")
def test_tokens_are_refreshed_without_disconnecting() -> None:
    play = Play(relay_refresh=60.0)
    play.ttl = 600.0
    agent, browser, connection = play.pair()
    play.tick(540.0)
    assert play.take(browser) == [{"jsonrpc": "2.0", "id": "proxy:2", "method": "authenticate", "params": {}}]
    play.say(browser, {"id": "proxy:2", "result": {"name": "Chrome", "accessToken": "ann"}})
    play.say(agent, {"id": 5, "method": "refresh_token", "params": {"accessToken": "ann"}})
    assert play.take(agent)[0]["result"]["user_id"] == "ann"
    play.tick(1139.0)
    assert play.closed == {}
    play.say(agent, {"id": 6, "method": "x"})
    assert f"{connection}:6" in [m["id"] for m in play.take(browser) if "id" in m]
    play.tick(1141.0)
    assert {code for code, _ in play.closed.values()} == {4001}
    assert {reason for _, reason in play.closed.values()} == {"the token expired"}


def test_a_token_of_another_user_refreshes_nothing() -> None:
    play = Play()
    agent, browser, _ = play.pair()
    play.say(agent, {"id": 5, "method": "refresh_token", "params": {"accessToken": "bob"}})
    assert play.closed[agent][0] == 4001
    play.tick(3599.0)
    play.say(browser, {"id": "proxy:2", "result": {"name": "Chrome", "accessToken": "bob"}})
    assert play.closed[browser][0] == 4001


def test_only_clients_with_a_revoked_token_are_disconnected() -> None:
    play = Play()
    browser = play.browser("ann/t1")
    agent, other = play.agent("ann/t2"), play.agent("ann/t3")
    play.connect(agent, browser)
    play.run(play.relay.tokens_revoked(lambda claims: "t2" in claims.ids))
    assert play.closed == {agent: (4001, "the token was revoked")}
    play.run(play.relay.tokens_revoked(lambda claims: "t1" in claims.ids))
    assert set(play.closed) == {agent, browser}
    assert other not in play.closed


@pytest.mark.req("S003-security-05")
def test_too_many_messages_are_refused_for_a_connection_and_for_a_user() -> None:
    play = Play(relay_client_rate=5, relay_user_rate=6)
    agent, browser = play.agent("ann"), play.browser("ann")
    for number in range(1, 6):
        play.say(agent, {"id": number, "method": "list_extensions"})
    (refused,) = [m for m in play.take(agent) if "error" in m]
    assert (refused["id"], refused["error"]["code"]) == (5, -32004)
    assert refused["error"]["data"]["retryAfter"] == 12 + 1
    second = play.agent("ann")
    play.take(second)
    for number in range(1, 5):
        play.say(second, {"id": number, "method": "list_extensions"})
    assert codes(play.take(second)) == [(3, -32004), (4, -32004)]
    bob = play.agent("bob")
    assert codes(play.take(bob)) == []
    for _ in range(20):
        play.say(browser, {"method": "noise", "params": {}})
    assert browser not in play.closed
    assert play.relay.tables.counts.rate_limited > 3


def test_messages_accepted_by_other_nodes_count_for_the_user() -> None:
    play = Play(relay_user_rate=10)
    agent = play.agent("ann")
    play.take(agent)
    play.run(play.relay.usage_reported("ann", 100, 0.0))
    play.say(agent, {"id": 1, "method": "list_extensions"})
    assert codes(play.take(agent)) == [(1, -32004)]


def test_pending_requests_of_an_agent_and_connections_of_a_user_are_limited() -> None:
    play = Play(relay_calls=2, relay_user_clients=3)
    agent, _, _ = play.pair()
    for number in range(3):
        play.say(agent, {"id": number, "method": "x"})
    assert codes(play.take(agent)) == [(2, -32011)]
    play.agent("ann")
    fourth = play.agent("ann")
    assert play.closed[fourth][0] == 1013
    assert play.agent("bob") not in play.closed


def test_new_connections_of_a_user_are_limited_also_if_each_is_closed_at_once() -> None:
    play = Play(relay_user_joins=3)
    for number in range(5):
        client = play.browser("ann") if number % 2 else play.agent("ann")
        if number < 3:
            assert client not in play.closed
            play.run(play.relay.client_disconnected(client, "gone"))
        else:
            assert play.closed[client][0] == 1013
            assert play.closed[client][1].endswith("Too many new connections of this user.")
    assert play.relay.tables.users == {}
    assert play.browser("bob") not in play.closed
    play.tick(20.0)  # one of three a minute
    back = play.browser("ann")
    assert back not in play.closed
    play.tick(200.0)
    assert play.relay._users._joins == {}
    assert play.relay.tables.counts.auth_failed == 0


@pytest.mark.parametrize("name", ["\U0001f600" * 200, "e\u0301" * 150, "x" * 5000])
def test_names_of_browsers_are_limited_in_bytes(name: str) -> None:
    play = Play()
    browser = play.browser("ann", name)
    assert 190 <= len(play.relay.tables.browsers[browser].name.encode()) <= 200


def test_a_token_for_one_kind_of_client_is_refused_by_the_other() -> None:
    play = Play()
    assert play.browser("ann;browser") not in play.closed
    assert play.agent("ann;agent") not in play.closed
    for wrong in (play.browser("ann;agent"), play.agent("ann;browser")):
        assert play.closed[wrong] == (4001, "Authentication failed: Invalid token")
