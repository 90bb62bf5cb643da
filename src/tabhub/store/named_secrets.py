"""Named secrets: values that a person stores for fields and plugins, and that no agent is shown.

Owns `secrets.json`: names, kinds and sites in clear, and the values encrypted where the system has no keyring. The
key is in a file of its own, readable by this user alone. Commands and the hub use the files at the same time: every
use reads them again.
"""

from __future__ import annotations

import base64
import importlib
import importlib.util
import os
import stat
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from tabhub.config.sites import SitePattern
from tabhub.errors import SetupError
from tabhub.platform.files import read_trusted, write_atomic
from tabhub.platform.locks import locked
from tabhub.store.home import Home
from tabhub.trust.placeholders import NAME
from tabhub.trust.totp import Totp

SecretKind = Literal["secret", "totp", "plugin"]

SHORTEST, LONGEST = 4, 1000
_SERVICE = "tabhub"
_MOST = 1000
_LARGEST = 8 * 1024 * 1024
_KEY_BYTES = 32
_NONCE_BYTES = 12
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class NamedSecret(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One secret, without its value."""

    name: str
    kind: SecretKind
    sites: tuple[str, ...] = ()
    """Where it may be used: patterns as in site rules."""
    created: float = 0.0
    sealed: str | None = None
    """The encrypted value, in base64; None if the system's keyring has it."""


class Keyring:
    """The system's keyring, through the `keyring` package; its failures are SetupErrors."""

    def __init__(self, backend: Any, failure: type[Exception]) -> None:
        self._backend = backend
        self._failure = failure

    def get(self, user: str) -> str | None:
        found = self._try(lambda: self._backend.get_password(_SERVICE, user))
        return found if isinstance(found, str) else None

    def set(self, user: str, value: str) -> None:
        self._try(lambda: self._backend.set_password(_SERVICE, user, value))

    def delete(self, user: str) -> None:
        self._try(lambda: self._backend.delete_password(_SERVICE, user))

    def _try(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except self._failure as error:
            raise SetupError(
                f"The system's keyring failed: {type(error).__name__}.", hint="Unlock it, and try again."
            ) from None


def system_keyring() -> Keyring | None:
    """The system's keyring, if the `keyring` package is installed and has a backend that encrypts."""
    if importlib.util.find_spec("keyring") is None:
        return None
    backend: Any = importlib.import_module("keyring").get_keyring()
    priority = getattr(backend, "priority", 0)
    if not isinstance(priority, (int, float)) or priority < 1:
        return None
    return Keyring(backend, importlib.import_module("keyring.errors").KeyringError)


class SecretStore:
    """The secrets of one home."""

    def __init__(self, home: Home, keyring: Keyring | None) -> None:
        self._home = home
        self._keyring = keyring
        self._path = home.root / "secrets.json"
        self._key_path = home.root / "secrets.key"

    @property
    def place(self) -> str:
        """Where new values are stored."""
        return "the system's keyring" if self._keyring is not None else f"{self._path}, encrypted"

    def listed(self) -> list[NamedSecret]:
        """All secrets, by name."""
        raw = read_trusted(self._path, _LARGEST, writable_by=stat.S_IWGRP | stat.S_IWOTH)
        if raw is None:
            return []
        try:
            return msgspec.json.decode(raw, type=list[NamedSecret])
        except ValueError as error:
            raise SetupError(
                f"{self._path} is broken: {error}.", hint="Remove it and set the secrets again: tabhub secret set NAME"
            ) from None

    def find(self, name: str) -> NamedSecret | None:
        return next((each for each in self.listed() if each.name == name), None)

    def set(self, name: str, value: str, kind: SecretKind, sites: tuple[str, ...] | None, now: float) -> NamedSecret:
        """Store a value. Without `sites` those of an existing secret of that name and kind are kept."""
        _check(name, value, kind)
        self._home.ensure()
        with locked(self._home.root / "secrets.lock"):
            others = self.listed()
            known = next((each for each in others if each.name == name), None)
            others = [each for each in others if each is not known]
            if sites is None:
                sites = known.sites if known is not None and known.kind == kind else ()
            if not sites and kind != "plugin":
                raise SetupError(
                    f"{name} has no site to be used on.",
                    hint="Name each one: --site login.example.com (or --site '*' for every site).",
                )
            if len(others) >= _MOST:
                raise SetupError(f"There are {_MOST} secrets, which is the maximum.", hint="Remove some.")
            sealed = self._put(name, value)
            made = NamedSecret(name=name, kind=kind, sites=sites, created=now, sealed=sealed)
            self._write([*others, made])
        return made

    def remove(self, name: str) -> None:
        with locked(self._home.root / "secrets.lock"):
            found = self.listed()
            known = next((each for each in found if each.name == name), None)
            if known is None:
                names = ", ".join(each.name for each in found if each.kind != "plugin") or "none"
                raise SetupError(f"There is no secret named {name[:80]!r}.", hint=f"Secrets: {names}.")
            self._write([each for each in found if each is not known])
            if known.sealed is None and self._keyring is not None:
                self._keyring.delete(self._account(name))

    def value(self, secret: NamedSecret) -> str:
        """The value itself; SetupError if it is lost."""
        if secret.sealed is not None:
            return self._open(secret.name, secret.sealed)
        value = self._keyring.get(self._account(secret.name)) if self._keyring is not None else None
        if value is None:
            raise SetupError(
                f"The value of {secret.name} is not in the system's keyring.",
                hint=f"Set it: tabhub secret set {secret.name}",
            )
        return value

    def _write(self, secrets: list[NamedSecret]) -> None:
        write_atomic(self._path, msgspec.json.encode(sorted(secrets, key=lambda each: each.name)))

    def _account(self, name: str) -> str:
        return f"{self._home.root}:{name}"

    def _put(self, name: str, value: str) -> str | None:
        """Store the value in the keyring, or return it encrypted. The name is authenticated with it."""
        if self._keyring is not None:
            self._keyring.set(self._account(name), value)
            return None
        nonce = os.urandom(_NONCE_BYTES)
        sealed = _cipher(self._key(create=True)).encrypt(nonce, value.encode(), name.encode())
        return base64.b64encode(nonce + sealed).decode()

    def _open(self, name: str, sealed: str) -> str:
        from cryptography.exceptions import InvalidTag  # takes long to load, and few calls need it

        try:
            raw = base64.b64decode(sealed, validate=True)
            cipher = _cipher(self._key(create=False))
            plain: bytes = cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], name.encode())
        except (InvalidTag, ValueError):
            raise SetupError(
                f"The value of {name} cannot be decrypted: {self._path} or {self._key_path} was changed.",
                hint=f"Set it again: tabhub secret set {name}",
            ) from None
        return plain.decode()

    def _key(self, *, create: bool) -> bytes:
        key = read_trusted(self._key_path, _KEY_BYTES, writable_by=_OTHERS)
        if key is None and create:
            key = os.urandom(_KEY_BYTES)
            write_atomic(self._key_path, key)
        if key is None or len(key) != _KEY_BYTES:
            raise SetupError(
                f"The key of the stored secrets, {self._key_path}, is missing or broken.",
                hint="Restore it from a backup, or remove secrets.json and set the secrets again.",
            )
        return key


def site_pattern(text: str) -> str:
    """A pattern of `--site` in normal form. Without a scheme it covers https only, but http too on this machine."""
    pattern = SitePattern.parse(text)
    if pattern.scheme is not None or pattern.host in _LOCAL or pattern.host.endswith(".localhost"):
        return str(pattern)
    return str(SitePattern("https", pattern.host, pattern.below, pattern.port))


def _check(name: str, value: str, kind: SecretKind) -> None:
    if kind != "plugin" and not NAME.fullmatch(name):
        raise SetupError(
            f"{name[:80]!r} is not a name for a secret.",
            hint="Use 1 to 64 letters, digits, _, . and -, beginning with a letter or digit.",
        )
    if kind == "totp":
        Totp.parse(value)
    elif kind == "secret" and not (SHORTEST <= len(value) <= LONGEST and value.isprintable()):
        raise SetupError(
            f"A secret is one line of {SHORTEST} to {LONGEST} printable characters.",
            hint="A shorter one could not be masked in what agents read: it may occur anywhere.",
        )


def _cipher(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305  # takes long to load

    return ChaCha20Poly1305(key)
