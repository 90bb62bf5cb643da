"""Messages from a client's pipe: read as the hub would read them, and passed on byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.cli.stdio.messages import Answer, Invalid, Notification, Request, answer, error_body, read
from tabhub.client_errors import NotJson
from tabhub.errors import InvalidRequest
from tabhub.wire import jsonrpc


def test_ids_and_params_are_kept_byte_for_byte() -> None:
    found = read(b' {"jsonrpc":"2.0", "id" : 1 ,"method":"x\\n","params": {"a" :1e2, "b":"\\u00e9", "a":2} } ')
    assert isinstance(found, Request)
    assert (found.ident, found.key, found.method) == (b"1", 1, "x\n")
    assert found.params == b'{"a" :1e2, "b":"\\u00e9", "a":2}'  # a key written twice is the hub's to refuse
    found = read(b'{"jsonrpc":"2.0","id":"\\u0031","method":"m"}')
    assert isinstance(found, Request)
    assert (found.ident, found.key, found.params) == (b'"\\u0031"', "1", b"{}")


def test_notifications_and_responses() -> None:
    found = read(b'{"jsonrpc":"2.0","method":"notifications/x","params":null}')
    assert isinstance(found, Notification)
    assert (found.params, found.value) == (b"{}", {})
    found = read(b'{"jsonrpc":"2.0","id":"q","result":{"a": 1}}')
    assert isinstance(found, Answer)
    assert (found.key, found.body) == ("q", b'{"id":"q","result":{"a": 1}}')


@pytest.mark.parametrize(
    "line",
    [
        *(b"{", b"", b"nope", b"{}{}", b"[1,", b"[1 2]", b'{"a":1,}', b'{"a":NaN}', b'{"a":1,"a":2}', b'{"a" 1}'),
        *(b"{1:2}", b"\xff", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"[" * 99_999),
    ],
)
def test_invalid_json_raises(line: bytes) -> None:
    with pytest.raises(NotJson):
        read(line)


@pytest.mark.req("B2")
@pytest.mark.parametrize(
    ("line", "ident"),
    [
        (b"1", b"null"),
        (b'{"id":1,"method":"x"}', b"1"),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', b"null"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', b"null"),
        (b'{"jsonrpc":"2.0","id":{},"method":"x"}', b"null"),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', b"null"),
        (b'{"jsonrpc":"2.0","id":1}', b"1"),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}', b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', b"1"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', b"1"),
        (b'{"jsonrpc":"2.0"}', b"null"),
    ],
)
def test_invalid_message_keeps_its_id_and_has_a_reason(line: bytes, ident: bytes) -> None:
    found = read(line)
    assert isinstance(found, Invalid)
    assert (found.ident, bool(found.why)) == (ident, True)


def test_batch_is_a_list_of_messages() -> None:
    found = read(b'[ {"jsonrpc":"2.0","method":"a"} , 1,{"jsonrpc":"2.0","id":2,"method":"b"}]')
    assert isinstance(found, list)
    assert [type(message) for message in found] == [Notification, Invalid, Request]
    assert read(b" [ ] ") == []


_VALUES: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3)
    | st.just({})
)
_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": _VALUES,
        "method": _VALUES | st.just("x"),
        "params": _VALUES,
        "result": _VALUES,
        "error": st.just({"code": 1, "message": "m"}),
    },
)


@given(_MESSAGES, st.sampled_from([None, 1]))
def test_parser_agrees_with_the_hubs_parser(value: dict[str, Any], indent: int | None) -> None:
    found = read(json.dumps(value, indent=indent).encode())
    try:
        meant: object = type(jsonrpc.parse(value)).__name__
    except InvalidRequest:
        meant = "Invalid"
    assert {"Answer": "Response"}.get(type(found).__name__, type(found).__name__) == meant


def test_response_is_one_line_with_the_original_id() -> None:
    line = answer(b'"\\u0031"', error_body(-32000, "gone", outcome="unknown"))
    assert json.loads(line)["error"]["data"] == {"outcome": "unknown"}
    assert b'"id":"\\u0031"' in line
