"""Every error class of the product.

This module owns how a failure is described (message, hint, code, outcome); it knows nothing of how it is carried, and
imports nothing of the product. A class states what differs from its base; docs/protocol.md has the whole table. Below
the tree are the errors that one module raises for another to translate. Those of the command line and of outgoing HTTP
are in `client_errors`. One that does not leave its module may stay there.

    TabhubError              a failure inside Tabhub itself
    ├── BadInput             what came in cannot be accepted
    │   └── InvalidParams    a parameter is missing or of the wrong shape
    ├── Refused              understood, and not allowed
    ├── NotFound             nothing of that name or at this URL
    ├── BrowserError         between the hub and the tab
    │   └── CommandFailed    the browser or the page failed or refused the command
    ├── UpstreamError        an external server failed the request
    ├── RelayError           the relay refuses
    ├── SetupError           this machine, its files or its configuration
    │   └── PluginError      a plugin cannot be used, found or installed
    └── CallTimeout, CallCancelled, Busy, Paused and others that have no branch
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

Outcome = Literal["not_sent", "unknown", "failed"]


class TabhubError(Exception):
    """A failure inside Tabhub itself."""

    code: ClassVar[int] = -32603
    status: ClassVar[int] = 500
    category: str = "internal"
    outcome: Outcome | None = None
    retryable: ClassVar[bool] = False
    retry_after: int | None = None
    """Seconds to wait before trying again, where that is known."""

    def __init_subclass__(
        cls,
        *,
        code: int | None = None,
        status: int | None = None,
        category: str | None = None,
        outcome: Outcome | None = None,
        retryable: bool | None = None,
    ) -> None:
        """`code` is JSON-RPC's, `status` HTTP's; what a class does not state is as in its base."""
        stated = {"code": code, "status": status, "category": category, "outcome": outcome, "retryable": retryable}
        for name, value in stated.items():
            if value is not None:
                setattr(cls, name, value)

    def __init__(self, message: str, *, hint: str | None = None, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.data = data

    def text(self) -> str:
        """Message, outcome and hint, as an agent or a person reads them."""
        parts = [self.message]
        if self.outcome is not None:
            parts.append(f"(outcome: {self.outcome})")
        if self.hint:
            parts.append(self.hint)
        return " ".join(parts)

    def details(self) -> dict[str, Any]:
        """The machine-readable part: code, category, outcome, whether to retry, hint and data."""
        details: dict[str, Any] = {"code": self.code, "category": self.category, "retryable": self.retryable}
        if self.outcome is not None:
            details["outcome"] = self.outcome
        if self.hint:
            details["hint"] = self.hint
        return {**details, **(self.data or {})}


class BadInput(TabhubError, code=-32600, status=400, category="validation"):
    """The input cannot be accepted."""


class ParseError(BadInput, code=-32700):
    """The bytes are not JSON, or not in the strict form that is accepted."""


class InvalidRequest(BadInput):
    """Valid JSON, but not a JSON-RPC message."""


class MethodNotFound(BadInput, code=-32601, status=404):
    """No such method on this surface."""


class MethodNotAllowed(MethodNotFound, status=405):
    """The URL does not support this HTTP method."""


class InvalidParams(BadInput, code=-32602):
    """A parameter is missing or of the wrong shape."""


class UnknownTool(InvalidParams, status=404, category="not_found"):
    """No tool has that name."""


class UnknownPrompt(InvalidParams, status=404, category="not_found"):
    """No prompt has that name, or more than one."""


class UnknownResource(InvalidParams, status=404, category="not_found"):
    """No resource at that URI, or more than one."""


class InvalidArguments(InvalidParams, status=422, outcome="not_sent"):
    """The arguments do not fit the tool's schema."""


class InvalidPluginSettings(InvalidParams, status=422):
    """The values do not fit the plugin's schema."""


class InvalidServerConfig(BadInput, status=422):
    """An external server's configuration cannot be used; the message names the field."""


class HeaderMismatch(BadInput, code=-32020):
    """A header and the body disagree."""


class MissingCapability(BadInput, code=-32021):
    """The tool needs a capability that this client did not declare."""

    def __init__(self, tool: str, capability: str) -> None:
        super().__init__(
            f"{tool} needs the client capability {capability!r}, which this client did not declare.",
            data={"requiredCapabilities": {capability: {}}},
        )


class UnsupportedVersion(BadInput, code=-32022):
    """The protocol revision is not supported."""

    def __init__(self, requested: object, supported: Iterable[str]) -> None:
        super().__init__(
            "Unsupported protocol version", data={"supported": list(supported), "requested": str(requested)[:100]}
        )


class NotAcceptable(BadInput, status=406):
    """The client does not accept the content type of this endpoint."""


class UnsupportedMediaType(BadInput, status=415):
    """The body is not JSON."""


class TooLarge(BadInput, status=413):
    """A size limit is exceeded."""


class HeadersTooLarge(TooLarge, status=431):
    """The request line and headers are larger than any client needs."""


class Refused(TabhubError, code=-32003, status=403, category="auth"):
    """The request is valid but not allowed."""


class Unauthorized(Refused, code=-32002, status=401):
    """The token is missing or wrong."""


class InvalidToken(Unauthorized, code=-32000):
    """The relay's token (JWT) is not valid; the sender does not learn why."""

    def __init__(self, reason: str) -> None:
        super().__init__("Authentication failed: Invalid token")
        self.reason = reason
        """For the log; never contains any part of the token."""


class UnknownSigningKey(InvalidToken):
    """The token names a key that is not known here; it may have been published since."""


class Forbidden(Refused):
    """The request comes from a Host or Origin that is not allowed."""


class RateLimited(Refused, code=-32004, status=429, category="rate_limit", outcome="not_sent", retryable=True):
    """A rate limit is exceeded."""

    def __init__(self, message: str, *, retry_after: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, data={"retryAfter": retry_after})
        self.retry_after: int = retry_after


class PermissionDenied(Refused, code=-32005, category="permission", outcome="not_sent"):
    """The person's permissions deny the call."""


class SiteChanged(PermissionDenied):
    """The tab went to another site during the call, where the call was not permitted; nothing was done there."""


class TabStopped(PermissionDenied):
    """The person took the tab from the agents with the browser's own Cancel button."""

    def __init__(self, tab_id: int, *, sent: bool = False) -> None:
        super().__init__(
            "The person stopped you in this tab.",
            hint=f"Only they can return tab {tab_id} to agents: in Tabhub's panel, or with `tabhub resume {tab_id}`. "
            "Do not continue elsewhere unless they ask you to.",
            data={"tabId": tab_id},
        )
        self.outcome = "unknown" if sent else "not_sent"


class ElementChanged(PermissionDenied):
    """The element is not the one that the person was shown when they approved the call."""

    def __init__(self, shown: str, now: str) -> None:
        super().__init__(
            f"The person approved {shown}, but the page changed meanwhile: {now}. It was left alone.",
            hint="Take a new browser_snapshot and call again: the person is asked about what is there then.",
        )


class NotFound(TabhubError, status=404, category="not_found"):
    """Nothing with that name, or at this URL."""


class SessionNotFound(NotFound, code=-32012):
    """The session ended or never existed."""


class ResultNotFound(NotFound, code=-32013, outcome="failed"):
    """The result handle expired or never existed."""


class BrowserError(TabhubError, code=-32000, status=422, category="browser"):
    """Something between the hub and the tab failed."""


class NotConnected(BrowserError, status=503, outcome="not_sent", retryable=True):
    """No browser is connected, so nothing was sent."""


class RelayRefused(NotConnected):
    """The relay refused the connection, or could not be reached."""

    def __init__(self, message: str, *, hint: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class LinkLost(BrowserError, code=-32006, status=502, outcome="unknown"):
    """The connection to the browser ended during the call."""

    def __init__(self, message: str, *, sent: bool, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.outcome = "unknown" if sent else "not_sent"


class TabNotFound(BrowserError, code=-32001, status=404, category="not_found", outcome="not_sent"):
    """No such tab."""


class TabLeased(BrowserError, code=-32007, status=409, category="conflict", outcome="not_sent"):
    """Another session holds the tab."""


class CommandFailed(BrowserError, code=-32008, outcome="failed"):
    """The browser or the page refused or failed the command."""


class ElementMissing(CommandFailed):
    """No element, or not exactly one, is what a target names."""

    several = False
    """Whether it names more than one."""


class TabFailed(CommandFailed, outcome="unknown"):
    """The tab was closed, crashed or was taken away during the command."""


class PageNavigated(TabFailed):
    """The tab went to another page during the command."""


class SiteBlocked(PageNavigated, category="permission", outcome="failed"):
    """The tab shows a site that the person keeps the agent off."""

    def __init__(self, tab_id: int) -> None:
        super().__init__(
            f"Tab {tab_id} is on a site that the person keeps agents off: nothing of it can be read or used.",
            hint="Leave it with browser_navigate_tab or browser_go_back, or work in another tab.",
        )


class ContextDestroyed(PageNavigated):
    """The document a script was meant for was replaced before any of the script ran."""


class DialogOpen(CommandFailed, outcome="unknown"):
    """A dialog blocks the page; what the command started, if it was sent, waits behind it."""

    def __init__(self, tab_id: int, kind: str, message: str, *, sent: bool) -> None:
        super().__init__(
            f"Tab {tab_id} is blocked by a dialog ({kind}: {message!r}).",
            hint="The page waits until it is answered: browser_handle_dialog answers it, or close the tab.",
            data={"dialog": {"type": kind, "message": message}},
        )
        self.outcome = "unknown" if sent else "not_sent"


class NotInBrowser(CommandFailed, status=404, category="not_found", outcome="not_sent"):
    """The browser has no such bookmark, download, tab group or plugin; nothing was done."""


class PageToolGone(CommandFailed, outcome="not_sent"):
    """No page has the tool, not even after its site was opened; nothing was sent."""


class PluginToolFailed(CommandFailed, category="internal"):
    """A plugin's tool reported an error, with a category of its own; `sent` tells whether its handler had started."""

    def __init__(
        self, message: str, *, category: str, sent: bool, data: dict[str, Any], hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint, data=data)
        self.category = category
        # A page that went away during its tool call cannot report how far the tool got.
        self.outcome = ("unknown" if category == "unavailable" else "failed") if sent else "not_sent"


class NoMatchingTab(CommandFailed, status=409, category="unavailable", outcome="not_sent", retryable=True):
    """No open tab fits the plugin; nothing was sent."""


class TabMismatch(CommandFailed, status=409, category="validation", outcome="not_sent"):
    """The given tab does not show the plugin's site; nothing was sent."""


class UpstreamError(TabhubError, code=-32016, status=502, category="upstream", outcome="failed"):
    """An external server failed the request."""


class UpstreamOffline(UpstreamError, status=503, outcome="not_sent", retryable=True):
    """The server is not connected, so nothing was sent."""


class LoginRequired(UpstreamOffline, category="auth", retryable=False):
    """The server requires the person to log in first."""


class UpstreamLost(UpstreamError, outcome="unknown"):
    """The connection to the server ended during the call."""


class RelayError(TabhubError, code=-32000, category="relay"):
    """The relay refuses the request."""


class AlreadyConnected(RelayError, code=-32001):
    """An agent has one connection at a time."""


class BusUnavailable(RelayError, status=503, retryable=True):
    """The nodes of the relay cannot reach each other."""


class InvalidReply(TabhubError, outcome="unknown"):
    """The browser sent the relay a malformed reply."""


class TooManyConnections(TabhubError, status=503, category="concurrency"):
    """The relay node has reached its maximum of connections, or has more new ones than it can serve in time."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RequestTimeout(TabhubError, status=408, category="timeout", outcome="not_sent"):
    """The HTTP request did not arrive in time."""


class CallTimeout(TabhubError, code=-32009, status=504, category="timeout", outcome="unknown"):
    """The deadline passed before an answer came."""


class CallCancelled(TabhubError, code=-32010, status=499, category="cancelled", outcome="unknown"):
    """The agent cancelled the call."""


class Busy(TabhubError, code=-32011, status=503, category="concurrency", outcome="not_sent", retryable=True):
    """The source runs as many calls as it may, and its queue is full."""


class Paused(TabhubError, code=-32015, status=423, category="paused", outcome="not_sent", retryable=True):
    """A person has paused the agents."""


class ModelError(TabhubError, category="model"):
    """The model's provider could not be reached, refused, or sent an unreadable answer."""


class HubError(TabhubError):
    """The hub answered the built-in agent with an error."""


class ConfigNotReloaded(TabhubError, status=422, category="setup"):
    """The configuration file is invalid; the previous configuration stays in force."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The configuration was not reloaded: {reason}",
            hint="The last valid configuration stays in force. Correct the file.",
        )


class SetupError(TabhubError, code=-32014, category="setup"):
    """This machine, its files or its configuration do not allow it."""


class HubUnreachable(SetupError):
    """The hub cannot be reached, or closed the connection."""


class AddressBlocked(SetupError, status=403, category="validation"):
    """External servers may not have this address unless the person allows its host."""


class PluginError(SetupError, status=422, category="plugin"):
    """A plugin cannot be used, found or installed."""


class RegistryUnset(PluginError):
    """No npm registry is configured."""

    def __init__(self) -> None:
        super().__init__(
            "No npm registry is configured to install plugins from.",
            hint="Set it: tabhub config set pluginRegistry https://<registry>; or install npm, whose own setting is "
            "used. A package that is a file needs none: tabhub plugin install ./package.tgz",
        )


class RegistryError(PluginError, status=502, category="registry"):
    """The npm registry cannot be reached, or its answer is not a registry's."""


class PackageNotFound(PluginError, status=404, category="not_found"):
    """The registry has no such package."""


class VersionNotFound(PackageNotFound):
    """The package has no such version."""


# --- Raised by one module for another to translate; never shown as they are. ---


class BadFrame(Exception):
    """A malformed message at the relay: the error, and the id of the request or reply it was, if known."""

    def __init__(self, error: BadInput, ident: str | int | None = None, *, answer: bool = False) -> None:
        super().__init__(error.message)
        self.error = error
        self.ident = ident
        self.answer = answer


class BusConnectFailed(Exception):
    """The relay could not connect to its bus; says why."""


class BusRefused(BusConnectFailed):
    """A server of the bus answered, but its settings and this node's do not match: waiting does not help."""


class ClientDisconnected(Exception):
    """The HTTP client disconnected; there is no one to answer."""


class JsoncError(Exception):
    """The text is not JSON, not even with comments and trailing commas."""

    def __init__(self, text: str, at: int, what: str) -> None:
        row = text.count("\n", 0, at) + 1
        column = at - (text.rfind("\n", 0, at) + 1) + 1
        super().__init__(f"{what} at line {row}, column {column}")


class PipeClosedError(Exception):
    """The browser closed the debugging pipe: it exited, or does not support one."""


class PipeRefusedError(Exception):
    """The browser answered a command on the debugging pipe with an error."""


class TomlError(Exception):
    """The text is not TOML, or cannot be changed safely."""
