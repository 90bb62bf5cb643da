"""The extension's key: created once, private, and rotated."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tabhub.errors import SetupError
from tabhub.store import extension_key
from tabhub.store.home import Home

BROKEN = ('"abc"', "5", '""', f'"{"g" * 64}"')


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.mark.req("S002-mcp-03")
def test_a_key_is_made_once_and_kept_private(home: Home) -> None:
    made = extension_key.load_or_create(home)
    assert re.fullmatch("[0-9a-f]{64}", made)
    assert home.auth.stat().st_mode & 0o777 == 0o600
    assert extension_key.load_or_create(home) == made
    assert extension_key.read(home) == made


def test_other_keys_of_the_file_are_kept(home: Home) -> None:
    home.ensure()
    home.auth.write_text('{"port": 9600, "note": "mine"}')
    made = extension_key.load_or_create(home)
    assert json.loads(home.auth.read_text()) == {"port": 9600, "note": "mine", "secret": made, "scope": "extension"}
    new = extension_key.rotate(home)
    assert new != made
    assert json.loads(home.auth.read_text()) == {"port": 9600, "note": "mine", "secret": new, "scope": "extension"}


def test_concurrent_processes_agree_on_one_secret(home: Home) -> None:
    home.ensure()
    program = (
        "import sys; from pathlib import Path\n"
        "from tabhub.store import extension_key; from tabhub.store.home import Home\n"
        "home = Home(Path(sys.argv[1])); print('ready', flush=True); sys.stdin.readline()\n"
        "print(extension_key.load_or_create(home))"
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
    assert {racer.communicate()[0].strip() for racer in racers} == {extension_key.read(home)}


@pytest.mark.parametrize(
    "text",
    [*(f'{{"secret": {value}, "scope": "extension"}}' for value in BROKEN), "{", "[]", "\xff"],
)
def test_a_broken_key_is_an_error_with_a_hint_and_rotating_repairs_it(home: Home, text: str) -> None:
    home.ensure()
    home.auth.write_text(text, encoding="latin-1")
    for function in (extension_key.read, extension_key.load_or_create):
        with pytest.raises(SetupError, match="broken") as caught:
            function(home)
        assert caught.value.hint is not None
        assert "rotate-secret" in caught.value.hint
    assert extension_key.rotate(home) == extension_key.read(home)


def test_rotating_sets_an_unreadable_file_aside(home: Home) -> None:
    home.ensure()
    home.auth.write_text('{"note": ')
    extension_key.rotate(home)
    assert (home.root / "auth.json.broken").read_text() == '{"note": '


def test_reading_a_missing_key_is_an_error(home: Home) -> None:
    with pytest.raises(SetupError, match="no key") as caught:
        extension_key.read(home)
    assert caught.value.hint == "Start the hub: tabhub start"


def test_a_file_others_can_read_is_made_private_again(home: Home) -> None:
    made = extension_key.load_or_create(home)
    home.auth.chmod(0o644)
    assert extension_key.load_or_create(home) == made
    assert home.auth.stat().st_mode & 0o777 == 0o600


def test_a_secret_that_everything_shared_is_not_used_as_a_key(home: Home) -> None:
    home.ensure()
    home.auth.write_text(json.dumps({"secret": "0d" * 32}))
    assert extension_key.shared_secret(home) == "0d" * 32
    with pytest.raises(SetupError, match="no key"):
        extension_key.read(home)
    assert extension_key.load_or_create(home) != "0d" * 32
    assert extension_key.shared_secret(home) is None
