"""What the engine asks before it runs a call. A hub's own rules are permission_check.py's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from tabhub.calls.held_calls import HeldCalls
from tabhub.calls.protocols import Caller, Waits
from tabhub.core.calls import Call
from tabhub.core.sessions import Session
from tabhub.core.shown_elements import NOTHING_SHOWN, ShownElements
from tabhub.core.tabs import Tab
from tabhub.core.tools import Tool
from tabhub.trust.approvals import ALLOWED, Approval, Ask, Outcome
from tabhub.trust.site_rules import SiteRules
from tabhub.trust.visibility import Visibility

_NOTHING_HIDDEN = Visibility(SiteRules(), None)


class Asked(NamedTuple):
    """What a person approved."""

    approval: Approval
    shown: ShownElements = NOTHING_SHOWN
    """The elements that they were shown: the call may act on these only."""


class Permission:
    """Allows every call and asks nobody, as at a relay: there the hub or extension at the browser decides."""

    def __init__(self, waits: Waits | None = None) -> None:
        self.waits: Waits = HeldCalls() if waits is None else waits
        """The calls that wait for an approval."""
        self.call_answered: Callable[[Session, Call], None] = _note_nothing
        """Called with each answered call that has read something of `call.sites`."""

    def tab(self, session: Session, tool: Tool, arguments: Mapping[str, Any]) -> Tab | None:
        """The tab that a call names, or the session's own."""
        return None

    def check(
        self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], tab: Tab | None, frame: str = ""
    ) -> Outcome:
        """Whether a call may run; with a `frame`, whether it may also act in a frame of that site in its tab.

        `tab` is the call's tab as it is now.
        """
        return ALLOWED

    def tells_frames_apart(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], tab: Tab | None) -> bool:
        """Whether `check` may have different outcomes for frames of different sites."""
        return False

    async def ask(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], ask: Ask) -> Asked:
        """Wait for the approval that `check` asked for; PermissionDenied without one."""
        raise NotImplementedError

    def confirm_tab(self, caller: Caller, tool: Tool, message: str, tab_id: int) -> Awaitable[bool] | None:
        """Ask the person for a tab that another session holds; None if nobody can be asked."""
        return None

    def recheck(
        self, session: Session, tool: Tool, arguments: Mapping[str, Any] | None = None, frame: str = ""
    ) -> None:
        """PermissionDenied if the tool, or a site it reaches, was switched off while a permitted call was held."""

    def visibility(self, agent: str | None) -> Visibility:
        """What an agent may learn of, by the name of its token."""
        return _NOTHING_HIDDEN

    def hidden_tools(self, agent: str | None) -> Callable[[Tool], bool] | None:
        """Which tools an agent must not learn of; None if it may know all."""
        return None


def _note_nothing(session: Session, call: Call) -> None:
    """Nothing depends on what was read."""
