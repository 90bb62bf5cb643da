"""Waiting with a bound for what announces itself by no event; nothing else in the tests looks again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(true: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until something in this process holds."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - that is what it is for
            await asyncio.sleep(0.002)


async def until_outside(check: Callable[[], bool], within: float = 15) -> float:
    """Wait for something another process does, where asking for it takes its time; gives how long it took."""
    begun = time.monotonic()
    while not await asyncio.to_thread(check):
        assert time.monotonic() - begun < within, "it did not come to pass"
        await asyncio.sleep(0.02)
    return time.monotonic() - begun


async def eventually(look: Callable[[], Awaitable[T | None]], within: float = 30) -> T:
    """Ask until there is an answer: what other processes do is announced by no event."""
    async with asyncio.timeout(within):
        while not (found := await look()):  # noqa: ASYNC110 - that is what it is for
            await asyncio.sleep(0.02)
    return found


async def becomes(look: Callable[[], Awaitable[T]], wanted: T, within: float = 30) -> None:
    """Ask until the answer is this one; what it was instead is told at the end."""
    begun = time.monotonic()
    while (found := await look()) != wanted:
        assert time.monotonic() - begun < within, f"it stayed {found!r}"
        await asyncio.sleep(0.02)


def wait_for(check: Callable[[], bool], within: float = 30) -> None:
    """Wait for something another process does, outside of an event loop."""
    begun = time.monotonic()
    while not check():
        assert time.monotonic() - begun < within, "it did not come to pass"
        time.sleep(0.02)
