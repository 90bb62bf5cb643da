"""Waiting with a generous timeout for conditions that no event announces; the only polling in the tests.

A wait fails with the source of its condition and the values it uses, so that callers need not describe it.
"""

from __future__ import annotations

import asyncio
import inspect
import linecache
import reprlib
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
LONG = 30.0
"""Seconds for any wait: a bound on a hang, not a measurement."""
_IN_PROCESS = 0.002
_OUTSIDE = 0.02


class NotReached(AssertionError, TimeoutError):
    """A condition did not hold within its timeout."""


async def until(condition: Callable[[], bool], seconds: float = LONG) -> None:
    """Wait until a condition in this process holds."""
    end = _Deadline(seconds, condition)
    try:
        async with asyncio.timeout(seconds):  # by the loop's clock, which may be virtual
            while not condition():  # noqa: ASYNC110 - polling is its purpose
                await asyncio.sleep(_IN_PROCESS)
    except TimeoutError as error:
        raise end.failure() from error


async def until_outside(condition: Callable[[], bool], within: float = LONG) -> None:
    """Wait for another process, where evaluating the condition blocks for a moment."""
    end = _Deadline(within, condition)
    while not await asyncio.to_thread(condition):
        end.check()
        await asyncio.sleep(_OUTSIDE)


async def eventually(look: Callable[[], Awaitable[T | None]], within: float = LONG, every: float = _OUTSIDE) -> T:
    """Wait until an asynchronous function returns a truthy value, and return it; expensive ones are called less
    often."""
    end = _Deadline(within, look)
    try:
        async with asyncio.timeout(within):
            while not (found := await look()):  # noqa: ASYNC110 - polling is its purpose
                await asyncio.sleep(every)
    except TimeoutError as error:
        raise end.failure() from error
    return found


async def becomes(look: Callable[[], Awaitable[T]], wanted: T, within: float = LONG) -> None:
    """Wait until an asynchronous function returns the wanted value."""
    end = _Deadline(within, look)
    while (found := await look()) != wanted:
        end.check(f"expected {wanted!r}, but it stayed {found!r}")
        await asyncio.sleep(_OUTSIDE)


def wait_for(condition: Callable[[], bool], within: float = LONG) -> None:
    """Wait for another process, outside of an event loop."""
    end = _Deadline(within, condition)
    while not condition():
        end.check()
        time.sleep(_OUTSIDE)


class _Deadline:
    def __init__(self, seconds: float, condition: Callable[[], Any]) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._condition = condition

    def check(self, found: str = "it never held") -> None:
        if time.monotonic() >= self._end:
            raise self.failure(found)

    def failure(self, found: str = "it never held") -> NotReached:
        return NotReached(f"Waited {self._seconds:g} s for: {describe(self._condition)}\n{found}")


def describe(condition: Callable[[], Any]) -> str:
    """The source of a condition, and the values of the variables it captures."""
    lines = [_source(condition)]
    if inspect.isfunction(condition):
        used = dict(inspect.getclosurevars(condition).nonlocals)
        used.update((name, each.default) for name, each in inspect.signature(condition).parameters.items())
        lines += [f"  {name} = {reprlib.repr(value)}" for name, value in used.items()]
    return "\n".join(lines)


def _source(condition: Callable[[], Any]) -> str:
    if not inspect.isfunction(condition):
        return repr(condition)
    if condition.__name__ != "<lambda>":
        try:
            return textwrap.dedent(inspect.getsource(condition)).rstrip()
        except OSError:
            return condition.__qualname__
    return "\n".join(_lambda_body(condition.__code__)) or repr(condition)


def _lambda_body(code: Any) -> Iterator[str]:
    """The lines of a lambda's expression, from the positions of its instructions."""
    places = [place for place in code.co_positions() if None not in place and place[3] > 0]
    if not places:
        return
    first, begin = min((line, column) for line, _, column, _ in places)
    last, end = max((line, column) for _, line, _, column in places)
    for number in range(first, last + 1):
        # Columns count bytes.
        line = linecache.getline(code.co_filename, number).rstrip("\n").encode()
        yield line[begin if number == first else 0 : end if number == last else None].decode(errors="replace").strip()
