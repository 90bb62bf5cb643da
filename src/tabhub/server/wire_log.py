"""The log of messages between the hub and a browser, for debugging (setting `logMessages`).

Owns the format of a message in the log: one line, shortened, secrets redacted. The messages themselves are not changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tabhub.trust.redact import clean, redact

log = logging.getLogger("tabhub.messages")

_SHOWN = 1_000
Direction = Literal["to", "from"]


@dataclass(frozen=True, slots=True)
class MessageLog:
    """Logs the messages between a browser's socket and its link."""

    browser_id: str
    secret: str

    def logged(self, direction: Direction, pass_on: Callable[[Any], None]) -> Callable[[Any], None]:
        """`pass_on`, with each message logged first."""

        def log_and_pass_on(data: str | bytes) -> None:
            self._log(direction, data)
            pass_on(data)

        return log_and_pass_on

    def _log(self, direction: Direction, data: str | bytes) -> None:
        # More than is shown is redacted, so that no part of a secret is left at the end.
        start = data[: 4 * _SHOWN] if isinstance(data, str) else data[: 4 * _SHOWN].decode("utf-8", "replace")
        shown = clean(redact(start, (self.secret,)), _SHOWN)
        log.info("%s %s, %d bytes: %s", direction, self.browser_id, len(data), shown)
