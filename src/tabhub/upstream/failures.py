"""What can go wrong with an external server, as an agent or a person reads it."""

from __future__ import annotations

import asyncio


def first_cause(error: BaseException) -> BaseException:
    """The first failure that is one, inside groups of failures."""
    while isinstance(error, BaseExceptionGroup):
        told = [each for each in error.exceptions if not isinstance(each, asyncio.CancelledError)]
        error = (told or list(error.exceptions))[0]
    return error
