"""The error tree: every failure a person or an agent may see.

This module owns how a failure is described (message, hint, code, outcome); it knows nothing of how it is carried.

    TabhubError
    ├── BadInput                 what came in cannot be accepted
    │   ├── ParseError           -32700  not the JSON we accept
    │   ├── InvalidRequest       -32600  JSON, but not a JSON-RPC message
    │   ├── MethodNotFound       -32601
    │   ├── InvalidParams        -32602  a parameter is missing or of the wrong shape
    │   │   ├── UnknownTool              no tool of that name; offers the nearest
    │   │   ├── UnknownPrompt            no prompt of that name, or several
    │   │   ├── UnknownResource          no resource at that URI, or several (-32002 in the revisions with a handshake)
    │   │   └── InvalidArguments         the arguments do not fit the tool's schema; names the field
    │   └── TooLarge             -32600  over a size limit
    ├── Refused                  understood, and not allowed
    │   ├── Unauthorized         -32002  token missing or wrong
    │   ├── Forbidden            -32003  Host or Origin not ours
    │   ├── RateLimited          -32004  try again after `retry_after` seconds
    │   └── PermissionDenied     -32005  the person's permissions say no
    ├── BrowserError             the road to the tab
    │   ├── NotConnected         -32000  no browser is connected; never sent
    │   ├── LinkLost             -32006  the connection ended under the call
    │   ├── TabNotFound          -32001  no such tab
    │   ├── TabLeased            -32007  another session holds the tab
    │   └── CommandFailed        -32008  the browser or the page said no
    ├── CallTimeout              -32009  the deadline passed
    ├── CallCancelled            -32010  the agent took the call back
    ├── Busy                     -32011  the source's queue is full
    ├── SessionNotFound          -32012  the session ended or never was
    ├── ResultNotFound           -32013  the result handle expired or never was
    ├── Paused                   -32015  a person has the wheel
    └── SetupError               -32014  this machine, its files or its configuration
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

Outcome = Literal["not_sent", "unknown", "failed"]


class TabhubError(Exception):
    """A failure with a message that says what happened and a hint that says what to do."""

    code: ClassVar[int] = -32603
    status: ClassVar[int] = 500
    category: ClassVar[str] = "internal"
    outcome: Outcome | None = None
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def text(self) -> str:
        """The whole of it, as an agent or a person reads it."""
        parts = [self.message]
        if self.outcome is not None:
            parts.append(f"(outcome: {self.outcome})")
        if self.hint:
            parts.append(self.hint)
        return " ".join(parts)

    def facts(self) -> dict[str, Any]:
        """The machine-readable side: category, outcome, retry advice and what else is known."""
        facts: dict[str, Any] = {"code": self.code, "category": self.category, "retryable": self.retryable}
        if self.outcome is not None:
            facts["outcome"] = self.outcome
        if self.hint:
            facts["hint"] = self.hint
        if self.data:
            facts.update(self.data)
        return facts


class BadInput(TabhubError):
    """What came in cannot be accepted."""

    code = -32600
    status = 400
    category = "validation"


class ParseError(BadInput):
    """The bytes are not the JSON we accept."""

    code = -32700


class InvalidRequest(BadInput):
    """JSON, but not a JSON-RPC message."""


class MethodNotFound(BadInput):
    """No such method on this surface."""

    code = -32601
    status = 404


class InvalidParams(BadInput):
    """A parameter is missing or of the wrong shape."""

    code = -32602


class UnknownTool(InvalidParams):
    """No tool of that name."""

    status = 404
    category = "not_found"


class UnknownPrompt(InvalidParams):
    """No prompt of that name, or not just one."""

    status = 404
    category = "not_found"


class UnknownResource(InvalidParams):
    """No resource at that URI, or not just one."""

    status = 404
    category = "not_found"


class InvalidArguments(InvalidParams):
    """The arguments do not fit the tool's schema."""

    status = 422
    outcome: Outcome | None = "not_sent"


class TooLarge(BadInput):
    """Over a size limit."""

    status = 413


class Refused(TabhubError):
    """Understood, and not allowed."""

    code = -32003
    status = 403
    category = "auth"


class Unauthorized(Refused):
    """The token is missing or wrong."""

    code = -32002
    status = 401


class Forbidden(Refused):
    """The request comes from where requests may not come from."""


class RateLimited(Refused):
    """Too many of these in too short a time."""

    code = -32004
    status = 429
    category = "rate_limit"
    outcome: Outcome | None = "not_sent"
    retryable = True

    def __init__(self, message: str, *, retry_after: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, data={"retryAfter": retry_after})
        self.retry_after = retry_after


class PermissionDenied(Refused):
    """The person's permissions say no."""

    code = -32005
    category = "permission"
    outcome: Outcome | None = "not_sent"


class BrowserError(TabhubError):
    """The road to the tab is broken somewhere."""

    code = -32000
    status = 422
    category = "browser"


class NotConnected(BrowserError):
    """No browser is connected, so nothing was sent."""

    status = 503
    outcome: Outcome | None = "not_sent"
    retryable = True


class LinkLost(BrowserError):
    """The connection to the browser ended under the call."""

    code = -32006
    status = 502
    outcome: Outcome | None = "unknown"

    def __init__(self, message: str, *, sent: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.outcome = "unknown" if sent else "not_sent"


class TabNotFound(BrowserError):
    """No such tab."""

    code = -32001
    status = 404
    category = "not_found"
    outcome: Outcome | None = "not_sent"


class TabLeased(BrowserError):
    """Another session holds the tab."""

    code = -32007
    status = 409
    category = "conflict"
    outcome: Outcome | None = "not_sent"


class CommandFailed(BrowserError):
    """The browser or the page refused or failed the command."""

    code = -32008
    outcome: Outcome | None = "failed"


class CallTimeout(TabhubError):
    """The deadline passed before an answer came."""

    code = -32009
    status = 504
    category = "timeout"
    outcome: Outcome | None = "unknown"


class CallCancelled(TabhubError):
    """The agent took the call back."""

    code = -32010
    status = 499
    category = "cancelled"
    outcome: Outcome | None = "unknown"


class Busy(TabhubError):
    """The source already runs all it may, and its queue is full."""

    code = -32011
    status = 503
    category = "concurrency"
    outcome: Outcome | None = "not_sent"
    retryable = True


class SessionNotFound(TabhubError):
    """The session ended or never was."""

    code = -32012
    status = 404
    category = "not_found"


class ResultNotFound(TabhubError):
    """The result handle expired or never was."""

    code = -32013
    status = 404
    category = "not_found"
    outcome: Outcome | None = "failed"


class Paused(TabhubError):
    """A person has paused the agents and has the wheel."""

    code = -32015
    status = 423
    category = "paused"
    outcome: Outcome | None = "not_sent"
    retryable = True


class SetupError(TabhubError):
    """This machine, its files or its configuration stand in the way."""

    code = -32014
    category = "setup"
