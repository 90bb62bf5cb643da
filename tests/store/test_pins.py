"""Pins survive a restart, and a failing file or disk affects only pins."""

from __future__ import annotations

import stat
from pathlib import Path

from tabhub.store.pins import PinStore


def test_approved_definitions_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    store = PinStore(path)
    store.approve("notes", "write", "f1", "one")
    store.approve("notes", "write", "f2", "two")
    store.approve("mail", "send", "f3", "three")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = PinStore(path)
    pin = again.get("notes", "write")
    assert pin is not None
    assert pin.has("f1")
    assert pin.has("f2")
    assert pin.text == "two"
    again.forget("notes")
    assert PinStore(path).get("notes", "write") is None
    assert PinStore(path).get("mail", "send") is not None


def test_a_file_that_cannot_be_read_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "pins.json"
    path.write_text("{")
    store = PinStore(path)
    assert store.get("notes", "write") is None
    assert (tmp_path / "pins.json.broken").read_text() == "{"
    store.approve("notes", "write", "f1", "one")
    assert PinStore(path).get("notes", "write") is not None


def test_a_failed_write_is_reported_and_pins_stay_in_memory(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    store = PinStore(folder / "pins.json")
    store.approve("notes", "write", "f1", "one")
    assert store.error is not None
    assert store.get("notes", "write") is not None
    folder.mkdir()
    store.approve("notes", "write", "f2", "two")
    assert store.error is None
