"""Saved sessions are restored unchanged, and a disk that fails only prevents restoring them."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from tabhub.store.sessions import Saved, SavedLease, SavedMcp, SavedPause, SavedSession, SavedTab, SessionStore

FULL = Saved(
    sessions=[
        SavedSession(
            id="a",
            kind="mcp",
            client="client 1",
            opened=5.5,
            tab=7,
            acted=True,
            own=[7],
            leases=[SavedLease(7, 6.5)],
            mcp=SavedMcp("/mcp", "2025-11-25", ["elicitation"], 3),
        )
    ],
    tabs=[SavedTab(7, "b", 70, None, "d1")],
    browsers={"b": [70, 71]},
    pause=SavedPause(1.5, "me", "why", "fail"),
)


def test_saved_sessions_are_loaded_unchanged_from_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "sessions.json"
    store = SessionStore(path)
    assert store.load() is None
    assert store.save_numbered(FULL, 1)
    assert SessionStore(path).load() == FULL
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_older_snapshot_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    path = tmp_path / "sessions.json"
    store = SessionStore(path)
    assert store.save_numbered(FULL, 2)
    assert store.save_numbered(Saved(), 1)
    assert store.load() == FULL


def test_an_unchanged_snapshot_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "sessions.json"
    store = SessionStore(path)
    store.save_numbered(FULL, 1)
    path.unlink()
    assert store.save_numbered(FULL, 2)
    assert not path.exists()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\xfe",
        b'{"version": 2}',
        b'{"sessions": [{}]}',
        b'{"sessions": [{"id": "a", "kind": "page", "client": "", "opened": 1}]}',
        b'{"pause": {"since": 1, "by": "", "reason": "", "mode": "later"}}',
    ],
)
def test_an_invalid_file_is_logged_and_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes) -> None:
    path = tmp_path / "sessions.json"
    store = SessionStore(path)
    path.write_bytes(text)
    assert store.load() is None
    assert "set aside as sessions.json.broken" in caplog.text
    assert path.with_name("sessions.json.broken").read_bytes() == text


def test_a_failed_write_is_logged_once_and_retried(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sessions.json"
    store = SessionStore(path)
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(os, "fsync", full)
        assert not store.save_numbered(FULL, 1)
        assert not store.save_numbered(FULL, 2)
        assert "No space left" in (store.error or "")
    assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 1
    assert store.save_numbered(FULL, 3)
    assert store.error is None
    assert store.load() == FULL
