"""Errors of the command line, of outgoing HTTP and of the stdio bridge. All others are in `errors`.

They are separate because `tabhub tool call` has to start in a few milliseconds: this module imports nothing.
"""

from __future__ import annotations


class CliError(Exception):
    """A failure to show as `error:` and `hint:`, and the exit code that goes with it."""

    def __init__(self, message: str, hint: str | None = None, *, exit_code: int = 1, detail: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = exit_code
        self.detail = detail


class UsageError(CliError):
    """The command was written wrongly; exit code 2."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint, exit_code=2)


class HubDownError(CliError):
    """Nothing answers at the hub's address."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"The hub is not running on {address}.", "Start it with: tabhub start --background", exit_code=2
        )


class HttpError(Exception):
    """An outgoing HTTP request has no complete response; says why, as a phrase without a period."""


class HttpConnectError(HttpError):
    """No connection was made, so nothing was sent."""


class HttpTimeout(HttpError):
    """The response did not arrive in time."""


class HttpConnectionClosed(HttpError):
    """The connection ended before the response did."""


class InvalidHttpResponse(HttpError):
    """The response is not HTTP, or exceeds a bound."""


class BridgeProtocolError(Exception):
    """The stdio bridge received something that no hub sends."""
