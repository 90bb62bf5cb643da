"""Leases: one holder per tab, the error for other sessions, and their release."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tabhub.core.leases import Leases, duration
from tabhub.core.sessions import Session, Sessions
from tabhub.limits import Limits


def two() -> tuple[Leases, Session, Session]:
    sessions = Sessions(Limits())
    one = sessions.open("0123456789abcdef", "mcp", "Claude Code 2.1", 0)
    return Leases(sessions, Limits()), one, sessions.open("rest:cli", "rest", "cli", 0)


def test_the_conflict_names_the_holder_the_time_and_the_way_out() -> None:
    leases, one, other = two()
    leases.bind(one, 7, 100, acting=True)
    one.called = 160
    lease = leases.held_by_other(other, 7)
    assert lease is not None
    assert leases.held_by_other(one, 7) is None
    error = leases.conflict(lease, 400)
    assert "Tab 7 is held by another session: Claude Code 2.1 (01234567…), for 5 min" in error.message
    assert "last call was 4 min ago" in error.message
    assert "0123456789abcdef" not in error.text()
    for way in ("browser_request_tab", "free in 6 min", "tabhub sessions release 7", "browser_open_tab"):
        assert way in (error.hint or "")
    assert (error.status, error.outcome, error.details()["freeInSeconds"]) == (409, "not_sent", 360)


def test_only_the_holder_loses_a_closed_tab() -> None:
    leases, one, other = two()
    leases.bind(one, 1, 0, acting=True, opened=True)
    leases.bind(other, 2, 0, acting=True, opened=True)
    leases.tab_closed(1, 0)
    assert (one.tab, one.lost_tab, one.opened_tabs) == (None, 1, set())
    assert (other.tab, other.lost_tab, other.opened_tabs) == (2, None, {2})
    leases.bind(one, 3, 0, acting=True)
    assert (one.tab, one.lost_tab) == (3, None)


def test_a_session_whose_popup_closes_returns_to_the_opener_unless_another_session_holds_it() -> None:
    leases, one, other = two()
    for opener, held_by in ((1, one), (2, None), (3, other)):
        if held_by is not None:
            leases.bind(held_by, opener, 0, acting=True)
        leases.bind(one, 9, 0, acting=True)
        leases.tab_closed(9, 0, opener)
        assert (one.tab, one.lost_tab) == (None if held_by is other else opener, 9)
        lease = leases.get(opener)
        assert lease is not None
        assert lease.holder is (held_by or one)


def test_a_tab_only_read_is_released_with_the_next_binding() -> None:
    leases, one, _ = two()
    leases.bind(one, 1, 0, acting=False)
    leases.bind(one, 2, 0, acting=True)
    leases.bind(one, 3, 0, acting=False, opened=True)
    leases.bind(one, 4, 0, acting=False)
    assert [lease.tab for lease in leases.of(one)] == [2, 3, 4]
    leases.bind(one, 2, 0, acting=False)
    leases.bind(one, 3, 0, acting=False)
    assert [lease.tab for lease in leases.of(one)] == [2, 3]


def test_a_holder_without_calls_becomes_idle() -> None:
    leases, one, _ = two()
    leases.bind(one, 1, 0, acting=True)
    one.called = 50
    lease = leases.get(1)
    assert lease is not None
    assert not leases.is_idle(lease, 649)
    assert leases.is_idle(lease, 650)


def test_a_disconnected_holder_becomes_idle_sooner_unless_it_calls() -> None:
    leases, one, _ = two()
    leases.bind(one, 1, 0, acting=True)
    one.called, one.disconnected_at = 50, 60
    lease = leases.get(1)
    assert lease is not None
    error = leases.conflict(lease, 70)
    assert error.message.endswith("its last call was 20 s ago and its client has disconnected.")
    assert error.details()["freeInSeconds"] == 50
    assert not leases.is_idle(lease, 119)
    assert leases.is_idle(lease, 120)
    one.called = 100
    assert not leases.is_idle(lease, 699)
    assert "disconnected" not in leases.conflict(lease, 120).message
    one.called, one.disconnected_at = 50, 645  # it disconnected when it was nearly idle anyway
    assert leases.is_idle(lease, 650)


def test_a_disconnected_bridge_clients_tab_is_free_before_its_session_ends() -> None:
    sessions = Sessions(Limits())
    leases, one = Leases(sessions, Limits()), sessions.open("a" * 32, "bridge", "stdio 1", 0)
    leases.bind(one, 1, 0, acting=True)
    one.called, one.disconnected_at = 50, 60
    lease = leases.get(1)
    assert lease is not None
    error = leases.conflict(lease, 65, asked=True)
    assert "free in 10 s" in (error.hint or "")
    assert "browser_request_tab" not in (error.hint or "")
    assert (leases.is_idle(lease, 74), leases.is_idle(lease, 75)) == (False, True)


def test_a_session_is_notified_when_the_person_frees_its_bound_tab() -> None:
    leases, one, other = two()
    leases.bind(one, 1, 0, acting=True, opened=True)
    leases.bind(one, 2, 0, acting=True)
    assert leases.free(other, 2) is False
    assert (leases.free(one, 1), one.tab, one.lost_tab) == (True, 2, None)
    assert (leases.free(one, 2), one.tab, one.lost_tab) == (True, None, 2)
    assert "by the person" in one.lost_reason
    assert leases.end(one) == []


def test_a_session_that_lost_its_tab_knows_the_new_holder_and_does_not_close_it() -> None:
    leases, one, other = two()
    leases.bind(one, 1, 0, acting=True, opened=True)
    leases.bind(other, 1, 5, acting=True)
    assert (one.tab, one.lost_tab, one.lost_reason) == (None, 1, "was taken over by cli (rest:cli)")
    assert leases.end(one) == []
    assert leases.held_by_other(one, 1) is leases.get(1)


def test_ending_a_session_returns_the_tabs_it_opened_and_still_owns() -> None:
    leases, one, other = two()
    leases.bind(one, 1, 0, acting=True, opened=True)
    leases.bind(one, 2, 0, acting=True, opened=True)
    leases.bind(one, 3, 0, acting=True)
    leases.release(one, 2)
    leases.bind(other, 2, 0, acting=True)
    assert leases.end(one) == [1]
    assert [lease.tab for lease in leases] == [2]


def test_a_rematched_tab_stays_leased_but_does_not_count_as_opened() -> None:
    leases, one, other = two()
    leases.bind(one, 1, 3, acting=True, opened=True)
    leases.tab_rematched(1, 9)
    assert one.tab == 9
    assert one.opened_tabs == set()
    assert leases.get(1) is None
    lease = leases.held_by_other(other, 9)
    assert lease is not None
    assert lease.since == 3


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (6000, "1 h 40 min")])
def test_durations_are_short_texts(seconds: float, words: str) -> None:
    assert duration(seconds) == words


class LeaseMachine(RuleBasedStateMachine):
    """Sessions open, acquire, read, release and end in any order, while tabs close."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.sessions = Sessions(Limits())
        self.leases = Leases(self.sessions, Limits())
        self.ended: list[Session] = []

    tabs = st.integers(min_value=1, max_value=5)
    pick = st.integers(min_value=0, max_value=50)

    def a_session(self, pick: int) -> Session:
        there = self.sessions.all()
        return there[pick % len(there)]

    @rule()
    def session_opens(self) -> None:
        self.now += 1
        self.sessions.open(f"s{self.now:.0f}", "mcp", "client", self.now)

    @precondition(lambda self: len(self.sessions) > 0)
    @rule(pick=pick, tab=tabs, acting=st.booleans(), opened=st.booleans())
    def session_binds(self, pick: int, tab: int, acting: bool, opened: bool) -> None:
        session = self.a_session(pick)
        held = self.leases.held_by_other(session, tab)
        self.now += 1
        if held is None or self.leases.is_idle(held, self.now):
            self.leases.bind(session, tab, self.now, acting=acting, opened=opened)
            assert self.leases.held_by_other(session, tab) is None
            assert session.tab == tab

    @rule(seconds=st.sampled_from([1.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: len(self.sessions) > 0)
    @rule(pick=pick, tab=tabs)
    def session_releases(self, pick: int, tab: int) -> None:
        session = self.a_session(pick)
        lease = self.leases.get(tab)
        assert self.leases.release(session, tab) is (lease is not None and lease.holder is session)
        assert self.leases.get(tab) is (None if lease is None or lease.holder is session else lease)

    @precondition(lambda self: len(self.sessions) > 0)
    @rule(pick=pick)
    def session_ends(self, pick: int) -> None:
        session = self.a_session(pick)
        self.sessions.end(session.id)
        mine = set(session.opened_tabs)
        assert set(self.leases.end(session)) <= mine
        self.ended.append(session)

    @rule(tab=tabs)
    def tab_closes(self, tab: int) -> None:
        self.leases.tab_closed(tab, 0)
        assert self.leases.get(tab) is None

    @rule(old=tabs, new=tabs)
    def tab_is_rematched(self, old: int, new: int) -> None:
        if old != new:
            self.leases.tab_rematched(old, new)
            assert self.leases.get(old) is None

    @invariant()
    def every_bound_tab_has_exactly_one_lease(self) -> None:
        for session in self.sessions.all():
            if session.tab is not None:
                lease = self.leases.get(session.tab)
                assert lease is not None
                assert lease.holder is session
        bound = [session.tab for session in self.sessions.all() if session.tab is not None]
        assert len(bound) == len(set(bound))

    @invariant()
    def ended_sessions_hold_no_lease(self) -> None:
        assert not [lease for lease in self.leases if lease.holder in self.ended]

    @invariant()
    def every_opened_tab_belongs_to_one_session(self) -> None:
        own = [tab for session in self.sessions.all() for tab in session.opened_tabs]
        assert len(own) == len(set(own))


TestLeaseMachine = LeaseMachine.TestCase
TestLeaseMachine.settings = settings(max_examples=60, stateful_step_count=40)
