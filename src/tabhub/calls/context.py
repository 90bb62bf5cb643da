"""One running call as its tool sees it: who called, progress, questions, and the wait while agents are paused.

Owns how a call is interrupted. What becomes of the call is the engine's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from tabhub.calls.protocols import Answers, Caller, Questions
from tabhub.core.calls import Call

if TYPE_CHECKING:
    from tabhub.calls.engine import Engine


class Context(Call, kw_only=True):
    """One running call, as its tool sees it (core.tools.CallContext)."""

    engine: Engine
    caller: Caller
    extra: Mapping[str, Any]
    """The request's own params, for what passes through the hub (`_meta`, `extensions`); REST has none."""
    task: asyncio.Task[Any] | None
    concealed: tuple[str, ...] = ()
    """Arguments that the audit log must not have."""
    turn: asyncio.Future[None] | None = None
    """Set while the call waits until its source has room for it."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Extend the deadline and report to the agent."""
        if self.engine.calls.progress(self, self.engine.clock()):
            self.caller.progress(progress, total, self.engine.mask.text(message) if message else message)

    def log(self, level: str, logger: str, data: Any) -> None:
        self.caller.log(level, logger, self.engine.mask.value(data))

    def conceal(self, text: str) -> None:
        self.concealed = (*self.concealed, text)

    async def wait_while_paused(self) -> None:
        await self.engine.hold(self)

    async def ask(self, questions: Questions) -> Answers:
        """Ask the agent's client something (elicitation, sampling, roots); a tool asks before it acts."""
        return await self.caller.ask(self.tool.name, questions)

    def confirm(self, message: str, tab_id: int) -> Awaitable[bool] | None:
        """Ask the person who runs the hub for a tab that another session holds; None if nobody can be asked."""
        return self.engine.permission.confirm_tab(self.caller, self.tool, message, tab_id)

    def blocks(self, url: str) -> bool:
        """Whether a site rule keeps the agent off a page."""
        return self.engine.permission.blocks(self.session, url)

    def can(self, capability: str) -> bool:
        return self.caller.can(capability)

    def interrupt(self) -> None:
        """Stop waiting: the call's failure has been decided."""
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)
        elif self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()
