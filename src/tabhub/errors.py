"""Every error class of the product.

This module owns how a failure is described (message, hint, code, outcome); it knows nothing of how it is carried, and
imports nothing of the product. Below the tree are the errors that one module raises for another to translate. Those of
the command line and of outgoing HTTP are in `client_errors`. One that does not leave its module may stay there.

    TabhubError                      -32603  a failure inside Tabhub itself
    ├── BadInput                     -32600  what came in cannot be accepted
    │   ├── ParseError               -32700  not the JSON we accept
    │   ├── InvalidRequest           -32600  JSON, but not a JSON-RPC message
    │   ├── MethodNotFound           -32601
    │   │   └── MethodNotAllowed     -32601  the URL exists, but not for this HTTP method
    │   ├── InvalidParams            -32602  a parameter is missing or of the wrong shape
    │   │   ├── UnknownTool                  no tool of that name; suggests the nearest
    │   │   ├── UnknownPrompt                no prompt of that name, or several
    │   │   ├── UnknownResource              no such resource, or several (-32002 in the revisions with a handshake)
    │   │   ├── InvalidArguments             the arguments do not fit the tool's schema; names the field
    │   │   └── InvalidPluginSettings        the values do not fit the plugin's schema
    │   ├── InvalidServerConfig      -32600  an external server's configuration; names the field
    │   ├── HeaderMismatch           -32020  a header and the body disagree
    │   ├── MissingCapability        -32021  the tool needs a capability the client did not declare
    │   ├── UnsupportedVersion       -32022  a protocol revision we do not speak
    │   ├── NotAcceptable            -32600  the client does not accept our content type
    │   ├── UnsupportedMediaType     -32600  the body is not JSON
    │   └── TooLarge                 -32600  over a size limit
    │       └── HeadersTooLarge      -32600
    ├── Refused                      -32003  understood, and not allowed
    │   ├── Unauthorized             -32002  token missing or wrong
    │   │   └── InvalidToken         -32000  the relay's: a JWT that is not valid
    │   │       └── UnknownSigningKey        its key may have been published since
    │   ├── Forbidden                -32003  Host or Origin not ours
    │   ├── RateLimited              -32004  try again after `retry_after` seconds
    │   └── PermissionDenied         -32005  the person's permissions say no
    ├── NotFound                     -32603  nothing at this URL
    │   ├── ApprovalNotFound                 no such pending approval
    │   ├── UnknownPlugin                    no plugin of that name
    │   ├── UnknownServer                    no external server of that name
    │   ├── SessionNotFound          -32012  the session ended or never existed
    │   └── ResultNotFound           -32013  the result handle expired or never existed
    ├── BrowserError                 -32000  between the hub and the tab
    │   ├── NotConnected             -32000  no browser is connected; never sent
    │   │   └── RelayRefused         -32000  the relay refused us, or could not be reached
    │   ├── LinkLost                 -32006  the connection ended during the call
    │   ├── TabNotFound              -32001  no such tab
    │   ├── TabLeased                -32007  another session holds the tab
    │   └── CommandFailed            -32008  the browser or the page failed or refused the command
    │       ├── TabFailed                    the tab closed, crashed or was taken away
    │       │   └── PageNavigated            the tab went to another page
    │       │       └── ContextDestroyed     before the script ran
    │       ├── DialogOpen                   a dialog blocks the page
    │       ├── NotInBrowser                 no such bookmark, download, group ...
    │       ├── PageToolGone                 no page has the tool
    │       ├── PluginToolFailed             a plugin's own error
    │       ├── NoMatchingTab                no open tab fits the plugin
    │       └── TabMismatch                  the tab shows another site than the plugin's
    ├── UpstreamError                -32016  an external server failed the request
    │   ├── UpstreamOffline          -32016  not connected; never sent
    │   │   └── LoginRequired        -32016  the person has to log in first
    │   └── UpstreamLost             -32016  the connection ended during the call
    ├── RelayError                   -32000  the relay refuses
    │   ├── AlreadyConnected         -32001  an agent has one connection at a time
    │   └── BusUnavailable           -32000  the relay's nodes cannot reach each other
    ├── InvalidReply                 -32603  a browser's malformed reply, at the relay
    ├── TooManyConnections           -32603  the relay node is full
    ├── RequestTimeout               -32603  the HTTP request did not arrive in time
    ├── CallTimeout                  -32009  the deadline passed
    ├── CallCancelled                -32010  the agent cancelled the call
    ├── Busy                         -32011  the source's queue is full
    ├── Paused                       -32015  a person has paused the agents
    ├── ModelError                   -32603  the model's provider failed
    ├── HubError                     -32603  the hub answered the built-in agent with an error
    ├── ConfigNotReloaded            -32603  the configuration file is invalid
    └── SetupError                   -32014  this machine, its files or its configuration
        ├── HubUnreachable           -32014
        ├── AddressBlocked           -32014  an external server at an address that is not allowed
        └── PluginError              -32014  a plugin cannot be used, found or installed
            ├── RegistryUnset        -32014
            ├── RegistryError        -32014
            └── PackageNotFound      -32014
                └── VersionNotFound  -32014
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


class MethodNotAllowed(MethodNotFound):
    """The URL does not support this HTTP method."""

    status = 405


class InvalidParams(BadInput):
    """A parameter is missing or of the wrong shape."""

    code = -32602


class UnknownTool(InvalidParams):
    """No tool of that name."""

    status = 404
    category = "not_found"


class UnknownPrompt(InvalidParams):
    """No prompt of that name, or more than one."""

    status = 404
    category = "not_found"


class UnknownResource(InvalidParams):
    """No resource at that URI, or more than one."""

    status = 404
    category = "not_found"


class InvalidArguments(InvalidParams):
    """The arguments do not fit the tool's schema."""

    status = 422
    outcome: Outcome | None = "not_sent"


class InvalidPluginSettings(InvalidParams):
    """The values do not fit the plugin's schema."""

    status = 422


class InvalidServerConfig(BadInput):
    """An external server's configuration cannot be used; the message names the field."""

    status = 422


class HeaderMismatch(BadInput):
    """A header and the body disagree."""

    code = -32020


class MissingCapability(BadInput):
    """The tool needs a capability that this client did not declare."""

    code = -32021

    def __init__(self, tool: str, capability: str) -> None:
        super().__init__(
            f"{tool} needs the client capability {capability!r}, which this client did not declare.",
            data={"requiredCapabilities": {capability: {}}},
        )


class UnsupportedVersion(BadInput):
    """A protocol revision we do not speak."""

    code = -32022

    def __init__(self, requested: object, supported: Iterable[str]) -> None:
        super().__init__(
            "Unsupported protocol version", data={"supported": list(supported), "requested": str(requested)[:100]}
        )


class NotAcceptable(BadInput):
    """The client does not accept the content type of this endpoint."""

    status = 406


class UnsupportedMediaType(BadInput):
    """The body is not JSON."""

    status = 415


class TooLarge(BadInput):
    """Over a size limit."""

    status = 413


class HeadersTooLarge(TooLarge):
    """The request line and headers are larger than any client needs."""

    status = 431


class Refused(TabhubError):
    """Understood, and not allowed."""

    code = -32003
    status = 403
    category = "auth"


class Unauthorized(Refused):
    """The token is missing or wrong."""

    code = -32002
    status = 401


class InvalidToken(Unauthorized):
    """The relay's token (JWT) is not valid; the sender is not told why."""

    code = -32000

    def __init__(self, reason: str) -> None:
        super().__init__("Authentication failed: Invalid token")
        self.reason = reason
        """For the log; never contains any part of the token."""


class UnknownSigningKey(InvalidToken):
    """The token names a key that is not known here; it may have been published since."""


class Forbidden(Refused):
    """The request comes from a Host or Origin that is not allowed."""


class RateLimited(Refused):
    """Too many of these in too short a time."""

    code = -32004
    status = 429
    category = "rate_limit"
    outcome: Outcome | None = "not_sent"
    retryable = True

    def __init__(self, message: str, *, retry_after: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint, data={"retryAfter": retry_after})
        self.retry_after: int = retry_after


class PermissionDenied(Refused):
    """The person's permissions say no."""

    code = -32005
    category = "permission"
    outcome: Outcome | None = "not_sent"


class NotFound(TabhubError):
    """Nothing at this URL."""

    status = 404
    category = "not_found"


class ApprovalNotFound(NotFound):
    """No such approval is pending."""


class UnknownPlugin(NotFound):
    """No plugin of that name."""


class UnknownServer(NotFound):
    """No external server of that name."""


class SessionNotFound(NotFound):
    """The session ended or never existed."""

    code = -32012


class ResultNotFound(NotFound):
    """The result handle expired or never existed."""

    code = -32013
    outcome: Outcome | None = "failed"


class BrowserError(TabhubError):
    """Something between the hub and the tab failed."""

    code = -32000
    status = 422
    category = "browser"


class NotConnected(BrowserError):
    """No browser is connected, so nothing was sent."""

    status = 503
    outcome: Outcome | None = "not_sent"
    retryable = True


class RelayRefused(NotConnected):
    """The relay refused the connection, or could not be reached."""


class LinkLost(BrowserError):
    """The connection to the browser ended during the call."""

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


class TabFailed(CommandFailed):
    """The tab was closed, crashed or was taken away during the command."""

    outcome: Outcome | None = "unknown"


class PageNavigated(TabFailed):
    """The tab went to another page during the command."""


class ContextDestroyed(PageNavigated):
    """The document a script was meant for was replaced before any of the script ran."""


class DialogOpen(CommandFailed):
    """A dialog blocks the page; what the command started, if it was sent, waits behind it."""

    outcome: Outcome | None = "unknown"

    def __init__(self, tab_id: int, kind: str, message: str, *, sent: bool) -> None:
        super().__init__(
            f"Tab {tab_id} is blocked by a dialog ({kind}: {message!r}).",
            hint="The page waits until it is answered: browser_handle_dialog answers it, or close the tab.",
            data={"dialog": {"type": kind, "message": message}},
        )
        self.outcome = "unknown" if sent else "not_sent"


class NotInBrowser(CommandFailed):
    """The browser has no such bookmark, download, tab group or plugin; nothing was done."""

    status = 404
    category = "not_found"
    outcome: Outcome | None = "not_sent"


class PageToolGone(CommandFailed):
    """No page has the tool, not even after its site was opened; nothing was sent."""

    outcome: Outcome | None = "not_sent"


class PluginToolFailed(CommandFailed):
    """A plugin's tool reported an error, with a category of its own; `sent` tells whether its handler had started."""

    category = "internal"

    def __init__(
        self, message: str, *, category: str, sent: bool, data: dict[str, Any], hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint, data=data)
        self.category = category
        # A page that went away during its tool call cannot report how far the tool got.
        self.outcome = ("unknown" if category == "unavailable" else "failed") if sent else "not_sent"


class NoMatchingTab(CommandFailed):
    """No open tab fits the plugin; nothing was sent."""

    status = 409
    category = "unavailable"
    outcome: Outcome | None = "not_sent"
    retryable = True


class TabMismatch(CommandFailed):
    """The given tab does not show the plugin's site; nothing was sent."""

    status = 409
    category = "validation"
    outcome: Outcome | None = "not_sent"


class UpstreamError(TabhubError):
    """An external server failed the request."""

    code = -32016
    status = 502
    category = "upstream"
    outcome: Outcome | None = "failed"


class UpstreamOffline(UpstreamError):
    """The server is not connected, so nothing was sent."""

    status = 503
    outcome: Outcome | None = "not_sent"
    retryable = True


class LoginRequired(UpstreamOffline):
    """The server requires the person to log in first."""

    category = "auth"
    retryable = False


class UpstreamLost(UpstreamError):
    """The connection to the server ended during the call."""

    outcome: Outcome | None = "unknown"


class RelayError(TabhubError):
    """The relay refuses the request."""

    code = -32000
    category = "relay"


class AlreadyConnected(RelayError):
    """An agent has one connection at a time."""

    code = -32001


class BusUnavailable(RelayError):
    """The nodes of the relay cannot reach each other."""

    status = 503
    retryable = True


class InvalidReply(TabhubError):
    """The browser sent the relay a malformed reply."""

    outcome: Outcome | None = "unknown"


class TooManyConnections(TabhubError):
    """The relay node has reached its maximum of connections."""

    status = 503
    category = "concurrency"


class RequestTimeout(TabhubError):
    """The HTTP request did not arrive in time."""

    status = 408
    category = "timeout"
    outcome: Outcome | None = "not_sent"


class CallTimeout(TabhubError):
    """The deadline passed before an answer came."""

    code = -32009
    status = 504
    category = "timeout"
    outcome: Outcome | None = "unknown"


class CallCancelled(TabhubError):
    """The agent cancelled the call."""

    code = -32010
    status = 499
    category = "cancelled"
    outcome: Outcome | None = "unknown"


class Busy(TabhubError):
    """The source runs as many calls as it may, and its queue is full."""

    code = -32011
    status = 503
    category = "concurrency"
    outcome: Outcome | None = "not_sent"
    retryable = True


class Paused(TabhubError):
    """A person has paused the agents."""

    code = -32015
    status = 423
    category = "paused"
    outcome: Outcome | None = "not_sent"
    retryable = True


class ModelError(TabhubError):
    """The model's provider could not be reached, refused, or sent an unreadable answer."""

    category = "model"


class HubError(TabhubError):
    """The hub answered the built-in agent with an error."""


class ConfigNotReloaded(TabhubError):
    """The configuration file is invalid; the previous configuration stays in force."""

    status = 422
    category = "setup"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The configuration was not reloaded: {reason}",
            hint="The last valid configuration stays in force. Correct the file.",
        )


class SetupError(TabhubError):
    """This machine, its files or its configuration do not allow it."""

    code = -32014
    category = "setup"


class HubUnreachable(SetupError):
    """The hub cannot be reached, or closed the connection."""


class AddressBlocked(SetupError):
    """External servers may not have this address unless the person allows its host."""

    status = 403
    category = "validation"


class PluginError(SetupError):
    """A plugin cannot be used, found or installed."""

    status = 422
    category = "plugin"


class RegistryUnset(PluginError):
    """No npm registry is configured."""

    def __init__(self) -> None:
        super().__init__(
            "No npm registry is configured to install plugins from.",
            hint="Set it: tabhub config set pluginRegistry https://<registry>; or install npm, whose own setting is "
            "used. A package that is a file needs none: tabhub plugin install ./package.tgz",
        )


class RegistryError(PluginError):
    """The npm registry cannot be reached, or its answer is not a registry's."""

    status = 502
    category = "registry"


class PackageNotFound(PluginError):
    """The registry has no such package."""

    status = 404
    category = "not_found"


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
