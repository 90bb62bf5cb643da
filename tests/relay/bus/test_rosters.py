"""The roster of a user: the browsers on other nodes, and when it is complete."""

from __future__ import annotations

from tabhub.relay.bus.interface import Presence
from tabhub.relay.bus.rosters import Roster, subject_of
from tabhub.wire.nodes import Browsers, BrowsersChanged, QueryReply


def queried(deadline: float = 10.0) -> Roster:
    roster = Roster("ann")
    roster.begin_query(deadline)
    return roster


def test_subjects_do_not_reveal_user_names() -> None:
    for user in ("ann", "ann@example.com", "*", "a.b.>", "\ud800"):
        subject = subject_of(user)
        assert user not in subject
        assert subject.isalnum()
        assert len(subject) == 32
    assert subject_of("ann") != subject_of("Ann")


def test_it_is_complete_when_every_named_node_has_replied() -> None:
    roster = queried()
    assert not roster.check_complete(0.0)
    roster.receive_reply(QueryReply("b", 1, (("e1", "Chrome", 5),), ("c", "d", "me")), "me")
    assert not roster.check_complete(0.1)
    roster.receive_reply(QueryReply("c", 5, (), ("b", "d")), "me")
    assert not roster.check_complete(0.2)
    roster.remove_node("d")
    assert roster.check_complete(0.3)
    assert roster.complete
    assert not roster.check_complete(0.4)
    assert roster.browsers() == (Presence("ann", "e1", "Chrome", "b", 5),)


def test_it_is_complete_at_once_without_other_nodes_and_otherwise_at_its_deadline() -> None:
    alone = queried()
    alone.no_responders()
    assert alone.check_complete(0.0)
    waiting = queried(deadline=1.0)
    waiting.receive_reply(QueryReply("b", 1, (), ("c",)), "me")
    assert not waiting.check_complete(0.9)
    assert waiting.check_complete(1.0)
    assert waiting.missing == set()


def test_older_versions_are_ignored() -> None:
    roster = queried()
    assert roster.update("b", 3, (("e1", "Chrome", 5),))
    assert not roster.update("b", 2, ())
    assert not roster.update("b", 4, (("e1", "Chrome", 5),))
    assert roster.update("b", 5, (), here=False)
    assert not roster.update("b", 4, (("e1", "Chrome", 5),))
    assert roster.browsers() == ()
    assert not roster.remove_node("b")


def test_after_an_outage_it_waits_for_the_nodes_known_before() -> None:
    roster = queried()
    roster.update("b", 1, (("e1", "Chrome", 5),))
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
    roster.update("b", 9, (("e1", "Chrome", 5),))
    assert roster.check_complete(10.1)


def changed(since: int, version: int, joined: Browsers = (), left: tuple[str, ...] = ()) -> BrowsersChanged:
    return BrowsersChanged("b", since, version, joined, left)


def names(roster: Roster) -> list[tuple[str, str, int]]:
    return [(found.extension_id, found.name, found.admitted) for found in roster.browsers()]


def test_changes_are_applied_to_the_list_of_their_node() -> None:
    roster = queried()
    roster.update("b", 1, (("e1", "Chrome", 5), ("e2", "Edge", 6)))
    assert roster.change(changed(1, 2, (("e3", "Brave", 7), ("e1", "Chrome 2", 8)), ("e2",)))
    assert names(roster) == [("e1", "Chrome 2", 8), ("e3", "Brave", 7)]
    assert roster.change(changed(1, 2, (), ("e1",))) is False  # the same again
    assert roster.change(changed(2, 5, (), ("unknown",))) is False
    assert roster.change(changed(5, 6, (), ("e1", "e3"))) is True
    assert names(roster) == []


def test_a_missed_change_is_noticed_and_the_list_is_requested_once() -> None:
    roster = queried()
    assert roster.change(changed(3, 4, (("e1", "Chrome", 5),))) is None
    assert roster.must_ask("b")
    assert not roster.must_ask("b")
    roster.no_responders()
    assert not roster.check_complete(0.0)  # its list is still missing
    assert roster.update("b", 4, (("e1", "Chrome", 5),))
    assert roster.check_complete(0.0)
    assert roster.change(changed(5, 6, (("e2", "Edge", 5),))) is None
    assert roster.must_ask("b")
    assert names(roster) == [("e1", "Chrome", 5)]
    roster.update("b", 7, (), here=False)
    assert roster.change(changed(7, 8, (("e1", "Chrome", 5),))) is None
