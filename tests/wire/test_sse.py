"""Server-sent events as bytes."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from tabhub.wire import sse


def read(stream: bytes) -> list[dict[str, str]]:
    """What a client makes of a stream: per event its fields; comments are dropped."""
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
