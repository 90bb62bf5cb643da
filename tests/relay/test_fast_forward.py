"""Fast-forwarded messages are handled as on the full path, and all others take that."""

from __future__ import annotations

from typing import Any

import pytest

from tests.relay.playbook import Play, codes

_REQUESTS: list[dict[str, Any]] = [
    {"id": 1, "method": "createTab", "params": {"url": "https://example.com/"}},
    {"id": 1, "method": "createTab"},
    {"id": 2, "method": "x", "params": {"a": 1}, "connectionId": "conn-other"},
    {"id": "2", "method": "x", "params": {}},
    {"id": 3, "method": "status", "params": {}},
    {"id": 4, "method": "x", "params": [1]},
    {"id": 5, "method": "list_extensions", "params": {}},
    {"id": 6, "method": "x", "more": 1},
    {"id": "conn-1", "method": "x"},
    {"id": 7, "method": "too-many"},
    {"id": 8, "method": "too-many"},
]


def _played(*, compact: bool) -> tuple[list[dict[str, Any]], list[dict[str, Any]], Any]:
    """What agent and browser received for all of these requests, and the counters."""
    play = Play(relay_calls=4)
    agent, browser, connection = play.pair()
    play.compact = compact
    for request in _REQUESTS:
        play.say(agent, request)
    asked = play.take(browser)
    answers: list[dict[str, Any]] = [{"id": message["id"], "result": {"n": [1]}} for message in asked]
    answers += [
        answers[0],
        {"id": f"{connection}:99", "result": {}},
        {"id": "conn-unknown:1", "result": {}},
        {"id": 1, "result": {}},
        {"id": answers[-1]["id"]},
    ]
    for answer in answers:
        play.say(browser, answer)
    return play.take(agent), asked, play.relay.tables.counts


def test_both_paths_give_the_same_result() -> None:
    fast, full = _played(compact=True), _played(compact=False)
    assert fast == full
    assert fast[2].answered == 4


def test_a_request_beyond_the_rate_is_refused_and_counted_once() -> None:
    play = Play(relay_user_rate=60_000, relay_client_rate=5)
    agent, _, _ = play.pair()
    for number in range(100, 105):
        play.say(agent, {"id": number, "method": "x", "params": {}})
    refused = codes(play.take(agent))
    assert len(refused) == play.relay.tables.counts.rate_limited > 0
    assert play.relay.tables.counts.forwarded == 5 - len(refused)


@pytest.mark.parametrize("compact", [True, False])
def test_nothing_is_forwarded_over_an_ended_connection(compact: bool) -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.compact = compact
    play.say(agent, {"id": 1, "method": "x", "params": {}})
    play.say(agent, {"id": 2, "method": "disconnect", "params": {}})
    play.take(agent)
    play.say(browser, {"id": f"{connection}:1", "result": {}})
    play.say(agent, {"id": 3, "method": "x", "params": {}})
    assert codes(play.take(agent)) == [(3, -32000)]
    assert play.relay.tables.counts.foreign == 1
