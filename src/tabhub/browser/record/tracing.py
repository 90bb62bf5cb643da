"""Running performance traces.

Owns which tabs are traced and for which session. A browser runs one trace at a time. It does not know the content.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tabhub.browser.driver.cdp_stream import read_stream
from tabhub.browser.driver.page import Page, ignore_failure, send_cdp_nowait
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.errors import CommandFailed
from tabhub.links.browsers import Browsers, TabKey

_WHY = "trace"
_TASK_END = 1.0
"""Seconds to wait for the page's current task before a trace is stopped."""
_CATEGORIES = [
    "-*",
    "toplevel",
    "loading",
    "latencyInfo",
    "v8.execute",
    "devtools.timeline",
    "blink.console",
    "blink.user_timing",
    "disabled-by-default-devtools.timeline",
    "disabled-by-default-devtools.timeline.frame",
    "disabled-by-default-v8.cpu_profiler",
]
_CONFIG = {"recordMode": "recordUntilFull", "traceBufferSizeInKb": 64 * 1024, "includedCategories": _CATEGORIES}


@dataclass(slots=True)
class _Trace:
    session: Any
    begun: float
    done: asyncio.Future[dict[str, Any]] | None = None


class TabTraces:
    """The running traces, one per tab."""

    def __init__(self, browsers: Browsers, watch: TabWatch) -> None:
        self._watch = watch
        self._running: dict[TabKey, _Trace] = {}
        self._lost: dict[tuple[str, int], str] = {}
        """Why a trace ended early, by browser and tab: the link may have been replaced by then."""
        browsers.drop_with_tab(self._running, self._tab_ended)
        browsers.drop_when_closed(self._lost)
        watch.subscribe(EventSubscription(("Tracing.tracingComplete",)), self._on_event)

    async def start(self, page: Page, session: Any) -> None:
        key = page.key
        if key in self._running:
            since = page.link.loop.time() - self._running[key].begun
            message = f"Tab {page.tab_id} has been traced for {since:.0f} s already."
            raise CommandFailed(message, hint="Stop that trace first: action stop.")
        wish = {"transferMode": "ReturnAsStream", "streamFormat": "json", "traceConfig": _CONFIG}
        try:
            await page.cdp("Tracing.start", wish)
        except CommandFailed as error:
            if "already been started" not in error.message:
                raise
            raise CommandFailed(
                "The browser already runs a trace, in another tab or the developer tools; it runs one trace at a time.",
                hint="Stop that one first.",
            ) from None
        self._running[key] = _Trace(session, page.link.loop.time())
        self._lost.pop((page.link.browser_id, page.tab.chrome_id), None)
        self._watch.hold(key, _WHY)

    async def stop(self, page: Page, session: Any, most: int) -> tuple[bytes, float, bool]:
        """Stop a trace of the same agent.

        Returns the trace, its duration in seconds and whether data was lost because the buffer was full.
        """
        key = page.key
        trace = self._running.get(key)
        if trace is None or trace.done is not None:
            why = self._lost.pop((page.link.browser_id, page.tab.chrome_id), "")
            raise CommandFailed(f"No trace runs in tab {page.tab_id}{why}.", hint="Start one with action start.")
        if _agent(trace.session) != _agent(session):
            raise CommandFailed(
                f"The trace of tab {page.tab_id} belongs to another agent.",
                hint="It ends when that agent stops it or leaves.",
            )
        loop = page.link.loop
        trace.done = loop.create_future()
        trace.done.add_done_callback(ignore_failure)  # the command itself may report the error
        try:
            ran = loop.time() - trace.begun
            # The page's main thread ends its current task first, which the trace would otherwise miss: a script's
            # result leaves before its task ends. A page that hangs is not waited for: that is what traces are for.
            with suppress(TimeoutError, CommandFailed):
                async with asyncio.timeout(_TASK_END):
                    await page.cdp("Runtime.evaluate", {"expression": "0"})
            await page.cdp("Tracing.end")
            end = await trace.done
        finally:
            self._running.pop(key, None)
            self._watch.release(key, _WHY)
        return await read_stream(page, end.get("stream"), most, "trace"), ran, end.get("dataLossOccurred") is True

    def end_session(self, session: Any) -> None:
        for key, trace in list(self._running.items()):
            if trace.session is session and trace.done is None:
                del self._running[key]
                self._watch.release(key, _WHY)
                send_cdp_nowait(key, "Tracing.end")

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], _child: str | None) -> None:
        trace = self._running.get(key)
        if method == "detached":
            if trace is not None:
                self._lose(key, "the debugger was detached")
        elif trace is not None and trace.done is not None and not trace.done.done():
            trace.done.set_result(params)
        elif type(params.get("stream")) is str:
            send_cdp_nowait(key, "IO.close", {"handle": params["stream"]})

    def _lose(self, key: TabKey, why: str) -> None:
        trace = self._running.pop(key)
        self._watch.release(key, _WHY)
        if trace.done is None:
            self._lost[key[0].browser_id, key[1]] = f": the one that ran was lost when {why}"
        elif not trace.done.done():
            trace.done.set_exception(CommandFailed(f"The trace was lost: {why}."))

    def _tab_ended(self, key: TabKey) -> None:
        self._lose(key, "the tab was closed" if key[0].closed is None else "the connection to the browser broke")


def _agent(session: Any) -> str | None:
    """Who a session belongs to: stateless calls of one agent have a session each."""
    name: str | None = getattr(session, "token", None)
    return name
