"""Page content on a person's terminal: it is shown there, but cannot control it."""

from __future__ import annotations

import io
import json

import pytest

from tabhub.cli.terminal import print_json, safe

HOSTILE = "\x1b]52;c;cm0gLXJm\x07\x9b31m\x7f\u202eevil\u200b\U000e0041 é 😀 \ud800"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_json_on_a_terminal_has_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"title": HOSTILE, HOSTILE: [1]}
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    print_json(value)
    shown = terminal.getvalue()
    assert all(character == "\n" or character.isprintable() for character in shown)
    assert json.loads(shown) == value
    assert "é 😀" in shown
    assert all(character.isprintable() for character in safe(HOSTILE))


def test_json_for_a_program_is_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", pipe := io.StringIO())
    print_json({"title": HOSTILE})
    assert pipe.getvalue() == json.dumps({"title": HOSTILE}, indent=2, ensure_ascii=False) + "\n"
