"""What can go wrong with an external server, as an agent or a person reads it."""

from __future__ import annotations

import asyncio

from tabhub.errors import BadInput, Outcome, SetupError, TabhubError


class BadServer(BadInput):
    """A server's configuration cannot be used; the message names the field."""

    status = 422


class UnknownServer(TabhubError):
    """No external server of that name."""

    status = 404
    category = "not_found"


class Blocked(SetupError):
    """The address is one that servers may not have unless the person allows its host."""

    status = 403
    category = "validation"


class UpstreamError(TabhubError):
    """An external server did not do what it was asked."""

    code = -32016
    status = 502
    category = "upstream"
    outcome: Outcome | None = "failed"


class UpstreamOffline(UpstreamError):
    """The server is not connected, so nothing was sent."""

    status = 503
    outcome: Outcome | None = "not_sent"
    retryable = True


class UpstreamLost(UpstreamError):
    """The connection ended under the call."""

    outcome: Outcome | None = "unknown"


class NeedsLogin(UpstreamOffline):
    """The server wants the person to log in first."""

    category = "auth"
    retryable = False


def first_cause(error: BaseException) -> BaseException:
    """The first failure that is one, inside groups of failures."""
    while isinstance(error, BaseExceptionGroup):
        told = [each for each in error.exceptions if not isinstance(each, asyncio.CancelledError)]
        error = (told or list(error.exceptions))[0]
    return error
