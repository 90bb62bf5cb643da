"""Calls of page tools: where a page offers the tool, opening its site if none does, and what pages ask during a call.

Owns which calls run in each frame and the tabs opened for sites. Choosing, leases and retries are tab_calls'. It
reaches tabs through the transport and opens sites through `Sites`, and knows neither of them closer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.engine import Context, InputRequired
from tabhub.calls.sources.tab_calls import MESSAGE, UNTRUSTED, TabCall, TabCalls, unreadable
from tabhub.core.descriptions import visible
from tabhub.core.forwarded_meta import forwarded_meta
from tabhub.core.pages.tool_names import PageKey
from tabhub.core.pages.tools import Frame, PageTool, PageToolTable
from tabhub.core.results.repeats import without_repeats
from tabhub.core.results.valid_results import check_promise, valid_result
from tabhub.core.tab_routing import Candidate, never_sent, site_url
from tabhub.core.tools import ToolResult
from tabhub.errors import NotConnected, PageToolGone, RateLimited, TabFailed, TabhubError, TabNotFound
from tabhub.links.transport import Sites, TabHubTransport
from tabhub.trust.approvals import Ask
from tabhub.trust.sliding_window import SlidingWindow
from tabhub.wire.page_tools import ElicitConfirmation, read_outcome

_GRACE = 0.5
"""Seconds a call outlives its document: a page that answers by navigating still gets its answer through."""
_PROGRESS_EVERY = 3.0
_DECODED = frozenset({"content", "isError", "_meta"})
"""The fields of a result that are looked into; structured content may be large and stays encoded."""
_ERROR = 4_000
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class PageCall(TabCall[Frame]):
    """One call of a page's tool."""

    def __init__(
        self, calls: PageCalls, key: PageKey, tab_id: int | None, ctx: Context, arguments: dict[str, Any]
    ) -> None:
        self.ctx = ctx
        self.exact = tab_id is not None
        self.key = key
        self.tab_id = tab_id
        """The tab that the name of the tool means."""
        self.frame: Frame | None = None
        """Where it runs now."""
        self._calls = calls
        self._arguments = arguments
        self._scope = asyncio.timeout(None)
        self._input_required: InputRequired | None = None
        self._asking: set[asyncio.Task[dict[str, Any]]] = set()

    def targets(self) -> list[Frame]:
        """The frames that offer the tool; for a name with a tab, only the one it names."""
        key, pages = self.key, self._calls.pages
        frames = pages.frames_with_tool(key.origin, key.tool)
        if self.tab_id is None:
            return frames
        if key.frame is None:
            return [frame for frame in frames if frame.tab_id == self.tab_id]
        frame = pages.frame(self.tab_id, key.frame)
        return [frame] if frame is not None and frame.origin == key.origin and key.tool in frame.tools else []

    def annotations(self, target: Frame) -> Mapping[str, Any]:
        return target.tools[self.key.tool].annotations

    def candidate(self, target: Frame) -> Candidate:
        return Candidate(target.tab_id, target.updated)

    async def await_target(self, failure: TabhubError | None) -> Frame:
        return await (self._calls.await_named(self) if self.exact else self._calls.open_site(self))

    def may_retry(self, error: TabhubError, target: Frame) -> bool:
        closed = self.exact and self._calls.tab_calls.tabs.get(target.tab_id) is None
        return not closed and super().may_retry(error, target)

    async def before_retry(self, error: TabhubError, target: Frame, failed: set[int]) -> None:
        if not never_sent(error):
            failed.add(target.tab_id)
        if self._calls.tab_calls.choose(self, failed) in (None, target):
            failed.clear()
            await self._calls.wait_for_change(self.key.origin, self._calls.tab_calls.limits.retry_delay)

    def explain(self, error: TabhubError, target: Frame) -> TabhubError:
        if not isinstance(error, TabNotFound) or never_sent(error):
            return error
        return TabFailed(
            f"The page of {target.origin} in tab {target.tab_id} is gone: {error.message}",
            hint="Whether the call took effect is not known; look at the tab before repeating it.",
        )

    async def send(self, target: Frame, transport: TabHubTransport) -> ToolResult:
        tool, extra = self.key.tool, self.ctx.extra
        params: dict[str, Any] = {
            "frameId": target.frame_id,
            "documentId": target.document,
            "toolName": tool,
            "args": self._arguments,
        }
        extensions = extra.get("extensions", target.extensions)
        if extensions is not None:
            params["extensions"] = extensions
        if "_meta" in extra and (meta := forwarded_meta(extra["_meta"])):
            params["_meta"] = meta
        self.ctx.visit(target.tab_id, target.origin)
        self.frame, self._scope, self._input_required = target, asyncio.timeout(None), None
        running = self._calls.running.setdefault(target.key, set())
        running.add(self)
        self.ctx.sent = True
        try:
            async with self._scope:
                raw = await transport.send_request(
                    target.tab_id, {"method": "browser/executeTool", "params": params}, listener=self, raw=True
                )
        except TimeoutError:
            raise TabFailed(
                f"The page of {target.origin} was unloaded while it ran {tool}.",
                hint="Whether it took effect is not known; look at the tab before repeating it.",
            ) from None
        finally:
            for task in self._asking:
                task.cancel()
            running.discard(self)
            if not running:
                self._calls.running.pop(target.key, None)
        if self._input_required is not None:
            raise self._input_required
        offered = target.tools[tool]
        # Prompts and resources are read from the data, whichever form the agent gets.
        structured = self.ctx.structured or offered.kind is not None
        return _read_answer(raw, offered, target.origin, structured=structured)

    def document_unloaded(self) -> None:
        """Wait a moment for an answer, then fail."""
        if self._scope.when() is None:
            self._scope.reschedule(asyncio.get_running_loop().time() + _GRACE)

    def asked(self, question: ElicitConfirmation) -> asyncio.Future[dict[str, Any]]:
        task = asyncio.ensure_future(self._confirm(question.message))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        return task

    async def _confirm(self, message: str) -> dict[str, Any]:
        frame, approvals = self.frame, self._calls.approvals
        if not message.strip():
            return unconfirmed("The request to confirm had no message.")
        if approvals is None or frame is None:
            return unconfirmed("There is nobody to ask, so nobody could confirm.")
        message = visible(message[:MESSAGE])[0]
        text = f"{frame.origin} asks you to confirm, for its tool {self.key.tool!r}: {message}"
        progress = asyncio.ensure_future(self._report_progress())
        try:
            ask = Ask("page", text, target=frame.origin, this_call_only=True)
            answer = await approvals.confirm(self.ctx.caller, self.ctx.tool, ask, frame.tab_id)
        except InputRequired as required:
            # The client of a stateless agent answers by calling again; the page must not act before that.
            self._input_required = required
            return unconfirmed("The person is being asked; the call will be made again with the answer.")
        except TabhubError as error:
            return unconfirmed(error.message)
        finally:
            progress.cancel()
        if answer.allowed:
            return {"confirmed": True}
        return unconfirmed(f"The person did not confirm. {answer.reason}".strip())

    async def _report_progress(self) -> None:
        """Extend the call's deadline: a person takes longer than a page tool may run."""
        waited = 0.0
        while True:
            self.ctx.progress(waited, None, "Waiting for the person to confirm.")
            await asyncio.sleep(_PROGRESS_EVERY)
            waited += _PROGRESS_EVERY


def unconfirmed(reason: str) -> dict[str, Any]:
    return {"confirmed": False, "reason": reason}


@dataclass(eq=False)
class PageCalls:
    """Runs calls of page tools."""

    tab_calls: TabCalls
    pages: PageToolTable
    sites: Sites
    approvals: ApprovalInbox | None

    def __post_init__(self) -> None:
        self.running: dict[tuple[int, int], set[PageCall]] = {}
        """By tab and frame."""
        self._limits = self.tab_calls.limits
        self._rate = SlidingWindow(self.tab_calls.limits.page_call_rate)
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._opened: dict[str, int] = {}
        self._opening: dict[str, asyncio.Task[int]] = {}

    async def run(self, key: PageKey, tab_id: int | None, ctx: Context, arguments: dict[str, Any]) -> ToolResult:
        """Run a call of a tool; with `tab_id`, in that tab only."""
        retry_after = self._rate.hit(key.origin, asyncio.get_running_loop().time())
        if retry_after is not None:
            raise RateLimited(
                f"The tools of {key.origin} were called {self._rate.limit} times within a minute, which is the limit.",
                retry_after=int(retry_after) + 1,
                hint="Nothing was sent. Wait, or raise limits.page_call_rate.",
            )
        return await self.tab_calls.run(PageCall(self, key, tab_id, ctx, arguments))

    def tools_changed(self, origin: str) -> None:
        """Wake the calls that wait for a tool of the site."""
        for waiter in self._waiting.pop(origin, ()):
            if not waiter.done():
                waiter.set_result(None)

    def document_unloaded(self, tab_id: int, frame_id: int, document: str) -> None:
        for call in self.running.get((tab_id, frame_id), ()):
            if call.frame is not None and call.frame.document == document:
                call.document_unloaded()

    def confirm(self, tab_id: int, question: ElicitConfirmation) -> Any:
        """A page asks to confirm without naming a call: clear only if exactly one call of the tool runs there."""
        running = self.running.get((tab_id, question.frame_id), ())
        calls = [call for call in running if call.key.tool == question.tool_name]
        if len(calls) != 1:
            return unconfirmed("No call of this tool is under way, or several are.")
        return calls[0].asked(question)

    async def await_named(self, call: PageCall) -> Frame:
        """The tool in the tab the call names, which may be reloading."""
        key = call.key
        for _ in range(self._limits.retries):
            await self.wait_for_change(key.origin, self._limits.retry_delay)
            frame = self.tab_calls.choose(call, set())
            if frame is not None:
                return frame
        raise PageToolGone(
            f"Tab {key.number} of {key.origin} no longer offers {key.tool}.",
            hint="List the tools again; the name without a tab goes to whichever tab has it.",
        )

    async def open_site(self, call: PageCall) -> Frame:
        """The tool in a tab that is opened for it."""
        origin, tool, ctx = call.key.origin, call.key.tool, call.ctx
        cached = self.pages.cached.of(origin).get(tool)
        url = site_url(origin, cached.url if cached is not None else None)
        if url is None:
            raise PageToolGone(f"No open page offers {tool} of {origin}.", hint="Open the page that does.")
        reason = ""
        for attempt in range(self._limits.retries + 1):
            if attempt:
                await self.wait_for_change(origin, self._limits.retry_delay)
            ctx.progress(attempt, None, f"Opening {url}")
            try:
                tab_id = await self._tab_for(origin, url, ctx)
            except NotConnected:
                raise
            except TabhubError as error:
                reason = error.message
                continue
            ctx.visit(tab_id, origin)
            try:
                async with asyncio.timeout(self._limits.page_appear):
                    while (frame := self.tab_calls.choose(call, set())) is None:
                        await self.wait_for_change(origin, None)
                    return frame
            except TimeoutError:
                reason = ""
        raise PageToolGone(
            f"{url} was opened, but offers no tool {tool}. {reason}".rstrip(),
            hint="The site may need the person to sign in, or no longer has the tool: look at its tab.",
        )

    async def _tab_for(self, origin: str, url: str, ctx: Context) -> int:
        """A tab with the site: several calls share one, and a later attempt reloads it."""
        opening = self._opening.get(origin)
        if opening is None:
            opening = self._opening[origin] = asyncio.ensure_future(self._open(origin, url, ctx))
            opening.add_done_callback(lambda _: self._opening.pop(origin, None))
        return await asyncio.shield(opening)

    async def _open(self, origin: str, url: str, ctx: Context) -> int:
        tab = self.tab_calls.tabs.get(self._opened.get(origin, -1))
        # A tab the person looks at is left alone, and so is one that another session holds.
        if tab is not None and not tab.active and self.tab_calls.leases.blocking_lease(ctx.session, tab.tab_id) is None:
            await self.sites.revisit(tab.tab_id, url)
            return tab.tab_id
        tab_id = self._opened[origin] = await self.sites.open(url)
        return tab_id

    async def wait_for_change(self, origin: str, seconds: float | None) -> None:
        """Wait for the next change of a site's tools, up to `seconds`."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(origin, set()).add(waiter)
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            waiting = self._waiting.get(origin)
            if waiting is not None:
                waiting.discard(waiter)
                if not waiting:
                    del self._waiting[origin]


def _read_answer(raw: bytes, tool: PageTool, origin: str, *, structured: bool) -> ToolResult:
    """The result in a page's `{success, payload}`, marked as untrusted; CommandFailed if it is malformed."""
    try:
        answer = read_outcome(raw)
        if not answer.success:
            return _failed(msgspec.json.decode(answer.payload), origin)
        fields = _FIELDS.decode(answer.payload)
    except (msgspec.DecodeError, RecursionError) as error:
        raise unreadable(f"{origin} ran {tool.name}, but its answer is not a tool result: {error}.") from None
    answered: dict[str, Any] = {**fields}
    for name in _DECODED & fields.keys():
        answered[name] = msgspec.json.decode(fields[name])
    result = check_promise(valid_result(answered), "The page", tool.output)
    if not structured:
        result = without_repeats(result)
    result["_meta"] = {**forwarded_meta(result.get("_meta")), UNTRUSTED: {"origin": origin}}
    return ToolResult(msgspec.json.encode(result), "isError" in result)


def _failed(payload: Any, origin: str) -> ToolResult:
    message = payload if isinstance(payload, str) else orjson.dumps(payload).decode()
    text = f"The page's tool failed. {origin} says: {visible(message[:_ERROR])[0] or 'nothing'}"
    return ToolResult.of([{"type": "text", "text": text}], is_error=True, meta={UNTRUSTED: {"origin": origin}})
