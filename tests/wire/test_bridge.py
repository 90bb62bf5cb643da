"""The messages of the bridge: decoding, refusals, and results that are passed on unchanged."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import InvalidRequest, ParseError, SessionNotFound, TabhubError
from tabhub.limits import DEFAULTS
from tabhub.wire import bridge
from tabhub.wire.jsonrpc import encode_failure, encode_notification, encode_request, encode_result


def read(value: Any) -> bridge.Message:
    return bridge.read(json.dumps(value).encode(), DEFAULTS)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"type": "REGISTER"}, bridge.Register()),
        ({"type": "REGISTER", "client": "me", "version": "2"}, bridge.Register("me", "2")),
        ({"type": "REGISTER", "client": "a\nb\x00c"}, bridge.Register("a\nb\x00c")),
        ({"type": "REGISTER", "client": "\n"}, bridge.Register("\n")),
        (
            {"type": "REGISTER", "sessionId": "s", "token": "t", "surface": "gateway"},
            bridge.Register(None, None, "s", "t", "gateway"),
        ),
        (
            {"type": "REQUEST", "id": "s:1", "sessionId": "s", "action": "tools/list"},
            bridge.Request("s:1", "s", "tools/list", {}),
        ),
        (
            {"type": "REQUEST", "id": "any — id", "sessionId": "s", "action": "x", "params": {"a": [1]}},
            bridge.Request("any — id", "s", "x", {"a": [1]}),
        ),
        ({"type": "CANCEL", "id": "s:1"}, bridge.Cancel("s:1")),
        ({"type": "EVENT", "sessionId": "s", "event": "x", "params": None}, bridge.Event("s", "x", {})),
        ({"type": "STATUS", "id": "status_1"}, bridge.Status("status_1")),
        ({"type": "PING"}, bridge.Ping()),
        ({"type": "PING", "id": "1"}, bridge.Ping("1")),
        ({"type": "DISCONNECT", "unknown": "field"}, bridge.Disconnect()),
    ],
)
def test_each_message_is_decoded(value: dict[str, Any], message: bridge.Message) -> None:
    assert read(value) == message


@pytest.mark.parametrize(
    ("register", "name"),
    [
        (bridge.Register("me", "2"), "me 2"),
        (bridge.Register("a\nb\x00c"), "abc"),
        (bridge.Register("\n"), None),
        (bridge.Register(version="2"), None),
        (bridge.Register("x" * 150), "x" * 100),
    ],
)
def test_a_clients_name_is_one_printable_line(register: bridge.Register, name: str | None) -> None:
    assert register.display_name == name


@pytest.mark.parametrize(
    "value",
    [
        [],
        1,
        {},
        {"type": None},
        {"type": ["REGISTER"]},
        {"type": "register"},
        {"type": "RESPONSE", "id": "1"},
        {"type": "REGISTER", "client": 1},
        {"type": "REGISTER", "client": ""},
        {"type": "REGISTER", "sessionId": "x" * 201},
        {"type": "REGISTER", "surface": "everything"},
        {"type": "REGISTER", "surface": ["all"]},
        {"type": "REQUEST", "sessionId": "s", "action": "x"},
        {"type": "REQUEST", "id": 1, "sessionId": "s", "action": "x"},
        {"type": "REQUEST", "id": True, "sessionId": "s", "action": "x"},
        {"type": "REQUEST", "id": "", "sessionId": "s", "action": "x"},
        {"type": "REQUEST", "id": "1", "action": "x"},
        {"type": "REQUEST", "id": "1", "sessionId": "s"},
        {"type": "REQUEST", "id": "1", "sessionId": "s", "action": "x", "params": []},
        {"type": "CANCEL"},
        {"type": "STATUS"},
        {"type": "EVENT", "sessionId": "s"},
    ],
)
def test_invalid_messages_are_refused_naming_the_field(value: Any) -> None:
    with pytest.raises(InvalidRequest):
        read(value)


@pytest.mark.parametrize(
    "line",
    [b"{", b'{"type":"PING","type":"PING"}', b"\xff", b'{"type":"PING","id":NaN}', b'{"type":"PING","id":"\\ud800"}'],
)
def test_lines_are_parsed_strictly(line: bytes) -> None:
    with pytest.raises(ParseError):
        bridge.read(line, DEFAULTS)


def test_the_id_of_an_invalid_line_is_found_if_it_has_one() -> None:
    assert bridge.id_in(b'{"type":"REQUEST","id":"ab12:7","params":{"a":1,"a":2}}', DEFAULTS) == "ab12:7"
    assert bridge.id_in(b'{"type":"NONSENSE","x":1,"id":"7"}', DEFAULTS) == "7"
    assert bridge.id_in(b'{"type":"NONSENSE","id":7}', DEFAULTS) is None
    assert bridge.id_in(b'{"id":"7","type":"REQUEST",', DEFAULTS) is None
    assert bridge.id_in(b"[]", DEFAULTS) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200) | _JSON.map(orjson.dumps))
def test_any_line_is_decoded_or_refused(line: bytes) -> None:
    refused: TabhubError | None = None
    try:
        bridge.read(line, DEFAULTS)
    except TabhubError as error:
        refused = error
    if refused is not None:
        assert json.loads(bridge.error(bridge.id_in(line, DEFAULTS), refused))["type"] == "ERROR"


@given(st.text(min_size=1, max_size=50), _JSON)
def test_a_result_is_spliced_in_unchanged_under_its_id(ident: str, result: Any) -> None:
    line = bridge.response(ident, encode_result(ident, orjson.dumps(result)))
    assert line.count(b"\n") == 1
    assert json.loads(line) == {"type": "RESPONSE", "id": ident, "success": True, "data": result}


@given(st.text(min_size=1, max_size=50), st.text(max_size=50))
def test_a_failure_keeps_its_code(ident: str, words: str) -> None:
    failure = SessionNotFound(words)
    reply = json.loads(bridge.response(ident, encode_failure(ident, failure)))
    assert (reply["id"], reply["success"], "data" in reply) == (ident, False, False)
    assert (reply["error"]["code"], reply["error"]["message"]) == (-32012, failure.text())


def test_events_name_their_request_and_questions_carry_an_id() -> None:
    progress = json.loads(bridge.event("s", "s:1", encode_notification("notifications/progress", {"progress": 1})))
    assert progress == {
        "type": "EVENT",
        "sessionId": "s",
        "event": "notifications/progress",
        "params": {"progress": 1},
        "id": "s:1",
    }
    asked = json.loads(bridge.event("s", None, encode_request("q1", "elicitation/create", {"message": "?"})))
    assert (asked["ask"], asked["event"], "id" in asked) == ("q1", "elicitation/create", False)
