"""What the engine knows of those around it: who calls, what may hold a call back, and who watches.

Owns these interfaces and what is asked of an agent's client in the middle of a call; it runs nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from tabhub.core.calls import Call
from tabhub.core.sessions import Session
from tabhub.core.tools import Tool
from tabhub.errors import TabhubError
from tabhub.trust.approvals import Approval, Ask, Outcome

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
    """The way in, for the audit log: mcp, gateway, rest, cli or bridge."""

    @property
    def answers(self) -> Answers | None:
        """What the client brought in answer to earlier questions; None if it does not answer by calling again."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """The request's own parameters, for what passes through the hub (`_meta`, `extensions`); REST has none."""
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


class Waits(Protocol):
    """What holds calls back before they are open: a pause, an approval."""

    def cancel_for(self, caller: Caller, reason: str) -> None:
        """The agent took a call back."""
        ...

    def cancel_session(self, session_id: str, reason: str) -> None:
        """A session is over."""
        ...

    def cancel_all(self, reason: str) -> None:
        """The hub is going."""
        ...


class Permission(Protocol):
    """Decides whether a call may run (calls.approvals.permission_check.PermissionCheck, or AllowAll)."""

    @property
    def waits(self) -> Waits:
        """The calls that wait for an approval."""
        ...

    def check(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any]) -> Outcome: ...

    async def ask(self, caller: Caller, tool: Tool, arguments: Mapping[str, Any], ask: Ask) -> Approval:
        """Wait for the approval that `check` asked for; PermissionDenied without one."""
        ...

    def confirm_tab(self, caller: Caller, tool: Tool, message: str, tab_id: int) -> Awaitable[bool] | None:
        """Ask the person for a tab that another session holds; None if nobody can be asked."""
        ...

    def recheck(self, session: Session, tool: Tool) -> None:
        """PermissionDenied if a tool was switched off while a permitted call was held."""
        ...

    def call_answered(self, session: Session, call: Call) -> None:
        """A call has read something of `call.origin`."""
        ...


class Watcher(Protocol):
    """Who is told of calls as they run (server.panel.Panel)."""

    def began(self, call: Call, caller: Caller, arguments: Mapping[str, Any]) -> None:
        """A call is on its way."""
        ...

    def ended(self, call: Call, seconds: float, error: TabhubError | None, *, success: bool) -> None:
        """It has its answer."""
        ...
