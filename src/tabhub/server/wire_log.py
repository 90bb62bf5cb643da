"""The log of messages between the hub and a browser, for debugging (setting `logMessages`).

Owns how a message looks in the log: one line, cut, without what looks like a secret. It changes nothing that passes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from tabhub.trust.redact import clean, redact

log = logging.getLogger("tabhub.messages")

_SHOWN = 1_000


class MessageLog:
    """Logs the messages between a browser's socket and its link."""

    def __init__(self, browser_id: str, send: Callable[[bytes], None], secret: str) -> None:
        self._browser_id = browser_id
        self._send = send
        self._secret = secret

    def send(self, data: bytes) -> None:
        """Log and send a message to the browser."""
        self._note("to", data)
        self._send(data)

    def hearing(self, feed: Callable[[str | bytes], None]) -> Callable[[str | bytes], None]:
        """`feed`, with each message logged first."""

        def heard(text: str | bytes) -> None:
            self._note("from", text)
            feed(text)

        return heard

    def _note(self, way: str, data: str | bytes) -> None:
        # More than is shown is redacted, so that no part of a secret is left at the end.
        start = data[: 4 * _SHOWN] if isinstance(data, str) else data[: 4 * _SHOWN].decode("utf-8", "replace")
        shown = clean(redact(start, (self._secret,)), _SHOWN)
        log.info("%s %s, %d bytes: %s", way, self._browser_id, len(data), shown)
