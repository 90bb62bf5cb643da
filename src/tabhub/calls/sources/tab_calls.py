"""Calls that run in a tab: choose the tab, check its lease, send once, retry where that does no harm.

Owns the order of these steps for page and plugin tools alike. Which tab ranks first and what may be retried is decided
in core.tab_routing; where a tool can run and how its answer reads is up to each kind of call. The deadline is the
engine's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tabhub.calls.engine import Context
from tabhub.calls.tab_binding import TabBinding
from tabhub.core.descriptions import visible
from tabhub.core.leases import Lease
from tabhub.core.pages.tools import Frame
from tabhub.core.tab_routing import Candidate, best_tab, may_retry
from tabhub.core.tabs import Tab, TabTable
from tabhub.core.tools import ToolResult
from tabhub.errors import CommandFailed, InvalidParams, TabhubError, TabStopped
from tabhub.limits import Limits
from tabhub.links.transport import TabHubTransport
from tabhub.wire.page_tools import ElicitConfirmation, PluginRequest, ToolProgress

UNTRUSTED = "tabhub/untrusted"
"""The `_meta` key of content that comes from a page."""
MESSAGE = 2_000
"""Characters of a page's message that are passed on."""


T = TypeVar("T", Tab, Frame)
"""Where a call runs."""


class TabCall(ABC, Generic[T]):
    """One call of a page or plugin tool (links.transport.Listener)."""

    ctx: Context
    exact: bool
    """Whether the call names its tab, and so runs there or not at all."""

    @abstractmethod
    def targets(self) -> Sequence[T]:
        """Where the call can run now, leases aside."""

    @abstractmethod
    def annotations(self, target: T) -> Mapping[str, Any]:
        """The tool's annotations, as that target declares it."""

    @abstractmethod
    def candidate(self, target: T) -> Candidate: ...

    @abstractmethod
    async def await_target(self, failure: TabhubError | None) -> T:
        """Wait for a target or open one; raises, `failure` if there was one, where that is not possible."""

    @abstractmethod
    async def send(self, target: T, transport: TabHubTransport) -> ToolResult:
        """Send the call and read its answer."""

    def may_retry(self, error: TabhubError, target: T) -> bool:
        hints = self.annotations(target)
        repeatable = hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True
        return may_retry(error, repeatable=repeatable)

    @abstractmethod
    async def before_retry(self, error: TabhubError, target: T, failed: set[int]) -> None:
        """Add tabs to avoid to `failed`, and wait where the same tab is to be tried again."""

    def explain(self, error: TabhubError, target: T) -> TabhubError:
        return error

    def progress(self, progress: ToolProgress) -> None:
        text = None if progress.message is None else visible(progress.message[:MESSAGE])[0]
        self.ctx.progress(progress.progress, progress.total, text)

    def asked(self, question: ElicitConfirmation) -> Any:
        """A question of the tab in the middle of the call."""
        return None

    def requested(self, request: PluginRequest) -> Any:
        raise InvalidParams("Only tools of plugins can ask for requests.")


@dataclass(eq=False)
class TabCalls:
    """Runs calls in tabs."""

    transport: TabHubTransport
    tabs: TabTable
    limits: Limits
    leases: TabBinding

    async def run(self, call: TabCall[T]) -> ToolResult:
        failed: set[int] = set()
        failure: TabhubError | None = None
        attempts = 0
        while True:
            target = self.choose(call, failed)
            if target is None:
                target = await call.await_target(failure)
            try:
                return await call.send(target, self.transport)
            except TabhubError as error:
                if attempts >= self.limits.retries or not call.may_retry(error, target):
                    raise call.explain(error, target) from None
                failure = failure or error
                attempts += 1
                await call.before_retry(error, target, failed)

    def choose(self, call: TabCall[T], failed: set[int]) -> T | None:
        """The best target. TabLeased or TabStopped if the tool is only in tabs that the call may not use."""
        session = call.ctx.session
        free: list[T] = []
        blocking: Lease | None = None
        stopped: int | None = None
        for target in call.targets():
            if target.tab_id in failed or self._is_blocked(call, target):
                continue
            tab = self.tabs.get(target.tab_id)
            if tab is not None and tab.stopped:
                stopped = target.tab_id
                continue
            lease = self.leases.blocking_lease(session, target.tab_id)
            if lease is None or (self.leases.reading and call.annotations(target).get("readOnlyHint") is True):
                free.append(target)
            else:
                blocking = blocking or lease
        if len(free) > 1:
            by_candidate = {call.candidate(target): target for target in reversed(free)}
            best = best_tab(by_candidate, self.tabs.get, lambda tab_id: self.leases.holds(session, tab_id))
            return by_candidate[best]
        if not free and blocking is not None and not failed:
            raise self.leases.leased_error(blocking)
        if not free and stopped is not None:
            raise TabStopped(stopped)
        return free[0] if free else None

    def _is_blocked(self, call: TabCall[T], target: T) -> bool:
        """Whether a site rule keeps the agent off the tab, also where only a frame in it offers the tool."""
        tab = self.tabs.get(target.tab_id)
        return tab is not None and call.ctx.blocks(tab.origin or tab.url)


def unreadable(message: str) -> CommandFailed:
    """The tool ran, but its answer cannot be used."""
    return CommandFailed(message, hint="The call was carried out; only its answer is lost.")
