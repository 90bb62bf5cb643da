"""Notifying agents that a list changed: rate-limited, and the last state always arrives.

Owns who listens to which list (tools, resources, prompts) and the rate of each. The listeners write the notification.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tabhub.limits import Limits
from tabhub.wire.mcp import LISTS


def gap(limits: Limits) -> float:
    """Seconds between two notifications of the same list."""
    return 1.0 / limits.list_changed_rate if limits.list_changed_rate else 0.0


class Pace:
    """Rate limit of one notification to one agent."""

    def __init__(self, changed: Callable[[], None], pause: float) -> None:
        self._changed = changed
        self._gap = pause
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def poke(self) -> None:
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        wait = self._next - loop.time()
        if wait <= 0:
            self._fire()
        else:
            self._timer = loop.call_later(wait, self._fire)

    def _fire(self) -> None:
        self._timer = None
        self._next = asyncio.get_running_loop().time() + self._gap
        self._changed()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


@dataclass(frozen=True, slots=True, eq=False)
class _Subscriber:
    """One agent that listens."""

    paces: dict[str, Pace]
    """By the name of the list."""
    end: Callable[[], None]
    token: str | None


class ListNotifier:
    """All listeners."""

    def __init__(self, limits: Limits) -> None:
        self._gap = gap(limits)
        self._open: set[_Subscriber] = set()

    @contextmanager
    def subscribe(
        self,
        changed: Callable[[str], None],
        end: Callable[[], None],
        *,
        kinds: Collection[str] = LISTS,
        token: str | None = None,
    ) -> Iterator[None]:
        """Listen while the block runs; `changed` gets the name of the list, `end` is called when the hub shuts down.

        `token` names the token whose holder listens.
        """
        paces = {kind: Pace(partial(changed, kind), self._gap) for kind in kinds}
        subscriber = _Subscriber(paces, end, token)
        self._open.add(subscriber)
        try:
            yield
        finally:
            self._open.discard(subscriber)
            for pace in paces.values():
                pace.stop()

    def changed(self, kind: str) -> None:
        for subscriber in self._open:
            if kind in subscriber.paces:
                subscriber.paces[kind].poke()

    def close(self) -> None:
        self.end(lambda _: True)

    def end(self, locked_out: Callable[[str | None], bool]) -> None:
        """End the streams of those whose token is no longer valid."""
        for subscriber in [each for each in self._open if locked_out(each.token)]:
            subscriber.end()
