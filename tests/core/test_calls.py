"""Calls in flight: lanes and their queues, deadlines, and which calls an event fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabhub.core.calls import Call, Calls
from tabhub.core.sessions import Session
from tabhub.core.tools import BROWSER, Source, Tool
from tabhub.errors import Busy, CallCancelled, CallTimeout
from tabhub.limits import Limits

SHOP, MAIL = Source("plugin", "shop"), Source("plugin", "mail")
BUY, SEND = Tool("shop_buy", SHOP, ""), Tool("mail_send", MAIL, "")
OWN = Tool("browser_x", BROWSER, "")


def opened(calls: Calls[Call], tool: Tool, now: float, session: str = "s") -> Call:
    call = Call(Session(session, "mcp", "test", 0, 0), tool)
    calls.open(call, now)
    return call


@pytest.mark.req("S002-dispatch-08")
def test_25_calls_of_a_source_run_and_the_next_waits_its_turn() -> None:
    calls = Calls[Call](Limits())
    running = [opened(calls, BUY, 0) for _ in range(25)]
    waiting = [opened(calls, BUY, 0) for _ in range(3)]
    assert not any(call.waiting for call in running)
    assert all(call.waiting for call in waiting)
    assert not opened(calls, SEND, 0).waiting  # another source is not affected
    assert calls.close(running[7], 5) == [waiting[0]]
    assert not waiting[0].waiting
    assert calls.close(running[8], 5) == [waiting[1]]
    assert calls.running() == {"plugin:shop": 26, "plugin:mail": 1}


def test_a_full_queue_raises_busy() -> None:
    calls = Calls[Call](Limits(concurrent_per_source=2, queue_per_source=3))
    taken = [opened(calls, BUY, 0) for _ in range(5)]
    with pytest.raises(Busy, match="plugin:shop already runs 2 calls and 3 more are waiting") as caught:
        opened(calls, BUY, 0)
    assert caught.value.outcome == "not_sent"
    assert caught.value.retryable
    assert len(calls) == 5
    calls.close(taken[4], 1)  # ending a queued call makes room as well
    assert opened(calls, BUY, 1).waiting


def test_built_in_tools_have_a_wider_lane() -> None:
    calls = Calls[Call](Limits())
    assert not any(opened(calls, OWN, 0).waiting for _ in range(256))
    assert opened(calls, OWN, 0).waiting


def test_a_tool_may_have_its_own_deadline() -> None:
    calls = Calls[Call](Limits())
    assert opened(calls, BUY, 100).deadline == 130
    assert opened(calls, Tool("shop_slow", SHOP, "", timeout=77), 100).deadline == 177


def test_a_call_is_due_once_and_its_outcome_is_unknown_only_if_it_was_sent() -> None:
    calls = Calls[Call](Limits())
    quiet, sent = opened(calls, BUY, 0), opened(calls, BUY, 0)
    sent.sent = True
    assert calls.due(29.99) == []
    assert calls.due(30) == [quiet, sent]
    assert calls.due(31) == []
    assert isinstance(quiet.failure, CallTimeout)
    assert (quiet.failure.outcome, sent.failure and sent.failure.outcome) == ("not_sent", "unknown")
    assert "within 30 s" in quiet.failure.message.replace(".0", "")
    assert CallTimeout.outcome == "unknown"  # the template of the error is unchanged


def test_a_timed_out_call_has_a_hint() -> None:
    calls = Calls[Call](Limits(concurrent_per_source=1))
    reads, acts, first, second = (opened(calls, tool, 0) for tool in (OWN, OWN, BUY, BUY))
    reads.tab = acts.tab = 7
    acts.sent = True
    calls.due(30)
    hints = [str(call.failure and call.failure.hint) for call in (reads, acts, first, second)]
    assert hints[0].startswith("Nothing was changed. A script of its own may keep the page of tab 7 busy")
    assert hints[1].startswith("It may still have had an effect")
    assert "browser_close_tab" in hints[1]
    assert hints[2:] == ["Nothing was sent.", "Nothing was sent. Call again when fewer calls are under way."]


def test_the_deadline_of_a_queued_call_restarts_when_it_may_run() -> None:
    calls = Calls[Call](Limits(concurrent_per_source=1))
    first, second = opened(calls, BUY, 0), opened(calls, BUY, 0)
    calls.close(first, 20)
    assert second.deadline == 50
    third = opened(calls, BUY, 20)
    assert calls.due(51) == [second, third]
    assert third.failure is not None
    assert "waited" in third.failure.message


def test_progress_extends_the_deadline_but_never_past_five_minutes() -> None:
    calls = Calls[Call](Limits())
    call = opened(calls, BUY, 0)
    for now in range(10, 300, 10):
        assert calls.due(now) == []
        assert calls.progress(call, now)
        assert call.deadline == min(now + 30, 300)
    assert calls.due(299.9) == []
    assert calls.due(300) == [call]
    calls.close(call, 300)
    assert not calls.progress(call, 301)


def test_only_the_first_failure_counts() -> None:
    calls = Calls[Call](Limits())
    call = opened(calls, BUY, 0)
    assert calls.fail(call, CallCancelled("taken back"))
    assert not calls.fail(call, CallTimeout("late"))
    assert isinstance(call.failure, CallCancelled)
    assert calls.due(1000) == []
    calls.close(call, 1)
    assert not calls.fail(call, CallTimeout("late"))


def test_a_second_answer_is_dropped_and_counted() -> None:
    calls = Calls[Call](Limits())
    call = opened(calls, BUY, 0)
    assert calls.close(call, 1) == ()
    assert calls.close(call, 2) is None
    assert calls.late == 1
    assert call not in list(calls)


def test_calls_are_found_by_session() -> None:
    calls = Calls[Call](Limits())
    mine, _ = opened(calls, BUY, 0, "me"), opened(calls, BUY, 0, "you")
    assert calls.of_session("me") == [mine]


@given(st.lists(st.tuples(st.sampled_from(["open", "close", "time"]), st.integers(0, 9)), max_size=60))
def test_a_lane_never_exceeds_its_limit_and_starts_calls_in_order(steps: list[tuple[str, int]]) -> None:
    calls = Calls[Call](Limits(concurrent_per_source=2, queue_per_source=3))
    there: list[Call] = []
    started: list[int] = []
    now = 0.0
    for what, which in steps:
        now += 1
        if what == "open":
            full = len(there) == 5
            try:
                call = opened(calls, BUY, now)
            except Busy:
                assert full
                continue
            assert not full
            there.append(call)
            if not call.waiting:
                started.append(call.id)
        elif what == "close" and there:
            begun = calls.close(there.pop(which % len(there)), now)
            assert begun is not None
            started += [call.id for call in begun]
        elif what == "time":
            now += which
        running = [c for c in there if not c.waiting]
        assert len(running) == min(2, len(there))
    assert started == sorted(started)
    for call in there:
        calls.close(call, now)
    assert len(calls) == 0
    assert calls.running() == {}
