"""The NATS protocol: events do not depend on how bytes are split, and everything is bounded."""

from __future__ import annotations

from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import ParseError
from tabhub.wire import nats
from tabhub.wire.nats import Event, Info, Message, Reader, ServerError

_STREAM = (
    b'INFO {"max_payload":1048576}\r\n'
    b"PING\r\nPONG\r\n+OK\r\n"
    b"MSG tabhub.all 2 5\r\nMSG\r\n\r\n"
    b"MSG tabhub.user.x 3 tabhub.reply.a.x 0\r\n\r\n"
    b"HMSG tabhub.reply.a.x 4 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
    b"HMSG s 5 r 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
    b"-ERR 'Authorization Violation'\r\n"
)
_EVENTS: list[Event] = [
    Info({"max_payload": 1048576}),
    nats.PING,
    nats.PONG,
    Message(2, "tabhub.all", "", b"MSG\r\n"),
    Message(3, "tabhub.user.x", "tabhub.reply.a.x", b""),
    Message(4, "tabhub.reply.a.x", "", b"", no_responders=True),
    Message(5, "s", "r", b"hi"),
    ServerError("Authorization Violation"),
]


@given(st.lists(st.integers(0, len(_STREAM)), max_size=8))
def test_events_do_not_depend_on_how_the_bytes_are_split(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(_STREAM)]
    reader = Reader()
    found = [e for start, end in pairwise(places) for e in reader.feed(_STREAM[start:end])]
    assert found == _EVENTS


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"INFO nonsense\r\n",
        b"INFO []\r\n",
        b"MSG a 1 -5\r\n",
        b"MSG a 1 999999999\r\n",
        b"MSG a 1 9999999999999999999\r\n",
        b"MSG 5\r\nhello\r\n",
        b"MSG a b c d 1\r\nx\r\n",
        b"x" * 70_000,
    ],
)
def test_invalid_lines_are_refused(data: bytes) -> None:
    with pytest.raises(ParseError):
        list(Reader().feed(data))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_parsed_or_refused(data: bytes) -> None:
    try:
        list(Reader().feed(data))
    except (ParseError, UnicodeDecodeError):
        return


def test_commands_are_encoded_as_the_protocol_requires() -> None:
    assert nats.publish("a.b", b"hi\r\n") == b"PUB a.b 4\r\nhi\r\n\r\n"
    assert nats.publish("a.b", b"", "r") == b"PUB a.b r 0\r\n\r\n"
    assert nats.subscribe("a.*", 7) + nats.unsubscribe(7) == b"SUB a.* 7\r\nUNSUB 7\r\n"
    word, _, rest = nats.connect("n", None, None, "secret", tls=True).partition(b" ")
    options = orjson.loads(rest)
    assert word == b"CONNECT"
    assert (options["auth_token"], options["tls_required"], options["echo"]) == ("secret", True, False)
    assert "user" not in options
