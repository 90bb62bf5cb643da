"""Calls of page tools: find the tab, send the call there once, try again only where that does no harm.

Owns the way of one call and what is under way in each frame. Which tab is best and what may be repeated is decided in
hub.routing; the time a call has is the engine's. It reaches tabs through the transport and opens sites through `Sites`,
and knows neither of them closer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from tabhub.calls.approvals.inbox import ApprovalInbox
from tabhub.calls.engine import Context, InputRequired
from tabhub.calls.sources.page_result import read_answer
from tabhub.core.descriptions import visible
from tabhub.core.forwarded_meta import forwarded_meta
from tabhub.core.leases import Lease
from tabhub.core.page_tool_names import PageKey
from tabhub.core.page_tools import Frame, PageToolTable
from tabhub.core.sessions import Session
from tabhub.core.tab_routing import best_frame, never_sent, retry_where, site_url
from tabhub.core.tabs import TabTable
from tabhub.core.tools import ToolResult
from tabhub.errors import (
    NotConnected,
    PageToolGone,
    RateLimited,
    TabFailed,
    TabhubError,
    TabLeased,
    TabNotFound,
)
from tabhub.limits import Limits
from tabhub.links.sites import Sites
from tabhub.links.transport import TabHubTransport
from tabhub.trust.approvals import Ask
from tabhub.trust.sliding_window import SlidingWindow

_GRACE = 0.5
"""Seconds a call outlives its document: a page that answers by going elsewhere still says so."""
_WAITING = 3.0
_MESSAGE = 2_000


class Held(Protocol):
    """What sessions hold (server.binding.Binding)."""

    reading: bool

    def blocking_lease(self, session: Session, tab_id: int) -> Lease | None:
        """The lease of another session that keeps this one from the tab."""
        ...

    def holds(self, session: Session, tab_id: int) -> bool:
        """Whether the session itself holds the tab."""
        ...

    def leased_error(self, lease: Lease) -> TabLeased:
        """The error that names the holder."""
        ...


class Running:
    """One call that a frame has (links.transport.Listener)."""

    def __init__(self, ctx: Context, frame: Frame, tool: str, approvals: ApprovalInbox | None = None) -> None:
        self.ctx = ctx
        self._approvals = approvals
        self.frame = frame
        self.tool = tool
        self.scope = asyncio.timeout(None)
        self.need: InputRequired | None = None
        self._asking: set[asyncio.Task[dict[str, Any]]] = set()

    def progress(self, params: dict[str, Any]) -> None:
        """Pass on how far the page is."""
        done, total, message = params.get("progress"), params.get("total"), params.get("message")
        if isinstance(done, int | float):
            whole = total if isinstance(total, int | float) else None
            self.ctx.progress(done, whole, visible(message[:_MESSAGE])[0] if isinstance(message, str) else None)

    def asked(self, params: dict[str, Any]) -> asyncio.Future[dict[str, Any]]:
        """The page wants the person to confirm: ask every way there is."""
        task = asyncio.ensure_future(self._confirm(params.get("message")))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)
        return task

    async def _confirm(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, str) or not message.strip():
            return _no("The request to confirm had no message.")
        approvals = self._approvals
        if approvals is None:
            return _no("There is nobody to ask, so nobody could confirm.")
        said = visible(message[:_MESSAGE])[0]
        text = f"{self.frame.origin} asks you to confirm, for its tool {self.tool!r}: {said}"
        ctx, frame = self.ctx, self.frame
        waiting = asyncio.ensure_future(self._keep_alive())
        try:
            ask = Ask("page", text, target=frame.origin, this_call_only=True)
            answer = await approvals.confirm(ctx.caller, ctx.call.tool, ask, frame.tab_id)
        except InputRequired as need:
            # The client of a stateless agent answers by calling again; the page must not act before that.
            self.need = need
            return _no("The person is being asked; the call will be made again with the answer.")
        except TabhubError as error:
            return _no(error.message)
        finally:
            waiting.cancel()
        return {"confirmed": True} if answer.allowed else _no(f"The person did not confirm. {answer.reason}".strip())

    async def _keep_alive(self) -> None:
        """A person thinks longer than a page tool may run."""
        waited = 0.0
        while True:
            self.ctx.progress(waited, None, "Waiting for the person to confirm.")
            await asyncio.sleep(_WAITING)
            waited += _WAITING

    def left(self) -> None:
        """The document is gone: wait a moment for an answer, then fail."""
        if self.scope.when() is None:
            self.scope.reschedule(asyncio.get_running_loop().time() + _GRACE)

    def close(self) -> None:
        """The call is over."""
        for task in self._asking:
            task.cancel()


def _no(reason: str) -> dict[str, Any]:
    return {"confirmed": False, "reason": reason}


class PageCalls:
    """Runs calls of page tools."""

    def __init__(
        self,
        transport: TabHubTransport,
        pages: PageToolTable,
        tabs: TabTable,
        sites: Sites,
        limits: Limits,
        tab_of: Callable[[str, int], int | None],
        leases: Held,
        approvals: ApprovalInbox | None,
    ) -> None:
        self._transport = transport
        self._pages = pages
        self._tabs = tabs
        self._sites = sites
        self._limits = limits
        self._tab_of = tab_of
        self._leases = leases
        self._rate = SlidingWindow(limits.page_call_rate)
        self._approvals = approvals
        self._running: dict[tuple[int, int], set[Running]] = {}
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._opened: dict[str, int] = {}
        self._opening: dict[str, asyncio.Task[int]] = {}

    async def run(self, key: PageKey, ctx: Context, arguments: dict[str, Any]) -> ToolResult:
        """One call, from its name to the page's answer."""
        self._slow_down(key.origin)
        exact, tries, lost = key.number is not None, 0, set[int]()
        while True:
            frame = self._find(key, lost, ctx)
            if frame is None:
                frame = await (self._back(key, ctx) if exact else self._appear(key, ctx))
            try:
                return await self._send(frame, key, ctx, arguments)
            except TabhubError as error:
                failed = frame.tools[key.tool].annotations
                repeatable = failed.get("readOnlyHint") is True or failed.get("idempotentHint") is True
                verdict = retry_where(error, repeatable=repeatable, exact=exact)
                closed = exact and self._tabs.get(frame.tab_id) is None
                if verdict == "no" or closed or tries >= self._limits.retries:
                    raise self._said(error, frame) from None
                tries += 1
                if not never_sent(error):
                    lost.add(frame.tab_id)
                if self._find(key, lost, ctx) in (None, frame):
                    lost.clear()
                    await self._next(key.origin, self._limits.retry_delay)

    def changed(self, origin: str) -> None:
        """A site's tools changed: whoever waits for one looks again."""
        for waiter in self._waiting.pop(origin, ()):
            if not waiter.done():
                waiter.set_result(None)

    def left(self, tab_id: int, frame_id: int, document: str) -> None:
        """A document is gone, with what runs there."""
        for running in self._running.get((tab_id, frame_id), ()):
            if running.frame.document == document:
                running.left()

    def confirm(self, tab_id: int, params: dict[str, Any]) -> Any:
        """A page asks to confirm without saying for which call: clear only if one alone runs."""
        frame_id = params.get("frameId")
        running = self._running.get((tab_id, frame_id), ()) if type(frame_id) is int else ()
        there = [each for each in running if each.tool == params.get("toolName")]
        return there[0].asked(params) if len(there) == 1 else _no("No call of this tool is under way, or several are.")

    # inside

    def _slow_down(self, origin: str) -> None:
        """Refuse a call of a site that is called more often than a site may be."""
        retry_after = self._rate.hit(origin, asyncio.get_running_loop().time())
        if retry_after is not None:
            raise RateLimited(
                f"The tools of {origin} were called {self._rate.limit} times within a minute, which is the limit.",
                retry_after=int(retry_after) + 1,
                hint="Nothing was sent. Wait, or raise limits.page_call_rate.",
            )

    def _find(self, key: PageKey, lost: set[int], ctx: Context) -> Frame | None:
        """The frame to call. TabLeased if only other sessions' tabs have the tool, or theirs is the one named."""
        frames = self._pages.holders(key.origin, key.tool)
        if key.number is not None:
            frames = self._at(key, frames)
        barred = {f.tab_id: lease for f in frames if (lease := self._keeps_out(f, key, ctx)) is not None}
        mine = ctx.session
        frame = best_frame(frames, self._tabs.get, lost | barred.keys(), lambda tab: self._leases.holds(mine, tab))
        if frame is None and barred and not lost:
            raise self._leases.leased_error(next(iter(barred.values())))
        return frame

    def _at(self, key: PageKey, frames: list[Frame]) -> list[Frame]:
        """The frame of the very tab, and place in it, that is named."""
        tab_id = self._tab_of(key.origin, key.number) if key.number is not None else None
        if tab_id is None or key.frame is None:
            return [frame for frame in frames if frame.tab_id == tab_id]
        frame = self._pages.frame(tab_id, key.frame)
        return [frame] if frame is not None and frame.origin == key.origin and key.tool in frame.tools else []

    def _keeps_out(self, frame: Frame, key: PageKey, ctx: Context) -> Lease | None:
        """The lease that keeps a call from a frame; one that only reads is kept out where reading is not allowed."""
        lease = self._leases.blocking_lease(ctx.session, frame.tab_id)
        if lease is None or (self._leases.reading and frame.tools[key.tool].annotations.get("readOnlyHint") is True):
            return None
        return lease

    async def _send(self, frame: Frame, key: PageKey, ctx: Context, arguments: dict[str, Any]) -> ToolResult:
        params: dict[str, Any] = {
            "frameId": frame.frame_id,
            "documentId": frame.document,
            "toolName": key.tool,
            "args": arguments,
        }
        extra = ctx.extra
        extensions = extra.get("extensions", frame.extensions)
        if extensions is not None:
            params["extensions"] = extensions
        if meta := forwarded_meta(extra.get("_meta")):
            params["_meta"] = meta
        ctx.touch(frame.tab_id, frame.origin)
        running = Running(ctx, frame, key.tool, self._approvals)
        there = self._running.setdefault(frame.place, set())
        there.add(running)
        ctx.sent()
        try:
            async with running.scope:
                raw = await self._transport.send_request(
                    frame.tab_id, {"method": "browser/executeTool", "params": params}, listener=running, raw=True
                )
        except TimeoutError:
            raise TabFailed(
                f"The page of {frame.origin} that ran {key.tool} went away under the call.",
                hint="Whether it took effect is not known; look at the tab before repeating it.",
            ) from None
        finally:
            running.close()
            there.discard(running)
            if not there:
                self._running.pop(frame.place, None)
        if running.need is not None:
            raise running.need
        return read_answer(raw, frame.tools[key.tool], frame.origin)

    def _said(self, error: TabhubError, frame: Frame) -> TabhubError:
        """A failure of the way, in words of the tool's tab."""
        if not isinstance(error, TabNotFound) or never_sent(error):
            return error
        return TabFailed(
            f"The page of {frame.origin} in tab {frame.tab_id} is gone: {error.message}",
            hint="Whether the call took effect is not known; look before repeating it.",
        )

    async def _back(self, key: PageKey, ctx: Context) -> Frame:
        """The tool in the very tab that is named, which may be loading anew."""
        for _ in range(self._limits.retries):
            await self._next(key.origin, self._limits.retry_delay)
            frame = self._find(key, set(), ctx)
            if frame is not None:
                return frame
        raise PageToolGone(
            f"Tab {key.number} of {key.origin} does not offer {key.tool} any more.",
            hint="List the tools again; the name without a tab goes to whichever tab has it.",
        )

    async def _appear(self, key: PageKey, ctx: Context) -> Frame:
        """The tool in a tab that is opened for it."""
        origin = key.origin
        kept = self._pages.cached(origin).get(key.tool)
        url = site_url(origin, kept.url if kept is not None else None)
        if url is None:
            raise PageToolGone(f"No open page offers {key.tool} of {origin}.", hint="Open the page that does.")
        why = ""
        for attempt in range(self._limits.retries + 1):
            if attempt:
                await self._next(origin, self._limits.retry_delay)
            ctx.progress(attempt, None, f"Opening {url}")
            try:
                tab_id = await self._tab_for(origin, url, ctx)
            except NotConnected:
                raise
            except TabhubError as error:
                why = error.message
                continue
            ctx.touch(tab_id, origin)
            try:
                async with asyncio.timeout(self._limits.page_appear):
                    while (frame := self._find(key, set(), ctx)) is None:
                        await self._next(origin, None)
                    return frame
            except TimeoutError:
                why = ""
        raise PageToolGone(
            f"{url} was opened, but offers no tool {key.tool}. {why}".rstrip(),
            hint="The site may want the person to sign in, or has no such tool any more: look at its tab.",
        )

    async def _tab_for(self, origin: str, url: str, ctx: Context) -> int:
        """A tab with the site: several calls share one, and a later try loads it anew."""
        opening = self._opening.get(origin)
        if opening is None:
            opening = self._opening[origin] = asyncio.ensure_future(self._open(origin, url, ctx))
            opening.add_done_callback(lambda _: self._opening.pop(origin, None))
        return await asyncio.shield(opening)

    async def _open(self, origin: str, url: str, ctx: Context) -> int:
        tab = self._tabs.get(self._opened.get(origin, -1))
        # One that the person looks at is the person's, and one that a session holds is that session's.
        if tab is not None and not tab.active and self._leases.blocking_lease(ctx.session, tab.tab_id) is None:
            await self._sites.revisit(tab.tab_id, url)
            return tab.tab_id
        tab_id = self._opened[origin] = await self._sites.open(url)
        return tab_id

    async def _next(self, origin: str, seconds: float | None) -> None:
        """The next change of a site's tools, or the end of the time."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(origin, set()).add(waiter)
        try:
            await asyncio.wait([waiter], timeout=seconds)
        finally:
            there = self._waiting.get(origin)
            if there is not None:
                there.discard(waiter)
                if not there:
                    del self._waiting[origin]
