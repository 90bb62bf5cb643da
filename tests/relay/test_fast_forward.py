"""Which messages are fast-forwarded, and that the result is that of the full path."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import BadFrame
from tabhub.limits import DEFAULTS
from tabhub.relay.fast_forward import CanonicalReader, map_request, reply_id, request_id, unmap_reply
from tabhub.wire import relay
from tabhub.wire.strict_json import Parsed
from tests.relay.playbook import Play, codes

CONNECTION = "conn-70dfcdd7-ff5e-448e-b274-59c1f6a0d7c8"
READER = CanonicalReader(DEFAULTS)


def request(data: bytes) -> int | None:
    value = READER.read(data)
    return request_id(value) if isinstance(value, dict) else None


def reply(data: bytes) -> str | None:
    value = READER.read(data)
    return reply_id(value) if isinstance(value, dict) else None


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_KEYS = st.sampled_from(["id", "method", "params", "result", "error", "connectionId", "more"])
_IDS = st.sampled_from([0, 7, -7, "7", "a", f"{CONNECTION}:7", f"{CONNECTION}:a", True, None, 1.5])
_METHODS = st.sampled_from(["createTab", "connect", "status", "", "é"])


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Requests and replies, valid and malformed, in canonical form and otherwise."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": draw(_IDS)}
    if draw(st.booleans()):
        message["method"] = draw(_METHODS)
    for key in draw(st.lists(_KEYS, max_size=3)):
        message.setdefault(key, draw(_VALUES))
    compact = draw(st.booleans())
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps(message, separators=separators, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


@given(messages())
def test_fast_forwarded_request_equals_that_of_the_full_path(data: bytes) -> None:
    ident = request(data)
    if ident is not None:
        frame = relay.read(data)
        assert type(frame.id) is int
        assert frame.id == ident
        assert frame.method not in relay.RELAY_ONLY.union(relay.CONTROL)
        mapped = relay.map_id(CONNECTION, ident)
        forwarded = map_request(mapped, len(str(ident)), data)
        assert orjson.loads(forwarded) == orjson.loads(relay.forwarded(mapped, frame))


@given(messages())
def test_fast_forwarded_reply_equals_that_of_the_full_path(data: bytes) -> None:
    mapped = reply(data)
    if mapped == f"{CONNECTION}:7":
        frame = relay.read(data)
        assert frame.id == mapped
        assert unmap_reply(mapped, 7, data) == relay.answered(7, frame)


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":7,"method":"createTab"}',
        '{"jsonrpc":"2.0","id":7,"method":"createTab","params":{}}',
        '{"jsonrpc":"2.0","id":-7,"params":{"a":[1,2.5,null,"é"]},"method":"x"}',
    ],
)
def test_canonical_request_is_fast_forwarded(text: str) -> None:
    assert request(text.encode()) == json.loads(text)["id"]


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":1,"a":2}}',
        '{"jsonrpc":"2.0","id":7,"method":"x","method":"y"}',
        '{"jsonrpc":"2.0","id":7,"id":8,"method":"x"}',
        '{"jsonrpc":"2.0","id":7,"method":"x","params":{"n":1e400}}',
        '{"jsonrpc":"2.0","id":7,"method":"x","params":{"n":%s}}' % ("9" * 40),
        '{"jsonrpc":"2.0","id":7,"method":"x","params":{"n":NaN}}',
        '{"jsonrpc":"2.0","id":7,"method":"x","params":[1]}',
        '{"jsonrpc":"2.0","id":7,"method":"x","params":null}',
        '{"jsonrpc":"2.0","id":7,"method":"x","params":{},"connectionId":"conn-a"}',
        '{"jsonrpc":"2.0","id":7,"method":"x","connectionId":"conn-a"}',
        '{"jsonrpc":"2.0","id":7,"method":"connect","params":{}}',
        '{"jsonrpc":"2.0","id":7,"method":"authenticate","params":{}}',
        '{"jsonrpc":"2.0","id":7,"method":""}',
        '{"jsonrpc":"2.0","id":7,"method":3}',
        '{"jsonrpc":"2.0","id":7,"result":{}}',
        '{"jsonrpc":"2.0","id":true,"method":"x"}',
        '{"jsonrpc":"2.0","id":"7","method":"x"}',
        '{"jsonrpc":"2.0","id":7.0,"method":"x"}',
        '{"jsonrpc":"2.0","id":7,"method":"x"',
        '{"jsonrpc":"2.0","id":',
        '{"jsonrpc":"1.0","id":7,"method":"x"}',
        '{"id":7,"jsonrpc":"2.0","method":"x"}',
        '{"jsonrpc":"2.0","id":7,"method":"x","params":{"deep":%s}}' % ("[" * 70 + "]" * 70),
        '{"jsonrpc":"2.0","id":7,"method":"x","params":{"long":"%s"}}' % ("a" * 70_000),
    ],
)
def test_other_requests_take_the_full_path(text: str) -> None:
    assert request(text.encode()) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":"conn-a:1","error":{"code":1,"message":""}}',
        '{"jsonrpc":"2.0","id":"conn-a:1","result":{},"error":{"code":1,"message":""}}',
        '{"jsonrpc":"2.0","id":"conn-a:1","result":{"a":1,"a":1}}',
        '{"jsonrpc":"2.0","id":"conn-a:1"}',
        '{"jsonrpc":"2.0","id":1,"result":{}}',
        '{"jsonrpc":"2.0","id":"conn-a:1","method":"x"}',
    ],
)
def test_replies_other_than_results_take_the_full_path(text: str) -> None:
    assert reply(text.encode()) is None


def test_lower_limits_apply_to_fast_forwarding() -> None:
    flat = b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":[[1]]}}'
    assert request(flat) == 7
    assert CanonicalReader(replace(DEFAULTS, max_depth=3)).read(flat) is None
    assert CanonicalReader(replace(DEFAULTS, max_keys=20)).read(flat) is None
    assert CanonicalReader(replace(DEFAULTS, max_digits=10)).read(flat) is None


@given(messages())
def test_full_path_gives_the_same_with_and_without_the_parsed_value(data: bytes) -> None:
    value = READER.read(data)
    parsed = Parsed(value, data) if isinstance(value, dict) else value
    if parsed is not None:
        assert _read(data, parsed) == _read(data, None)


def _read(data: bytes, parsed: Parsed | None) -> Any:
    try:
        return relay.read(data, DEFAULTS, parsed)
    except BadFrame as bad:
        return (type(bad.error), bad.error.message, bad.ident, bad.answer)


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":"a","method":"x","params":{"n":1}}',
        '{"jsonrpc":"2.0","id":7,"method":"x","params":{"text":"\\u00e9"}}',
        '{"jsonrpc": "2.0", "id": 7, "method": "x", "params": {"n": 1}}',
        '{"jsonrpc":"2.0","id":7,"method":"x","params":[1]}',
        '{"jsonrpc":"2.0","id":1,"method":"x","params":{}}',
        '{"jsonrpc":"2.0","id":5,"method":"connect","params":{"extension_id":"ext-1"}}',
    ],
)
def test_request_on_the_full_path_is_parsed_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    agent, _, _ = play.pair()
    play.compact = True
    play.say(agent, {"id": 1, "method": "x", "params": {}})  # so that the id 1 is taken
    assert _count_parses(play, agent, text, monkeypatch) == 1


@pytest.mark.parametrize(
    "ident",
    ["conn-unknown:1", "proxy:1", "{connection}:99", "{connection}:a"],
    ids=["foreign", "token", "late", "text"],
)
def test_reply_on_the_full_path_is_parsed_once(ident: str, monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    agent, browser, connection = play.pair()
    play.say(agent, {"id": "a", "method": "x", "params": {}})
    shown = ident.format(connection=connection)
    text = f'{{"jsonrpc":"2.0","id":"{shown}","result":{{}}}}'
    assert _count_parses(play, browser, text, monkeypatch) == 1


def _count_parses(play: Play, client: int, text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    parses = list[bytes]()
    loads = orjson.loads

    def counted(data: bytes) -> Any:
        parses.append(data)
        return loads(data)

    monkeypatch.setattr(orjson, "loads", counted)
    data = text.encode()
    forwarded = play.relay.fast_forward(client, data, play.now)
    assert not isinstance(forwarded, tuple)
    play.relay.message_received(client, data, play.now, forwarded)
    return len(parses)


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
    """The messages that agent and browser received for all of these requests, and the counters."""
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
