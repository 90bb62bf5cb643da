"""Named tokens: stored as hashes, and valid or revoked at once."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.store.home import Home
from tabhub.store.tokens import TokenStore, client_token, create, listed, revoke


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.ensure()
    return made


def test_a_token_is_returned_once_and_only_its_hash_is_stored(home: Home) -> None:
    token = create(home, "ci", 5.0)
    path = home.root / "tokens.json"
    assert token.startswith("thb_")
    assert len(token) == 68
    assert token.removeprefix("thb_") not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [(each.name, each.created) for each in listed(home)] == [("ci", 5.0)]


def test_new_and_revoked_tokens_apply_at_once(home: Home) -> None:
    store = TokenStore(home)
    token = create(home, "ci", 1.0)
    other = create(home, "laptop", 2.0)
    assert store.agent_of(token.encode()) == "ci"
    assert store.agent_of(other.encode()) == "laptop"
    revoke(home, "ci")
    assert store.agent_of(token.encode()) is None
    assert store.agent_of(other.encode()) == "laptop"


@pytest.mark.parametrize("wrong", [b"", b"thb_", b"ci", b"thb_" + b"0" * 64, b"thb_" + b"0" * 5000, b"\xff" * 68])
def test_a_malformed_token_has_no_name(home: Home, wrong: bytes) -> None:
    store, token = TokenStore(home), create(home, "ci", 1.0).encode()
    assert store.agent_of(wrong) is None
    assert store.agent_of(token[:-1]) is None
    assert store.agent_of(token + b"0") is None
    assert store.agent_of(token.upper()) is None


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "é", "a" * 65, "a.b"])
def test_an_invalid_name_is_refused(home: Home, name: str) -> None:
    with pytest.raises(SetupError, match="not a valid name"):
        create(home, name, 1.0)


def test_a_name_is_unique_and_an_unknown_one_cannot_be_revoked(home: Home) -> None:
    create(home, "ci", 1.0)
    with pytest.raises(SetupError, match="already"):
        create(home, "ci", 1.0)
    with pytest.raises(SetupError, match="no token named 'x'"):
        revoke(home, "x")


def test_a_broken_file_admits_no_token_and_is_reported(home: Home) -> None:
    store, token = TokenStore(home), create(home, "ci", 1.0)
    assert store.agent_of(token.encode()) == "ci"
    (home.root / "tokens.json").write_text("[{")
    assert store.agent_of(token.encode()) is None
    assert store.error is not None
    assert "is broken" in store.error
    with pytest.raises(SetupError, match="is broken"):
        create(home, "x", 1.0)


@pytest.mark.parametrize("name", ["tabhub-panel", "tabhub-cli", "unnamed"])
def test_names_of_the_hubs_own_are_reserved(home: Home, name: str) -> None:
    with pytest.raises(SetupError, match="is the name of"):
        create(home, name, 1.0)


def test_a_clients_token_is_kept_privately_until_it_is_revoked(home: Home) -> None:
    token, how = client_token(home, "cursor", 1.0)
    file = home.client_tokens / "cursor"
    assert (how, TokenStore(home).agent_of(token.encode())) == ("created", "cursor")
    assert file.read_text() == f"{token}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.client_tokens.stat().st_mode) == 0o700
    assert client_token(home, "cursor", 2.0) == (token, "kept")
    revoke(home, "cursor")
    assert not file.exists()
    assert client_token(home, "cursor", 3.0)[1] == "created"


def test_a_token_that_is_kept_nowhere_is_replaced(home: Home) -> None:
    first = create(home, "cursor", 1.0)
    token, how = client_token(home, "cursor", 2.0)
    store = TokenStore(home)
    assert (how, store.agent_of(token.encode()), store.agent_of(first.encode())) == ("replaced", "cursor", None)
