"""The TLS certificate of a relay node, and its renewal while the node runs.

Owns the TLS context. A renewed certificate is used for new connections; an invalid one leaves the previous in use.
"""

from __future__ import annotations

import logging
import ssl
from pathlib import Path

from tabhub.errors import SetupError
from tabhub.platform.files import stamp

log = logging.getLogger("tabhub.relay")


class Certificate:
    """A certificate chain and its key, in two files."""

    def __init__(self, chain: Path, key: Path) -> None:
        self._chain = chain
        self._key = key
        self._stamps = self._read_stamps()
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._load(self.context)

    def reload(self) -> None:
        """Load the files if they have changed."""
        stamps = self._read_stamps()
        if stamps == self._stamps or None in stamps:
            return
        try:
            self._load(ssl.create_default_context(ssl.Purpose.CLIENT_AUTH))  # the chain without its key, or half a file
            self._load(self.context)
        except SetupError as error:
            log.error("invalid certificate, the previous one stays in use: %s", error.message)
            return
        self._stamps = stamps
        log.info("reloaded the certificate")

    def _read_stamps(self) -> tuple[object, object]:
        return stamp(self._chain), stamp(self._key)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._chain, self._key)
        except (OSError, ssl.SSLError) as error:
            raise SetupError(f"Cannot load the certificate or its key: {error}.") from None
