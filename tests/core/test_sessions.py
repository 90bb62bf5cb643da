"""Sessions: their identity, their tab, and when they expire."""

from __future__ import annotations

import pytest

from tabhub.core.sessions import Session, Sessions
from tabhub.errors import Busy, SessionNotFound
from tabhub.limits import Limits


def test_a_session_is_found_until_it_ends() -> None:
    sessions = Sessions(Limits())
    opened = sessions.open("a", "mcp", "client 1", 10.0)
    assert sessions.get("a") is sessions.require("a", "mcp") is opened
    assert (opened.opened, opened.seen, opened.client) == (10.0, 10.0, "client 1")
    assert sessions.end("a") is opened
    assert sessions.end("a") is None
    assert sessions.get("a") is None
    with pytest.raises(SessionNotFound):
        sessions.require("a", "mcp")


def test_the_number_of_sessions_is_limited_and_an_ended_one_makes_room() -> None:
    sessions = Sessions(Limits(sessions=2))
    sessions.open("a", "mcp", "", 0)
    sessions.open("b", "mcp", "", 0)
    with pytest.raises(Busy, match="2 sessions are open") as caught:
        sessions.open("c", "mcp", "", 0)
    assert "limits.sessions" in caught.value.text()
    sessions.end("a")
    sessions.open("c", "mcp", "", 0)
    assert [s.id for s in sessions.all()] == ["b", "c"]


def test_only_idle_sessions_expire() -> None:
    sessions = Sessions(Limits(session_idle=100))
    idle, fresh, busy = (sessions.open(name, "mcp", "", 0) for name in ("idle", "fresh", "busy"))
    fresh.seen = 50
    busy.busy = 1
    assert sessions.expired(99.9) == []
    assert sessions.expired(100) == [idle]
    assert sessions.expired(150) == [idle, fresh]
    busy.busy = 0
    assert sessions.expired(150) == [idle, fresh, busy]


def test_a_session_of_one_request_can_be_adopted_under_a_handle() -> None:
    sessions = Sessions(Limits())
    passing = Session("", "handle", "client", 0, 0)
    assert not sessions.knows(passing)
    sessions.adopt(passing, "s_1")
    assert sessions.knows(passing)
    assert sessions.require("s_1", "handle") is passing
    assert len(sessions) == 1


def test_results_belong_to_the_session_or_to_the_holder_of_the_handle() -> None:
    assert Session("a", "mcp", "", 0, 0).owner == "a"
    assert Session("a", "handle", "", 0, 0).owner == Session("b", "handle", "", 0, 0).owner


def test_the_id_of_another_kind_of_session_is_not_found() -> None:
    sessions = Sessions(Limits())
    sessions.open("a", "mcp", "", 0)
    with pytest.raises(SessionNotFound):
        sessions.require("a", "handle")
