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
from typing import Any, Protocol

from tabhub.errors import CallCancelled, PermissionDenied, RateLimited, TabhubError, UnknownTool
from tabhub.hub.budget import fit
from tabhub.hub.calls import Call, Calls
from tabhub.hub.registry import Entry, Registry
from tabhub.hub.search import nearest
from tabhub.hub.sessions import Session, Sessions
from tabhub.hub.tools import Source, Tool, ToolResult
from tabhub.limits import Limits
from tabhub.server.meter import Meter
from tabhub.store.audit import AuditLog, entry
from tabhub.store.results import ResultStore
from tabhub.trust.permissions import Permissions
from tabhub.trust.rates import Rate
from tabhub.trust.redact import clean, redact

log = logging.getLogger("tabhub.calls")

_TICK = 0.05
"""Seconds between looks at the deadlines; a call younger than this is never looked at."""

UNKNOWN = Source("hub", "unknown")
"""What the audit log says of a call to a tool that does not exist."""

READ_RESULT = "tabhub_read_result"

_BIG = 256 * 1024
"""Results above this are cut to budget in a thread."""


Questions = dict[str, tuple[str, dict[str, Any]]]
"""What to ask an agent's client: by key, the method and its params."""
Answers = dict[str, dict[str, Any]]


class InputRequired(Exception):
    """The call cannot go on in this round: the agent's client must answer first, then call again."""

    def __init__(self, questions: Questions) -> None:
        super().__init__("input required")
        self.questions = questions


class Caller(Protocol):
    """Who makes a call and how it can be reached while the call runs; each surface has its own."""

    session: Session
    via: str

    def slow(self) -> None:
        """The call is still running: begin to watch whether the agent is still there."""
        ...

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell the agent how far the call is."""
        ...

    def log(self, level: str, logger: str, data: Any) -> None:
        """Tell the agent a log message of the tool."""
        ...

    async def ask(self, tool: str, questions: Questions) -> Answers:
        """Ask the agent's own client, and through it its human."""
        ...

    def can(self, capability: str) -> bool:
        """Whether the agent's client declared a capability (elicitation, sampling, roots)."""
        ...


class Context:
    """One running call, as its tool sees it (hub.tools.CallContext)."""

    __slots__ = ("_engine", "call", "caller", "slow", "task", "turn")

    def __init__(self, engine: Engine, call: Call, caller: Caller) -> None:
        self._engine = engine
        self.call = call
        self.caller = caller
        self.task: asyncio.Task[Any] | None = asyncio.current_task(engine.loop)
        self.turn: asyncio.Future[None] | None = None
        self.slow = False

    @property
    def session(self) -> Session:
        """The session that made the call."""
        return self.caller.session

    @property
    def extra(self) -> Mapping[str, Any]:
        """The request's own params, for what passes through the hub (`_meta`, `extensions`); REST has none."""
        params: Mapping[str, Any] = getattr(self.caller, "params", None) or {}
        return params

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Extend the deadline and tell the agent."""
        if self._engine.calls.progress(self.call, self._engine.clock()):
            self.caller.progress(progress, total, message)

    def log(self, level: str, logger: str, data: Any) -> None:
        """Pass a log message of the tool to the agent."""
        self.caller.log(level, logger, data)

    def sent(self) -> None:
        """Something has left for the browser."""
        self.call.sent = True

    def touch(self, tab_id: int | None, origin: str | None) -> None:
        """The tab and origin the call works on."""
        self.call.tab = tab_id
        self.call.origin = origin

    async def ask(self, questions: Questions) -> Answers:
        """Ask the agent's client something (elicitation, sampling, roots); a tool asks before it acts."""
        return await self.caller.ask(self.call.tool.name, questions)

    def can(self, capability: str) -> bool:
        """Whether the agent's client declared a capability."""
        return self.caller.can(capability)

    def interrupt(self) -> None:
        """Stop waiting: the call's failure has been decided."""
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)
        elif self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()


class Engine:
    """Everything a surface needs to call tools."""

    def __init__(
        self,
        *,
        registry: Registry,
        sessions: Sessions,
        limits: Limits,
        permissions: Permissions,
        audit: AuditLog,
        results: ResultStore,
        clock: Callable[[], float],
        wall: Callable[[], float],
        keep_arguments: bool = False,
    ) -> None:
        self.registry = registry
        self.sessions = sessions
        self.limits = limits
        self.permissions = permissions
        self.audit = audit
        self.results = results
        self.clock = clock
        self.wall = wall
        self.keep_arguments = keep_arguments
        self.calls = Calls(limits)
        self.meter = Meter()
        # One at a time: several threads at work on large texts would keep the loop from its turn, and be no quicker.
        self._cutter = ThreadPoolExecutor(1, "tabhub-cut")
        self._rate = Rate(limits.call_rate)
        self.loop: asyncio.AbstractEventLoop | None = None
        self._ticker: asyncio.TimerHandle | None = None

    def find(self, name: str) -> Entry:
        """The tool of that name, or UnknownTool with the nearest ones."""
        entry = self.registry.get(name)
        if entry is None:
            near = nearest(name[:200], self.registry.names())
            hint = f"Did you mean {', '.join(near)}?" if near else "List the tools to see what there is."
            raise UnknownTool(f"There is no tool named {name[:200]!r}.", hint=hint, data={"nearest": near})
        return entry

    async def call(self, caller: Caller, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run one call to its one answer; failures are raised, after they are in the audit log."""
        began = self.clock()
        call: Call | None = None
        source = UNKNOWN
        try:
            if self._rate.limit:
                self._slow_down(caller.session, began)
            found = self.find(name)
            tool = found.tool
            source = tool.source
            tool.check(arguments)
            self._permit(tool)
            call = self.calls.open(caller.session.id, tool, began)
            result = await self._run(Context(self, call, caller), found, arguments)
            if len(result.payload) > self.limits.result_tokens:
                result = await self._within_budget(tool, result, caller.session)
        except TabhubError as error:
            # A name nobody registered is text from outside, and may be anything the agent knows.
            shown = clean(redact(name[:1000]), 200) if source is UNKNOWN else name
            self._record(caller, shown, source, arguments, began, call, error)
            raise
        self._record(caller, name, source, arguments, began, call, None, failed=result.is_error)
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

    def _permit(self, tool: Tool) -> None:
        verdict = self.permissions.decide(tool.source.key, tool.name)
        if verdict == "auto":
            return
        if verdict == "off":
            raise PermissionDenied(
                f"{tool.name} is switched off by the person who runs this hub.",
                hint=f"They can allow it with: tabhub config set permissions.{tool.source.key}.tools.{tool.name} auto",
            )
        raise PermissionDenied(
            f"{tool.name} needs the person's approval, and there is no one to ask on this connection.",
            hint=f"They can allow it with: tabhub config set permissions.{tool.source.key}.tools.{tool.name} auto",
        )

    async def _run(self, ctx: Context, entry: Entry, arguments: dict[str, Any]) -> ToolResult:
        call = ctx.call
        call.carrier = ctx
        if self._ticker is None:
            self.loop = asyncio.get_running_loop()
            self._ticker = self.loop.call_later(_TICK, self._tick)
        try:
            if call.waiting:
                ctx.turn = asyncio.get_running_loop().create_future()
                await ctx.turn
                ctx.turn = None
                if call.failure is not None:
                    raise call.failure
            result = await entry.run(ctx, arguments)
        except asyncio.CancelledError:
            if call.failure is None or ctx.task is None:
                raise
            ctx.task.uncancel()
            raise call.failure from None
        except (TabhubError, InputRequired):
            raise
        except Exception:
            log.exception("tool %s failed inside", entry.tool.name)
            raise TabhubError(
                f"{entry.tool.name} failed inside the hub.", hint="The hub's log has the details: tabhub logs"
            ) from None
        finally:
            call.carrier = None  # a circle would have to wait for the collector
            for started in self.calls.close(call, self.clock()) or ():
                waiting: Context | None = started.carrier
                if waiting is not None and waiting.turn is not None and not waiting.turn.done():
                    waiting.turn.set_result(None)
        if call.failure is not None:
            raise call.failure
        return result

    def _tick(self) -> None:
        """Look at the calls that are taking a while."""
        now = self.clock()
        for call in self.calls.due(now):
            if call.carrier is not None:
                call.carrier.interrupt()
        for call in self.calls:
            ctx: Context | None = call.carrier
            if ctx is not None and not ctx.slow and now - call.opened >= _TICK:
                ctx.slow = True
                ctx.caller.slow()
        self._ticker = asyncio.get_running_loop().call_later(_TICK, self._tick) if len(self.calls) else None

    def cancel(self, call: Call, reason: str) -> None:
        """The agent took a call back, or went away."""
        if self.calls.fail(call, CallCancelled(f"{call.tool.name} was cancelled: {reason}.")):
            call.carrier.interrupt()

    def cancel_for(self, caller: Caller, reason: str) -> None:
        """Take back whatever this caller runs."""
        for call in self.calls:
            if call.carrier is not None and call.carrier.caller is caller:
                self.cancel(call, reason)

    def end_session(self, session_id: str, reason: str) -> Session | None:
        """End a session and the calls it has in flight."""
        for call in self.calls.of_session(session_id):
            self.cancel(call, reason)
        return self.sessions.end(session_id)

    async def _within_budget(self, tool: Tool, result: ToolResult, session: Session) -> ToolResult:
        if tool.name == READ_RESULT:
            return result
        if len(result.payload) > _BIG:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._cutter, self._cut, result, session.owner)
        return self._cut(result, session.owner)

    def _cut(self, result: ToolResult, owner: str) -> ToolResult:
        fitted = fit(result.payload, self.limits.result_tokens)
        if fitted is None:
            return result
        handle = self.results.put(owner, fitted.mime, fitted.full_text.encode())
        return ToolResult(fitted.render(handle), result.is_error)

    def _record(
        self,
        caller: Caller,
        name: str,
        source: Source,
        arguments: Mapping[str, Any],
        began: float,
        call: Call | None,
        error: TabhubError | None,
        *,
        failed: bool = False,
    ) -> None:
        """Put the call in the audit log; this happens before its answer leaves."""
        duration = self.clock() - began
        success = error is None and not failed
        self.meter.call(source.key, duration, ok=success)
        session = caller.session
        tab, origin = (call.tab, call.origin) if call is not None else (None, None)
        if success and not self.keep_arguments:
            self.audit.succeeded(
                now=self.wall(),
                tool=name,
                source=source,
                duration_ms=duration * 1000,
                session=session.id,
                client=session.client,
                arguments=arguments,
                tab_id=tab,
                origin=origin,
            )
            return
        self.audit.write(
            entry(
                now=self.wall(),
                tool=name,
                source=source,
                success=success,
                duration_ms=duration * 1000,
                session=session.id,
                client=session.client,
                arguments=arguments,
                keep_arguments=self.keep_arguments,
                tab_id=tab,
                origin=origin,
                error=error,
            )
        )
