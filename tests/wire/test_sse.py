"""Server-sent events as bytes, and as a client reads them: however the bytes are split."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import BadInput
from tabhub.wire import sse
from tabhub.wire.sse import Event, EventReader

STREAM = (
    b"\xef\xbb\xbf: a comment\n\nid: 1\nretry: 250\ndata: \n\nevent: message\ndata: first\ndata:second\n\n"
    b"event: other\r\ndata: third\r\n\r\nid: 2\rdata: fourth\r\rdata: never ended"
)
EVENTS = [Event(b""), Event(b"first\nsecond"), Event(b"third", "other"), Event(b"fourth")]


def read(stream: bytes) -> list[dict[str, str]]:
    """The events a client reads from a stream, as fields; comments are dropped."""
    events = []
    for block in stream.decode().split("\n\n")[:-1]:
        fields: dict[str, str] = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name:
                fields[name] = value.removeprefix(" ")
        if fields:
            events.append(fields)
    return events


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.text("\r\n\u2028\u0085 a", max_size=9)))
def test_an_event_has_one_data_line_for_any_message(value: Any) -> None:
    data = orjson.dumps(value)
    assert read(sse.event(data, "s.1")) == [{"id": "s.1", "event": "message", "data": data.decode()}]
    assert read(sse.event(data)) == [{"event": "message", "data": data.decode()}]


def test_the_priming_event_has_an_id_a_delay_and_no_data() -> None:
    assert read(sse.priming("s.0", 1000)) == [{"id": "s.0", "retry": "1000", "data": ""}]


def test_a_keep_alive_is_not_an_event() -> None:
    assert read(sse.KEEPALIVE + sse.event(b"{}") + sse.KEEPALIVE) == [{"event": "message", "data": "{}"}]


def test_an_event_consists_of_its_data_lines_and_its_kind() -> None:
    reader = EventReader(1000)
    assert reader.feed(STREAM) == EVENTS
    assert reader.last_id == "2"
    assert reader.retry == 250


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_do_not_depend_on_how_the_bytes_are_split(cuts: list[int]) -> None:
    reader = EventReader(1000)
    found = []
    places = [0, *sorted(cuts), len(STREAM)]
    for begin, end in itertools.pairwise(places):
        found += reader.feed(STREAM[begin:end])
    assert found == EVENTS
    assert reader.last_id == "2"


@given(st.binary(max_size=300), st.integers(1, 7))
def test_any_bytes_are_parsed_or_refused(data: bytes, step: int) -> None:
    reader = EventReader(200)
    try:
        for place in range(0, len(data), step):
            reader.feed(data[place : place + step])
    except BadInput as error:
        assert "larger than 200 bytes" in error.message  # noqa: PT017 - either is right


def test_an_event_is_bounded_and_a_stream_is_not() -> None:
    reader = EventReader(100)
    for _ in range(100):
        assert reader.feed(b": still here, and nothing to say for a long while\n\n") == []
        assert reader.feed(b"data: " + b"x" * 80 + b"\n\n") == [Event(b"x" * 80)]
    with pytest.raises(BadInput, match="larger than 100 bytes"):
        reader.feed(b"data: " + b"x" * 200)


def test_incomplete_lines_are_bounded() -> None:
    reader = EventReader(100)
    for _ in range(9):
        reader.feed(b"data: aaaa\n")
    with pytest.raises(BadInput):
        reader.feed(b"data: aaaa\n")


@pytest.mark.parametrize("line", [b"retry: soon\n", b"retry: -1\n", b"retry: 99999999999\n", b"id: a\0b\n"])
def test_invalid_fields_are_ignored(line: bytes) -> None:
    reader = EventReader(100)
    assert reader.feed(line + b"\n") == []
    assert reader.retry is None
    assert reader.last_id is None


def test_events_of_the_hub_round_trip() -> None:
    reader = EventReader(1000)
    assert reader.feed(sse.priming("a.0", 1000) + sse.event(b'{"a":1}', "a.1") + sse.KEEPALIVE) == [
        Event(b""),
        Event(b'{"a":1}'),
    ]
    assert (reader.last_id, reader.retry) == ("a.1", 1000)
