"""Messages from a client's pipe are accepted and rejected by the rules of the hub's parser."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.cli.stdio.messages import id_of, invalid, read
from tabhub.errors import InvalidRequest
from tabhub.wire import jsonrpc


@pytest.mark.parametrize(
    "line",
    [
        *(b"{", b"", b"nope", b"{}{}", b"[1,", b"[1 2]", b'{"a":1,}', b'{"a":NaN}', b'{"a" 1}'),
        *(b"{1:2}", b"\xff", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"[" * 99_999),
    ],
)
def test_invalid_json_raises(line: bytes) -> None:
    with pytest.raises((ValueError, RecursionError)):
        read(line)


@pytest.mark.parametrize("line", [b'{"a":1,"a":2}', b'[{"b":[{"a":1,"a":1}]}]'])
def test_duplicate_keys_are_detected_at_any_depth(line: bytes) -> None:
    assert read(line)[1] is True
    assert read(line.replace(b',"a":', b',"c":'))[1] is False


@pytest.mark.req("B2")
@pytest.mark.parametrize(
    ("line", "ident"),
    [
        (b"1", None),
        (b'{"id":1,"method":"x"}', 1),
        (b'{"jsonrpc":"2.0","id":true,"method":"x"}', None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"x"}', None),
        (b'{"jsonrpc":"2.0","id":{},"method":"x"}', None),
        (b'{"jsonrpc":"2.0","id":null,"method":"x"}', None),
        (b'{"jsonrpc":"2.0","id":1}', 1),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","result":{}}', 1),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', 1),
        (b'{"jsonrpc":"2.0","id":1,"method":""}', 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[]}', 1),
        (b'{"jsonrpc":"2.0"}', None),
    ],
)
def test_invalid_message_keeps_its_id_and_has_a_reason(line: bytes, ident: int | None) -> None:
    message, _ = read(line)
    assert (id_of(message), bool(invalid(message))) == (ident, True)


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


@given(_MESSAGES)
def test_rules_agree_with_the_hubs_parser(value: dict[str, Any]) -> None:
    try:
        jsonrpc.parse(value)
        valid = True
    except InvalidRequest:
        valid = False
    assert (invalid(value) is None) == valid
