"""The engine: one call from its arguments to its result, with real links and in virtual time."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tabhub.calls.approvals.permission import Permission
from tabhub.calls.protocols import Caller
from tabhub.core.registry import Entry
from tabhub.core.tabs import Tab
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.errors import (
    Busy,
    CallCancelled,
    CallTimeout,
    InvalidArguments,
    LinkLost,
    PermissionDenied,
    RateLimited,
    TabhubError,
    TabNotFound,
    UnknownTool,
)
from tabhub.limits import Limits
from tabhub.links.extension import REPLACED
from tabhub.trust.approvals import ALLOWED, Denied, Outcome
from tests.harness.world import Connection, Started, World

SHOP, MAIL = Source("plugin", "shop"), Source("plugin", "mail")
HOUR = 3600.0


class DenySome(Permission):
    """Denies calls of some tools."""

    def __init__(self, *tools: str) -> None:
        super().__init__()
        self._tools = tools

    def check(
        self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], tab: Tab | None, frame: str = ""
    ) -> Outcome:
        return Denied(PermissionDenied(f"{tool.name} is off.")) if tool.name in self._tools else ALLOWED


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def world(permission: Permission | None = None, **limits: Any) -> World:
        made.append(World(tmp_path, Limits(**limits), permission))
        return made[-1]

    yield world
    for each in made:
        for call in each.engine.calls:
            each.loop.act(lambda call=call, each=each: each.engine.cancel(call, "the test is over"))  # type: ignore[misc]
        each.loop.run_for(0.1)
        each.close()


def value(call: Started) -> Any:
    return json.loads(call.task.result().payload)["structuredContent"]


def test_a_call_is_sent_once_and_its_reply_is_its_answer(make: Callable[..., World]) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    call = world.call(world.session(), buy, 1)
    assert [asked.token for asked in browser.asked] == [call.token]
    assert not call.task.done()
    browser.reply(browser.asked[0])
    assert value(call) == {"token": call.token}


@pytest.mark.req("F5", "S004-goals-06", "S004-flow-07")
def test_replies_in_any_order_reach_their_calls(make: Callable[..., World]) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1, 2])
    one, two = world.session(), world.session()
    calls = [world.call(who, buy, tab) for who in (one, two) for tab in (1, 2, 1)]
    for asked in reversed(browser.asked):
        browser.reply(asked)
    assert [value(call)["token"] for call in calls] == [call.token for call in calls]


@pytest.mark.req("F6")
def test_late_and_duplicate_replies_are_dropped_and_counted(make: Callable[..., World]) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    call = world.call(world.session(), buy, 1)
    for attempt in ("first", "second", "third"):
        browser.feed({"id": browser.asked[0].number, "result": {"attempt": attempt}})
    assert value(call) == {"attempt": "first"}
    assert browser.link.counts.late == 2
    slow = world.call(world.session(), buy, 1)
    world.loop.run_for(31)
    assert isinstance(slow.error, CallTimeout)
    for _ in range(2):  # the one reply to a cancelled command, and one too many
        browser.feed({"id": browser.asked[1].number, "result": {}})
    assert browser.link.counts.late == 3
    assert isinstance(slow.error, CallTimeout)


@pytest.mark.req("F7")
def test_replies_to_unknown_or_foreign_commands_are_dropped_logged_and_never_routed(
    make: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    world = make()
    buy, red, blue = world.tool("shop_buy", SHOP), Connection(world, "red", [1]), Connection(world, "blue", [11])
    calls = [world.call(world.session(), buy, 1) for _ in range(3)]
    with caplog.at_level(logging.WARNING):
        for number in (3, 99, "1", None, 1.0):
            blue.feed({"id": number, "result": {"stolen": True}})
            if number != 3:
                red.feed({"id": number, "result": {"stolen": True}})
    assert not any(call.task.done() for call in calls)
    assert (blue.link.counts.unknown, red.link.counts.unknown) == (5, 4)
    assert sum("never sent" in record.getMessage() for record in caplog.records) == 9
    for _ in range(1000):
        blue.feed({"id": 99, "result": {}})
    assert sum("never sent" in record.getMessage() for record in caplog.records) < 20
    for asked in red.asked:
        red.reply(asked)
    assert [value(call)["token"] for call in calls] == [call.token for call in calls]


@pytest.mark.req("F8")
def test_a_reconnected_browser_replaces_its_old_connection_whose_calls_fail(make: Callable[..., World]) -> None:
    world = make()
    buy, old, other = world.tool("shop_buy", SHOP), Connection(world, "red", [1]), Connection(world, "blue", [11])
    lost, kept = world.call(world.session(), buy, 1), world.call(world.session(), buy, 11)
    new = Connection(world, "red", [1])
    assert old.closed is not None
    assert old.closed[0] == REPLACED
    assert "newer connection" in old.closed[1]
    assert isinstance(lost.error, LinkLost)
    assert lost.error.outcome == "unknown"
    assert not kept.task.done()
    again = world.call(world.session(), buy, 1)
    old.reply(old.asked[0])
    new.reply(new.asked[0])
    other.reply(other.asked[0])
    assert (value(again)["token"], value(kept)["token"]) == (again.token, kept.token)


@pytest.mark.req("L6", "S002-dispatch-08", "S002-dispatch-11")
def test_25_calls_of_a_plugin_run_the_26th_waits_and_a_full_queue_refuses(make: Callable[..., World]) -> None:
    world = make()
    buy, send, browser = world.tool("shop_buy", SHOP), world.tool("mail_send", MAIL), Connection(world, "red", [1])
    session = world.session()
    running = [world.call(session, buy, 1) for _ in range(25)]
    assert len(browser.asked) == 25
    waiting = [world.call(session, buy, 1) for _ in range(100)]
    assert len(browser.asked) == 25
    refused = world.call(session, buy, 1)
    assert isinstance(refused.error, Busy)
    assert refused.error.outcome == "not_sent"
    assert "Wait for calls in flight to end" in refused.error.text()
    other = world.call(session, send, 1)
    assert browser.asked[-1].token == other.token  # another plugin is not affected
    browser.reply(browser.asked[3])
    assert value(running[3]) == {"token": running[3].token}
    assert browser.asked[-1].token == waiting[0].token
    answered = 0
    while answered < len(browser.asked):
        if not browser.asked[answered].replies:
            browser.reply(browser.asked[answered])
        answered += 1
    assert [value(call)["token"] for call in waiting] == [call.token for call in waiting]
    assert [asked.token for asked in browser.asked[26:]] == [call.token for call in waiting]


@pytest.mark.req("S002-dispatch-06")
def test_a_call_times_out_after_30_s_and_is_cancelled_in_the_browser(make: Callable[..., World]) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    call = world.call(world.session(), buy, 1)
    world.loop.run_for(29.9)
    assert not call.task.done()
    world.loop.run_for(0.2)
    assert isinstance(call.error, CallTimeout)
    assert call.error.outcome == "unknown"
    assert "look before you call it again" in call.error.text()
    assert browser.cancelled == [browser.asked[0].number]


@pytest.mark.req("F17", "S002-dispatch-07")
def test_progress_every_10_s_keeps_a_call_alive_until_5_minutes_and_no_longer(make: Callable[..., World]) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    call, quiet = world.call(world.session(), buy, 1), world.call(world.session(), buy, 1)
    for step in range(1, 30):
        world.loop.run_for(10)
        assert not call.task.done(), step
        world.loop.act(lambda step=step: world.contexts[call.token].progress(step, 30))  # type: ignore[misc]
    assert call.caller.reported == list(range(1, 30))
    assert isinstance(quiet.error, CallTimeout)  # progress of another call does not extend it
    world.loop.run_for(9.8)
    assert not call.task.done()
    world.loop.run_for(0.3)
    assert isinstance(call.error, CallTimeout)
    assert "300" in call.error.message
    world.loop.act(lambda: world.contexts[call.token].progress(31))
    assert call.caller.reported[-1] == 29
    assert len(browser.cancelled) == 2


@pytest.mark.req("F15")
@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_deadlines_hold_when_the_wall_clock_jumps(make: Callable[..., World], jump: float) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    session = world.session()
    answered, silent = world.call(session, buy, 1), world.call(session, buy, 1)
    world.loop.run_for(10)
    world.wall += jump
    world.loop.run_for(10)
    assert not silent.task.done()
    browser.reply(browser.asked[0])
    assert value(answered) == {"token": answered.token}
    world.loop.run_for(9.9)
    assert not silent.task.done()
    world.loop.run_for(0.2)
    assert isinstance(silent.error, CallTimeout)
    assert [line["durationMs"] for line in world.engine.audit.recent()] == [
        pytest.approx(30_000, abs=100),
        pytest.approx(20_000, abs=100),
    ]
    assert world.sessions.expired(world.loop.now) == []
    later = world.call(session, buy, 1)
    browser.reply(browser.asked[-1])
    assert value(later) == {"token": later.token}


def test_a_call_cancelled_in_the_queue_was_never_sent(make: Callable[..., World]) -> None:
    world = make(concurrent_per_source=1)
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    first, second = world.call(world.session(), buy, 1), world.call(world.session(), buy, 1)
    world.loop.act(lambda: world.engine.cancel_for(second.caller, "the agent asked for it"))
    assert isinstance(second.error, CallCancelled)
    assert second.error.outcome == "not_sent"
    assert not first.task.done()
    assert browser.cancelled == []
    assert CallCancelled.outcome == "unknown"


def test_ending_a_session_cancels_its_calls_only(make: Callable[..., World]) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    mine, other = world.session(), world.session()
    ended, kept = world.call(mine, buy, 1), world.call(other, buy, 1)
    assert world.loop.act(lambda: world.engine.end_session(mine.id, "it was idle")) is mine
    assert isinstance(ended.error, CallCancelled)
    assert "it was idle" in ended.error.message
    assert browser.cancelled == [browser.asked[0].number]
    browser.reply(browser.asked[1])
    assert value(kept) == {"token": kept.token}


def test_an_invalid_call_fails_before_sending_and_is_in_the_audit_log(
    make: Callable[..., World],
) -> None:
    world = make(DenySome("shop_look", "mail_send"))
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    look = world.tool("shop_look", SHOP)
    send = world.tool("mail_send", MAIL)
    session = world.session()
    missing = Tool("shop_bye", SHOP, "")
    failed = [world.call(session, tool, tab) for tool, tab in ((missing, 1), (look, 1), (send, 1), (buy, 5))]
    errors = [call.error for call in failed]
    assert [type(error) for error in errors] == [UnknownTool, PermissionDenied, PermissionDenied, TabNotFound]
    assert "shop_buy" in errors[0].text()
    assert [error.message for error in errors[1:3]] == ["shop_look is off.", "mail_send is off."]
    wrong = world.loop.act(
        lambda: world.loop.create_task(world.engine.call(failed[0].caller, "shop_buy", {"tabId": "x"}))
    )
    assert isinstance(wrong.exception(), InvalidArguments)
    assert browser.asked == []
    lines = world.engine.audit.recent()
    assert [line["tool"] for line in lines] == ["shop_buy", "shop_buy", "mail_send", "shop_look", "shop_bye"]
    assert [line["success"] for line in lines] == [False] * 5
    assert [line["error"]["category"] for line in lines] == [
        "validation",
        "not_found",
        "permission",
        "permission",
        "not_found",
    ]


def test_an_internal_failure_of_a_tool_is_reported_without_details(
    make: Callable[..., World], caplog: pytest.LogCaptureFixture
) -> None:
    world = make()

    async def broken(ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
        raise KeyError("secret-thing")

    odd = Tool("mail_odd", MAIL, "", {"type": "object"})
    world.engine.registry.replace(MAIL, [Entry(odd, broken)])
    call = world.call(world.session(), odd, 1)
    assert type(call.error) is TabhubError
    assert "secret-thing" not in call.error.text()
    assert "tabhub logs" in call.error.text()
    assert "secret-thing" in caplog.text
    assert len(world.engine.calls) == 0


def test_a_call_in_flight_continues_when_its_tool_is_replaced_or_removed(make: Callable[..., World]) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    call = world.call(world.session(), buy, 1)
    world.engine.registry.remove(SHOP)
    browser.reply(browser.asked[0])
    assert value(call) == {"token": call.token}
    assert isinstance(world.call(world.session(), buy, 1).error, UnknownTool)


def test_calls_are_rate_limited_per_session(make: Callable[..., World]) -> None:
    world = make(call_rate=3)
    buy = world.tool("shop_buy", SHOP)
    Connection(world, "red", [1])
    eager, calm = world.session(), world.session()
    for _ in range(3):
        assert not world.call(eager, buy, 1).task.done()
    refused = world.call(eager, buy, 1)
    assert isinstance(refused.error, RateLimited)
    assert refused.error.retry_after <= 61
    assert not world.call(calm, buy, 1).task.done()
    world.loop.run_for(61)
    assert not world.call(eager, buy, 1).task.done()


def test_the_engine_has_no_timer_when_no_call_is_in_flight(make: Callable[..., World]) -> None:
    world = make()
    buy, browser = world.tool("shop_buy", SHOP), Connection(world, "red", [1])
    world.call(world.session(), buy, 1)
    browser.reply(browser.asked[0])
    world.loop.run_for(1)
    assert world.engine._ticker is None
    assert asyncio.all_tasks(world.loop) == set()
