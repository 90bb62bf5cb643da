"""The secret of version 0.1.0: what becomes of it at the first start of a newer version, and how it is retired."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.store import config_file, extension_key, old_secret
from tabhub.store.home import Home

SECRET = "0d" * 32


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home as version 0.1.0 left it."""
    made = Home(tmp_path / "home")
    made.ensure()
    made.auth.write_text(json.dumps({"secret": SECRET, "port": 9600, "host": "127.0.0.1", "managed": False}))
    made.auth.chmod(0o600)
    return made


def test_the_extension_gets_a_new_key_and_agents_keep_the_old_secret(home: Home) -> None:
    assert old_secret.separate(home) is True
    assert extension_key.read(home) != SECRET
    assert json.loads(home.auth.read_text())["port"] == 9600
    kept = old_secret.OldSecret(home)
    assert kept.matches(SECRET.encode())
    assert not kept.matches(extension_key.read(home).encode())
    assert SECRET not in home.old_secret.read_text()
    assert stat.S_IMODE(home.old_secret.stat().st_mode) == 0o600
    assert config_file.load(home).require_tokens is False
    assert old_secret.separate(home) is False


@pytest.mark.parametrize("setting", [True, False])
def test_a_setting_of_the_person_stays(home: Home, setting: bool) -> None:
    home.config.write_text(json.dumps({"requireTokens": setting}))
    old_secret.separate(home)
    assert config_file.load(home).require_tokens is setting


def test_a_new_home_has_no_old_secret(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.ensure()
    assert old_secret.separate(home) is False
    extension_key.load_or_create(home)
    assert old_secret.separate(home) is False
    assert not old_secret.OldSecret(home).exists
    assert config_file.load(home).require_tokens is True


def test_nothing_is_lost_when_it_is_interrupted(home: Home) -> None:
    home.old_secret.mkdir()
    with pytest.raises(SetupError):
        old_secret.separate(home)
    assert extension_key.shared_secret(home) == SECRET
    home.old_secret.rmdir()
    assert old_secret.separate(home) is True
    assert old_secret.OldSecret(home).matches(SECRET.encode())


def test_a_retired_secret_is_refused_at_once(home: Home) -> None:
    old_secret.separate(home)
    kept = old_secret.OldSecret(home)
    assert kept.matches(SECRET.encode())
    old_secret.retire(home)
    assert not kept.exists
    assert not kept.matches(SECRET.encode())
    assert config_file.load(home).require_tokens is True


@pytest.mark.parametrize("text", ["", "not a hash", "é", "0" * 65])
def test_a_broken_file_admits_no_agent(home: Home, text: str) -> None:
    home.old_secret.write_text(text)
    assert not old_secret.OldSecret(home).exists
