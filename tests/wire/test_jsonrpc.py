"""JSON-RPC messages: every value is exactly one kind of message or refused, and what is encoded reads back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import InvalidParams, InvalidRequest, UnknownTool
from tabhub.wire import jsonrpc
from tabhub.wire.jsonrpc import Notification, Request, Response

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": JSON,
        "method": st.sampled_from(["ping", "", "tools/call"]) | JSON,
        "params": JSON,
        "result": JSON,
        "error": st.just({"code": -32000, "message": "no"}) | JSON,
        "other": JSON,
    },
)
IDS = st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8"), max_size=20)


@given(MEMBERS | JSON)
def test_every_value_is_a_message_or_refused(value: Any) -> None:
    try:
        message = jsonrpc.parse(value)
    except InvalidRequest:
        return
    assert value["jsonrpc"] == "2.0"
    if isinstance(message, Response):
        assert value.get("method") is None
        assert ("result" in value) != ("error" in value)
        assert message.id == value["id"]
        assert type(message.id) is type(value["id"])
    else:
        assert message.method == value["method"] != ""
        assert message.params == (value.get("params") or {})
        assert isinstance(message, Request) == ("id" in value)


@pytest.mark.parametrize(
    "value",
    [
        {"id": 1, "method": "ping"},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": 2.0, "id": 1, "method": "ping"},
        {"jsonrpc": "2.0"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.0, "method": "ping"},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
        {"jsonrpc": "2.0", "id": [1], "method": "ping"},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": 1, "method": ""},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "result": {}},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": "no"},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": "1", "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": True, "message": "no"}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}},
        [],
        "ping",
        None,
        7,
    ],
    ids=repr,
)
def test_invalid_messages_are_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        jsonrpc.parse(value)
    assert caught.value.code == -32600


def test_requests_notifications_and_responses_are_distinguished() -> None:
    assert jsonrpc.parse({"jsonrpc": "2.0", "id": "1", "method": "m", "params": {"a": 1}}) == Request(
        "1", "m", {"a": 1}
    )
    assert jsonrpc.parse({"jsonrpc": "2.0", "method": "m"}) == Notification("m", {})
    assert jsonrpc.parse({"jsonrpc": "2.0", "id": 1, "result": None}) == Response(1, None)
    error = {"code": -1, "message": "no", "data": [1]}
    assert jsonrpc.parse({"jsonrpc": "2.0", "id": 1, "error": error}) == Response(1, None, error)


def test_a_call_has_a_name_and_may_have_arguments() -> None:
    assert jsonrpc.name_and_arguments({"name": "t", "arguments": {"a": 1}}) == ("t", {"a": 1})
    assert jsonrpc.name_and_arguments({"name": "t"}) == jsonrpc.name_and_arguments({"name": "t", "arguments": None})
    with pytest.raises(InvalidParams, match="`name` must be a string"):
        jsonrpc.name_and_arguments({"arguments": {}})
    with pytest.raises(InvalidParams, match="`arguments` must be an object"):
        jsonrpc.name_and_arguments({"name": "t", "arguments": []})


@given(JSON)
def test_the_id_of_a_broken_message_is_found_only_if_it_is_one(value: Any) -> None:
    assert type(jsonrpc.id_of(value)) in (str, int, type(None))
    assert jsonrpc.id_of({"id": True}) is None
    assert jsonrpc.id_of({"id": "7"}) == "7"


@given(IDS, JSON)
def test_an_answer_carries_the_id_with_its_exact_type(ident: Any, value: Any) -> None:
    read = jsonrpc.parse(json.loads(jsonrpc.encode_result(ident, json.dumps(value).encode())))
    assert read == Response(ident, value)
    assert type(read.id) is type(ident)


@given(IDS, st.text(st.characters(codec="utf-8")))
def test_requests_and_notifications_of_ours_read_back(ident: Any, word: str) -> None:
    method = word or "m"
    assert jsonrpc.parse(json.loads(jsonrpc.encode_request(ident, method, {"w": word}))) == Request(
        ident, method, {"w": word}
    )
    assert jsonrpc.parse(json.loads(jsonrpc.encode_notification(method))) == Notification(method, {})
    assert jsonrpc.parse(json.loads(jsonrpc.encode_notification(method, {"w": word}))) == Notification(
        method, {"w": word}
    )


def test_a_failure_has_message_and_hint() -> None:
    error = UnknownTool("There is no tool named 'x'.", hint="Did you mean y?", data={"nearest": ["y"]})
    answer = json.loads(jsonrpc.encode_failure(3, error))
    assert answer["id"] == 3
    assert answer["error"]["code"] == -32602
    assert answer["error"]["message"] == "There is no tool named 'x'. Did you mean y?"
    assert answer["error"]["data"]["nearest"] == ["y"]
    assert answer["error"]["data"]["category"] == "not_found"
    assert json.loads(jsonrpc.encode_failure(None, error))["id"] is None
