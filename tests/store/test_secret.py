"""The shared secret: created once, private, and rotated."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.store import secret
from tabhub.store.home import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.mark.req("S002-mcp-03")
def test_a_secret_is_made_once_and_kept_private(home: Home) -> None:
    made = secret.load_or_create(home)
    assert re.fullmatch("[0-9a-f]{64}", made)
    assert home.auth.stat().st_mode & 0o777 == 0o600
    assert secret.load_or_create(home) == made
    assert secret.read(home) == made


def test_other_keys_of_the_file_are_kept(home: Home) -> None:
    home.ensure()
    home.auth.write_text('{"port": 9600, "note": "mine"}')
    made = secret.load_or_create(home)
    assert json.loads(home.auth.read_text()) == {"port": 9600, "note": "mine", "secret": made}
    new = secret.rotate(home)
    assert new != made
    assert json.loads(home.auth.read_text()) == {"port": 9600, "note": "mine", "secret": new}


def test_processes_that_race_agree_on_one(home: Home) -> None:
    home.ensure()
    program = (
        "import sys; from pathlib import Path; from tabhub.store import secret; from tabhub.store.home import Home\n"
        "home = Home(Path(sys.argv[1])); print('ready', flush=True); sys.stdin.readline()\n"
        "print(secret.load_or_create(home))"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(home.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(5)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("\n")
        racer.stdin.flush()
    assert {racer.communicate()[0].strip() for racer in racers} == {secret.read(home)}


@pytest.mark.parametrize(
    "text",
    ['{"secret": "abc"}', '{"secret": 5}', '{"secret": ""}', '{"secret": "' + "g" * 64 + '"}', "{", "[]", "\xff"],
)
def test_a_broken_secret_is_an_error_with_a_hint_and_rotating_repairs_it(home: Home, text: str) -> None:
    home.ensure()
    home.auth.write_text(text, encoding="latin-1")
    for function in (secret.read, secret.load_or_create):
        with pytest.raises(SetupError, match="broken") as caught:
            function(home)
        assert caught.value.hint is not None
        assert "rotate-secret" in caught.value.hint
    assert secret.rotate(home) == secret.read(home)


def test_rotating_sets_an_unreadable_file_aside(home: Home) -> None:
    home.ensure()
    home.auth.write_text('{"note": ')
    secret.rotate(home)
    assert (home.root / "auth.json.broken").read_text() == '{"note": '


def test_reading_a_missing_secret_is_an_error(home: Home) -> None:
    with pytest.raises(SetupError, match="no secret") as caught:
        secret.read(home)
    assert caught.value.hint == "Start the hub once: tabhub start"


def test_a_file_others_can_read_is_made_private_again(home: Home) -> None:
    made = secret.load_or_create(home)
    home.auth.chmod(0o644)
    assert secret.load_or_create(home) == made
    assert home.auth.stat().st_mode & 0o777 == 0o600
