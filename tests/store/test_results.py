"""Stored results: private to their session, bounded, and available while the disk fails."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tabhub.errors import ResultNotFound, SetupError, TooLarge
from tabhub.limits import Limits
from tabhub.store.results import ResultStore


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def store(path: Path, clock: Clock) -> ResultStore:
    return ResultStore(path, Limits(result_store=2000, result_memory=300, result_ttl=60), clock)


def test_a_result_is_read_back_by_its_session(store: ResultStore, clock: Clock, path: Path) -> None:
    handle = store.put("s1", "text/plain", b"\x00data\xff")
    assert re.fullmatch(r"r_[A-Za-z0-9_-]{20}", handle)
    found = store.get(handle, "s1")
    assert (found.handle, found.session, found.mime, found.data) == (handle, "s1", "text/plain", b"\x00data\xff")
    assert found.created == clock.now
    assert path.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in path.iterdir()} == {0o600}


def test_another_sessions_handle_gives_the_same_error_as_a_missing_or_expired_one(
    store: ResultStore, clock: Clock
) -> None:
    handle = store.put("s1", "text/plain", b"x")
    with pytest.raises(ResultNotFound) as foreign:
        store.get(handle, "s2")
    clock.now += 60
    with pytest.raises(ResultNotFound) as expired:
        store.get(handle, "s1")
    assert store.expire() == 1
    with pytest.raises(ResultNotFound) as missing:
        store.get(handle, "s2")
    assert foreign.value.text() == expired.value.text() == missing.value.text()
    assert foreign.value.details() == expired.value.details() == missing.value.details()


@pytest.mark.parametrize("handle", ["", "r_", "r_' OR 1=1 --", "x" * 10_000, "r_" + "a" * 19 + "\n", "\ud800"])
def test_a_malformed_handle_is_not_found(store: ResultStore, handle: str) -> None:
    with pytest.raises(ResultNotFound) as caught:
        store.get(handle, "s1")
    assert caught.value.message == "That is not a result handle."


def test_only_expired_results_are_deleted(store: ResultStore, clock: Clock) -> None:
    old = store.put("s1", "text/plain", b"old")
    clock.now += 30
    new = store.put("s1", "text/plain", b"new")
    clock.now += 30
    assert store.expire() == 1
    assert store.get(new, "s1").data == b"new"
    with pytest.raises(ResultNotFound):
        store.get(old, "s1")


def test_the_oldest_results_are_evicted(store: ResultStore, clock: Clock) -> None:
    handles = []
    for n in range(5):
        handles.append(store.put("s1", "text/plain", bytes([n]) * 550))
        clock.now += 1
    assert [store.get(handle, "s1").data[0] for handle in handles[2:]] == [2, 3, 4]
    for handle in handles[:2]:
        with pytest.raises(ResultNotFound):
            store.get(handle, "s1")


def test_a_result_larger_than_the_store_is_refused(store: ResultStore) -> None:
    with pytest.raises(TooLarge, match="2001 bytes; at most 2000"):
        store.put("s1", "text/plain", b"x" * 2001)
    assert store.put("s1", "text/plain", b"x" * 2000)


def test_results_survive_a_restart_and_count_towards_the_maximum(path: Path, clock: Clock) -> None:
    limits = Limits(result_store=1000)
    handle = ResultStore(path, limits, clock).put("s1", "text/plain", b"x" * 600)
    second = ResultStore(path, limits, clock)
    assert second.get(handle, "s1").data == b"x" * 600
    second.put("s1", "text/plain", b"y" * 600)
    with pytest.raises(ResultNotFound):
        second.get(handle, "s1")


@pytest.mark.parametrize("junk", [b"", b"not a result", b"{}\n", b"[1]\nx", b"\xff" * 5000])
def test_a_broken_file_is_not_found_and_harms_no_other(
    path: Path, store: ResultStore, clock: Clock, junk: bytes
) -> None:
    broken, whole = store.put("s1", "text/plain", b"x" * 100), store.put("s1", "text/plain", b"y")
    (path / broken).write_bytes(junk)
    with pytest.raises(ResultNotFound):
        store.get(broken, "s1")
    assert store.get(whole, "s1").data == b"y"
    (path / "mine.txt").write_text("not a result")
    clock.now += 1_000_000_000_000  # the file's time is now that of the write
    assert store.expire() == 2
    assert [file.name for file in path.iterdir()] == ["mine.txt"]


def test_a_file_whose_writer_was_killed_is_not_found(path: Path, store: ResultStore) -> None:
    handle = store.put("s1", "text/plain", b"x" * 100)
    raw = (path / handle).read_bytes()
    for size in range(len(raw)):
        (path / handle).write_bytes(raw[:size])
        with pytest.raises(ResultNotFound):
            store.get(handle, "s1")


def test_a_full_disk_keeps_results_in_bounded_memory_until_it_has_space(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    store = ResultStore(path, Limits(result_memory=300, result_ttl=60), clock)
    before = store.put("s1", "text/plain", b"before")
    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", full)  # after the data, so that a complete file has to be removed
        handles = [store.put("s1", "text/plain", b"x" * 150) for _ in range(3)]
        assert "No space left" in str(store.degraded)
        assert store.get(before, "s1").data == b"before"
        with pytest.raises(ResultNotFound):
            store.get(handles[0], "s1")
        assert store.get(handles[2], "s1").data == b"x" * 150
        with pytest.raises(ResultNotFound):
            store.get(handles[2], "s2")
        with pytest.raises(SetupError, match="could not be stored") as caught:
            store.put("s1", "text/plain", b"x" * 301)
        assert "No space left" in caught.value.message
    assert [file.name for file in path.iterdir()] == [before]
    handle = store.put("s1", "text/plain", b"x" * 301)
    assert store.degraded is None
    assert store.get(handle, "s1").data == b"x" * 301
    assert store.get(handles[2], "s1").data == b"x" * 150
    clock.now += 60
    assert store.expire() == 4


def test_a_missing_folder_keeps_results_in_memory(tmp_path: Path, clock: Clock) -> None:
    store = ResultStore(tmp_path / "later" / "results", clock=clock)
    first = store.put("s1", "text/plain", b"one")
    assert "memory only" in str(store.degraded)
    assert store.expire() == 0
    (tmp_path / "later").mkdir()
    second = store.put("s1", "text/plain", b"two")
    assert store.degraded is None
    assert (store.get(first, "s1").data, store.get(second, "s1").data) == (b"one", b"two")


def test_the_database_of_an_earlier_version_is_removed(tmp_path: Path, path: Path) -> None:
    for name in ("results.db", "results.db-wal", "results.db-shm", "results.db.corrupt", "sessions.json"):
        (tmp_path / name).write_bytes(b"old")
    ResultStore(path)
    assert [file.name for file in tmp_path.iterdir()] == ["sessions.json"]


def test_a_database_that_cannot_be_removed_does_no_harm(tmp_path: Path, path: Path) -> None:
    (tmp_path / "results.db").mkdir()
    store = ResultStore(path)
    assert store.get(store.put("s1", "text/plain", b"x"), "s1").data == b"x"


def test_threads_are_independent(path: Path, clock: Clock) -> None:
    store = ResultStore(path, clock=clock)

    def work(number: int) -> bool:
        data = b"%d" % number * 1000
        handle = store.put(f"s{number}", "text/plain", data)
        return store.get(handle, f"s{number}").data == data and store.expire() == 0

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(100)))
