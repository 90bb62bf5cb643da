"""The extension's key: 64 hex digits in `extension/auth.json`. With it the extension connects; it opens nothing else.

Owns that file. Its other values (the port the extension connects to) are not changed. Until version 0.1.0 the file had
one secret for everything, which agents had too; such a secret is never used as a key (store.old_secret).
"""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any

from tabhub.errors import SetupError
from tabhub.platform.files import read_trusted, write_atomic
from tabhub.platform.locks import locked
from tabhub.store.home import Home

SCOPE = "extension"
"""The value of `scope` in a file whose `secret` is this key. Extensions of all versions read the key as `secret`."""
_KEY = re.compile(r"[0-9a-f]{64}")
_LARGEST = 1024 * 1024
_ROTATE = "Create a new one with: tabhub config rotate-secret"


def read(home: Home) -> str:
    """The current key, or SetupError saying how to create one."""
    values = _load(home)
    if not _is_key(values):
        raise SetupError(f"There is no key for the extension in {home.auth} yet.", hint="Start the hub: tabhub start")
    return _checked(home, values["secret"])


def load_or_create(home: Home) -> str:
    """The current key, created if it is missing; concurrent processes agree on one."""
    home.ensure()
    with locked(home.root / "auth.lock"):
        values = _load(home)
        if _is_key(values):
            key = _checked(home, values["secret"])
            _make_private(home)
            return key
        return _write(home, values)


def shared_secret(home: Home) -> str | None:
    """The secret that version 0.1.0 left in the file."""
    values = _load(home)
    return _checked(home, values["secret"]) if "secret" in values and not _is_key(values) else None


def rotate(home: Home) -> str:
    """Replace the key; the old one is no longer valid. A file that cannot be read is set aside."""
    home.ensure()
    with locked(home.root / "auth.lock"):
        try:
            values = _load(home)
        except SetupError:
            home.auth.replace(home.root / "auth.json.broken")  # elsewhere: a browser loads the file's own folder
            values = {}
        return _write(home, values)


def _is_key(values: dict[str, Any]) -> bool:
    return "secret" in values and values.get("scope") == SCOPE


def _write(home: Home, values: dict[str, Any]) -> str:
    key = os.urandom(32).hex()
    write_atomic(home.auth, json.dumps({**values, "secret": key, "scope": SCOPE}, indent=2) + "\n")
    return key


def _load(home: Home) -> dict[str, Any]:
    raw = read_trusted(home.auth, _LARGEST, writable_by=0)
    if raw is None:
        return {}
    try:
        values = json.loads(raw)
    except ValueError:  # not JSON, or not UTF-8; its text is not shown, for it may hold the key
        raise SetupError(f"{home.auth} is broken: it is not JSON.", hint=_ROTATE) from None
    if not isinstance(values, dict):
        raise SetupError(f"{home.auth} is broken: it is not a JSON object.", hint=_ROTATE)
    return values


def _checked(home: Home, key: Any) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise SetupError(f"The key in {home.auth} is broken: it must be 64 hex digits.", hint=_ROTATE)
    return key


def _make_private(home: Home) -> None:
    """Restore the private mode, which a copy or an editor may have changed."""
    try:
        if stat.S_IMODE(home.auth.stat().st_mode) != 0o600:
            home.auth.chmod(0o600)
    except OSError as error:
        raise SetupError(
            f"Could not make {home.auth} private: {error.strerror}.", hint=f"Run: chmod 600 {home.auth}"
        ) from error
