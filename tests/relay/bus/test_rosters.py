"""Who is where: what a node knows of a user it has joined, and when it knows all."""

from __future__ import annotations

from tabhub.relay.bus.interface import Presence
from tabhub.relay.bus.rosters import Roster, RosterTable, subject_of
from tabhub.wire.bus import Here


def asked(due: float = 10.0) -> Roster:
    roster = RosterTable().open("ann")
    roster.begin_query(due)
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
    assert not roster.check_complete(0.0)
    roster.receive_answer(Here("b", 1, (("e1", "Chrome"),), ("c", "d", "me")), "me")
    assert not roster.check_complete(0.1)
    roster.receive_answer(Here("c", 5, (), ("b", "d")), "me")
    assert not roster.check_complete(0.2)
    roster.remove_node("d")
    assert roster.check_complete(0.3)
    assert roster.complete
    assert not roster.check_complete(0.4)
    assert roster.browsers() == (Presence("ann", "e1", "Chrome", "b"),)


def test_it_is_complete_at_once_when_nobody_is_there_and_in_the_end_in_any_case() -> None:
    alone = asked()
    alone.no_responders()
    assert alone.check_complete(0.0)
    waiting = asked(due=1.0)
    waiting.receive_answer(Here("b", 1, (), ("c",)), "me")
    assert not waiting.check_complete(0.9)
    assert waiting.check_complete(1.0)
    assert waiting.missing == set()


def test_old_news_is_no_news() -> None:
    roster = asked()
    assert roster.update("b", 3, (("e1", "Chrome"),))
    assert not roster.update("b", 2, ())
    assert not roster.update("b", 4, (("e1", "Chrome"),))
    assert roster.update("b", 5, (), here=False)
    assert not roster.update("b", 4, (("e1", "Chrome"),))
    assert roster.browsers() == ()
    assert not roster.remove_node("b")


def test_after_a_break_the_nodes_that_were_there_are_awaited() -> None:
    roster = asked()
    roster.update("b", 1, (("e1", "Chrome"),))
    roster.update("c", 1, (), here=False)
    roster.no_responders()
    assert roster.check_complete(0.0)
    roster.invalidate()
    roster.invalidate()
    assert roster.browsers() == ()
    assert roster.stale
    roster.begin_query(20.0)
    roster.no_responders()
    assert not roster.check_complete(10.0)
    roster.update("b", 9, (("e1", "Chrome"),))
    assert roster.check_complete(10.1)


def test_rosters_are_found_by_user_and_by_subject() -> None:
    rosters = RosterTable()
    roster = rosters.open("ann")
    assert rosters.by_user("ann") is rosters.by_subject(subject_of("ann")) is roster
    assert list(rosters) == [roster]
    rosters.drop(roster)
    assert rosters.by_user("ann") is rosters.by_subject(subject_of("ann")) is None
