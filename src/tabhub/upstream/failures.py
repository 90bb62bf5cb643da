"""Finding the cause inside the exception groups that the MCP SDK raises."""

from __future__ import annotations

import asyncio


def first_cause(error: BaseException) -> BaseException:
    """The first exception in nested groups that is not a cancellation."""
    while isinstance(error, BaseExceptionGroup):
        failures = [each for each in error.exceptions if not isinstance(each, asyncio.CancelledError)]
        error = (failures or list(error.exceptions))[0]
    return error
