"""The engine: carries one call from any surface through the hub to its tool and back.

Owns the order of things: find, validate, permit, admit, run, budget, audit, answer. The decisions are hub/'s and
trust/'s; this module only runs them and keeps the clock. A call runs in the task of the request that made it, so a
quick call costs no task of its own; what takes longer is looked after by one shared ticker.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tabhub.browser.secrets.text import check_places
from tabhub.calls.approvals.permission import Permission
from tabhub.calls.browser_wait import BrowserWait
from tabhub.calls.call_words import call_phrase
from tabhub.calls.context import Context
from tabhub.calls.pause import Pause
from tabhub.calls.protocols import Answers, Caller, InputRequired, Questions, Waits, Watcher
from tabhub.config.settings import Config
from tabhub.core.calls import Area, Calls
from tabhub.core.origins import BLANK
from tabhub.core.registry import Entry, Registry
from tabhub.core.results.budget import fit
from tabhub.core.results.rest import MIME, take_rest, with_handle
from tabhub.core.sessions import Session, Sessions
from tabhub.core.shown_elements import NOTHING_SHOWN, ShownElements
from tabhub.core.tools import BROWSER, Source, Tool, ToolResult
from tabhub.errors import CallCancelled, NotConnected, RateLimited, TabhubError
from tabhub.limits import Limits
from tabhub.store.audit import AuditLog, canonical_json, fingerprint
from tabhub.store.audit_record import CallRecord, call_error
from tabhub.store.results import ResultStore
from tabhub.trust.approvals import ALLOWED, Approval, Ask, Denied
from tabhub.trust.redact import clean, redact, redact_arguments, redact_urls
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.trust.value_mask import ValueMask

__all__ = ["Answers", "Caller", "Context", "Engine", "InputRequired", "Questions"]

log = logging.getLogger("tabhub.calls")

_TICK = 0.05
"""Seconds between looks at the deadlines; a call younger than this is never looked at."""

UNKNOWN = Source("hub", "unknown")
"""The source of calls to tools that do not exist, in the audit log."""

READ_RESULT = "tabhub_read_result"

_PLACEHOLDER = b"{{"
"""How a placeholder for a secret begins, in arguments as JSON."""

_LONG = 32 * 1024
"""Results above this are searched for secrets in a thread."""
_BIG = 256 * 1024
"""Results above this are cut to budget in a thread."""


class Begun(NamedTuple):
    """What a call has that is attempted again."""

    approval: Approval | None = None
    permitted: str | None = None
    """The site that the approval was for."""
    shown: ShownElements = NOTHING_SHOWN
    waited: float = 0.0
    """Seconds that it waited for people."""


FRESH = Begun()


def _show_nothing(call: Context, area: Area) -> None:
    """Nobody is shown what a call works on."""


@dataclass(eq=False)
class Engine:
    """Everything a surface needs to call tools."""

    registry: Registry
    sessions: Sessions
    limits: Limits
    permission: Permission
    audit: AuditLog
    results: ResultStore
    clock: Callable[[], float]
    wall: Callable[[], float]
    calls: Calls[Context]
    session_ended: Callable[[Session], None] | None = None
    """Called with every session that has ended, to release its tabs."""
    on_target: Callable[[Context, Area], None] = _show_nothing
    """Called with each element that a call works on, and where it is in the tab."""
    keep_arguments: bool = False
    mask: ValueMask = field(default_factory=ValueMask)
    """The secrets used so far, which no answer and no log may have."""

    def __post_init__(self) -> None:
        self.pause = Pause(self.wall)
        self.browser_wait = BrowserWait(self.clock)
        self.waits: tuple[Waits, ...] = (self.pause.held_calls, self.browser_wait.held_calls, self.permission.waits)
        self._watchers: list[Watcher] = []
        # One at a time: several threads at work on large texts would keep the loop from its turn, and be no quicker.
        self._worker = ThreadPoolExecutor(1, "tabhub-results")
        self._rate = SlidingWindow(self.limits.call_rate)
        self.loop: asyncio.AbstractEventLoop | None = None
        self._ticker: asyncio.TimerHandle | None = None

    def apply_settings(self, config: Config) -> None:
        self.keep_arguments = config.audit_arguments

    def watch(self, watcher: Watcher) -> None:
        if watcher not in self._watchers:
            self._watchers.append(watcher)

    def unwatch(self, watcher: Watcher) -> None:
        if watcher in self._watchers:
            self._watchers.remove(watcher)

    async def call(
        self,
        caller: Caller,
        name: str,
        arguments: dict[str, Any],
        found: Entry | None = None,
        begun: Begun = FRESH,
    ) -> ToolResult:
        """Run one call to its one answer; failures are raised, after they are in the audit log.

        `found` is what runs where that is nothing of the registry's: an external server's resource, or a prompt.
        `begun` is what the call has from an attempt before.
        """
        began = self.clock()
        approval, permitted, elements, waited = begun
        canonical = canonical_json(arguments)
        call: Context | None = None
        source = UNKNOWN
        try:
            if self._rate.limit:
                self._slow_down(caller.session, began)
            found = found or self.registry.by_name.get(name)
            if found is None:
                raise self.registry.unknown(name, self.permission.hidden_tools(caller.session.token))
            tool = found.tool
            source = tool.source
            if not tool.accepts(arguments):
                raise tool.invalid(arguments)
            if _PLACEHOLDER in canonical:
                check_places(tool.name, arguments)
            session, permission = caller.session, self.permission
            starts = session.called = began
            tab = permission.tab(session, tool, arguments)
            if approval is None and (outcome := permission.check(caller, tool, arguments, tab)) is not ALLOWED:
                if isinstance(outcome, Denied):
                    raise outcome.error
                if isinstance(outcome, Ask):
                    waits = self.clock()
                    try:
                        approval, elements = await permission.ask(caller, tool, arguments, outcome)
                    finally:
                        starts = self.clock()
                        waited += starts - waits
                    tab = permission.tab(session, tool, arguments)
                else:
                    approval = outcome.approval
            if permitted is None:
                permitted = BLANK if tab is None else tab.site
            while self.pause.paused is not None and not tool.read_only:
                waits = self.clock()
                await self.pause.wait(caller, tool, tool.timeout or self.limits.call_timeout)
                starts = self.clock()
                waited += starts - waits
                permission.recheck(session, tool, arguments)
            task = asyncio.current_task(self.loop)
            call = Context(
                session,
                tool,
                engine=self,
                caller=caller,
                extra=caller.params,
                task=task,
                permitted=permitted,
                arguments=arguments,
            )
            call.shown, call.waited = elements, waited
            self.calls.open(call, starts)
            for watcher in self._watchers:
                watcher.began(call, caller, arguments)
            if self._ticker is None:
                self._begin_ticking()
            try:
                if call.waiting:
                    await self._turn(call)
                result = await found.run(call, arguments)
            except (TabhubError, InputRequired):
                raise
            except asyncio.CancelledError:
                if call.failure is None or task is None:
                    raise
                task.uncancel()
                raise call.failure from None
            except Exception:
                log.exception("tool %s failed inside", tool.name)
                raise TabhubError(
                    f"{tool.name} failed inside the hub.", hint="The hub's log has the details: tabhub logs"
                ) from None
            finally:
                for next_call in self.calls.close(call, self.clock()) or ():
                    if next_call.turn is not None and not next_call.turn.done():
                        next_call.turn.set_result(None)
            if call.failure is not None:
                raise call.failure
            if len(result.payload) <= _LONG:
                result = self._masked(source, result)
            else:
                result = await asyncio.get_running_loop().run_in_executor(self._worker, self._masked, source, result)
            if len(result.payload) > self.limits.result_tokens or result.has_rest:
                result = await self._within_budget(tool, result, session)
        except TabhubError as error:
            if found is not None and isinstance(error, NotConnected) and not (call is not None and call.sent):
                failure = await self.browser_wait.wait(caller, found.tool, error)
                if failure is None:
                    if call is not None:
                        for watcher in self._watchers:
                            watcher.ended(call, self.clock() - began, error, success=False)
                    begun = Begun(approval, permitted if approval else None, elements, waited)
                    return await self.call(caller, name, arguments, found, begun)
                error = failure
            self._mask_error(error)
            # An unknown name is text from outside, and may be anything the agent knows.
            shown = clean(redact(name[:1000]), 200) if source is UNKNOWN else name
            waited = waited if call is None else call.waited
            self._record(caller, shown, source, arguments, canonical, began, call, error, approval, waited, found)
            if (visibility := self.permission.visibility(caller.session.token)).active:
                visibility.mask_error(error)
            raise error from None
        self._record(
            *(caller, name, source, arguments, canonical, began, call, None, approval, call.waited, found),
            failed=result.is_error,
        )
        if call.sites:
            self.permission.call_answered(caller.session, call)
        return result

    def _slow_down(self, session: Session, now: float) -> None:
        """Refuse a session that calls more often than it may; stateless calls without a handle count as one."""
        retry_after = self._rate.hit(session.id, now)
        if retry_after is not None:
            raise RateLimited(
                f"This session has made {self._rate.limit} calls within a minute, which is the limit.",
                retry_after=int(retry_after) + 1,
                hint="Nothing was sent. Wait, or raise limits.call_rate.",
            )

    async def hold(self, call: Context) -> None:
        """Keep a call that is open from acting while agents are paused; that time is not the call's own."""
        if self.pause.paused is None or call.tool.read_only:
            return
        call.deadline, waits = call.latest, self.clock()
        await self.pause.wait(call.caller, call.tool, call.timeout)
        call.waited += self.clock() - waits
        self.calls.progress(call, self.clock())
        self.permission.recheck(call.session, call.tool)

    async def ask_within(self, call: Context, arguments: Mapping[str, Any], ask: Ask) -> Approval:
        """Ask the person in the middle of a call, before it acts; that time is not the call's own."""
        call.deadline = call.latest
        waits = self.clock()
        try:
            asked = await self.permission.ask(call.caller, call.tool, arguments, ask)
        finally:
            call.waited += self.clock() - waits
        if asked.shown:
            call.shown = {**call.shown, **asked.shown}
        self.calls.progress(call, self.clock())
        await self.hold(call)
        return asked.approval

    async def _turn(self, call: Context) -> None:
        """Wait until the source has room for the call, or its failure is decided."""
        call.turn = asyncio.get_running_loop().create_future()
        await call.turn
        call.turn = None
        if call.failure is not None:
            raise call.failure
        await self.hold(call)

    def _begin_ticking(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._ticker = self.loop.call_later(_TICK, self._tick)

    def _tick(self) -> None:
        """Look at the calls that are taking a while."""
        now = self.clock()
        for call in self.calls.due(now):
            call.interrupt()
        self._ticker = asyncio.get_running_loop().call_later(_TICK, self._tick) if len(self.calls) else None

    def cancel(self, call: Context, reason: str) -> None:
        if self.calls.fail(call, CallCancelled(f"{call.tool.name} was cancelled: {reason}.")):
            call.interrupt()

    def cancel_for(self, caller: Caller, reason: str) -> None:
        self._cancel_all(lambda other, _: other is caller, reason)

    def cancel_all(self, reason: str) -> None:
        self._cancel_all(lambda _caller, _session: True, reason)

    def _cancel_all(self, which: Callable[[Caller | None, Session], bool], reason: str) -> None:
        for waits in self.waits:
            waits.cancel(which, reason)
        for call in self.calls:
            if which(call.caller, call.session):
                self.cancel(call, reason)

    def left(self, caller: Caller, reason: str) -> None:
        """The client went away under its call: others need not wait long for its tabs unless it comes back."""
        caller.session.disconnected_at = self.clock()
        self.cancel_for(caller, reason)

    def end_session(self, session_id: str, reason: str) -> Session | None:
        """End a session and the calls it has in flight."""
        self._cancel_all(lambda _, session: session.id == session_id, reason)
        session = self.sessions.end(session_id)
        if session is not None and self.session_ended is not None:
            self.session_ended(session)
        return session

    async def _within_budget(self, tool: Tool, result: ToolResult, session: Session) -> ToolResult:
        if tool.name == READ_RESULT or (result.fits and not result.has_rest):
            return result
        if len(result.payload) > _BIG:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._worker, self._cut, result, self.result_owner(session))
        return self._cut(result, self.result_owner(session))

    def result_owner(self, session: Session) -> str:
        """The owner of stored results: a session, under the site rules that its agent has now."""
        return f"{session.owner}{self.permission.visibility(session.token).rules}"

    def _masked(self, source: Source, result: ToolResult) -> ToolResult:
        payload = result.payload
        if source is BROWSER and b"=" in payload:
            payload = redact_urls(payload)
        if self.mask.in_use:
            payload = self.mask.result(payload)
        return result.with_payload(payload)

    def _mask_error(self, error: TabhubError) -> None:
        error.message = self.mask.text(error.message)
        error.hint = self.mask.text(error.hint) if error.hint is not None else None
        error.data = self.mask.value(error.data)

    def _cut(self, result: ToolResult, owner: str) -> ToolResult:
        if result.has_rest:
            body, rest = take_rest(result.payload)
            handle = self.results.put(owner, MIME, rest.encode())
            return ToolResult(with_handle(body, rest, handle), result.is_error)
        fitted = fit(result.payload, self.limits.result_tokens)
        if fitted is None:
            return result
        handle = self.results.put(owner, fitted.mime, fitted.full_text.encode())
        return ToolResult(fitted.render(handle), result.is_error)

    def _kept_arguments(self, arguments: Mapping[str, Any], call: Context | None) -> Any:
        return self.mask.value(redact_arguments(arguments, call.concealed if call is not None else ()))

    def _record(
        self,
        caller: Caller,
        name: str,
        source: Source,
        arguments: Mapping[str, Any],
        canonical: bytes,
        began: float,
        call: Context | None,
        error: TabhubError | None,
        approval: Approval | None,
        waited: float,
        found: Entry | None,
        *,
        failed: bool = False,
    ) -> None:
        """Put the call in the audit log; this happens before its answer leaves."""
        duration, session = self.clock() - began - waited, caller.session
        record = CallRecord(
            tool=name,
            plugin=source.key,
            source=source.label,
            success=error is None and not failed,
            duration_ms=round(duration * 1000, 3),
            session=session.id,
            client=session.client,
            via=caller.via,
            token_name=session.token,
            args_digest=fingerprint(canonical),
            approval=approval,
        )
        if found is not None:
            record.what = session.did = call_phrase(found.tool, arguments, call, with_text=self.keep_arguments)
        if waited:
            record.waited_ms = round(waited * 1000)
        if call is not None:
            for watcher in self._watchers:
                watcher.ended(call, duration, error, success=record.success)
            record.tab_id, record.origin, record.frames = call.tab, call.origin, call.frames or None
            record.approval = call.approval or approval
            if (sites := call.sites) and sites != [call.origin]:
                record.sites = tuple(sites)
        if error is not None:
            record.error, record.outcome = call_error(error), error.outcome
            record.approval = record.approval or (error.data or {}).get("approval")
        if self.keep_arguments:
            record.arguments = self._kept_arguments(arguments, call)
        self.audit.write(record)
