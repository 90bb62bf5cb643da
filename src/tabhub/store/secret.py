"""The shared secret: 64 hex digits in `extension/auth.json`, created once, private, and rotated on request.

Owns that file. Its other keys (the port the extension connects to) are not changed. Knows nothing of requests.
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

_SECRET = re.compile(r"[0-9a-f]{64}")
_LARGEST = 1024 * 1024
_ROTATE = "Create a new one with: tabhub config rotate-secret"


def read(home: Home) -> str:
    """The current secret, or SetupError saying how to create one."""
    secret = _load(home).get("secret")
    if secret is None:
        raise SetupError(f"There is no secret in {home.auth} yet.", hint="Start the hub once: tabhub start")
    return _checked(home, secret)


def load_or_create(home: Home) -> str:
    """The current secret, created if there is none; concurrent processes agree on one."""
    home.ensure()
    with locked(home.root / "auth.lock"):
        values = _load(home)
        if "secret" in values:
            secret = _checked(home, values["secret"])
            _make_private(home)
            return secret
        return _write(home, values)


def rotate(home: Home) -> str:
    """Replace the secret; the old one is no longer valid. A file that cannot be read is set aside."""
    home.ensure()
    with locked(home.root / "auth.lock"):
        try:
            values = _load(home)
        except SetupError:
            home.auth.replace(home.root / "auth.json.broken")  # elsewhere: a browser loads the file's own folder
            values = {}
        return _write(home, values)


def _write(home: Home, values: dict[str, Any]) -> str:
    secret = os.urandom(32).hex()
    write_atomic(home.auth, json.dumps({**values, "secret": secret}, indent=2) + "\n")
    return secret


def _load(home: Home) -> dict[str, Any]:
    raw = read_trusted(home.auth, _LARGEST, writable_by=0)
    if raw is None:
        return {}
    try:
        values = json.loads(raw)
    except ValueError:  # not JSON, or not UTF-8; its text is not shown, for it may hold the secret
        raise SetupError(f"{home.auth} is broken: it is not JSON.", hint=_ROTATE) from None
    if not isinstance(values, dict):
        raise SetupError(f"{home.auth} is broken: it is not a JSON object.", hint=_ROTATE)
    return values


def _checked(home: Home, secret: Any) -> str:
    if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
        raise SetupError(f"The secret in {home.auth} is broken: it must be 64 hex digits.", hint=_ROTATE)
    return secret


def _make_private(home: Home) -> None:
    """Restore the private mode, which a copy or an editor may have changed."""
    try:
        if stat.S_IMODE(home.auth.stat().st_mode) != 0o600:
            home.auth.chmod(0o600)
    except OSError as error:
        raise SetupError(
            f"Could not make {home.auth} private: {error.strerror}.", hint=f"Run: chmod 600 {home.auth}"
        ) from error
