"""One running call as its tool sees it: who called, progress, questions, and the wait while agents are paused.

Owns how a call is interrupted. What becomes of the call is the engine's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any

from tabhub.calls.protocols import Answers, Caller, Questions
from tabhub.core.calls import Area, Call
from tabhub.core.shown_elements import TargetKey
from tabhub.core.tabs import Tab
from tabhub.core.tools import Tool
from tabhub.trust.approvals import (
    Allowed,
    Approval,
    Ask,
    Denied,
    frame_denied,
    frame_not_approved,
    site_changed,
)

if TYPE_CHECKING:
    from tabhub.calls.engine import Engine


class Context(Call, kw_only=True):
    """One running call, as its tool sees it (core.tools.CallContext)."""

    engine: Engine
    caller: Caller
    extra: Mapping[str, Any]
    """The request's own params, for what passes through the hub (`_meta`, `extensions`); REST has none."""
    task: asyncio.Task[Any] | None
    permitted: str
    """The site that its tab showed when the call was permitted; empty if it had no tab."""
    arguments: Mapping[str, Any]
    concealed: tuple[str, ...] = ()
    """Arguments that the audit log must not have."""
    turn: asyncio.Future[None] | None = None
    """Set while the call waits until its source has room for it."""
    step: tuple[Tool, Mapping[str, Any]] | None = None
    """The tool and arguments of the current step, in a call that has steps."""
    step_site: str = ""
    """The other site that the current step, or a call without steps, was permitted for on the way."""
    step_frames: tuple[str, ...] = ()
    """The sites of frames that the current step, or a call without steps, may act in."""
    frames: tuple[str, ...] = ()
    """The sites of all frames that it acted in, or would have: those that differ from the tab's."""
    approval: Approval | None = None
    """The approval to act in a frame, if that needed one of its own."""

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Extend the deadline and report to the agent."""
        if self.engine.calls.progress(self, self.engine.clock()):
            self.caller.progress(progress, total, self.engine.mask.text(message) if message else message)

    @property
    def structured(self) -> bool:
        return self.caller.structured

    def log(self, level: str, logger: str, data: Any) -> None:
        self.caller.log(level, logger, self.engine.mask.value(data))

    def conceal(self, text: str) -> None:
        self.concealed = (*self.concealed, text)

    def note_target(self, target: TargetKey, label: str, area: Area | None = None) -> None:
        super().note_target(target, label)
        if area is not None:
            self.engine.on_target(self, area)

    def begin_step(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        self.step, self.step_site, self.step_frames = (tool, arguments), "", ()

    def work_on(self, tab: Tab) -> None:
        site = tab.site
        if site not in (self.permitted, self.step_site):
            tool, arguments = self._acting(tab.tab_id)
            outcome = self.engine.permission.check(self.caller, tool, arguments, tab)
            if not isinstance(outcome, Allowed):
                raise site_changed(tool.name, tab.tab_id, self.permitted, site, outcome, sent=self.sent)
            self.step_site = site
        self.visit(tab.tab_id, site)

    async def require_frame(self, tab_id: int, site: str) -> None:
        if site in self.step_frames:
            return
        if site not in self.frames:
            self.frames = (*self.frames, site)
        tool, arguments = self._acting(tab_id)
        permission = self.engine.permission
        tab = permission.tab(self.session, tool, arguments)
        outcome = permission.check(self.caller, tool, arguments, tab, site)
        if isinstance(outcome, Denied):
            raise frame_denied(outcome.error, site)
        if isinstance(outcome, Ask):
            if self.step is not None:  # what a batch may do is settled before it runs
                raise frame_not_approved(tool.name, site, outcome)
            self.approval = await self.engine.ask_within(self, arguments, outcome)
        self.step_frames = (*self.step_frames, site)

    def frames_matter(self) -> bool:
        tab_id = self.tab if self.tab is not None else -1
        permission, (tool, arguments) = self.engine.permission, self._acting(tab_id)
        tab = permission.tab(self.session, tool, arguments)
        return permission.tells_frames_apart(self.caller, tool, arguments, tab)

    def _acting(self, tab_id: int) -> tuple[Tool, Mapping[str, Any]]:
        """What the call does now in a tab: a tool and its arguments."""
        tool, arguments = self.step or (self.tool, self.arguments)
        return tool, {**arguments, "tabId": tab_id}

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
        return self.engine.permission.visibility(self.session.token).hides(url)

    def can(self, capability: str) -> bool:
        return self.caller.can(capability)

    def interrupt(self) -> None:
        """Stop waiting: the call's failure has been decided."""
        if self.turn is not None and not self.turn.done():
            self.turn.set_result(None)
        elif self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()
