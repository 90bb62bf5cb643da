"""Stored results: private to their session, bounded, and available while the disk fails."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

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
    return tmp_path / "results.db"


@pytest.fixture
def store(path: Path, clock: Clock) -> Iterator[ResultStore]:
    store = ResultStore(path, Limits(result_store=1000, result_memory=300, result_ttl=60), clock)
    yield store
    store.close()


def test_a_result_is_read_back_by_its_session(store: ResultStore, clock: Clock, path: Path) -> None:
    handle = store.put("s1", "text/plain", b"\x00data\xff")
    assert re.fullmatch(r"r_[A-Za-z0-9_-]{20}", handle)
    found = store.get(handle, "s1")
    assert (found.handle, found.session, found.mime, found.data) == (handle, "s1", "text/plain", b"\x00data\xff")
    assert (found.created, found.expires) == (clock.now, clock.now + 60)
    assert {p.stat().st_mode & 0o777 for p in path.parent.iterdir()} == {0o600}


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


def test_the_oldest_results_are_evicted(store: ResultStore) -> None:
    handles = [store.put("s1", "text/plain", bytes([n]) * 300) for n in range(5)]
    assert [store.get(handle, "s1").data[0] for handle in handles[2:]] == [2, 3, 4]
    for handle in handles[:2]:
        with pytest.raises(ResultNotFound):
            store.get(handle, "s1")


def test_a_result_larger_than_the_store_is_refused(store: ResultStore) -> None:
    with pytest.raises(TooLarge, match="1001 bytes; at most 1000"):
        store.put("s1", "text/plain", b"x" * 1001)
    assert store.put("s1", "text/plain", b"x" * 1000)


def test_results_survive_a_restart_and_count_towards_the_maximum(path: Path, clock: Clock) -> None:
    limits = Limits(result_store=1000)
    first = ResultStore(path, limits, clock)
    handle = first.put("s1", "text/plain", b"x" * 600)
    first.close()
    second = ResultStore(path, limits, clock)
    assert second.get(handle, "s1").data == b"x" * 600
    second.put("s1", "text/plain", b"y" * 600)
    with pytest.raises(ResultNotFound):
        second.get(handle, "s1")
    second.close()


@pytest.mark.parametrize("junk", [b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_corrupt_file_is_moved_aside_and_reported(path: Path, clock: Clock, junk: bytes) -> None:
    path.write_bytes(junk)
    store = ResultStore(path, clock=clock)
    handle = store.put("s1", "text/plain", b"x")
    assert store.get(handle, "s1").data == b"x"
    assert "corrupt" in str(store.problem)
    assert store.degraded is None
    assert path.with_name("results.db.corrupt").read_bytes() == junk
    store.close()


def test_a_file_that_becomes_corrupt_at_run_time_is_replaced(path: Path, clock: Clock) -> None:
    store = ResultStore(path, clock=clock)
    lost = store.put("s1", "text/plain", b"x" * 100_000)
    store.close()
    raw = bytearray(path.read_bytes())
    raw[4096 : 4096 + 8192] = b"\xff" * 8192
    path.write_bytes(raw)
    with pytest.raises(ResultNotFound):
        store.get(lost, "s1")
    handle = store.put("s1", "text/plain", b"y")
    assert store.get(handle, "s1").data == b"y"
    assert "corrupt" in str(store.problem)
    store.close()


class Full(sqlite3.Connection):
    """A connection to a full disk."""

    full = True

    def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
        if Full.full and sql.startswith("INSERT"):
            raise sqlite3.OperationalError("database or disk is full")
        return super().execute(sql, *rest)


def test_a_full_disk_keeps_results_in_bounded_memory_until_it_has_space(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, factory=Full, **k))
    Full.full = False
    store = ResultStore(path, Limits(result_memory=300, result_ttl=60), clock)
    before = store.put("s1", "text/plain", b"before")
    Full.full = True
    handles = [store.put("s1", "text/plain", b"x" * 150) for _ in range(3)]
    assert "disk is full" in str(store.degraded)
    assert store.get(before, "s1").data == b"before"
    with pytest.raises(ResultNotFound):
        store.get(handles[0], "s1")
    assert store.get(handles[2], "s1").data == b"x" * 150
    with pytest.raises(ResultNotFound):
        store.get(handles[2], "s2")
    with pytest.raises(SetupError, match="could not be stored") as caught:
        store.put("s1", "text/plain", b"x" * 301)
    assert "disk is full" in caught.value.message
    Full.full = False
    handle = store.put("s1", "text/plain", b"x" * 301)
    assert store.degraded is None
    assert store.get(handle, "s1").data == b"x" * 301
    assert store.get(handles[2], "s1").data == b"x" * 150
    clock.now += 60
    assert store.expire() == 4
    store.close()


def test_a_full_database_keeps_results_in_memory(path: Path, clock: Clock) -> None:
    store = ResultStore(path, clock=clock)
    assert store._db is not None
    store._db.execute("PRAGMA max_page_count = 10").fetchall()
    handle = store.put("s1", "text/plain", b"x" * 100_000)
    assert "full" in str(store.degraded)
    assert store.get(handle, "s1").data == b"x" * 100_000
    assert store.put("s1", "text/plain", b"y")
    assert store.degraded is None
    store.close()


def test_a_missing_folder_keeps_results_in_memory(tmp_path: Path, clock: Clock) -> None:
    store = ResultStore(tmp_path / "later" / "results.db", clock=clock)
    first = store.put("s1", "text/plain", b"one")
    assert "memory only" in str(store.degraded)
    assert store.expire() == 0
    (tmp_path / "later").mkdir()
    second = store.put("s1", "text/plain", b"two")
    assert store.degraded is None
    assert (store.get(first, "s1").data, store.get(second, "s1").data) == (b"one", b"two")
    store.close()


def test_threads_are_independent(path: Path, clock: Clock) -> None:
    store = ResultStore(path, clock=clock)

    def work(number: int) -> bool:
        data = b"%d" % number * 1000
        handle = store.put(f"s{number}", "text/plain", data)
        return store.get(handle, f"s{number}").data == data and store.expire() == 0

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(100)))
    store.close()
