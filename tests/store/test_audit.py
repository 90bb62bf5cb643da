from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from tabhub.core.tools import BROWSER, Source
from tabhub.errors import CallTimeout, CommandFailed
from tabhub.limits import Limits
from tabhub.store.audit import AuditLog, digest, stamp
from tabhub.store.audit_reader import read_log
from tabhub.store.audit_record import CallRecord, call_error
from tabhub.store.call_figures import BUCKETS

NOON = 1_771_669_800.0  # 2026-02-21T10:30:00Z
DAY = 86_400.0


class Clock:
    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def made(number: int = 0, **more: Any) -> CallRecord:
    """A record of a call; its arguments are kept with `keep_arguments`."""
    facts: dict[str, Any] = {"tool": f"browser_tool_{number}", "source": BROWSER, "now": NOON, "duration_ms": 10.0}
    facts |= {"success": True, "session": "s1", "client": "agent 1.0", "via": "mcp", "arguments": {"tabId": number}}
    facts |= more
    source, error, arguments = facts.pop("source"), facts.pop("error", None), facts.pop("arguments")
    return CallRecord(
        timestamp=stamp(facts.pop("now")),
        plugin=source.key,
        source=str(source),
        args_digest=digest(arguments),
        arguments=arguments if facts.pop("keep_arguments", False) else None,
        error=None if error is None else call_error(error),
        outcome=None if error is None else error.outcome,
        **facts,
    )


def as_json(record: CallRecord) -> dict[str, Any]:
    decoded: dict[str, Any] = orjson.loads(msgspec.json.encode(record))
    return decoded


def open_log(tmp_path: Path, clock: Clock | None = None, **limits: int) -> AuditLog:
    return AuditLog(tmp_path / "audit.log", Limits(**limits), clock=clock or Clock())


@pytest.mark.req("S002-audit-10", "S002-audit-11")
def test_an_entry_names_client_tool_place_and_outcome() -> None:
    error = CommandFailed("The page said no: Bearer abcdef\nsecond line")
    record = made(
        now=NOON + 0.2455,
        tool="slack_send_message",
        source=Source("plugin", "slack"),
        success=False,
        duration_ms=245.123,
        via="gateway",
        arguments={"b": 1, "a": "x"},
        tab_id=7,
        origin="https://app.slack.com",
        error=error,
    )
    assert as_json(record) == {
        "timestamp": "2026-02-21T10:30:00.245Z",
        "tool": "slack_send_message",
        "plugin": "slack",
        "source": "plugin:slack",
        "success": False,
        "durationMs": 245.123,
        "session": "s1",
        "client": "agent 1.0",
        "via": "gateway",
        "argsDigest": digest({"a": "x", "b": 1}),
        "tabId": 7,
        "origin": "https://app.slack.com",
        "error": {
            "code": -32008,
            "message": "The page said no: Bearer [redacted]\\nsecond line",
            "category": "browser",
        },
        "outcome": "failed",
    }


def test_arguments_are_kept_only_on_request() -> None:
    assert "arguments" not in as_json(made(1))
    assert as_json(made(1, keep_arguments=True))["arguments"] == {"tabId": 1}
    assert len(made(1).args_digest) == 16
    assert made(1).args_digest != made(2).args_digest
    assert digest({"x": "\ud800", "n": 2**100})


def test_an_unknown_outcome_is_recorded() -> None:
    assert as_json(made(error=CallTimeout("late"), success=False))["outcome"] == "unknown"
    assert "outcome" not in as_json(made())


def test_times_are_written_to_the_millisecond() -> None:
    assert stamp(0) == "1970-01-01T00:00:00.000Z"
    assert stamp(NOON + 0.999999) == "2026-02-21T10:30:00.999Z"


@pytest.mark.req("S002-audit-03")
def test_every_call_is_one_line_of_json_on_disk_when_write_returns(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    entries = [made(n) for n in range(3)]
    for number, one in enumerate(entries, 1):
        log.write(one)
        lines = (tmp_path / "audit.log").read_bytes().splitlines()
        assert [orjson.loads(line) for line in lines] == [as_json(one) for one in entries[:number]]
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600
    log.close()


@pytest.mark.req("S002-audit-02")
def test_the_last_500_calls_are_in_memory_newest_first(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(510):
        log.write(made(number))
    assert [one["tool"] for one in log.recent(500)] == [f"browser_tool_{n}" for n in range(509, 9, -1)]
    assert len(log.recent(600)) == 500
    assert len(log.recent()) == 50
    assert log.recent(0) == []


@pytest.mark.req("S002-audit-07", "S002-audit-08", "S002-audit-09")
def test_recent_calls_are_filtered_by_plugin_tool_and_success(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    slack = Source("plugin", "slack")
    log.write(made(tool="slack_send", source=slack))
    log.write(made(tool="slack_send", source=slack, success=False))
    log.write(made(tool="browser_list_tabs"))
    assert [one["plugin"] for one in log.recent(plugin="browser")] == ["browser"]
    assert len(log.recent(tool="slack_send")) == 2
    assert [one["tool"] for one in log.recent(success=False)] == ["slack_send"]
    assert len(log.recent(limit=1, plugin="slack", success=True)) == 1
    assert log.recent(plugin="nobody") == []


def test_the_summary_counts_all_calls_and_those_of_the_last_day(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock)
    assert log.summary() == {
        "totalInvocations": 0,
        "successCount": 0,
        "failureCount": 0,
        "last24h": {"total": 0, "success": 0, "failure": 0},
        "avgDurationMs": 0,
    }
    log.write(made(duration_ms=100))
    clock.now += DAY - 120
    log.write(made(duration_ms=301, success=False))
    assert log.summary()["last24h"] == {"total": 2, "success": 1, "failure": 1}
    clock.now += 240
    assert log.summary() == {
        "totalInvocations": 2,
        "successCount": 1,
        "failureCount": 1,
        "last24h": {"total": 1, "success": 0, "failure": 1},
        "avgDurationMs": 200,
    }


def test_a_jump_of_the_clock_has_no_effect(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock)
    for jump in (0, 3600, -7200, 3600):
        clock.now += jump
        log.write(made())
    assert log.summary()["last24h"]["total"] == 4
    assert [one["timestamp"][11:16] for one in log.recent()] == ["10:30", "09:30", "11:30", "10:30"]


def test_the_counters_of_many_days_take_bounded_memory(tmp_path: Path) -> None:
    clock = Clock()
    log = open_log(tmp_path, clock)
    for _ in range(3000):
        clock.now += 60
        log.write(made())
    assert log.summary()["last24h"]["total"] == 1440
    assert len(log.figures._minutes) <= 1500


@pytest.mark.req("S002-audit-05")
def test_recent_calls_and_counters_are_restored_after_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(20):
        log.write(made(number))
    log.close()
    again = open_log(tmp_path, Clock(NOON + 60), audit_ring=15)
    assert [one["tool"] for one in again.recent()] == [f"browser_tool_{n}" for n in range(19, 4, -1)]
    assert again.summary()["last24h"]["total"] == 15
    assert again.torn == 0


def test_a_truncated_last_line_is_skipped_counted_and_never_joined_to_the_next(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write(made(1))
    log.close()
    path = tmp_path / "audit.log"
    with path.open("ab") as file:
        file.write(msgspec.json.encode(made(2))[:40])
    again = open_log(tmp_path)
    assert again.torn == 1
    assert [one["tool"] for one in again.recent()] == ["browser_tool_1"]
    again.write(made(3))
    again.write(made(4))
    entries, skipped = read_log(path)
    assert ([one["tool"][-1] for one in entries], skipped) == (["4", "3", "1"], 1)


def test_a_last_line_that_lacks_only_its_newline_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(msgspec.json.encode(made(1)))
    log = open_log(tmp_path)
    log.write(made(2))
    assert log.torn == 0
    assert [one["tool"][-1] for one in read_log(path)[0]] == ["2", "1"]


@pytest.mark.parametrize(
    "odd",
    [
        "two\nlines\r\n",
        "\x00\x1b[2J\x7f",
        "lone \ud800 surrogate \udfff",
        "\u2028\u2029\u202e",
        "a" * 5000,
    ],
)
def test_unusual_text_in_any_field_stays_inside_its_line(tmp_path: Path, odd: str) -> None:
    log = open_log(tmp_path)
    log.write(made(tool=odd, client=odd, origin=odd, keep_arguments=True, arguments={odd: [odd]}))
    log.write(made(2))
    assert (tmp_path / "audit.log").read_bytes().count(b"\n") == 2
    entries, skipped = read_log(tmp_path / "audit.log")
    assert (len(entries), skipped) == (2, 0)
    assert entries == log.recent()


def test_unusual_values_still_give_a_readable_line(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    deep: Any = []
    for _ in range(500):
        deep = [deep]
    odd: dict[Any, Any] = {
        "big": 2**200,
        "set": {1},
        5: "key",
        "nan": float("nan"),
        "deep": deep,
        "tuple": (1, None),
    }
    log.write(made(keep_arguments=True, arguments=odd))
    entries, skipped = read_log(tmp_path / "audit.log")
    assert skipped == 0
    kept = entries[0]["arguments"]
    assert (kept["set"], kept["5"], kept["nan"]) == ([1], "key", None)
    assert str(2**200) in (tmp_path / "audit.log").read_text()


def test_an_overlong_line_omits_its_arguments(tmp_path: Path) -> None:
    log = open_log(tmp_path, audit_line=2000)
    log.write(made(1, keep_arguments=True, arguments={"text": "x" * 5000}))
    log.write(made(2, tool="é" * 5000, client='"' * 5000))
    first, second = log.recent()[::-1]
    assert first["arguments"] == {"leftOut": "longer than an audit line may be"}
    assert first["tool"] == "browser_tool_1"
    assert second["argsDigest"] == digest({"tabId": 2})
    assert all(len(line) <= 2000 for line in (tmp_path / "audit.log").read_bytes().splitlines())


def test_events_are_on_disk_and_not_counted_as_calls(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.event("page.tools", Source("page", "https://a.b"), tab_id=7, origin="https://a.b", added=["x\ud800"])
    log.event("page.tools", Source("page", "https://a.b"), tab_id=7, added=["x" * 100_000])
    (kept,) = read_log(tmp_path / "audit.log")[0]
    assert (kept["tool"], kept["tabId"], kept["origin"], kept["added"]) == (
        "page.tools",
        7,
        "https://a.b",
        ["x\\ud800"],
    )
    for each in (log, open_log(tmp_path)):
        assert each.recent() == []
        assert each.summary(NOON)["totalInvocations"] == 0


def tools_on_disk(tmp_path: Path) -> list[str]:
    return [orjson.loads(line)["tool"] for line in (tmp_path / "audit.log").read_bytes().splitlines()]


class Batch:
    """Runs its hooks on request, as before an answer is written."""

    def __init__(self) -> None:
        self.hooks: list[Callable[[], None]] = []

    def before_write(self, hook: Callable[[], None]) -> None:
        self.hooks.append(hook)

    def write(self) -> None:
        for hook in self.hooks:
            hook()


def test_lines_are_written_together_before_the_next_answer(tmp_path: Path) -> None:
    batch = Batch()
    log = AuditLog(tmp_path / "audit.log", clock=Clock(), batch=batch)
    log.write(made(tool="one"))
    batch.write()
    assert tools_on_disk(tmp_path) == ["one"]
    log.write(made(tool="two"))
    log.event("approval", BROWSER, tab_id=None)
    log.write(made(tool="three", success=False))
    assert [entry["tool"] for entry in log.recent()] == ["three", "two", "one"]
    batch.write()
    assert tools_on_disk(tmp_path) == ["one", "two", "approval", "three"]


@pytest.mark.parametrize("end", [AuditLog.flush, AuditLog.close])
def test_waiting_lines_are_written_when_the_log_is_flushed_or_closed(
    tmp_path: Path, end: Callable[[AuditLog], object]
) -> None:
    log = AuditLog(tmp_path / "audit.log", clock=Clock(), batch=Batch())
    log.write(made(tool="waiting"))
    end(log)
    assert tools_on_disk(tmp_path) == ["waiting"]


def test_calls_are_counted_by_plugin_since_the_start(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.write(made(duration_ms=3))
    log.write(made(duration_ms=700, success=False))
    log.write(made(source=Source("plugin", "slack")))
    browser = log.figures.series["browser"]
    assert (browser.ok, browser.failed, browser.seconds) == (1, 1, 0.703)
    assert [bound for bound, count in zip(BUCKETS, browser.buckets, strict=False) if count] == [0.005, 1.0]
    log.close()
    again = open_log(tmp_path)
    assert "browser" not in again.figures.series
    assert again.summary()["totalInvocations"] == 3
