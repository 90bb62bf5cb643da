"""What a person was shown of a call's elements: looked up before the question, and watched while it is open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tabhub.calls.approvals.element_lookup import Seen
from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.approvals.memory import ApprovalMemory
from tabhub.calls.approvals.requests import Request
from tabhub.config.settings import Config
from tabhub.core.sessions import Sessions
from tabhub.core.shown_elements import ShownElement, target_key
from tabhub.core.tools import BROWSER, Tool
from tabhub.errors import CallCancelled, PermissionDenied
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.store.audit import AuditLog
from tabhub.store.grants import GrantStore
from tabhub.store.home import Home
from tabhub.store.pins import PinStore
from tabhub.trust.approvals import Ask
from tabhub.trust.sentences.elements import NamedElement, Problem
from tests.calls.approvals.test_inbox import Client
from tests.harness.waiting import until

CLICK = Tool("browser_click_element", BROWSER, "Clicks.", {"type": "object"})
TARGET = {"ref": "e3"}


def seen(role: str, name: str, ref: str = "e3", problem: Problem = "") -> Seen:
    if problem:
        return Seen({"": NamedElement(problem=problem)})
    return Seen({"": NamedElement(role, name)}, {target_key(TARGET): ShownElement(role, name, ref)})


class Desk:
    """An inbox whose looks at the page a test decides."""

    def __init__(self, folder: Path, look: Callable[[Request], Awaitable[Seen] | None], **settings: Any) -> None:
        limits = Limits(approval_look_again=0.001)
        self.sessions = Sessions(limits)
        loop = asyncio.get_running_loop()
        self.inbox = ApprovalInbox(
            Config(**settings),
            limits=limits,
            sessions=self.sessions,
            browsers=Browsers(limits, wall=lambda: 0.0),
            audit=AuditLog(folder / "audit.log", limits, clock=lambda: 0.0),
            clock=loop.time,
            wall=lambda: 0.0,
            memory=ApprovalMemory(PinStore(folder / "pins.json"), GrantStore(Home(folder / "home"), 9), lambda: 0.0),
            look=look,
        )
        self.caller = Client(self.sessions.open("s", "mcp", "test 1", 0.0))

    def ask(self) -> asyncio.Future[Any]:
        return asyncio.ensure_future(self.inbox.ask(self.caller, CLICK, TARGET, Ask("permission", "")))

    async def request(self, sentence: str) -> dict[str, Any]:
        """The open request, once it has this sentence."""
        await until(lambda: [each["sentence"] for each in self.inbox.pending()] == [sentence])
        return self.inbox.pending()[0]


def looks(*results: Seen) -> Callable[[Request], Awaitable[Seen]]:
    """Look after look; the last one stays as it is."""
    left: Iterator[Seen] = iter(results)
    last = results[-1]

    async def look(_: Request) -> Seen:
        await asyncio.sleep(0)
        return next(left, last)

    return look


async def test_the_question_names_the_element_and_its_answer_holds_for_that_only(tmp_path: Path) -> None:
    desk = Desk(tmp_path, looks(seen("button", "Pay now")))
    asking = desk.ask()
    request = await desk.request('test wants to click "Pay now"')
    assert desk.inbox.answer(request["id"], "allow_once", "panel")
    assert (await asking).seen.shown == {target_key(TARGET): ShownElement("button", "Pay now", "e3")}


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        (seen("button", "Delete all"), 'test wants to click "Delete all"'),
        (seen("button", "Pay now", ref="e9"), 'test wants to click "Pay now"'),
        (seen("", "", problem="missing"), "test wants to click element e3 (not on the page now)"),
    ],
    ids=["renamed", "replaced", "gone"],
)
async def test_a_question_is_withdrawn_and_asked_again_when_the_page_changes(
    tmp_path: Path, now: Seen, sentence: str
) -> None:
    first = seen("button", "Pay now")
    changed = asyncio.Event()

    async def look(_: Request) -> Seen:
        await asyncio.sleep(0)
        return now if changed.is_set() else first

    desk = Desk(tmp_path, look)
    asking = desk.ask()
    before = await desk.request('test wants to click "Pay now"')
    changed.set()
    await until(lambda: bool(pending := desk.inbox.pending()) and pending[0]["id"] != before["id"])
    request = await desk.request(sentence)
    assert request["changed"] == 'test wants to click "Pay now"'
    # the answer to the old question answers nothing
    assert not desk.inbox.answer(before["id"], "allow_once", "panel")
    assert not asking.done()
    assert desk.inbox.answer(request["id"], "deny", "panel")
    assert (await asking).answer.decision == "deny"


async def test_a_page_that_cannot_be_checked_for_a_moment_does_not_withdraw_the_question(tmp_path: Path) -> None:
    first, busy = seen("button", "Pay now"), seen("", "", problem="unchecked")
    looked = 0

    async def look(_: Request) -> Seen:
        nonlocal looked
        looked += 1
        await asyncio.sleep(0)
        return first if looked == 1 else busy

    desk = Desk(tmp_path, look)
    asking = desk.ask()
    request = await desk.request('test wants to click "Pay now"')
    await until(lambda: looked > 3)
    assert desk.inbox.answer(request["id"], "allow_once", "panel")
    assert (await asking).answer.allowed


async def test_a_page_that_never_stays_the_same_does_not_keep_the_agent_waiting_longer(tmp_path: Path) -> None:
    looked = 0

    async def look(_: Request) -> Seen:
        nonlocal looked
        looked += 1
        await asyncio.sleep(0)
        return seen("button", f"Pay in {looked}")

    desk = Desk(tmp_path, look, approval_timeout=0.05)
    with pytest.raises(PermissionDenied, match="no person answered"):
        await desk.ask()
    assert not desk.inbox.pending()


async def test_a_call_that_is_cancelled_while_its_element_is_looked_for_is_never_asked_about(tmp_path: Path) -> None:
    begun = asyncio.Event()

    async def look(_: Request) -> Seen:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    desk = Desk(tmp_path, look)
    asking = desk.ask()
    await begun.wait()
    desk.inbox.cancel(lambda caller, _: caller is desk.caller, "the agent left")
    with pytest.raises(CallCancelled, match="the agent left"):
        await asking
    assert not desk.inbox.pending()
