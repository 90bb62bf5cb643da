"""Messages between relay nodes: any bytes are a message of the expected form or are refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import ParseError
from tabhub.relay.bus.nodes import BusNodes
from tabhub.wire import nodes

FORMS: list[Any] = [nodes.PIECE, nodes.TO_ALL, nodes.TO_USER, nodes.REPLY, nodes.NODE_MESSAGE]
TAGS = ["beat", "bye", "revoked", "asking", "here", "has", "left", "took", "open", "down", "up", "ended", "reset", "no"]
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=9), st.binary(max_size=9)
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=12)
tagged = st.tuples(st.sampled_from(TAGS), st.lists(values, max_size=5)).map(lambda each: [each[0], *each[1]])
keyed = st.tuples(
    st.sampled_from(TAGS),
    st.dictionaries(st.sampled_from(["connection", "user", "extension_id", "frame", "reason", "name"]), values),
).map(lambda each: {"type": each[0], **each[1]})
encoded = st.one_of(st.binary(), st.one_of(values, tagged, keyed).map(msgspec.msgpack.encode))


@given(encoded, st.sampled_from(FORMS))
def test_any_bytes_are_a_message_or_refused(data: bytes, form: Any) -> None:
    try:
        message = nodes.decode(form, data)
    except ParseError:
        return
    assert nodes.decode(form, nodes.encode(message)) == message


@pytest.mark.parametrize("form", FORMS)
def test_unbounded_nesting_is_refused(form: Any) -> None:
    for data in (b"\x91" * 100_000, b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x81" * 100_000):
        with pytest.raises(ParseError):
            nodes.decode(form, data)


numbers = st.one_of(st.integers(0, 6), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(st.builds(nodes.Piece, st.just("other"), numbers, numbers, st.binary(max_size=40)), max_size=30))
def test_pieces_of_any_number_and_kind_give_complete_messages_and_buffer_little(pieces: list[nodes.Piece]) -> None:
    bus_nodes = BusNodes("own", patience=3, largest=100)
    for piece in pieces:
        bus_nodes.mark_alive(piece.node)
        arrival = bus_nodes.receive(piece)
        assert arrival.message is None or len(arrival.message) <= 140
        assert sum(map(len, bus_nodes._peers["other"].parts)) <= 140


def test_a_replayed_message_counts_as_a_loss() -> None:
    """Replaying the messages of a node ends the connections shared with it; nothing is executed twice."""
    sender, receiver = BusNodes("a", patience=3, largest=100), BusNodes("b", patience=3, largest=100)
    sender.mark_alive("b")
    receiver.mark_alive("a")
    first, second = (sender.split("b", text, 50)[0] for text in (b"one", b"two"))
    assert [receiver.receive(piece).lost for piece in (first, second, first)] == [False, False, True]
