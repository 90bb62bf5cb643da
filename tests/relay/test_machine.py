"""A relay under any order of events: nothing crosses between users or agents, and every request is answered once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.relay.playbook import Play

USERS = st.sampled_from(["ann", "bob"])
PICK = st.integers(0, 10_000)


class RelayMachine(RuleBasedStateMachine):
    """Agents and browsers of two users that connect, disconnect, send requests, reply, and reply wrongly."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play(relay_calls=4, relay_client_rate=0, relay_user_rate=0, call_timeout_max=30.0)
        self.users: dict[int, str] = {}
        self.agents: list[int] = []
        self.browsers: list[int] = []
        self.asked: dict[int, dict[tuple[type, Any], str]] = {}
        """By agent: requests without a reply, by exact id, and the secret in their params."""
        self.at_browser: dict[int, list[tuple[str, str]]] = {}
        self.number = 0

    @rule(compact=st.booleans())
    def message_encoding_changes(self, compact: bool) -> None:
        self.play.compact = compact

    @rule(user=USERS)
    def agent_connects(self, user: str) -> None:
        agent = self.play.agent(user)
        self.users[agent] = user
        self.agents.append(agent)
        self.asked[agent] = {}
        self.look()

    @rule(user=USERS, instance=st.sampled_from(["a", "b", None]))
    def browser_connects(self, user: str, instance: str | None) -> None:
        browser = self.play.browser(user, **({"instanceId": instance} if instance else {}))
        self.users[browser] = user
        self.browsers.append(browser)
        self.at_browser[browser] = []
        self.look()

    @precondition(lambda self: self.agents and self.browsers)
    @rule(a=PICK, b=PICK, ident=st.sampled_from([0, 1, "0", "1"]))
    def connect(self, a: int, b: int, ident: int | str) -> None:
        agent, browser = self.agents[a % len(self.agents)], self.browsers[b % len(self.browsers)]
        if (type(ident), ident) in self.asked[agent]:
            return
        wanted = self.play.relay.tables.browsers[browser].ident
        self.play.say(agent, {"id": ident, "method": "connect", "params": {"extension_id": wanted}})
        answers = [m for m in self.play.sent.get(agent, []) if "method" not in m and m["id"] == ident]
        assert len(answers) == 1
        if "result" in answers[0]:
            assert self.users[agent] == self.users[browser]
        self.play.sent[agent] = [m for m in self.play.sent[agent] if m is not answers[0]]
        self.look()

    @precondition(lambda self: self.agents)
    @rule(a=PICK)
    def disconnect(self, a: int) -> None:
        agent = self.agents[a % len(self.agents)]
        self.play.say(agent, {"id": "bye", "method": "disconnect"})
        done = [m for m in self.play.sent[agent] if m.get("id") == "bye"]
        assert [m["result"] for m in done] == [{"disconnected": True}]
        self.play.sent[agent] = [m for m in self.play.sent[agent] if m.get("id") != "bye"]
        self.look()
        assert self.asked[agent] == {}

    @precondition(lambda self: self.agents)
    @rule(a=PICK, ident=st.sampled_from([1, 2, 3, "1", "2", '"1"', "a"]))
    def ask(self, a: int, ident: int | str) -> None:
        agent = self.agents[a % len(self.agents)]
        key = (type(ident), ident)
        self.number += 1
        secret = f"{self.users[agent]}-{agent}-{self.number}"
        again = key in self.asked[agent]
        if not again:
            self.asked[agent][key] = secret
        self.play.say(agent, {"id": ident, "method": "do", "params": {"secret": secret}})
        if again:
            refused = [m for m in self.play.sent.get(agent, []) if "method" not in m]
            assert [m["id"] for m in refused] == [None]
            self.play.sent[agent] = [m for m in self.play.sent[agent] if "method" in m]
        self.look()

    @precondition(lambda self: self.browsers)
    @rule(b=PICK, n=PICK, keep=st.booleans(), alone=st.booleans())
    def answer(self, b: int, n: int, keep: bool, alone: bool) -> None:
        browser = self.browsers[b % len(self.browsers)]
        held = self.at_browser[browser]
        if held:
            ident, secret = held[n % len(held)]
            if not keep:  # a kept one is replied to again later
                held.remove((ident, secret))
            self.play.say(browser, {"id": ident} if alone else {"id": ident, "result": {"secret": secret}})
            self.look()

    @precondition(lambda self: len(self.browsers) > 1)
    @rule(b=PICK, c=PICK, n=PICK)
    def reply_for_another(self, b: int, c: int, n: int) -> None:
        browser, other = self.browsers[b % len(self.browsers)], self.browsers[c % len(self.browsers)]
        held = self.at_browser[other]
        if held and browser != other:
            self.play.say(browser, {"id": held[n % len(held)][0], "result": {"secret": "stolen"}})
            self.look()

    @precondition(lambda self: self.agents)
    @rule(a=PICK)
    def agent_disconnects(self, a: int) -> None:
        agent = self.agents.pop(a % len(self.agents))
        self.play.run(self.play.relay.client_disconnected(agent, "gone"))
        del self.asked[agent]
        self.look()

    @precondition(lambda self: self.browsers)
    @rule(b=PICK)
    def browser_disconnects(self, b: int) -> None:
        browser = self.browsers[b % len(self.browsers)]
        self.play.run(self.play.relay.client_disconnected(browser, "gone"))
        self.look()

    @rule(by=st.sampled_from([1.0, 20.0]))
    def time_passes(self, by: float) -> None:
        self.play.tick(self.play.now + by)
        self.look()

    def look(self) -> None:
        """Take all sent messages, and check them against what is allowed."""
        for browser in list(self.browsers):
            for message in self.play.take(browser):
                if message.get("method") == "do":
                    secret = message["params"]["secret"]
                    assert secret.startswith(self.users[browser] + "-")
                    self.at_browser[browser].append((message["id"], secret))
            if browser not in self.play.relay.tables.browsers:
                self.browsers.remove(browser)
        for agent in list(self.agents):
            for message in self.play.take(agent):
                if "method" in message or message["id"] == 0:
                    continue
                secret = self.asked[agent].pop((type(message["id"]), message["id"]))
                if "result" in message:
                    assert message["result"]["secret"] == secret
            if agent not in self.play.relay.tables.agents:
                self.agents.remove(agent)
                del self.asked[agent]

    @invariant()
    def pending_requests_are_those_of_agents(self) -> None:
        tables = self.play.relay.tables
        waiting = sum(len(asked) for asked in self.asked.values())
        assert waiting == sum(len(connection.pending) for connection in tables.connections.values())

    @invariant()
    def tables_agree(self) -> None:
        tables = self.play.relay.tables
        for ident, connection in tables.connections.items():
            assert connection.agent is not None
            assert connection.browser is not None
            assert connection.agent.connection is connection
            assert connection.browser.connections[ident] is connection
            assert connection.agent.user is connection.browser.user is connection.user
        assert set(tables.users) == {self.users[c] for c in [*tables.agents, *tables.browsers]}


TestRelayMachine = pytest.mark.req("S003-ids-06")(RelayMachine.TestCase)
TestRelayMachine.settings = settings(max_examples=60, stateful_step_count=40)
