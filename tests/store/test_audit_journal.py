from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from tabhub.store.audit import Journal
from tabhub.store.audit_reader import read_log


def line(number: int, width: int = 40) -> bytes:
    return orjson.dumps({"n": number, "x": "y" * width}) + b"\n"


def numbers(path: Path) -> list[int]:
    """The numbers in the log, oldest first; checks that every line is complete."""
    entries, skipped = read_log(path, limit=None)
    assert skipped == 0
    return [int(one["n"]) for one in reversed(entries)]


def journal(tmp_path: Path, *, rotate_at: int = 10**9, waiting: int = 500) -> Journal:
    return Journal(tmp_path / "audit.log", rotate_at=rotate_at, waiting=waiting)


class Disk:
    """Replaces `os.write` for the journal's file: fails, or writes only a part."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
        self.error: int | None = None
        self.takes: int | None = None
        self._real = os.write
        self._path = path
        monkeypatch.setattr(os, "write", self.write)

    def write(self, fd: int, data: bytes) -> int:
        if (self.error is None and self.takes is None) or not self._ours(fd):
            return self._real(fd, data)
        if self.takes:
            taken, self.takes = self.takes, None
            self.error = self.error or 28
            return self._real(fd, data[:taken])
        raise OSError(self.error, os.strerror(self.error or 0))

    def _ours(self, fd: int) -> bool:
        return self._path.exists() and os.path.samestat(os.fstat(fd), self._path.stat())


@pytest.mark.req("F12", "S002-audit-04")
def test_rotation_loses_no_line_and_keeps_one_file_back(tmp_path: Path) -> None:
    log = journal(tmp_path, rotate_at=1000)
    for number in range(200):
        log.append(line(number))
        kept = numbers(tmp_path / "audit.log")
        assert kept == list(range(kept[0], number + 1))
        assert number < 20 or len(kept) > 1000 // len(line(0)) - 2
    assert {p.name for p in tmp_path.iterdir()} == {"audit.log", "audit.log.1"}
    assert all(p.stat().st_size <= 1000 for p in tmp_path.iterdir())
    assert log.degraded is None


@pytest.mark.req("F12")
def test_rotation_at_the_default_limit_of_ten_megabytes(tmp_path: Path) -> None:
    log = journal(tmp_path, rotate_at=10 * 1024 * 1024)
    count = 10 * 1024 * 1024 // len(line(10**6, 10_000)) + 50
    for number in range(10**6, 10**6 + count):
        log.append(line(number, 10_000))
    assert numbers(tmp_path / "audit.log") == list(range(10**6, 10**6 + count))
    assert 0 < (tmp_path / "audit.log").stat().st_size < 10**6


@pytest.mark.req("F12")
def test_processes_that_write_and_rotate_at_once_lose_nothing(tmp_path: Path) -> None:
    each, writers = 1500, 3
    program = (
        "import sys; from pathlib import Path; from tabhub.store.audit import Journal\n"
        "me, each, at = map(int, sys.argv[2:])\n"
        "log = Journal(Path(sys.argv[1]), rotate_at=at, waiting=10)\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for n in range(each): log.append(b'{\"n\":%d}\\n' % (me * 100000 + n))\n"
        "print(log.degraded, log.lost)"
    )
    size = sum(len(b'{"n":%d}\n' % (me * 100000 + n)) for me in range(writers) for n in range(each))
    path = tmp_path / "audit.log"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(path), str(me), str(each), str(int(size * 0.6))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for me in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == ["None 0\n"] * writers
    assert sorted(numbers(path)) == [me * 100000 + n for me in range(writers) for n in range(each)]
    assert (tmp_path / "audit.log.1").exists()


@pytest.mark.req("F12")
def test_a_writer_whose_file_was_rotated_twice_writes_to_the_new_one(tmp_path: Path) -> None:
    idle = journal(tmp_path)
    idle.append(line(0))
    busy = journal(tmp_path, rotate_at=300)
    for number in range(1, 20):
        busy.append(line(number))
    idle.append(line(100))
    assert numbers(tmp_path / "audit.log")[-1] == 100
    assert idle.degraded is None


def test_a_log_removed_or_moved_by_hand_is_created_again(tmp_path: Path) -> None:
    log = journal(tmp_path, rotate_at=500)
    log.append(line(1))
    (tmp_path / "audit.log").unlink()
    log.append(line(2))
    assert numbers(tmp_path / "audit.log") == [2]
    (tmp_path / "audit.log").rename(tmp_path / "elsewhere")
    for number in range(3, 20):
        log.append(line(number))
    assert numbers(tmp_path / "audit.log")[-1] == 19
    assert log.degraded is None


@pytest.mark.req("F11")
@pytest.mark.parametrize("error", [28, 30, 5])
def test_lines_wait_while_the_disk_fails_and_are_written_when_it_works_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    log = journal(tmp_path)
    log.append(line(1))
    disk = Disk(monkeypatch, tmp_path / "audit.log")
    disk.error = error
    for number in range(2, 5):
        log.append(line(number))
    assert os.strerror(error) in str(log.degraded)
    assert not log.flush()
    assert numbers(tmp_path / "audit.log") == [1]
    disk.error = None
    log.append(line(5))
    assert log.degraded is None
    assert numbers(tmp_path / "audit.log") == [1, 2, 3, 4, 5]


def test_waiting_lines_are_written_by_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal(tmp_path)
    disk = Disk(monkeypatch, tmp_path / "audit.log")
    disk.error = 28
    log.append(line(1))
    disk.error = None
    assert log.flush()
    assert log.flush()
    log.close()
    assert numbers(tmp_path / "audit.log") == [1]


def test_the_oldest_of_too_many_waiting_lines_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = journal(tmp_path, waiting=3)
    disk = Disk(monkeypatch, tmp_path / "audit.log")
    disk.error = 28
    for number in range(5):
        log.append(line(number))
    disk.error = None
    log.append(line(5))
    assert log.lost == 2
    assert numbers(tmp_path / "audit.log") == [2, 3, 4, 5]


@pytest.mark.parametrize("taken", [1, 20, 49])
def test_a_partially_written_line_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    log = journal(tmp_path)
    log.append(line(1))
    disk = Disk(monkeypatch, tmp_path / "audit.log")
    disk.takes = taken
    log.append(line(2))
    assert "No space left" in str(log.degraded)
    assert (tmp_path / "audit.log").read_bytes() == line(1)
    disk.error = None
    log.append(line(3))
    assert numbers(tmp_path / "audit.log") == [1, 2, 3]


def test_a_partial_line_that_cannot_be_removed_is_ended_by_a_newline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = journal(tmp_path)
    log.append(line(1))
    disk = Disk(monkeypatch, tmp_path / "audit.log")
    disk.takes = 20

    def refuse(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", refuse)
    log.append(line(2))
    disk.error = None
    log.append(line(3))
    entries, skipped = read_log(tmp_path / "audit.log")
    assert ([one["n"] for one in entries], skipped) == ([3, 2, 1], 1)


def test_a_closed_descriptor_is_reopened_at_once(tmp_path: Path) -> None:
    log = journal(tmp_path)
    log.append(line(1))
    os.close(log._fd)
    log.append(line(2))
    assert log.degraded is None
    assert numbers(tmp_path / "audit.log") == [1, 2]


def test_logging_recovers_when_its_folder_appears(tmp_path: Path) -> None:
    log = Journal(tmp_path / "later" / "audit.log", rotate_at=1000, waiting=10)
    log.append(line(1))
    assert "No such file" in str(log.degraded)
    (tmp_path / "later").mkdir()
    log.append(line(2))
    assert log.degraded is None
    assert numbers(tmp_path / "later" / "audit.log") == [1, 2]


def test_a_log_that_cannot_be_rotated_grows_and_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal(tmp_path, rotate_at=200)

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        for number in range(10):
            log.append(line(number))
        assert "cannot be rotated: Permission denied" in str(log.degraded)
        assert numbers(tmp_path / "audit.log") == list(range(10))
    log.append(line(10))
    assert log.degraded is None
    assert (tmp_path / "audit.log").read_bytes() == line(10)
    assert numbers(tmp_path / "audit.log") == list(range(11))


@pytest.mark.req("F11")
def test_a_real_file_size_limit_degrades_and_recovers(tmp_path: Path) -> None:
    program = (
        "import resource, sys; from pathlib import Path; from tabhub.store.audit import Journal\n"
        "log = Journal(Path(sys.argv[1]), rotate_at=10**9, waiting=100)\n"
        "hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))\n"
        'for n in range(30): log.append(b\'{"n":%d,"x":"%b"}\\n\' % (n, b\'y\' * 40))\n'
        "whole = Path(sys.argv[1]).read_bytes()\n"
        "print('a part of the line' in str(log.degraded), whole.endswith(b'\\n'), len(whole) <= 1000)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))\n"
        "log.close(); print(log.degraded)"
    )
    path = tmp_path / "audit.log"
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "True True True\nNone\n"
    assert numbers(path) == list(range(30))


def test_every_acknowledged_line_survives_sigkill(tmp_path: Path) -> None:
    program = (
        "import itertools, sys; from pathlib import Path; from tabhub.store.audit import Journal\n"
        "log = Journal(Path(sys.argv[1]), rotate_at=10**9, waiting=10)\n"
        "for n in itertools.count(int(sys.argv[2])):\n"
        '    log.append(b\'{"n":%d,"x":"%b"}\\n\' % (n, b\'y\' * 300))\n'
        "    sys.stdout.write('%d\\n' % n); sys.stdout.flush()"
    )
    path = tmp_path / "audit.log"
    begin = 0
    acknowledged: list[int] = []
    for round_ in range(20):
        with subprocess.Popen(
            [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n" + program, str(path), str(begin)],
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            acknowledged += [int(process.stdout.readline()) for _ in range(50 + round_ * 7)]
            process.kill()
            acknowledged += [int(n) for n in process.stdout.read().splitlines(keepends=True) if n.endswith(b"\n")]
        begin = acknowledged[-1] + 1_000_000
    entries, skipped = read_log(path, limit=None)
    assert set(acknowledged) <= {int(one["n"]) for one in entries}
    assert skipped <= 20


def test_lines_written_together_survive_a_rotation(tmp_path: Path) -> None:
    log = journal(tmp_path, rotate_at=1000)
    number = 0
    for _ in range(40):
        log.append(b"".join(line(number + n) for n in range(7)))
        number += 7
        kept = numbers(tmp_path / "audit.log")
        assert kept == list(range(kept[0], number))
    assert all(p.stat().st_size <= 1000 for p in tmp_path.iterdir())
    assert (log.degraded, log.lost) == (None, 0)


@pytest.mark.parametrize("takes", [None, 1, 60])
def test_lines_written_together_wait_one_by_one_when_the_disk_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, takes: int | None
) -> None:
    log = journal(tmp_path, waiting=5)
    log.append(line(0))
    disk = Disk(monkeypatch, tmp_path / "audit.log")
    disk.error, disk.takes = 28, takes
    log.append(b"".join(line(n) for n in range(1, 8)))
    assert log.degraded is not None
    assert log.lost == 2
    disk.error = None
    assert log.flush()
    assert numbers(tmp_path / "audit.log") == [0, 3, 4, 5, 6, 7]


def test_lines_written_together_to_a_file_that_was_removed_are_in_the_new_one(tmp_path: Path) -> None:
    log = journal(tmp_path)
    log.append(line(0))
    (tmp_path / "audit.log").unlink()
    log.append(line(1) + line(2))
    assert numbers(tmp_path / "audit.log") == [1, 2]
