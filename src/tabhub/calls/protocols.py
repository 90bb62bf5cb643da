"""What the engine knows of those around it: who calls, what holds calls back, and who watches.

Owns these interfaces and what is asked of an agent's client in the middle of a call; it runs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tabhub.core.calls import Call
from tabhub.core.sessions import Session
from tabhub.errors import TabhubError

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
    def structured(self) -> bool:
        """Whether it is a program that wants built-in tools to answer with data instead of text."""

    @property
    def answers(self) -> Answers | None:
        """What the client brought in answer to earlier questions; None if it does not answer by calling again."""

    @property
    def params(self) -> Mapping[str, Any]:
        """The request's own parameters, for what passes through the hub (`_meta`, `extensions`); REST has none."""

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: str, logger: str, data: Any) -> None: ...

    async def ask(self, tool: str, questions: Questions) -> Answers:
        """Ask the agent's own client, and through it its person."""

    def can(self, capability: str) -> bool:
        """Whether the agent's client declared a capability (elicitation, sampling, roots)."""


class Waits(Protocol):
    """What holds calls back before they are open: a pause, an approval."""

    def cancel(self, which: Callable[[Caller | None, Session], bool], reason: str) -> None:
        """Cancel the calls of these callers and sessions; a caller between two rounds of its call is None."""


class Watcher(Protocol):
    """Who is notified of calls as they run (server.panel.Panel)."""

    def began(self, call: Call, caller: Caller, arguments: Mapping[str, Any]) -> None: ...

    def ended(self, call: Call, seconds: float, error: TabhubError | None, *, success: bool) -> None: ...
