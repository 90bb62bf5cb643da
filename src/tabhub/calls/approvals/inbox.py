"""The approval inbox: requests that wait for a person, asked through every channel; the first answer counts.

Owns the queue, the agent's side of the wait (progress, cancellation, the end of its session) and that an answer reaches
only the request whose random id it names. Whether a call needs approval is trust.approvals' decision. No tool can
answer: `answer` is reached only from the panel's link, with the person's key, or through the agent's own client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

import msgspec

from tabhub.browser.elements.element import Element
from tabhub.calls.approvals import elicitation
from tabhub.calls.approvals.element_lookup import NOTHING_SEEN, Act, Seen
from tabhub.calls.approvals.memory import ApprovalMemory, granted
from tabhub.calls.approvals.requests import Request, logged_sentence, make_request, tab_of
from tabhub.calls.held_calls import cancelled_before_sending
from tabhub.calls.protocols import Caller, InputRequired
from tabhub.config.settings import Config
from tabhub.core.descriptions import visible
from tabhub.core.sessions import Session, Sessions
from tabhub.core.tools import Tool
from tabhub.errors import Busy, TabhubError
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.store.audit import AuditLog, digest
from tabhub.trust.approvals import Answer, Approver, Ask, unanswered
from tabhub.trust.grants import grant_text
from tabhub.trust.redact import clean
from tabhub.wire.extension_link import ConfirmationRequest
from tabhub.wire.panel import Decision, WiderScope

_PROGRESS_EVERY = 3.0
"""Seconds between progress notifications to an agent whose call waits."""
_REASON = 500
_NO_ANSWER = "nobody answered"
_PAGE_CHANGED = "the page changed"

Look = Callable[[Request], Awaitable[Seen] | None]
"""Finds the elements of a call; None if it names none."""


def look_at_nothing(request: Request) -> None:
    """For hubs without pages to look at."""
    return


class Answered(NamedTuple):
    """A person's answer, and the request it was given for."""

    request: ConfirmationRequest
    ask: Ask
    answer: Answer
    seen: Seen


class _Replaced(Exception):
    """The page changed under the question: it is asked again about what is there now."""


@dataclass(slots=True, eq=False)
class _Looking:
    """A call whose elements are looked up before the person is asked."""

    caller: Caller
    tool: Tool
    work: asyncio.Future[Seen]
    failure: TabhubError | None = None


@dataclass(slots=True, eq=False)
class _Pending:
    """A call that waits, or whose client is to call again with the answer."""

    request: ConfirmationRequest
    expires: float
    ask: Ask
    session: Session
    tool: Tool
    seen: Seen
    logged: str
    """The sentence for the audit log, without what is typed."""
    same_call: str
    """Recognises the same call in its next round, where there are rounds: who calls what with which arguments."""
    answered: asyncio.Future[Answer]
    caller: Caller | None = None
    timer: asyncio.TimerHandle | None = None
    """Set between the rounds of a client that answers by calling again."""
    saving: asyncio.Future[None] | None = None


@dataclass(eq=False)
class ApprovalInbox:
    """Everything that waits for a person (calls.protocols.Waits)."""

    config: InitVar[Config]
    limits: Limits
    sessions: Sessions
    browsers: Browsers
    audit: AuditLog
    clock: Callable[[], float]
    wall: Callable[[], float]
    memory: ApprovalMemory
    look: Look = look_at_nothing
    _looking: list[_Looking] = field(default_factory=list, init=False)

    def __post_init__(self, config: Config) -> None:
        self.version = 0
        """Counts changes of what is open."""
        self._open: dict[str, _Pending] = {}
        self._answered: dict[str, _Pending] = {}
        """Answered between two rounds of their call."""
        self.apply_settings(config)

    def apply_settings(self, config: Config) -> None:
        self._timeout = config.approval_timeout
        self._elicits = config.approvals.elicitation

    def __len__(self) -> int:
        return len(self._open)

    def pending(self) -> list[dict[str, Any]]:
        """All open requests, oldest first, as panel and terminal show them."""
        return [msgspec.to_builtins(pending.request) for pending in self._open.values()]

    # asking

    async def ask(
        self,
        caller: Caller,
        tool: Tool,
        arguments: Mapping[str, Any],
        ask: Ask,
        tab_id: int | None = None,
        steps: Sequence[Act] = (),
    ) -> Answered:
        """Wait for a person's answer; PermissionDenied if there is none in time."""
        session = caller.session
        # A call that runs already is not begun again with the answer.
        given, pending, same_call = None if ask.frame else caller.answers, None, ""
        if given is not None:
            same_call = f"{session.id} {session.token} {session.client} {tool.name} {digest(arguments)}"
            pending = self._previous_round(given, same_call)
        request = Request(session, tool, arguments, ask, steps, tab_id or tab_of(session, tool, arguments))
        expires, changed = self.clock() + self._timeout, ""
        while True:
            if pending is None:
                self._require_room()
                looking = self.look(request)
                seen = NOTHING_SEEN if looking is None else await self._look(caller, tool, looking)
                pending = self._add(request, seen, same_call, expires, changed)
            if given is not None and self._elicits and caller.can("elicitation"):
                answer = self._answer_in_rounds(pending, given)
            else:
                try:
                    answer = await self._wait(pending, caller, request)
                except _Replaced:
                    changed, pending = pending.request.sentence, None
                    continue
            if pending.saving is not None:
                await asyncio.wait([pending.saving])  # so that the agent's next call finds it
            return Answered(pending.request, pending.ask, answer, pending.seen)

    async def confirm(self, caller: Caller, tool: Tool, ask: Ask, tab_id: int) -> Answer:
        """Ask the person to confirm something in the middle of a call: for a page, or for another agent's tab."""
        return (await self.ask(caller, tool, {"confirm": ask.message}, ask, tab_id)).answer

    def open_request(self, request_id: str) -> tuple[Session, int | None, Element | None] | None:
        """Of an open request: whose it is, its tab, and the first of its elements."""
        pending = self._open.get(request_id)
        return (pending.session, pending.request.tab_id, pending.seen.first) if pending is not None else None

    def _require_room(self) -> None:
        if len(self._open) + len(self._looking) >= self.limits.approvals:
            raise Busy(
                f"{len(self._open)} calls are waiting for approval already, which is the limit.",
                hint="Nothing was sent. Wait until the person has answered some of them.",
            )

    async def _look(self, caller: Caller, tool: Tool, work: Awaitable[Seen]) -> Seen:
        looking = _Looking(caller, tool, asyncio.ensure_future(work))
        self._looking.append(looking)
        try:
            return await looking.work
        except asyncio.CancelledError:
            if looking.failure is not None:
                raise looking.failure from None
            raise
        finally:
            looking.work.cancel()
            self._looking.remove(looking)

    def _add(self, request: Request, seen: Seen, same_call: str, expires: float, changed: str) -> _Pending:
        shown = make_request(
            request,
            seen,
            self.browsers.book,
            expires_at=round((self.wall() + expires - self.clock()) * 1000),
            session_lasts=self.sessions.knows(request.session),
            longest=self.limits.approval_params,
            changed=changed,
        )
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        pending = self._open[shown.id] = _Pending(
            *(shown, expires, request.ask, request.session, request.tool, seen),
            *(logged_sentence(request, seen), same_call, answered),
        )
        self.version += 1
        self.browsers.notify_local("confirmation.request", {**msgspec.to_builtins(shown), "notify": True})
        return pending

    # waiting

    async def _wait(self, pending: _Pending, caller: Caller, request: Request) -> Answer:
        pending.caller = caller
        tasks = []
        if pending.ask.why not in ("page", "tab"):  # there the call runs, and reports progress itself
            tasks.append(asyncio.ensure_future(self._report_progress(pending, caller)))
        if pending.seen.shown:
            tasks.append(asyncio.ensure_future(self._watch(pending, request)))
        if self._elicits and caller.answers is None and caller.can("elicitation"):
            tasks.append(asyncio.ensure_future(self._elicit(pending, caller)))
        try:
            async with asyncio.timeout(max(0.0, pending.expires - self.clock())):
                return await pending.answered
        except TimeoutError:
            self._close(pending, _NO_ANSWER)
            raise unanswered(pending.request, self._timeout) from None
        except _Replaced:
            raise
        except BaseException as error:
            self._close(pending, "the call was cancelled" if isinstance(error, asyncio.CancelledError) else str(error))
            raise
        finally:
            for task in tasks:
                task.cancel()

    async def _watch(self, pending: _Pending, request: Request) -> None:
        """Look at the elements again while the person decides; the question is withdrawn once they have changed."""
        while True:
            await asyncio.sleep(self.limits.approval_look_again)
            looking = self.look(request)
            seen = NOTHING_SEEN if looking is None else await looking
            if not seen.same_as(pending.seen) and not pending.answered.done():
                self._close(pending, _PAGE_CHANGED)
                pending.answered.set_exception(_Replaced())
                return

    async def _report_progress(self, pending: _Pending, caller: Caller) -> None:
        """Keep the agent's client waiting: a person takes longer to answer than clients wait for a call."""
        began = self.clock()
        message = f"{pending.tool.name} waits for approval (panel, notification or `tabhub approve`)."
        while True:
            caller.progress(round(self.clock() - began, 1), None, message)
            await asyncio.sleep(_PROGRESS_EVERY)

    async def _elicit(self, pending: _Pending, caller: Caller) -> None:
        answer = await elicitation.ask_client(caller, pending.request)
        if answer is not None:
            self.answer(pending.request.id, answer.decision, "elicitation", answer.reason)

    # clients that answer by calling again

    def _previous_round(self, given: Mapping[str, dict[str, Any]], same_call: str) -> _Pending | None:
        """The request of the same call in its previous round, whether or not it was answered since."""
        for key in given:
            ident = elicitation.request_id(key)
            pending = self._open.get(ident) or self._answered.get(ident)
            if pending is not None and pending.timer is not None and pending.same_call == same_call:
                return pending
        return None

    def _answer_in_rounds(self, pending: _Pending, given: Mapping[str, dict[str, Any]]) -> Answer:
        """This round ends with the question (InputRequired), unless the client brought the answer."""
        request, key = pending.request, elicitation.key_of(pending.request.id)
        if not pending.answered.done():
            if key not in given:
                if pending.timer is None:
                    seconds = max(0.0, pending.expires - self.clock())
                    pending.timer = asyncio.get_running_loop().call_later(seconds, self._close, pending, _NO_ANSWER)
                raise InputRequired({key: elicitation.question_of(request)})
            answer = elicitation.read(given[key], request) or elicitation.DISMISSED
            self.answer(request.id, answer.decision, "elicitation", answer.reason)
        self._drop(pending)
        return pending.answered.result()

    # answering

    def answer(
        self,
        request_id: str,
        decision: Decision,
        by: Approver,
        reason: str = "",
        wider: Sequence[WiderScope] = (),
    ) -> bool:
        """Record a person's decision. False if no such request is open, or it does not offer that decision or scope."""
        pending = self._open.get(request_id)
        if pending is None or decision not in pending.request.choices:
            return False
        if wider and (decision != "allow_always" or not set(wider) <= set(pending.request.wider)):
            return False
        given = clean(visible(reason)[0].strip(), _REASON) if reason else ""
        answer = Answer(decision, by, given, "every_site" in wider, "every_agent" in wider)
        self._settle(pending, answer)
        if not pending.answered.done():
            pending.answered.set_result(answer)
        if answer.allowed:
            pending.saving = self.memory.record(pending.session, pending.tool, pending.ask, answer)
        if pending.caller is None:
            self._answered[request_id] = pending
        return True

    def _close(self, pending: _Pending, why: str) -> None:
        """End a request without an answer."""
        if pending.request.id in self._open:
            self._settle(pending, None, why)
        self._drop(pending)

    def _drop(self, pending: _Pending) -> None:
        self._answered.pop(pending.request.id, None)
        if pending.timer is not None:
            pending.timer.cancel()

    def _settle(self, pending: _Pending, answer: Answer | None, why: str = "") -> None:
        """Remove a request from the queue, write it to the audit log and close it in the panels."""
        request = pending.request
        del self._open[request.id]
        self.version += 1
        decision, by = (answer.decision, answer.by) if answer is not None else (None, why)
        facts: dict[str, Any] = {
            "of": request.tool,
            "sentence": pending.logged,
            "decision": decision or "none",
            "by": by,
            "why": request.reason,
        }
        if answer is not None and answer.reason:
            facts["reason"] = answer.reason
        if answer is not None and decision == "allow_always":
            facts["scope"] = grant_text(*granted(request.token, pending.ask.scope, answer))
        if request.token is not None:
            facts["tokenName"] = request.token
        facts |= {"client": request.client, "session": pending.session.id, "origin": request.origin}
        self.audit.event("approval", pending.tool.source, tab_id=request.tab_id, **facts)
        self.browsers.notify_local("confirmation.done", {"id": request.id, "decision": decision, "by": by})

    # cancelling

    def cancel(self, which: Callable[[Caller | None, Session], bool], reason: str) -> None:
        for looking in self._looking:
            if which(looking.caller, looking.caller.session):
                looking.failure = cancelled_before_sending(reason, looking.tool)
                looking.work.cancel()
        for pending in [*self._open.values(), *self._answered.values()]:
            if not which(pending.caller, pending.session):
                continue
            if pending.caller is None:
                self._close(pending, reason)
            elif not pending.answered.done():
                pending.answered.set_exception(cancelled_before_sending(reason, pending.tool))
