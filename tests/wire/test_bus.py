"""What comes over a relay's bus: a message of its form, or a refusal; whoever sent it, and whatever it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.errors import ParseError
from tabhub.relay.bus.nodes import BusNodes
from tabhub.wire import bus, nodes

FORMS: list[Any] = [bus.PIECE, bus.TO_ALL, bus.TO_USER, bus.HERE]
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
written = st.one_of(st.binary(), values.map(msgspec.msgpack.encode), tagged.map(msgspec.msgpack.encode))


@given(written, st.sampled_from(FORMS))
def test_anything_is_a_message_of_the_bus_or_refused(data: bytes, form: Any) -> None:
    try:
        message = bus.decode(form, data)
    except ParseError:
        return
    assert bus.decode(form, bus.encode(message)) == message


@given(st.one_of(written, keyed.map(msgspec.msgpack.encode)))
def test_anything_is_a_message_of_a_node_or_refused(data: bytes) -> None:
    try:
        message = nodes.decode(data)
    except ParseError:
        return
    assert nodes.decode(nodes.encode(message)) == message


@pytest.mark.parametrize("form", FORMS)
def test_nesting_without_end_is_refused(form: Any) -> None:
    for data in (b"\x91" * 100_000, b"\xdd\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x81" * 100_000):
        with pytest.raises(ParseError):
            bus.decode(form, data)
        with pytest.raises(ParseError):
            nodes.decode(data)


numbers = st.one_of(st.integers(0, 6), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(st.builds(bus.Piece, st.just("other"), numbers, numbers, st.binary(max_size=40)), max_size=30))
def test_pieces_of_any_number_and_kind_give_whole_messages_or_none_and_keep_little(pieces: list[bus.Piece]) -> None:
    bus_nodes = BusNodes("own", patience=3, largest=100)
    for piece in pieces:
        bus_nodes.mark_alive(piece.node)
        arrival = bus_nodes.receive(piece)
        assert arrival.message is None or len(arrival.message) <= 140
        assert sum(map(len, bus_nodes._peers["other"].parts)) <= 140


def test_a_message_once_more_is_a_loss_to_who_gets_it() -> None:
    """Whoever copies what a node said and says it again ends what was shared with that node: it is not done twice."""
    sender, receiver = BusNodes("a", patience=3, largest=100), BusNodes("b", patience=3, largest=100)
    sender.mark_alive("b")
    receiver.mark_alive("a")
    first, second = (sender.split("b", text, 50)[0] for text in (b"one", b"two"))
    assert [receiver.receive(piece).lost for piece in (first, second, first)] == [False, False, True]
