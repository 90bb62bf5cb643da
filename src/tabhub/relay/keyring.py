"""The keys a relay verifies tokens with: from a file, the environment, or a JWKS address, and their rotation.

Owns reading and fetching them. What a key may be is trust/jwt.py's. The address is the operator's word, yet what comes
from it is bounded in size and time, redirects are not followed, and bad tokens cannot make the relay fetch often.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from tabhub.client_errors import HttpError
from tabhub.errors import SetupError
from tabhub.net import http_client
from tabhub.trust.jwt import Key, read_keys, read_published
from tabhub.wire import urls as addresses

log = logging.getLogger("tabhub.relay")

KEY_VARIABLE = "TABHUB_RELAY_KEY"
_MOST_BYTES = 1024 * 1024
_TIMEOUT = 5.0
_BETWEEN_FETCHES = 30.0
_MAX_AGE = 3600.0


class Keyring:
    """All keys of one relay."""

    def __init__(
        self,
        *,
        file: Path | None = None,
        jwks_url: str | None = None,
        env: Mapping[str, str] | None = None,
        clock: Callable[[], float],
    ) -> None:
        self._file = file
        self._url = jwks_url
        self._clock = clock
        self._seen: tuple[int, int] | None = None
        self._of_file: tuple[Key, ...] = ()
        self._published: tuple[Key, ...] = ()
        self._fetched = float("-inf")
        """When they were last fetched, or tried to."""
        self._fetching: asyncio.Task[bool] | None = None
        written = (env or {}).get(KEY_VARIABLE, "")
        self._of_env = read_keys(written.encode()) if written else ()
        if jwks_url is not None:
            _check_url(jwks_url)
        if file is not None:
            self._of_file = _read(file)
            self._seen = _mark(file)
        if file is None and jwks_url is None and not self._of_env:
            raise SetupError(
                "A relay needs a key to verify tokens with.",
                hint=f"Give --key-file FILE or --jwks-url URL, or set {KEY_VARIABLE}.",
            )

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys in force."""
        return self._of_file + self._of_env + self._published

    def reread(self) -> None:
        """Take the key file over if it has changed; a broken one leaves the last good keys in force."""
        if self._file is None:
            return
        mark = _mark(self._file)
        if mark is None or mark == self._seen:
            return
        self._seen = mark
        try:
            self._of_file = _read(self._file)
        except SetupError as error:
            log.error("the key file cannot be used, the last good key stays: %s", error.message)
        else:
            log.info("the key file was read anew")

    def old(self) -> bool:
        """Whether published keys should be fetched anew, just because of their age."""
        return self._url is not None and self._clock() - self._fetched >= _MAX_AGE

    async def fetch(self) -> bool:
        """Fetch the published keys, unless that was done a moment ago; whether they are newer than before."""
        if self._fetching is None:
            if self._url is None or self._clock() - self._fetched < _BETWEEN_FETCHES:
                return False
            self._fetched = self._clock()
            self._fetching = asyncio.create_task(self._fetch(self._url))
        try:
            return await asyncio.shield(self._fetching)
        finally:
            if self._fetching is not None and self._fetching.done():
                self._fetching = None

    async def _fetch(self, url: str) -> bool:
        try:
            self._published = read_published(await asyncio.to_thread(_get, url))
        except (OSError, ValueError, SetupError, HttpError) as error:
            why = error.message if isinstance(error, SetupError) else f"{type(error).__name__}: {error}"
            log.error("the published keys cannot be fetched, the last ones stay: %s", why)
            return False
        log.info("%d published keys were fetched", len(self._published))
        return True


def _check_url(url: str) -> None:
    parts = addresses.split(url)
    if parts is not None and parts.hostname and parts.scheme in ("http", "https"):
        if parts.scheme == "https" or addresses.names_this_machine(parts.hostname):
            return
        raise SetupError("The JWKS address must begin with https://", hint="Plain http works on this machine only.")
    raise SetupError(f"The JWKS address {url[:100]!r} is none.", hint="It is like https://auth.example.com/keys.json")


def _get(url: str) -> bytes:
    headers = {"Accept": "application/json"}
    response = http_client.get(url, headers=headers, timeout=_TIMEOUT, stall_timeout=_TIMEOUT, max_body=_MOST_BYTES)
    if not 200 <= response.status < 300:
        raise HttpError(f"it answered with status {response.status}")
    return response.body


def _read(file: Path) -> tuple[Key, ...]:
    try:
        return read_keys(file.read_bytes())
    except FileNotFoundError:
        raise SetupError(f"There is no key file {file}.", hint=f"Make one: openssl rand -hex 32 > {file}") from None
    except OSError as error:
        raise SetupError(
            f"The key file {file} cannot be read: {error.strerror}.", hint="Check that it is yours and readable."
        ) from None


def _mark(file: Path) -> tuple[int, int] | None:
    try:
        facts = file.stat()
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size
