"""The relay's messages: decoding, refusals, and ids that are mapped and restored."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import BadFrame, InvalidRequest
from tabhub.wire import nodes, relay
from tabhub.wire.relay import UNSET
from tests.wire.builders import record_parsed_texts

CONNECTION = "conn-70dfcdd7-ff5e-448e-b274-59c1f6a0d7c8"


def refused(text: str | bytes) -> BadFrame:
    with pytest.raises(BadFrame) as bad:
        relay.read(text.encode() if isinstance(text, str) else text)
    return bad.value


@pytest.mark.req("S003-ids-03")
@pytest.mark.parametrize(
    ("ident", "mapped"),
    [
        (4, f"{CONNECTION}:4"),
        (-4, f"{CONNECTION}:-4"),
        ("550e8400-e29b-41d4-a716-446655440000", f"{CONNECTION}:550e8400-e29b-41d4-a716-446655440000"),
        ("4", f'{CONNECTION}:"4"'),
        ('"4"', f'{CONNECTION}:"\\"4\\""'),
        ("", f"{CONNECTION}:"),
    ],
)
def test_an_id_is_mapped_under_its_connection(ident: int | str, mapped: str) -> None:
    assert relay.map_id(CONNECTION, ident) == mapped


@given(st.lists(st.one_of(st.integers(), st.text(), st.integers().map(str), st.integers().map(lambda n: f'"{n}"'))))
def test_mapped_ids_are_unique(idents: list[int | str]) -> None:
    exact = {(type(ident), ident) for ident in idents}
    assert len({relay.map_id(CONNECTION, ident) for _, ident in exact}) == len(exact)


@pytest.mark.req("S003-security-04", "S003-proxies-01")
@pytest.mark.parametrize("ident", ["proxy:1", "ext:1", "conn-x:1", "conn-", "x" * 300])
def test_reserved_and_overlong_ids_are_refused(ident: str) -> None:
    with pytest.raises(InvalidRequest):
        relay.check_id(ident)


@pytest.mark.parametrize("ident", [1, -1, "a", "proxy", "connection", "xconn-1"])
def test_other_ids_are_accepted(ident: int | str) -> None:
    relay.check_id(ident)


@pytest.mark.parametrize(
    ("text", "code", "ident"),
    [
        ("{", -32700, None),
        ("", -32700, None),
        ("[]", -32600, None),
        ("7", -32600, None),
        ('{"id":1,"method":"x"}', -32600, 1),
        ('{"jsonrpc":"1.0","id":1,"method":"x"}', -32600, 1),
        ('{"jsonrpc":"2.0","id":1}', -32600, 1),
        ('{"jsonrpc":"2.0"}', -32600, None),
        ('{"jsonrpc":"2.0","id":1,"method":""}', -32600, 1),
        ('{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
        ('{"jsonrpc":"2.0","id":true,"method":"x"}', -32600, None),
        ('{"jsonrpc":"2.0","id":1.5,"method":"x"}', -32600, None),
        ('{"jsonrpc":"2.0","id":1.0,"method":"x"}', -32600, None),
        ('{"jsonrpc":"2.0","id":null,"method":"x"}', -32600, None),
        ('{"jsonrpc":"2.0","id":{},"method":"x"}', -32600, None),
        ('{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}', -32600, 1),
        ('{"jsonrpc":"2.0","id":1,"method":"x","result":1}', -32600, 1),
        ('{"jsonrpc":"2.0","id":1,"error":"no"}', -32600, 1),
        ('{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"no"}}', -32600, 1),
        ('{"jsonrpc":"2.0","result":1}', -32600, None),
        ('{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}', -32602, 1),
        ('{"jsonrpc":"2.0","id":1,"method":"x","params":"y"}', -32602, 1),
        ('{"jsonrpc":"2.0","id":1,"method":"x","connectionId":5}', -32600, 1),
        ('{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', -32700, None),
    ],
)
def test_invalid_messages_are_refused_with_a_reason(text: str, code: int, ident: int | None) -> None:
    bad = refused(text)
    assert (bad.error.code, bad.ident) == (code, ident)


BEYOND_BOUNDS = [
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"9" * 5000 + b"}}",
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"[" * 70 + b"]" * 70 + b"}}",
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{' + b",".join(b'"k%d":0' % n for n in range(100_000)) + b"}}",
]
INVALID = [
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\xff"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud800"}}',
    b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"x"}',
    '{"jsonrpc":"2.0","id":1,"method":"x"}'.encode("utf-16"),
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}',
    b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}',
]


class UnusedDecoder:
    """Stands in for the decoder of frames where it must not be reached."""

    def decode(self, data: bytes) -> None:
        raise AssertionError(f"a frame was decoded from a refused text of {len(data)} bytes")


@pytest.mark.parametrize("text", BEYOND_BOUNDS, ids=["5,000 digits", "70 deep", "100,000 keys"])
def test_texts_beyond_the_bounds_are_refused_before_anything_is_parsed(
    text: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = record_parsed_texts(monkeypatch)
    monkeypatch.setattr(relay, "_FRAME", UnusedDecoder())
    assert refused(text).error.code == -32700
    assert parsed == [], "a value was built although the text exceeds a bound"


@pytest.mark.parametrize("text", INVALID, ids=["byte", "surrogate", "BOM", "UTF-16", "NaN", "duplicate key"])
def test_invalid_texts_are_refused_before_a_frame_is_decoded(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_FRAME", UnusedDecoder())
    assert refused(text).error.code == -32700


def test_only_the_envelope_of_large_replies_is_decoded() -> None:
    image = b'{"data":"' + b"A" * 200_000 + b'","n":1.50}'
    frame = relay.read(b'{"jsonrpc":"2.0","id":"x","result":' + image + b"}")
    assert relay.answered(7, frame) == b'{"jsonrpc":"2.0","id":7,"result":' + image + b"}"
    for spoilt in (b'"\xff"', b'"\\ud800"', b"NaN", b"[" * 70 + b"]" * 70):
        refused(b'{"jsonrpc":"2.0","id":"x","result":["' + b"A" * 200_000 + b'",' + spoilt + b"]}")


def test_a_request_is_forwarded_with_unchanged_params() -> None:
    frame = relay.read(b'{ "jsonrpc": "2.0", "id": 4, "method": "m", "params": {"a": 1.50, "__proto__": {"x": 1}} }')
    sent = relay.forwarded(relay.map_id(CONNECTION, 4), frame)
    assert sent == (
        b'{"jsonrpc":"2.0","id":"%b:4","method":"m","params":{"a": 1.50, "__proto__": {"x": 1}}}' % CONNECTION.encode()
    )
    bare = relay.read(b'{"jsonrpc":"2.0","id":4,"method":"m","params":null}')
    assert bare.params is UNSET
    assert json.loads(relay.forwarded("x", bare)) == {"jsonrpc": "2.0", "id": "x", "method": "m"}


def test_messages_between_nodes_round_trip() -> None:
    for message in (
        nodes.Open("c", "u", "e"),
        nodes.Opened("c", "n"),
        nodes.Refused("c"),
        nodes.ToBrowser("c", b"{}"),
        nodes.ToAgent("c", b"\x00"),
        nodes.Ended("c", "r"),
        nodes.Reset(),
    ):
        assert nodes.decode(nodes.NODE_MESSAGE, nodes.encode(message)) == message
    with pytest.raises(Exception, match="Invalid message between relay nodes"):
        nodes.decode(nodes.NODE_MESSAGE, b"{}")
