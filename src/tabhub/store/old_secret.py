"""The shared secret of version 0.1.0, which every agent of that version was given: its hash, until it is retired.

Owns `old-secret.sha256`. While the file exists, agents with the secret may still call tools, unless the setting
`requireTokens` says otherwise; the secret opens nothing else. `tabhub setup --migrate` retires it.
"""

from __future__ import annotations

import hashlib
import re
from hmac import compare_digest

from tabhub.errors import SetupError
from tabhub.platform.files import read_trusted, stamp, write_atomic
from tabhub.store import config_file, extension_key
from tabhub.store.home import Home

SETTING = "requireTokens"
_SECRET = re.compile(r"[0-9a-f]{64}")
_LARGEST = 1024


class OldSecret:
    """The secret as the running hub knows it: retiring it applies with the next request."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._stamp: tuple[int, int, int] | None = None
        self._hash: str | None = None

    @property
    def exists(self) -> bool:
        """Whether it was not retired yet."""
        now = stamp(self._home.old_secret)
        if now != self._stamp:
            self._stamp = now
            try:
                self._hash = kept_hash(self._home)
            except SetupError:
                self._hash = None  # refusing it is the safe side
        return self._hash is not None

    def matches(self, token: bytes) -> bool:
        if not self.exists or self._hash is None:
            return False
        return compare_digest(hashlib.sha256(token).hexdigest(), self._hash)


def separate(home: Home) -> bool:
    """Replace a secret that everything shared, as version 0.1.0 has it, by a key of the extension's own.

    The secret stays valid for tool calls of the agents that have it, unless the settings say otherwise. Interrupted, it
    continues at the next start. Returns whether there was such a secret.
    """
    secret = extension_key.shared_secret(home)
    if secret is None:
        return False
    if not config_file.is_set(home, SETTING):
        config_file.set_at(home, (SETTING,), False)
    write_atomic(home.old_secret, hash_of(secret) + "\n")
    extension_key.load_or_create(home)
    return True


def retire(home: Home) -> None:
    """From now on the secret opens nothing, and every agent needs its own token."""
    home.old_secret.unlink(missing_ok=True)
    config_file.reset(home, SETTING)


def kept_hash(home: Home) -> str | None:
    """The SHA-256 of the secret; None for a home without one."""
    raw = read_trusted(home.old_secret, _LARGEST, writable_by=0o022)
    text = raw.decode("ascii", "replace").strip() if raw is not None else ""
    return text if _SECRET.fullmatch(text) else None


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
