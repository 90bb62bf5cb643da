"""The file of sessions: what goes in comes out, and a disk that fails costs nothing but the continuation."""

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


def test_what_is_saved_is_loaded_and_only_this_user_can_read_it(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.json")
    assert store.load() == Saved()
    assert store.save(FULL, 1)
    assert SessionStore(store.path).load() == FULL
    assert store.path.stat().st_mode & 0o777 == 0o600


def test_an_older_picture_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.json")
    assert store.save(FULL, 2)
    assert store.save(Saved(), 1)
    assert store.load() == FULL


def test_an_unchanged_picture_is_not_written_again(tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.json")
    store.save(FULL, 1)
    store.path.unlink()
    assert store.save(FULL, 2)
    assert not store.path.exists()


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
def test_a_file_that_cannot_be_used_counts_as_empty_and_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: bytes
) -> None:
    store = SessionStore(tmp_path / "sessions.json")
    store.path.write_bytes(text)
    assert store.load() == Saved()
    assert "forgotten" in caplog.text


def test_a_disk_that_cannot_be_written_is_said_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SessionStore(tmp_path / "sessions.json")
    with monkeypatch.context() as patch:

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(os, "fsync", full)
        assert not store.save(FULL, 1)
        assert not store.save(FULL, 2)
        assert "No space left" in (store.error or "")
    assert len([r for r in caplog.records if r.levelno == logging.ERROR]) == 1
    assert store.save(FULL, 3)
    assert store.error is None
    assert store.load() == FULL
