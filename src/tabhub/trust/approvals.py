"""Requests for a person's word: which are open, what was answered, and when one has waited long enough.

Owns the queue and that an answer reaches the one request it was given for: ids are random and handed in, and an answer
to any other id is nobody's. Pure: the time is passed in. Who is asked, and how, is known elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Decision = Literal["allow_once", "allow_session", "allow_always", "deny"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)
Why = Literal["permission", "pin", "dataflow", "page", "tab"]
Approver = Literal["panel", "terminal", "notification", "elicitation"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person said."""

    decision: Decision
    by: Approver
    reason: str = ""

    @property
    def allowed(self) -> bool:
        """Whether the call may run."""
        return self.decision != "deny"


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What a person is asked: everything they need to decide."""

    id: str
    tool: str
    plugin: str
    source: str
    client: str
    session: str
    params: Any
    why: Why
    words: str
    """The reason in words."""
    created: float
    expires: float
    identity: str | None = None
    """The name of the client's token."""
    tab_id: int | None = None
    title: str | None = None
    url: str | None = None
    origin: str | None = None
    diff: str | None = None
    choices: tuple[Decision, ...] = DECISIONS
    mark: str = ""
    """Tells a call that is made again from any other: who calls what with which arguments."""

    def facts(self, wall: float) -> dict[str, Any]:
        """For those who ask the person; `wall` is the time of day at which the request ends."""
        facts: dict[str, Any] = {
            "id": self.id,
            "tool": self.tool,
            "plugin": self.plugin,
            "source": self.source,
            "params": self.params,
            "client": self.client,
            "session": self.session,
            "reason": self.why,
            "message": self.words,
            "choices": list(self.choices),
            "expiresAt": round(wall * 1000),
        }
        more: Mapping[str, Any] = {
            "token": self.identity,
            "tabId": self.tab_id,
            "title": self.title,
            "url": self.url,
            "origin": self.origin,
            "diff": self.diff,
        }
        return facts | {name: value for name, value in more.items() if value is not None}


@dataclass(slots=True)
class Queue:
    """The open requests, oldest first."""

    most: int
    _open: dict[str, Request] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Request]:
        return iter(list(self._open.values()))

    @property
    def full(self) -> bool:
        """Whether as many requests wait as may."""
        return len(self._open) >= self.most

    def add(self, request: Request) -> None:
        """Take in a request."""
        self._open[request.id] = request

    def get(self, ident: str) -> Request | None:
        """An open request."""
        return self._open.get(ident)

    def take(self, ident: str, decision: Decision | None = None) -> Request | None:
        """Close a request: it was answered or has ended. None if it is not open, or does not offer that decision."""
        request = self._open.get(ident)
        if request is None or (decision is not None and decision not in request.choices):
            return None
        del self._open[ident]
        return request

    def due(self, now: float) -> list[Request]:
        """The requests that have waited long enough."""
        return [request for request in self._open.values() if request.expires <= now]
