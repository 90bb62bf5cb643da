"""Tools that wait, report and ask when a test requests it: one more source of a hub under test."""

from __future__ import annotations

import asyncio
from typing import Any

from tabhub.calls.engine import Context
from tabhub.core.registry import Entry
from tabhub.core.tools import EMPTY_SCHEMA, CallContext, Runner, Source, Tool, ToolResult
from tests.harness.hub import RunningHub
from tests.harness.results import both_forms

SOURCE = Source("plugin", "probe")
_ANYTHING: dict[str, Any] = {"type": "object"}
_VALUE: dict[str, Any] = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
QUESTION = {
    "mode": "form",
    "message": "Which colour?",
    "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]},
}


class Probe:
    """The tools of one hub. `probe_wait` puts its arguments into `started` and returns after `release`."""

    def __init__(self, running: RunningHub) -> None:
        self._hub = running.hub
        self._made = 0
        self.started: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.stopped: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        """Arguments of waits that were cancelled."""
        self.release = asyncio.Event()
        self._entries = [
            self._entry("probe_echo", self._echo, _VALUE),
            self._entry("probe_wait", self._wait, _ANYTHING),
            self._entry("probe_report", self._report, _ANYTHING),
            self._entry("probe_log", self._log, _ANYTHING),
            self._entry("probe_ask", self._ask),
            self._entry("probe_flood", self._flood, _ANYTHING),
        ]
        self._hub.tabs.register(SOURCE, self._entries)

    def change(self) -> str:
        """Add one more tool, and return its name."""
        self._made += 1
        added = self._entry(f"probe_added_{self._made}", self._echo)
        self._hub.tabs.register(SOURCE, [*self._entries, added])
        return added.tool.name

    async def begun(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            return await self.started.get()

    async def cancelled(self) -> dict[str, Any]:
        async with asyncio.timeout(30):
            return await self.stopped.get()

    @staticmethod
    def _entry(name: str, run: Runner, schema: dict[str, Any] | None = None) -> Entry:
        return Entry(Tool(name, SOURCE, f"A probe: {name}", schema or dict(EMPTY_SCHEMA)), run)

    async def _echo(self, ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        return both_forms(args)

    async def _wait(self, ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        if args.get("report"):
            ctx.progress(1, 2, "half")
        self.started.put_nowait(args)
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.stopped.put_nowait(args)
            raise
        return both_forms(args)

    async def _report(self, ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        for step in (1, 2, 3):
            ctx.progress(step, 3, f"step {step}")
        return ToolResult.text("reported")

    async def _log(self, ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        assert isinstance(ctx, Context)
        ctx.log("debug", "probe", "fine")
        ctx.log("warning", "probe", "coarse")
        return ToolResult.text("logged")

    async def _ask(self, ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        assert isinstance(ctx, Context)
        answers = await ctx.ask({"colour": ("elicitation/create", QUESTION)})
        return both_forms({"answer": answers["colour"]})

    async def _flood(self, ctx: CallContext, args: dict[str, Any]) -> ToolResult:
        """Report progress `times` times, or until the agent, which does not read, is disconnected."""
        self.started.put_nowait(args)
        text = "x" * 10_000
        for step in range(args.get("times", 10_000)):
            ctx.progress(step, None, text)
            await asyncio.sleep(0)
        return ToolResult.text("flooded")
