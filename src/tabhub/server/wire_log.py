"""The log of messages between the hub and a browser, for debugging (setting `logMessages`).

Owns the format of a message in the log: one line, shortened, secrets redacted. The messages themselves are not changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from tabhub.trust.redact import clean, redact
from tabhub.trust.value_mask import ValueMask

log = logging.getLogger("tabhub.messages")

_SHOWN = 1_000


@dataclass(frozen=True, slots=True)
class MessageLog:
    """Logs the messages between a browser's socket and its link."""

    browser_id: str
    secret: str
    mask: ValueMask

    def pass_on(self, direction: str, receive: Callable[[bytes], None], data: bytes) -> None:
        """Log a message, then hand it to `receive`."""
        # More than is shown is redacted, so that no part of a secret is left at the end.
        start = self.mask.data(data[: 4 * _SHOWN]).decode("utf-8", "replace")
        shown = clean(redact(start, (self.secret,)), _SHOWN)
        log.info("%s %s, %d bytes: %s", direction, self.browser_id, len(data), shown)
        receive(data)
