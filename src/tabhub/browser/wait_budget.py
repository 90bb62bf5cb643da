"""How long a wait still has, and how it is spent: pauses that grow, and a sign of life every ten seconds.

Owns the clock of the waiting tools. What is waited for is theirs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from tabhub.browser.elements.element import poll_pause
from tabhub.browser.tool_spec import Call
from tabhub.errors import CommandFailed, InvalidArguments

T = TypeVar("T")
TIMEOUT: dict[str, Any] = {"type": "integer", "minimum": 0, "description": "ms"}
_TELL = 10.0
_ANSWER = 1.5
"""Seconds a page may take to answer the last question."""


class WaitBudget:
    """The time one call may wait."""

    def __init__(self, call: Call, what: str) -> None:
        limits = call.box.browsers.limits
        given = call.args.get("timeout")
        self.total = limits.wait_default if given is None else given / 1000
        if self.total > limits.call_timeout_max - 5:
            most = round((limits.call_timeout_max - 5) * 1000)
            raise InvalidArguments(
                f"timeout must leave the call time to answer: at most {most} ms, not {given}.",
                hint="Wait so long, then call again.",
            )
        self._call = call
        self._what = what
        self._loop = asyncio.get_running_loop()
        self._begun = self._told = self._loop.time()
        self._attempt = 0

    @property
    def elapsed(self) -> float:
        """Seconds since the wait began."""
        return self._loop.time() - self._begun

    @property
    def remaining(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._remaining)

    @property
    def _remaining(self) -> float:
        return self.total - self.elapsed

    def report_progress(self) -> None:
        """Report that the wait goes on, if it is time to; that also extends the call's deadline."""
        if self._loop.time() - self._told >= _TELL:
            self._told = self._loop.time()
            self._call.ctx.progress(round(self.elapsed, 1), self.total, f"Still waiting for {self._what}")

    async def pause(self, seen: str) -> None:
        """Wait a little before looking again; when the time is over, the error tells what was seen last."""
        if self.remaining <= 0:
            raise CommandFailed(
                f"Waited {self.total:g} s for {self._what}, in vain: {seen}.",
                hint="Look at the page (browser_snapshot); give a longer `timeout` if it only needs time.",
            )
        self.report_progress()
        pause = poll_pause(self._attempt)
        self._attempt += 1
        await asyncio.sleep(min(pause, self.remaining))

    async def await_page(self, asked: Coroutine[Any, Any, T]) -> T:
        """What the page answers; one that is too busy to answer is not waited for longer than the time that is left."""
        asking = asyncio.ensure_future(asked)
        try:
            while not asking.done():
                if self._remaining <= -_ANSWER:
                    raise CommandFailed(
                        f"Waited {self.total:g} s for {self._what}, in vain: the page, or a frame of it, does not "
                        "answer.",
                        hint="A script of its own keeps it busy. Wait longer, or close the tab (browser_close_tab).",
                    )
                self.report_progress()
                await asyncio.wait((asking,), timeout=min(_TELL, max(0.0, self._remaining + _ANSWER)))
            return asking.result()
        finally:
            asking.cancel()

    def reset_backoff(self) -> None:
        """Begin with short pauses anew: something has just happened."""
        self._attempt = 0
