"""The keys a relay verifies tokens with: from a file, the environment or a JWKS URL, and their rotation.

Owns reading and fetching them; trust/jwt.py defines valid keys. The operator chooses the URL, but responses are still
bounded in size and time, redirects are not followed, and bad tokens cannot make the relay fetch often.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from tabhub.client_errors import HttpError
from tabhub.errors import SetupError
from tabhub.net.async_http import Bounds, request
from tabhub.platform.files import stamp
from tabhub.trust.jwt import Key, read_keys, read_published
from tabhub.trust.leaky_bucket import LeakyBucket
from tabhub.wire import urls as addresses

log = logging.getLogger("tabhub.relay")

KEY_VARIABLE = "TABHUB_RELAY_KEY"
_MAX_BYTES = 1024 * 1024
_TIMEOUT = 5.0
_FETCHES = 6
"""Fetches per minute: so many at once, and then one in ten seconds."""
_MAX_AGE = 900.0
"""Seconds after which the keys are fetched again in any case: a key that was withdrawn is used no longer than that."""


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
        self._stamp: tuple[int, int, int] | None = None
        self._file_keys: tuple[Key, ...] = ()
        self._published: tuple[Key, ...] = ()
        self._fetched = float("-inf")
        """When the last fetch began."""
        self._rate = LeakyBucket(_FETCHES)
        self._fetching: asyncio.Task[bool] | None = None
        variable = (env or {}).get(KEY_VARIABLE, "")
        self._env_keys = read_keys(variable.encode()) if variable else ()
        if jwks_url is not None:
            _check_url(jwks_url)
        if file is not None:
            self._stamp = stamp(file)
            self._file_keys = _read(file)
        if file is None and jwks_url is None and not self._env_keys:
            raise SetupError(
                "A relay needs a key to verify tokens with.",
                hint=f"Use --key-file FILE or --jwks-url URL, or set {KEY_VARIABLE}.",
            )

    @property
    def keys(self) -> tuple[Key, ...]:
        return self._file_keys + self._env_keys + self._published

    def reload(self) -> None:
        """Read the key file if it has changed; an invalid file leaves the previous keys in use."""
        if self._file is None or (found := stamp(self._file)) in (None, self._stamp):
            return
        self._stamp = found
        try:
            self._file_keys = _read(self._file)
        except SetupError as error:
            log.error("invalid key file, the previous keys stay in use: %s", error.message)
        else:
            log.info("reloaded the key file")

    def expired(self) -> bool:
        """Whether the published keys are due for another fetch."""
        return self._url is not None and self._clock() - self._fetched >= _MAX_AGE

    async def fetch(self, *, at_once: bool = False) -> bool:
        """Fetch the published keys; returns whether that succeeded.

        Only a few times a minute, unless `at_once`: any client can send a token that names an unknown key.
        """
        if self._fetching is None or self._fetching.done():
            if self._url is None or (not at_once and self._rate.hit(self._clock()) is not None):
                return False
            self._fetched = self._clock()
            self._fetching = asyncio.create_task(self._fetch(self._url))
        return await asyncio.shield(self._fetching)

    async def _fetch(self, url: str) -> bool:
        try:
            self._published = read_published(await _get(url))
        except (OSError, ValueError, SetupError, HttpError) as error:
            reason = error.message if isinstance(error, SetupError) else f"{type(error).__name__}: {error}"
            log.error("cannot fetch the published keys, the previous ones stay in use: %s", reason)
            return False
        log.info("fetched %d published keys", len(self._published))
        return True


def _check_url(url: str) -> None:
    parts = addresses.split(url)
    if parts is not None and parts.hostname and parts.scheme in ("http", "https"):
        if parts.scheme == "https" or addresses.names_this_machine(parts.hostname):
            return
        raise SetupError("The JWKS URL must start with https://", hint="http:// is allowed for this machine only.")
    raise SetupError(f"Invalid JWKS URL {url[:100]!r}.", hint="Use a URL like https://auth.example.com/keys.json")


async def _get(url: str) -> bytes:
    headers, bounds = {"Accept": "application/json"}, Bounds(max_body=_MAX_BYTES)
    async with asyncio.timeout(_TIMEOUT), request("GET", url, headers, bounds=bounds) as response:
        if not 200 <= response.status < 300:
            raise HttpError(f"the server answered with status {response.status}")
        return await response.body()


def _read(file: Path) -> tuple[Key, ...]:
    try:
        return read_keys(file.read_bytes())
    except FileNotFoundError:
        raise SetupError(f"Key file not found: {file}.", hint=f"Create one: openssl rand -hex 32 > {file}") from None
    except OSError as error:
        raise SetupError(
            f"Cannot read the key file {file}: {error.strerror}.", hint="Check its owner and permissions."
        ) from None
