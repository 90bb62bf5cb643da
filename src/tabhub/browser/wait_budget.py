"""The time budget of a waiting tool: backoff between looks, and progress every ten seconds.

What is waited for is up to the tools.
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
_PROGRESS_INTERVAL = 10.0
_ANSWER_GRACE = 1.5
"""Seconds for the last answer."""


class WaitBudget:
    """The time that one call may wait."""

    def __init__(self, call: Call, what: str) -> None:
        limits = call.box.browsers.limits
        given = call.args.get("timeout")
        self.total = limits.wait_default if given is None else given / 1000
        if self.total > limits.call_timeout_max - 5:
            most = round((limits.call_timeout_max - 5) * 1000)
            raise InvalidArguments(
                f"timeout is too long: {given} ms. The maximum is {most} ms.",
                hint="Wait in several calls.",
            )
        self._call = call
        self._what = what
        self._loop = asyncio.get_running_loop()
        self._begun = self._reported = self._loop.time()
        self._attempt = 0

    @property
    def elapsed(self) -> float:
        return self._loop.time() - self._begun

    @property
    def remaining(self) -> float:
        return max(0.0, self._remaining)

    @property
    def _remaining(self) -> float:
        return self.total - self.elapsed

    def report_progress(self) -> None:
        """Report progress if it is due; that also extends the call's deadline."""
        if self._loop.time() - self._reported >= _PROGRESS_INTERVAL:
            self._reported = self._loop.time()
            self._call.ctx.progress(round(self.elapsed, 1), self.total, f"Still waiting for {self._what}")

    async def pause(self, seen: str) -> None:
        """Back off before the next look; on timeout, the error reports what was `seen` last."""
        if self.remaining <= 0:
            raise CommandFailed(
                f"Timed out after {self.total:g} s waiting for {self._what}: {seen}.",
                hint="Look at the page (browser_snapshot), or give a longer `timeout`.",
            )
        self.report_progress()
        pause = poll_pause(self._attempt)
        self._attempt += 1
        await asyncio.sleep(min(pause, self.remaining))

    async def await_page(self, asked: Coroutine[Any, Any, T]) -> T:
        """The page's answer; a busy page is not waited for beyond the budget."""
        asking = asyncio.ensure_future(asked)
        try:
            while not asking.done():
                if self._remaining <= -_ANSWER_GRACE:
                    raise CommandFailed(
                        f"Timed out after {self.total:g} s waiting for {self._what}: the page or a frame does "
                        "not respond.",
                        hint="A script keeps it busy. Wait longer, or close the tab (browser_close_tab).",
                    )
                self.report_progress()
                await asyncio.wait(
                    (asking,), timeout=min(_PROGRESS_INTERVAL, max(0.0, self._remaining + _ANSWER_GRACE))
                )
            return asking.result()
        finally:
            asking.cancel()

    def reset_backoff(self) -> None:
        """Start again with short pauses, because something has just happened."""
        self._attempt = 0
