"""Named secrets on disk and in a keyring."""

from __future__ import annotations

import os
import stat
import sys
import types
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.store.home import Home
from tabhub.store.named_secrets import Keyring, SecretStore, site_pattern, system_keyring

SITES = ("https://shop.example",)
KEYRING = """
class KeyringError(Exception): pass
class Backend:
    priority = {priority}
    def __init__(self): self.kept = {{}}
    def get_password(self, service, user): return self.kept.get((service, user))
    def set_password(self, service, user, password):
        if password == "locked": raise KeyringError("locked")
        self.kept[service, user] = password
    def delete_password(self, service, user): del self.kept[service, user]
backend = Backend()
def get_keyring(): return backend
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> SecretStore:
    return SecretStore(home, None)


def value(store: SecretStore, name: str) -> str:
    found = store.find(name)
    assert found is not None
    return store.value(found)


def test_values_are_encrypted_and_private(home: Home, store: SecretStore) -> None:
    store.set("shop", "hunter-22", "secret", SITES, 1.0)
    assert value(SecretStore(home, None), "shop") == "hunter-22"
    for name in ("secrets.json", "secrets.key"):
        path = home.root / name
        assert b"hunter" not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (listed,) = store.listed()
    assert (listed.name, listed.kind, listed.sites) == ("shop", "secret", SITES)


def test_a_value_is_replaced_with_its_sites_kept(store: SecretStore) -> None:
    store.set("shop", "hunter-22", "secret", SITES, 1.0)
    store.set("shop", "hunter-23", "secret", None, 2.0)
    assert value(store, "shop") == "hunter-23"
    assert store.listed()[0].sites == SITES
    store.remove("shop")
    assert store.listed() == []
    with pytest.raises(SetupError, match="no secret named"):
        store.remove("shop")


@pytest.mark.parametrize(
    ("name", "text", "sites", "expected"),
    [
        ("a b", "hunter-22", SITES, "not a name"),
        ("plugin/x/y", "hunter-22", SITES, "not a name"),
        ("shop", "abc", SITES, "4 to 1000"),
        ("shop", "two\nlines", SITES, "one line"),
        ("shop", "x" * 1001, SITES, "4 to 1000"),
        ("shop", "hunter-22", None, "no site"),
        ("shop", "hunter-22", (), "no site"),
    ],
)
def test_what_cannot_be_kept_secret_is_refused(
    store: SecretStore, name: str, text: str, sites: tuple[str, ...] | None, expected: str
) -> None:
    with pytest.raises(SetupError, match=expected):
        store.set(name, text, "secret", sites, 1.0)
    assert store.listed() == []


def test_a_value_under_another_name_or_key_is_not_decrypted(home: Home, store: SecretStore) -> None:
    store.set("shop", "hunter-22", "secret", SITES, 1.0)
    path = home.root / "secrets.json"
    path.write_bytes(path.read_bytes().replace(b'"shop"', b'"bank"'))
    with pytest.raises(SetupError, match="cannot be decrypted"):
        value(store, "bank")
    path.write_bytes(path.read_bytes().replace(b'"bank"', b'"shop"'))
    assert value(store, "shop") == "hunter-22"
    (home.root / "secrets.key").write_bytes(os.urandom(32))
    with pytest.raises(SetupError, match="cannot be decrypted"):
        value(store, "shop")
    (home.root / "secrets.key").unlink()
    with pytest.raises(SetupError, match="missing or broken"):
        value(store, "shop")


def test_a_key_that_others_can_read_is_not_used(home: Home, store: SecretStore) -> None:
    store.set("shop", "hunter-22", "secret", SITES, 1.0)
    (home.root / "secrets.key").chmod(0o640)
    with pytest.raises(SetupError, match="Other users may"):
        value(store, "shop")


def install_keyring(folder: Path, monkeypatch: pytest.MonkeyPatch, priority: float) -> None:
    """The package `keyring` with a backend in memory."""
    package = folder / "keyring"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(KEYRING.format(priority=priority))
    (package / "errors.py").write_text("from keyring import KeyringError\n")
    monkeypatch.syspath_prepend(str(folder))
    for name in ("keyring", "keyring.errors"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))  # so that it is removed afterwards
        del sys.modules[name]


def test_the_keyring_is_used_where_there_is_one(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_keyring(tmp_path / "site", monkeypatch, 5)
    keyring = system_keyring()
    assert isinstance(keyring, Keyring)
    store = SecretStore(home, keyring)
    store.set("shop", "hunter-22", "secret", SITES, 1.0)
    assert value(store, "shop") == "hunter-22"
    assert not (home.root / "secrets.key").exists()
    with pytest.raises(SetupError, match="keyring failed: KeyringError"):
        store.set("other", "locked", "secret", SITES, 1.0)
    assert [each.name for each in store.listed()] == ["shop"]
    store.remove("shop")
    assert keyring.get(f"{home.root}:shop") is None


def test_a_keyring_without_encryption_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_keyring(tmp_path / "site", monkeypatch, 0.5)
    assert system_keyring() is None


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("shop.example", "https://shop.example"),
        ("*.Shop.example:8443", "https://*.shop.example:8443"),
        ("http://shop.example", "http://shop.example"),
        ("localhost:3000", "localhost:3000"),
        ("*", "https://*"),
    ],
)
def test_a_site_without_a_scheme_is_https(text: str, pattern: str) -> None:
    assert site_pattern(text) == pattern
