"""Reading the audit log: newest first over both files, filtered, and past lines that are not entries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tabhub.store.audit import AuditLog, stamp
from tabhub.store.audit_reader import lines_backward, read_log

NOON = 1_771_669_800.0  # 2026-02-21T10:30:00Z


def entry(number: int, **more: Any) -> bytes:
    facts = {"timestamp": stamp(NOON + number * 60), "tool": f"tool_{number}", "plugin": "browser", **more}
    return orjson.dumps(facts, option=orjson.OPT_APPEND_NEWLINE)


def test_the_log_on_disk_is_filtered_and_limited(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"".join(entry(number, success=number % 2 == 0) for number in range(10)))
    assert [one["tool"][-1] for one in read_log(path, limit=3)[0]] == ["9", "8", "7"]
    assert [one["tool"][-1] for one in read_log(path, since=NOON + 8 * 60)[0]] == ["9", "8"]
    assert len(read_log(path, limit=None, success=False)[0]) == 5
    assert [one["tool"] for one in read_log(path, tool="tool_4")[0]] == ["tool_4"]
    assert read_log(path, plugin="slack")[0] == []
    assert read_log(tmp_path / "none.log") == ([], 0)


def test_an_entry_without_a_valid_time_is_not_since_anything(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(entry(0, timestamp="yesterday") + entry(1, timestamp=None) + entry(2))
    assert [one["tool"] for one in read_log(path, since=NOON)[0]] == ["tool_2"]


def test_invalid_empty_and_very_long_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    long = orjson.dumps({"tool": "long", "x": "y" * 200_000})
    path.write_bytes(b"\n\njunk\n[1]\n" + long + b'\n\xff\xfe\n{"tool": "a"}\n\n{"tool":')
    entries, skipped = read_log(path)
    assert [one["tool"] for one in entries] == ["a", "long"]
    assert skipped == 4
    assert AuditLog(path).torn == 1


def test_a_rotation_while_reading_repeats_no_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(entry(1))
    os.link(path, tmp_path / "audit.log.1")
    assert list(lines_backward(path)) == [entry(1)[:-1]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(lines=st.lists(st.integers(0, 150_000).map(lambda n: b"x" * n) | st.binary(max_size=30), max_size=6))
def test_lines_read_backward_are_the_lines_reversed(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "log"
    whole = b"\n".join(lines)
    path.write_bytes(whole)
    assert list(lines_backward(path)) == [part for part in whole.split(b"\n") if part][::-1]
