"""Fragments between nodes: whatever is lost, no message arrives twice, out of order or incomplete."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tabhub.relay.bus.nodes import BusNodes
from tabhub.wire.nodes import FIRST, LAST, NEXT, WHOLE, Piece

_LARGEST = 60


def pair() -> tuple[BusNodes, BusNodes]:
    here, there = (BusNodes(name, patience=3, largest=_LARGEST) for name in ("a", "b"))
    here.mark_alive("b")
    there.mark_alive("a")
    return here, there


@given(
    st.lists(st.binary(min_size=1, max_size=_LARGEST), max_size=12),
    st.sets(st.integers(0, 40)),
    st.integers(1, 25),
)
def test_messages_arrive_complete_and_in_order_and_every_loss_is_detected(
    messages: list[bytes], dropped: set[int], chunk: int
) -> None:
    here, there = pair()
    numbered = [bytes([number]) + message[: _LARGEST - 1] for number, message in enumerate(messages)]
    first = here.split("b", b"first", chunk)
    pieces = [piece for message in numbered for piece in here.split("b", message, chunk)]
    pieces += [mark for _, mark in here.marks()]
    for piece in first:
        there.receive(piece)
    arrived, noticed = [], False
    for number, piece in enumerate(pieces):
        if number in dropped and number != len(pieces) - 1:
            continue
        arrival = there.receive(piece)
        noticed = noticed or arrival.lost
        if arrival.message is not None:
            arrived.append(arrival.message)
    assert arrived == [message for message in numbered if message in arrived]
    assert noticed == any(number < len(pieces) - 1 for number in dropped)
    if not noticed:
        assert arrived == numbered


def test_a_loss_is_reported_to_the_sender_unless_it_starts_over() -> None:
    here, there = pair()
    one, _, three = (here.split("b", text, 100)[0] for text in (b"1", b"2", b"3"))
    assert there.receive(one).message == b"1"
    late = there.receive(three)
    assert (late.message, late.lost, late.notify) == (b"3", True, True)
    (notice,) = there.give_up("a")
    reply = here.receive(notice)
    assert (reply.lost, reply.notify) == (True, False)
    here.clear()
    here.mark_alive("b")
    restarted = there.receive(here.split("b", b"new", 100)[0])
    assert (restarted.message, restarted.lost, restarted.notify) == (b"new", True, False)


def test_the_first_fragment_of_a_node_is_not_a_loss_and_an_incomplete_message_is_dropped() -> None:
    here, there = pair()
    here.split("b", b"before", 100)
    parts = here.split("b", b"x" * 30, 10)
    assert [piece.kind for piece in parts] == [FIRST, NEXT, LAST]
    for part in parts[1:]:
        assert there.receive(part).message is None
    after = there.receive(here.split("b", b"after", 100)[0])
    assert (after.message, after.lost) == (b"after", False)


def test_oversize_messages_are_neither_sent_nor_buffered() -> None:
    here, there = pair()
    assert here.split("b", b"x" * (_LARGEST + 1), 10) == []
    assert here.split("unknown", b"x", 10) == []
    kinds = (FIRST, *[NEXT] * 20, LAST, WHOLE)
    arrivals = [there.receive(Piece("a", number, kind, b"y" * 10)) for number, kind in enumerate(kinds)]
    assert [arrival.message for arrival in arrivals if arrival.message is not None] == [b"y" * 10]


def test_a_node_is_lost_after_silent_ticks_and_known_again_with_its_next_message() -> None:
    here, _ = pair()
    assert [here.tick() for _ in range(3)] == [[], [], []]
    assert not here.mark_alive("b")
    assert [here.tick() for _ in range(4)] == [[], [], [], ["b"]]
    assert here.split("b", b"x", 10) == []
    assert here.mark_alive("b")
    assert not here.mark_alive("b")
    assert here.remove("b")
    assert not here.remove("b")
    assert here.tick() == []


def test_a_mark_is_sent_only_to_nodes_that_were_sent_something() -> None:
    here, there = pair()
    here.mark_alive("c")
    here.split("b", b"x", 10)
    ((node, mark),) = here.marks()
    assert node == "b"
    assert here.marks() == []
    assert not there.receive(mark).lost
