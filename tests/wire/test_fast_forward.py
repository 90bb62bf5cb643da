"""Messages that pass a relay as they came: which ones do, and that they become what reading in full makes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.limits import DEFAULTS
from tabhub.wire import fast_forward as passing
from tabhub.wire import relay

CONNECTION = "conn-70dfcdd7-ff5e-448e-b274-59c1f6a0d7c8"
READER = passing.Reader(DEFAULTS)

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
    """Requests and answers, whole and spoilt, as programs write them and otherwise."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": draw(_IDS)}
    if draw(st.booleans()):
        message["method"] = draw(_METHODS)
    for key in draw(st.lists(_KEYS, max_size=3)):
        message.setdefault(key, draw(_VALUES))
    compact = draw(st.booleans())
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps(message, separators=separators, ensure_ascii=draw(st.booleans())).encode("utf-8", "surrogatepass")


@given(messages())
def test_a_request_that_passes_becomes_what_reading_it_in_full_makes_of_it(data: bytes) -> None:
    ident = READER.request(data)
    if ident is not None:
        frame = relay.read(data)
        assert type(frame.id) is int
        assert frame.id == ident
        assert frame.method not in relay.CONTROL | relay.RELAY_WORDS
        mapped = relay.map_id(CONNECTION, ident)
        passed = passing.mapped_request(mapped, len(str(ident)), data)
        assert orjson.loads(passed) == orjson.loads(relay.forwarded(mapped, frame))


@given(messages())
def test_an_answer_that_passes_becomes_what_reading_it_in_full_makes_of_it(data: bytes) -> None:
    mapped = READER.answer(data)
    if mapped == f"{CONNECTION}:7":
        frame = relay.read(data)
        assert frame.id == mapped
        assert passing.unmapped_answer(mapped, 7, data) == relay.answered(7, frame)


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":7,"method":"createTab"}',
        '{"jsonrpc":"2.0","id":7,"method":"createTab","params":{}}',
        '{"jsonrpc":"2.0","id":-7,"params":{"a":[1,2.5,null,"é"]},"method":"x"}',
    ],
)
def test_what_programs_write_passes(text: str) -> None:
    assert READER.request(text.encode()) == json.loads(text)["id"]


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
def test_whatever_else_goes_the_longer_way(text: str) -> None:
    assert READER.request(text.encode()) is None


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
def test_answers_that_are_no_plain_results_go_the_longer_way(text: str) -> None:
    assert READER.answer(text.encode()) is None


def test_tighter_limits_hold_here_too() -> None:
    flat = b'{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":[[1]]}}'
    assert READER.request(flat) == 7
    assert passing.Reader(replace(DEFAULTS, max_depth=3)).request(flat) is None
    assert passing.Reader(replace(DEFAULTS, max_keys=20)).request(flat) is None
    assert passing.Reader(replace(DEFAULTS, max_digits=10)).request(flat) is None
