"""Finding the cause inside the exception groups that the MCP SDK raises."""

from __future__ import annotations

import asyncio


def first_cause(error: BaseException) -> BaseException:
    """The first exception in nested groups that is not a cancellation."""
    while isinstance(error, BaseExceptionGroup):
        told = [each for each in error.exceptions if not isinstance(each, asyncio.CancelledError)]
        error = (told or list(error.exceptions))[0]
    return error
