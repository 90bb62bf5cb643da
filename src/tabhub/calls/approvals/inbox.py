"""Asking a person: every way at once, and the first answer counts.

Owns what waits for a person's word, the agent's side of the wait (progress, taking back, the end of its session) and
what an answer brings with it: for the session, or for always. The queue is trust.approvals'; panels and notifications
are told through `tell`, the terminal comes by HTTP, and the agent's own client is asked by elicitation. No tool can
answer: the ways in are `answer` here, which only the panel's link and the approver's key reach, and the agent's client.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tabhub.calls.approvals.elicitation import key_of, question_of, read
from tabhub.calls.approvals.outcome import Approval, denied, unanswered
from tabhub.calls.protocols import Caller, InputRequired
from tabhub.config.settings import Config
from tabhub.core.descriptions import visible
from tabhub.core.sessions import Session, Sessions
from tabhub.core.tabs import TabTable
from tabhub.core.tools import Tool
from tabhub.errors import Busy, CallCancelled, TabhubError
from tabhub.limits import Limits
from tabhub.store.audit import AuditLog, digest
from tabhub.trust.approvals import DECISIONS, Answer, Approver, Decision, Queue, Request, Why
from tabhub.trust.redact import clean

log = logging.getLogger("tabhub.approvals")

_TELL = 3.0
"""Seconds between two words to an agent that its call still waits."""
_REASON = 500


@dataclass(frozen=True, slots=True)
class Question:
    """Why a person is asked, and what an answer would settle."""

    why: Why
    words: str
    diff: str | None = None
    own_name: str = ""
    """The tool's name in the settings."""
    text: str = ""
    """Its definition, for tools that are others'."""
    crossing: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    target: str | None = None
    lasting: bool = True
    """Whether the answer may hold for more than this call."""


@dataclass(slots=True, eq=False)
class _Held:
    """A call that waits, or whose agent is to call again with the answer."""

    request: Request
    question: Question
    session: Session
    tool: Tool
    turn: asyncio.Future[Answer]
    caller: Caller | None = None
    timer: asyncio.TimerHandle | None = None
    remembering: asyncio.Future[None] | None = None
    """The writing down of what was allowed for always."""


@dataclass(slots=True)
class _Granted:
    """What a person allowed for the length of a session."""

    grant: Approval
    source: str
    text: str = field(repr=False)


class Approvals:
    """Everything that waits for a person."""

    def __init__(
        self,
        config: Config,
        *,
        limits: Limits,
        sessions: Sessions,
        book: TabTable,
        audit: AuditLog,
        clock: Callable[[], float],
        wall: Callable[[], float],
        tell: Callable[[str, dict[str, Any]], None],
        remember: Callable[[Session, Tool, Question], Awaitable[None]],
    ) -> None:
        self._limits = limits
        self._sessions = sessions
        self._book = book
        self._audit = audit
        self._clock = clock
        self._wall = wall
        self._tell = tell
        self._remember = remember
        self.queue = Queue(limits.approvals)
        self.version = 0
        """Counts changes of what is open."""
        self.on_allowed: Callable[[Session, Tool, Question], None] = lambda *_: None
        self.unchanged: Callable[[Request, Tool, str, Answer], None] = lambda *_: None
        """Raises where a call is by now another than the person was shown."""
        self._held: dict[str, _Held] = {}
        self._granted: dict[tuple[str, str], _Granted] = {}
        self._tasks: set[asyncio.Future[Any]] = set()
        self.take(config)

    def take(self, config: Config) -> None:
        """Settings changed."""
        self._timeout = config.approval_timeout
        self._elicits = config.approvals.elicitation

    # before a call

    def granted(self, session: Session, tool: Tool, text: str) -> Approval | None:
        """The word that holds for this session, unless the tool has changed since."""
        granted = self._granted.get((session.id, tool.name))
        return granted.grant if granted is not None and granted.text == text else None

    async def ask(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], question: Question) -> Approval:
        """Wait for a person's word; PermissionDenied without it."""
        held = self._again(caller, tool, arguments) or self._open(caller, tool, arguments, question)
        answer = await self._answered(held, caller)
        if not answer.allowed:
            raise denied(held.request, answer)
        if held.remembering is not None:
            await asyncio.wait([held.remembering])  # so that the agent's next call finds it
        self.unchanged(held.request, tool, held.question.text, answer)
        return Approval(answer.by, answer.decision, answer.reason)

    async def confirm(self, caller: Caller, tool: Tool, question: Question, tab_id: int) -> Answer:
        """Ask the person to confirm something in the middle of a call: a page wants it, or an agent another's tab."""
        about = {"confirm": question.words}
        held = self._again(caller, tool, about) or self._open(caller, tool, about, question, tab_id=tab_id)
        return await self._answered(held, caller)

    async def _answered(self, held: _Held, caller: Caller) -> Answer:
        elicits = self._elicits and caller.can("elicitation")
        if elicits and (given := getattr(caller, "answers", None)) is not None:
            return self._in_rounds(held, caller, given)
        return await self._wait(held, caller, elicits=elicits)

    def _open(
        self,
        caller: Caller,
        tool: Tool,
        arguments: Mapping[str, Any],
        question: Question,
        tab_id: int | None = None,
    ) -> _Held:
        if self.queue.full:
            raise Busy(
                f"{len(self.queue)} calls wait for a person's word already, which is the limit.",
                hint="Nothing was sent. Wait until the person has answered some of them.",
            )
        request = self._request(caller, tool, arguments, question, tab_id)
        turn: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        held = self._held[request.id] = _Held(request, question, caller.session, tool, turn)
        self.queue.add(request)
        self.version += 1
        self._tell("confirmation.request", {**self.facts(request), "notify": True})
        return held

    def _request(
        self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], question: Question, tab_id: int | None
    ) -> Request:
        session, now = caller.session, self._clock()
        page = (tool.meta or {}).get("tabhub/page", {}) if tool.source.kind == "page" else {}
        named = tab_id
        if named is None and tool.source.kind in ("browser", "plugin"):
            named = arguments.get("tabId", session.tab)
        if named is None:
            named = page.get("tabId")
        tab = self._book.get(named) if type(named) is int else None
        choices: tuple[Decision, ...] = DECISIONS
        if not question.lasting:
            choices = ("allow_once", "deny")
        elif question.why == "dataflow":
            choices = ("allow_once", "allow_session", "deny")
        if not self._sessions.knows(session):  # nothing outlives the call that could be allowed
            choices = tuple(choice for choice in choices if choice != "allow_session")
        return Request(
            id=secrets.token_urlsafe(18),
            tool=tool.name,
            plugin=tool.source.key,
            source=str(tool.source),
            client=session.client,
            identity=session.token,
            session=session.short,
            params=self._shown(arguments),
            why=question.why,
            words=question.words,
            created=now,
            expires=now + self._timeout,
            tab_id=tab.tab_id if tab is not None else None,
            title=tab.title if tab is not None else None,
            url=tab.url if tab is not None else None,
            origin=question.target or page.get("origin") or (tab.origin if tab is not None else None),
            diff=question.diff,
            choices=choices,
            mark=_mark(caller, tool, arguments),
        )

    def _shown(self, arguments: Mapping[str, Any]) -> Any:
        """The parameters as the person sees them: in full, but for what would fill the panel."""
        room = self._limits.approval_params
        text = orjson.dumps(dict(arguments), option=orjson.OPT_INDENT_2, default=str).decode()
        if len(text) <= room:
            return dict(arguments)
        return {"cut": f"{len(text)} characters, of which the first {room}", "beginning": text[:room]}

    # the wait

    async def _wait(self, held: _Held, caller: Caller, *, elicits: bool) -> Answer:
        held.caller = caller
        caller.slow()  # so that it is noticed when the agent does not wait any more
        beside = []
        if held.question.why not in ("page", "tab"):  # there the call runs, and tells itself
            beside.append(asyncio.ensure_future(self._keep_telling(held, caller)))
        if elicits:
            beside.append(asyncio.ensure_future(self._elicit(held, caller)))
        try:
            async with asyncio.timeout(max(0.0, held.request.expires - self._clock())):
                return await held.turn
        except TimeoutError:
            self._end(held, "nobody answered")
            raise unanswered(held.request, self._timeout) from None
        except BaseException as ended:
            self._end(held, "the call was taken back" if isinstance(ended, asyncio.CancelledError) else str(ended))
            raise
        finally:
            for task in beside:
                task.cancel()

    def _in_rounds(self, held: _Held, caller: Caller, given: Mapping[str, dict[str, Any]]) -> Answer:
        """A client that answers by calling again: this round ends with the question, unless the answer is there."""
        key = key_of(held.request.id)
        if not held.turn.done():
            if key not in given:
                if held.timer is None:
                    seconds = max(0.0, held.request.expires - self._clock())
                    held.timer = asyncio.get_running_loop().call_later(seconds, self._expire, held)
                raise InputRequired({key: question_of(held.request)})
            answer = read(given[key], held.request) or Answer("deny", "elicitation", "the question was dismissed")
            self.answer(held.request.id, answer.decision, "elicitation", answer.reason)
        self._drop(held)
        return held.turn.result()

    def _again(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any]) -> _Held | None:
        """The request of the same call in its round before, answered meanwhile or not."""
        given = getattr(caller, "answers", None) or {}
        mark = _mark(caller, tool, arguments)
        for held in self._held.values():
            if held.timer is not None and key_of(held.request.id) in given and held.request.mark == mark:
                return held
        return None

    def _expire(self, held: _Held) -> None:
        self._end(held, "nobody answered")

    async def _keep_telling(self, held: _Held, caller: Caller) -> None:
        """Keep the agent's client waiting: a person thinks longer than a call may take."""
        began = self._clock()
        while True:
            words = f"{held.tool.name} waits for the person to allow it (panel, notification or `tabhub approve`)."
            caller.progress(round(self._clock() - began, 1), None, words)
            await asyncio.sleep(_TELL)

    async def _elicit(self, held: _Held, caller: Caller) -> None:
        """Ask through the agent's own client; one that cannot, or a question that is dismissed, decides nothing."""
        key = key_of(held.request.id)
        try:
            answers = await caller.ask(held.tool.name, {key: question_of(held.request)})
        except TabhubError as error:
            log.info("the client of %s could not ask its person: %s", held.session.client, error.message)
            return
        if (answer := read(answers[key], held.request)) is not None:
            self.answer(held.request.id, answer.decision, "elicitation", answer.reason)

    # the answer

    def answer(self, ident: str, decision: Decision, by: Approver, reason: str = "") -> bool:
        """A person decided. False if nothing of that id is open, or it does not offer that decision."""
        request = self.queue.take(ident, decision)
        held = self._held.get(ident)
        if request is None or held is None:
            return False
        answer = Answer(decision, by, clean(visible(reason)[0].strip(), _REASON))
        self.version += 1
        self._record(held, answer.decision, by, answer.reason)
        if not held.turn.done():
            held.turn.set_result(answer)
        if answer.allowed:
            self._settle(held, answer)
        if held.caller is not None:
            self._drop(held)
        self._tell("confirmation.done", {"id": ident, "decision": decision, "by": by})
        return True

    def _settle(self, held: _Held, answer: Answer) -> None:
        """What an answer brings beyond this call."""
        session, tool = held.session, held.tool
        self.on_allowed(session, tool, held.question)
        if answer.decision == "allow_session":
            grant = Approval(answer.by, "allow_session", answer.reason)
            self._granted[session.id, tool.name] = _Granted(grant, tool.source.setting, held.question.text)
        elif answer.decision == "allow_always":
            task = held.remembering = asyncio.ensure_future(self._remember(session, tool, held.question))
            self._tasks.add(task)
            task.add_done_callback(self._remembered)

    def _remembered(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            said = error.text() if isinstance(error, TabhubError) else repr(error)
            log.error("the call was allowed, but not for always: %s", said)

    def _end(self, held: _Held, why: str) -> None:
        """No answer is wanted any more."""
        if self.queue.take(held.request.id) is not None:
            self.version += 1
            self._record(held, None, why)
            self._tell("confirmation.done", {"id": held.request.id, "decision": None, "by": why})
        self._drop(held)

    def _drop(self, held: _Held) -> None:
        self._held.pop(held.request.id, None)
        if held.timer is not None:
            held.timer.cancel()

    def _record(self, held: _Held, decision: str | None, by: str, reason: str = "") -> None:
        request = held.request
        facts: dict[str, Any] = {"of": request.tool, "decision": decision or "none", "by": by, "why": request.why}
        if reason:
            facts["reason"] = reason
        if request.identity is not None:
            facts["tokenName"] = request.identity
        facts |= {"client": request.client, "session": held.session.id, "origin": request.origin}
        self._audit.event("approval", held.tool.source, tab_id=request.tab_id, **facts)

    # those who wait

    def facts(self, request: Request) -> dict[str, Any]:
        """A request for panel and terminal."""
        return request.facts(self._wall() + max(0.0, request.expires - self._clock()))

    def pending(self) -> list[dict[str, Any]]:
        """All that wait, oldest first."""
        return [self.facts(request) for request in self.queue]

    def forget(self, session_id: str) -> None:
        """A session is over, and what was allowed for it."""
        for key in [key for key in self._granted if key[0] == session_id]:
            del self._granted[key]

    def withdraw(self, source: str) -> None:
        """The person set something else for a source: what was allowed for sessions is asked for anew."""
        self._granted = {key: granted for key, granted in self._granted.items() if granted.source != source}

    def cancel_for(self, caller: Caller, reason: str) -> None:
        """The agent took a call back."""
        self._cancel(lambda held: held.caller is caller, reason)

    def cancel_session(self, session_id: str, reason: str) -> None:
        """A session is over."""
        self._cancel(lambda held: held.session.id == session_id, reason)

    def cancel_all(self, reason: str) -> None:
        """The hub is going."""
        self._cancel(lambda _: True, reason)

    def _cancel(self, which: Callable[[_Held], bool], reason: str) -> None:
        for held in [held for held in self._held.values() if which(held)]:
            if held.caller is None:
                self._end(held, reason)
            elif not held.turn.done():
                error = CallCancelled(f"{held.tool.name} was cancelled: {reason}.")
                error.outcome = "not_sent"
                held.turn.set_exception(error)


def _mark(caller: Caller, tool: Tool, arguments: Mapping[str, Any]) -> str:
    session = caller.session
    return f"{session.id} {session.token} {session.client} {tool.name} {digest(arguments)}"
