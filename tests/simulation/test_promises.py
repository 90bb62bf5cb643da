"""The promises under random stories: whatever the order of events, every call gets exactly one answer.

A random story of calls, replies, silence, cancelled calls, ended sessions, closed tabs and lost browsers is played with
the real engine, its table of calls and real links. A small model records what happened to each call; an answer without
a cause in the story is a failure, and so is a call that continues after something ended it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tabhub.core.sessions import Session
from tabhub.core.tools import Source
from tabhub.errors import (
    Busy,
    CallCancelled,
    CallTimeout,
    CommandFailed,
    LinkLost,
    NotConnected,
    TabFailed,
    TabNotFound,
)
from tabhub.limits import Limits
from tabhub.links.extension import REPLACED
from tabhub.store.audit import digest
from tests.harness.world import Asked, Connection, Started, World

RUNNING, WAITING, PATIENCE = 3, 2, 30.0
TICK = 0.06
"""A little more than the engine takes to check its deadlines again."""
BROWSERS = {"red": [1, 2], "blue": [11, 12]}
CAUSES = (
    (CallTimeout, "time"),
    (CallCancelled, "cancel"),
    (LinkLost, "link"),
    (TabFailed, "tab"),
    (CommandFailed, "refused"),
    (Busy, "busy"),
    ((TabNotFound, NotConnected), "absent"),
)
SENT = {"time": None, "cancel": None, "link": True, "tab": True, "refused": True, "busy": False, "absent": False}
"""Whether a call that ended this way must have been sent to the browser (None: either)."""
PICK = st.integers(0, 99)
TAB = st.sampled_from([1, 1, 2, 11, 12])


class Promises(RuleBasedStateMachine):
    """The story."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.world = World(self.folder, Limits(concurrent_per_source=RUNNING, queue_per_source=WAITING))
        shop, mail = Source("plugin", "shop"), Source("plugin", "mail")
        self.tools = [
            self.world.tool("shop_buy", shop),
            self.world.tool("shop_look", shop, readOnlyHint=True),
            self.world.tool("mail_send", mail),
        ]
        self.sessions = [self.world.session() for _ in range(3)]
        self.tabs = {browser: set(tabs) for browser, tabs in BROWSERS.items()}
        self.links = {name: Connection(self.world, name, tabs) for name, tabs in BROWSERS.items()}
        self.all_links = list(self.links.values())
        self.calls: list[Started] = []
        self.late: dict[Connection, int] = {}
        self.unknown: dict[Connection, int] = {}
        self.progressed: dict[int, list[float]] = {}

    # helpers

    def open(self) -> list[Started]:
        return [call for call in self.calls if not call.task.done()]

    def dispatched(self, call: Started) -> list[tuple[Connection, Asked]]:
        return [(link, asked) for link in self.all_links for asked in link.asked if asked.token == call.token]

    def in_flight(self) -> list[tuple[Connection, Asked]]:
        waiting = {call.token for call in self.open()}
        return [(c, a) for c in self.links.values() for a in c.asked if a.token in waiting and not a.replies]

    def settled(self) -> list[tuple[Connection, Asked]]:
        """Commands whose call has ended, on connections that still exist."""
        waiting = {call.token for call in self.open()}
        return [(c, a) for c in self.links.values() for a in c.asked if a.token not in waiting]

    def of_token(self, token: int) -> Started:
        return next(call for call in self.calls if call.token == token)

    def deadline(self, call: Started) -> float:
        begun = [asked.at for _, asked in self.dispatched(call)] + [call.opened]
        return min(max([*begun, *self.progressed.get(call.token, [])]) + PATIENCE, call.opened + 300)

    def browser_of(self, tab_id: int) -> str:
        return next(name for name, tabs in BROWSERS.items() if tab_id in tabs)

    def hit(self, cause: str, which: Any) -> None:
        """Record what may end calls: all open ones for which `which` is true."""
        for call in self.open():
            if which(call):
                call.causes.add(cause)

    # events

    @rule(who=PICK, tool=PICK, tab_id=TAB)
    def call_a_tool(self, who: int, tool: int, tab_id: int) -> None:
        wanted = self.tools[tool % len(self.tools)]
        busy = sum(1 for call in self.open() if call.tool.source == wanted.source) >= RUNNING + WAITING
        made = self.world.call(self.sessions[who % len(self.sessions)], wanted, tab_id)
        self.calls.append(made)
        if busy:
            made.causes = {"busy"}
        else:
            assert not (made.task.done() and isinstance(made.task.exception(), Busy))

    @rule(who=st.lists(st.integers(0, 2), min_size=2, max_size=6), tool=PICK, tab_id=TAB)
    def several_agents_call(self, who: list[int], tool: int, tab_id: int) -> None:
        for each in who:
            self.call_a_tool(each, tool, tab_id)

    @precondition(lambda self: self.in_flight())
    @rule(which=PICK, refused=st.sampled_from([False, False, True]))
    def a_reply_arrives_in_any_order(self, which: int, refused: bool) -> None:
        ways = self.in_flight()
        link, asked = ways[which % len(ways)]
        self.of_token(asked.token).causes.add("refused" if refused else "reply")
        if refused:
            link.reply(asked, error={"code": -32000, "message": "the page said no"})
        else:
            link.reply(asked)

    @precondition(lambda self: self.settled())
    @rule(which=PICK)
    def a_reply_arrives_twice_or_late(self, which: int) -> None:
        over = self.settled()
        link, asked = over[which % len(over)]
        given_up = asked.number in link.cancelled and not asked.replies
        if not given_up:  # every cancelled command still gets one reply; anything else is counted
            self.late[link] = self.late.get(link, 0) + 1
        link.reply(asked, result={"token": -1})

    @precondition(lambda self: self.links)
    @rule(which=PICK, number=st.sampled_from([999_999, 0, -1, "1", 1.0, None, True, {}, [1]]))
    def a_reply_arrives_for_an_unknown_command(self, which: int, number: Any) -> None:
        link = list(self.links.values())[which % len(self.links)]
        self.unknown[link] = self.unknown.get(link, 0) + 1
        link.feed({"id": number, "result": {"token": -2}})

    @precondition(lambda self: any(link.link.closed and link.asked for link in self.all_links))
    @rule(which=PICK)
    def a_reply_arrives_on_a_closed_connection(self, which: int) -> None:
        gone = [link for link in self.all_links if link.link.closed and link.asked]
        link = gone[which % len(gone)]
        link.feed({"id": link.asked[-1].number, "result": {"token": -3}})

    @rule(seconds=st.sampled_from([0.06, 1.0, 20.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        before = {call.token for call in self.open()}
        self.world.loop.run_for(seconds)
        now = self.world.loop.now
        for call in self.calls:
            if call.token in before and self.deadline(call) <= now:
                call.causes.add("time")

    @precondition(lambda self: self.world.contexts)
    @rule(which=PICK, over=st.sampled_from([False, False, False, True]), seconds=st.sampled_from([0.0, 20.0]))
    def progress_is_reported(self, which: int, over: bool, seconds: float) -> None:
        candidates = [token for token in sorted(self.world.contexts) if self.of_token(token).task.done() is over]
        if not candidates:
            return
        token = candidates[which % len(candidates)]
        call = self.of_token(token)
        reported, running = len(call.caller.reported), not call.task.done()
        self.world.loop.act(lambda: self.world.contexts[token].progress(1.0))
        assert len(call.caller.reported) == reported + running
        if running:
            self.progressed.setdefault(token, []).append(self.world.loop.now)
        self.time_passes(seconds)

    @precondition(lambda self: self.open())
    @rule(which=PICK)
    def an_agent_cancels(self, which: int) -> None:
        call = self.open()[which % len(self.open())]
        call.causes.add("cancel")
        self.world.loop.act(lambda: self.world.engine.cancel_for(call.caller, "the test says so"))

    @rule(what=st.sampled_from(["session", "tab", "lost", "replaced"]), which=PICK)
    def something_breaks(self, what: str, which: int) -> None:
        if what == "session":
            self.a_session_ends(which)
        elif what == "tab":
            self.a_tab_closes(which)
        elif what == "lost" and self.links:
            self.a_browser_is_lost(which)
        else:
            self.a_browser_connects(sorted(BROWSERS)[which % len(BROWSERS)])

    def a_session_ends(self, which: int) -> None:
        self.end(self.sessions.pop(which % len(self.sessions)))
        self.sessions.append(self.world.session())

    def end(self, session: Session) -> None:
        self.hit("cancel", lambda call: call.caller.session is session)
        self.world.loop.act(lambda: self.world.engine.end_session(session.id, "the test says so"))

    def a_tab_closes(self, which: int) -> None:
        there = sorted((tab, name) for name in self.links for tab in self.tabs[name])
        if not there:
            return
        tab_id, name = there[which % len(there)]
        self.tabs[name].discard(tab_id)
        self.hit("tab", lambda call: call.tab_id == tab_id and self.dispatched(call))
        self.links[name].say("tab.stateChanged", {"tabId": tab_id, "change": "removed"})

    def a_browser_is_lost(self, which: int) -> None:
        name = sorted(self.links)[which % len(self.links)]
        self.hit("link", lambda call: self.browser_of(call.tab_id) == name and self.dispatched(call))
        self.links.pop(name).lose()

    @precondition(lambda self: len(self.links) < len(BROWSERS) or self.tabs != {n: set(t) for n, t in BROWSERS.items()})
    @rule()
    def a_lost_browser_or_tab_returns(self) -> None:
        for name, tabs in BROWSERS.items():
            if name not in self.links:
                self.a_browser_connects(name)
            else:
                self.tabs[name] = set(tabs)
                self.links[name].sync(tabs)

    def a_browser_connects(self, name: str) -> None:
        old = self.links.get(name)
        self.hit("link", lambda call: self.browser_of(call.tab_id) == name and self.dispatched(call))
        self.tabs[name] = set(BROWSERS[name])
        self.links[name] = Connection(self.world, name, BROWSERS[name])
        self.all_links.append(self.links[name])
        if old is not None:
            assert old.closed is not None
            assert old.closed[0] == REPLACED

    # invariants

    @invariant()
    def every_answer_has_a_cause_and_is_the_calls_own(self) -> None:
        for call in getattr(self, "calls", []):
            sent = self.dispatched(call)
            assert call.tool.read_only or len(sent) <= 1, "dispatched twice"
            assert all(link.browser_id == self.browser_of(call.tab_id) for link, _ in sent)
            if not call.task.done():
                just_now = self.deadline(call) > self.world.loop.now - TICK
                ended = call.causes - ({"time"} if just_now else set())
                assert not ended, f"call {call.token} continues despite {ended}"
                continue
            if call.task.exception() is None:
                assert "reply" in call.causes
                assert json.loads(call.task.result().payload)["structuredContent"] == {"token": call.token}
                assert len(sent) == 1
                continue
            error = call.error
            cause = next(name for kinds, name in CAUSES if isinstance(error, kinds))
            if cause == "absent" and not call.causes:  # seen for the first time: the tab is still unreachable
                name = self.browser_of(call.tab_id)
                assert name not in self.links or call.tab_id not in self.tabs[name]
                call.causes.add("absent")
            assert cause in call.causes, f"call {call.token} failed without a cause: {error!r}, {call.causes}"
            assert SENT[cause] in (None, bool(sent))
            if cause != "refused":
                assert error.outcome == ("unknown" if sent else "not_sent")
            if cause in ("time", "cancel") and sent:
                link, asked = sent[0]
                assert link.link.closed or asked.number in link.cancelled, "the browser was not asked to stop"

    @invariant()
    def lanes_never_exceed_their_limits(self) -> None:
        for source in {tool.source for tool in getattr(self, "tools", [])}:
            calls = [call for call in self.open() if call.tool.source == source]
            running = [call for call in calls if self.dispatched(call)]
            assert len(running) <= RUNNING
            assert len(calls) - len(running) <= WAITING
            assert len(running) == min(RUNNING, len(calls)), "a call waits although there is room"

    @invariant()
    def the_tables_contain_exactly_the_open_calls(self) -> None:
        if hasattr(self, "calls"):
            assert len(self.world.engine.calls) == len(self.open())
            for link in self.all_links:
                assert link.link.pending == sum(1 for way, _ in self.in_flight() if way is link)
                assert link.link.counts.late == self.late.get(link, 0)
                assert link.link.counts.unknown == self.unknown.get(link, 0)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            self.the_end()
        finally:
            self.world.close()
            shutil.rmtree(self.folder)

    def the_end(self) -> None:
        """All agents disconnect: nothing remains, and every call is in the audit log once."""
        while self.sessions:
            self.end(self.sessions.pop())
        self.world.loop.run_for(0.1)
        self.every_answer_has_a_cause_and_is_the_calls_own()
        assert self.open() == []
        assert len(self.world.engine.calls) == 0
        assert self.world.engine.calls.running() == {}
        assert len(self.world.sessions) == 0
        assert all(link.link.pending == 0 for link in self.all_links)
        assert asyncio.all_tasks(self.world.loop) == set()
        lines = self.world.engine.audit.recent(500)
        made = {digest({"tabId": call.tab_id, "token": call.token}): call for call in self.calls}
        assert sorted(line["argsDigest"] for line in lines) == sorted(made)
        for line in lines:
            call = made[line["argsDigest"]]
            assert line["session"] == call.caller.session.id
            assert line["success"] is (call.task.exception() is None)


@pytest.mark.req("F5", "F6")
def test_every_call_gets_one_answer_and_its_own_whatever_happens() -> None:
    story = settings(
        max_examples=120,
        stateful_step_count=50,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Promises, settings=story)
