"""A node that is about to end: what is quiet ends, what runs may finish, and clients are closed gradually."""

from __future__ import annotations

import pytest

from tabhub.wire import nodes
from tests.relay.playbook import Play, codes, methods


def drain(play: Play, at: float) -> None:
    play.now = at
    play.run(play.relay.drain(at))


def step(play: Play, now: float) -> None:
    play.now = now
    play.run(play.relay.drain_step(now))


def test_quiet_connections_end_and_their_clients_are_closed() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    idle = play.agent("ann")
    drain(play, 10.0)
    assert play.closed == {idle: (1012, "reconnect")}
    step(play, 10.9)
    assert not play.relay.drained
    step(play, 11.0)
    assert play.closed == dict.fromkeys((idle, agent, browser), (1012, "reconnect"))
    (ended,) = [m for m in play.take(agent) if m.get("method") == "disconnected"]
    assert ended["params"]["connection_id"] == connection
    assert ended["params"]["reason"] == "The relay restarts: reconnect"
    assert play.relay.drained


@pytest.mark.req("F24")
@pytest.mark.parametrize("compact", [True, False])
def test_running_requests_finish_and_new_ones_are_refused_as_not_sent(compact: bool) -> None:
    play = Play()
    play.compact = compact
    agent, browser, connection = play.pair()
    play.say(agent, {"id": 1, "method": "slow"})
    drain(play, 10.0)
    step(play, 11.5)
    play.say(agent, {"id": 2, "method": "next"})  # it may belong together with the first
    step(play, 12.0)
    play.take(agent)
    play.say(agent, {"id": 3, "method": "late"})
    (refused,) = play.take(agent)
    assert (refused["id"], refused["error"]["data"]["outcome"]) == (3, "not_sent")
    assert [m["id"] for m in play.take(browser) if "id" in m] == [f"{connection}:1", f"{connection}:2"]
    play.say(agent, {"method": "notice"})
    assert methods(play.take(browser)) == ["notice"]
    step(play, 19.0)
    assert play.closed == {}
    for number in (1, 2):
        play.say(browser, {"id": f"{connection}:{number}", "result": {"n": number}})
    assert [(m["id"], m["result"]) for m in play.take(agent)] == [(1, {"n": 1}), (2, {"n": 2})]
    step(play, 19.1)
    assert set(play.closed) == {agent, browser}
    assert codes(play.take(agent)) == []


def test_an_agent_that_never_pauses_is_closed_between_two_requests() -> None:
    play = Play()
    agent, browser, connection = play.pair()
    drain(play, 10.0)
    for number in range(1, 30):
        play.say(agent, {"id": number, "method": "x"})
        step(play, 10.0 + number / 10)
        play.say(browser, {"id": f"{connection}:{number}", "result": {}})
        if agent in play.closed:
            break
    answered = [m["id"] for m in play.take(agent) if "result" in m]
    refused = [m for m in play.sent.get(agent, []) if "error" in m]
    assert answered == list(range(1, 21))
    assert refused == []
    step(play, 13.0)
    assert set(play.closed) == {agent, browser}


@pytest.mark.req("F24")
def test_a_connection_with_an_agent_on_another_node_is_drained_there() -> None:
    browsers, agents = Play("there"), Play("here")
    browser = browsers.browser("ann")
    ident = browsers.relay.tables.browsers[browser].ident
    opening = nodes.Open("conn-1", "ann", ident)
    browsers.run(browsers.relay.node_message_received("here", nodes.encode(opening), 0.0))
    browsers.to_nodes.clear()
    drain(browsers, 10.0)
    assert browsers.to_nodes == [("here", nodes.Drain("conn-1"))]
    step(browsers, 15.0)
    assert browsers.closed == {}
    browsers.run(browsers.relay.node_message_received("here", nodes.encode(nodes.Open("c2", "ann", ident)), 0.0))
    assert browsers.to_nodes[-1] == ("here", nodes.Refused("c2"))

    agent, local, connection = agents.pair()
    record = agents.relay.tables.connections[connection]
    record.node, record.browser = "there", None  # as if the browser were on the other node
    agents.relay.tables.browsers[local].connections.clear()
    agents.say(agent, {"id": 1, "method": "slow"})
    agents.run(agents.relay.node_message_received("evil", nodes.encode(nodes.Drain(connection)), 10.0))
    agents.run(agents.relay.node_message_received("there", nodes.encode(nodes.Drain(connection)), 10.0))
    agents.tick(13.0)
    agents.take(agent)
    agents.say(agent, {"id": 2, "method": "late"})
    assert codes(agents.take(agent)) == [(2, -32011)]
    reply = b'{"jsonrpc":"2.0","id":"%b:1","result":{}}' % connection.encode()
    agents.run(agents.relay.node_message_received("there", nodes.encode(nodes.ToAgent(connection, reply)), 13.0))
    agents.tick(14.0)
    messages = agents.take(agent)
    assert [m["id"] for m in messages if "result" in m] == [1]
    assert "disconnected" in methods(messages)
    assert agents.closed == {}  # its own node stays
    ended = nodes.Ended(connection, "The relay restarts: reconnect")
    assert agents.to_nodes[-1] == ("there", ended)

    browsers.run(browsers.relay.node_message_received("here", nodes.encode(nodes.Ended("conn-1", "x")), 14.0))
    step(browsers, 14.0)
    assert set(browsers.closed) == {browser}


def test_no_one_is_admitted_and_nothing_is_opened() -> None:
    play = Play()
    agent, other = play.agent("ann"), play.browser("ann")
    waiting = play.agent()
    play.connect(agent, other)
    drain(play, 10.0)
    late = play.browser("ann")
    assert play.closed[late][0] == 1013
    play.say(waiting, {"id": 0, "method": "mcp_handshake", "params": {"accessToken": "ann"}})
    assert waiting in play.closed
    assert agent not in play.closed


def test_clients_are_closed_in_slices() -> None:
    play = Play(relay_user_clients=3000, relay_user_joins=0)
    for _ in range(2000):
        play.agent("ann")
    drain(play, 10.0)
    closed = [len(play.closed)]
    while not play.relay.drained:
        step(play, 10.0 + len(closed) / 10)
        closed.append(len(play.closed))
    assert closed == [200 * (n + 1) for n in range(10)]
