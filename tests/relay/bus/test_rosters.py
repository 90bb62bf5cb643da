"""Who is where: what a node knows of a user it has joined, and when it knows all."""

from __future__ import annotations

from tabhub.relay.bus.interface import Presence
from tabhub.relay.bus.rosters import Roster, RosterTable, subject_of
from tabhub.wire.bus import Here


def asked(due: float = 10.0) -> Roster:
    roster = RosterTable().open("ann")
    roster.asked(due)
    return roster


def test_a_user_is_not_named_where_others_can_read() -> None:
    for user in ("ann", "ann@example.com", "*", "a.b.>", "\ud800"):
        subject = subject_of(user)
        assert user not in subject
        assert subject.isalnum()
        assert len(subject) == 32
    assert subject_of("ann") != subject_of("Ann")


def test_it_is_complete_when_each_node_that_was_named_has_spoken() -> None:
    roster = asked()
    assert not roster.settle(0.0)
    roster.answer(Here("b", 1, (("e1", "Chrome"),), ("c", "d", "me")), "me")
    assert not roster.settle(0.1)
    roster.answer(Here("c", 5, (), ("b", "d")), "me")
    assert not roster.settle(0.2)
    roster.gone("d")
    assert roster.settle(0.3)
    assert roster.complete
    assert not roster.settle(0.4)
    assert roster.browsers() == (Presence("ann", "e1", "Chrome", "b"),)


def test_it_is_complete_at_once_when_nobody_is_there_and_in_the_end_in_any_case() -> None:
    alone = asked()
    alone.nobody()
    assert alone.settle(0.0)
    waiting = asked(due=1.0)
    waiting.answer(Here("b", 1, (), ("c",)), "me")
    assert not waiting.settle(0.9)
    assert waiting.settle(1.0)
    assert waiting.awaited == set()


def test_old_news_is_no_news() -> None:
    roster = asked()
    assert roster.said("b", 3, (("e1", "Chrome"),))
    assert not roster.said("b", 2, ())
    assert not roster.said("b", 4, (("e1", "Chrome"),))
    assert roster.said("b", 5, (), here=False)
    assert not roster.said("b", 4, (("e1", "Chrome"),))
    assert roster.browsers() == ()
    assert not roster.gone("b")


def test_after_a_break_the_nodes_that_were_there_are_awaited() -> None:
    roster = asked()
    roster.said("b", 1, (("e1", "Chrome"),))
    roster.said("c", 1, (), here=False)
    roster.nobody()
    assert roster.settle(0.0)
    roster.forget()
    roster.forget()
    assert roster.browsers() == ()
    assert roster.stale
    roster.asked(20.0)
    roster.nobody()
    assert not roster.settle(10.0)
    roster.said("b", 9, (("e1", "Chrome"),))
    assert roster.settle(10.1)


def test_rosters_are_found_by_user_and_by_subject() -> None:
    rosters = RosterTable()
    roster = rosters.open("ann")
    assert rosters.of("ann") is rosters.at(subject_of("ann")) is roster
    assert list(rosters) == [roster]
    rosters.drop(roster)
    assert rosters.of("ann") is rosters.at(subject_of("ann")) is None
