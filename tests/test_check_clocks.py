"""The check for clocks in tests, on snippets and on small trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check_clocks import ALLOWED, check, check_file, main

REJECTED = {
    "import time\nbegan = time.monotonic()": "reads the clock time.monotonic",
    "import time\nbegan = time.perf_counter_ns()": "reads the clock time.perf_counter_ns",
    "import time as t\nt.process_time()": "reads the clock time.process_time",
    "from time import thread_time as cpu\ncpu()": "reads the clock time.thread_time",
    "import time\nmake(clock=time.monotonic)": "reads the clock time.monotonic",
    "import time\nspent = time.time() - began": "measures with time.time()",
    "import timeit": "measures with timeit",
    "from timeit import timeit": "measures with timeit",
    "import asyncio\nasyncio.get_running_loop().time()": "reads the clock asyncio.get_running_loop().time()",
    "now = loop.time()": "reads the clock loop.time()",
    "import resource\nresource.getrusage(0)": "reads the clock resource.getrusage",
    "import os\nos.times()": "reads the clock os.times",
    "process.cpu_times()": "reads processor times with cpu_times",
    "assert took < 2": "compares the duration 'took'",
    "assert 1 <= answer.elapsed": "compares the duration 'elapsed'",
    'assert line["durationMs"] < 50': "compares the duration 'durationMs'",
    'assert line.get("durationMs") < 50': "compares the duration 'durationMs'",
    'assert summary["milliseconds"]["scripting"] > 100': "compares the duration 'milliseconds'",
    "assert min(took) < 2 * other": "compares the duration 'took'",
    "assert max(line.duration_ms for line in lines) < 5": "compares the duration 'duration_ms'",
    "assert 0 < first < report.started_in": "compares the duration 'started_in'",
    "import time\ntime.sleep(0.1)": "waits for a fixed time: time.sleep(0.1)",
    "import asyncio\nasync def test():\n    await asyncio.sleep(1)": "waits for a fixed time: asyncio.sleep(1)",
    "from asyncio import sleep\nPAUSE = 0.5\nsleep(PAUSE)": "waits for a fixed time: asyncio.sleep(0.5)",
    "from hypothesis import settings\nsettings(deadline=200)": "limits the time of an example",
    "page.wait_for_timeout(200)": "waits for a fixed time: wait_for_timeout",
    "import time\ntime.sleep(9)  # clock:": "a `# clock:` comment without a reason",
    "total = 1 + 1  # clock: once measured": "a `# clock:` comment where no clock is read",
    "def broken(:": "cannot be parsed",
}
ACCEPTED = [
    "import time\nexpires = time.time() + 60",
    "import time\nexpired = int(time.time()) - 60",
    "import asyncio\nasync def test():\n    await asyncio.sleep(0)",
    "import time\ndef slow(seconds):\n    time.sleep(seconds)",
    "from hypothesis import settings\nsettings(deadline=None)",
    "assert took == [1, 2]",
    'assert line["durationMs"] >= 0',
    'assert set(line) >= {"tool", "durationMs"}',
    'assert "durationMs" in line',
    "assert len(durations) > 3",
    'assert held["freeInSeconds"] > 500',
    "assert taken > 5",
    'code = "import time; time.monotonic()"',
]


@pytest.mark.parametrize("source", REJECTED)
def test_a_test_that_reads_a_clock_is_rejected(source: str) -> None:
    (finding,) = check_file("test_one.py", source).findings
    assert finding.what.startswith(REJECTED[source])


@pytest.mark.parametrize("source", ACCEPTED)
def test_code_that_does_not_measure_is_accepted(source: str) -> None:
    assert check_file("test_one.py", source).findings == ()


def test_a_finding_has_its_place_and_an_alternative() -> None:
    (finding,) = check_file("hub/test_one.py", "import time\n\ntime.sleep(2)").findings
    assert str(finding) == (
        "tests/hub/test_one.py:3: waits for a fixed time: time.sleep(2); "
        "wait for a condition with tests.harness.waiting, or measure it in bench/"
    )


def test_a_reason_on_the_line_is_an_exception_that_is_counted() -> None:
    source = "import time\ntime.sleep(\n    3600,\n)  # clock: a server that never answers\ntime.sleep(3600)"
    report = check_file("test_one.py", source)
    assert (report.excepted, [each.line for each in report.findings]) == (1, [5])


def test_only_the_harness_that_owns_waiting_may_read_clocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "harness").mkdir()
    for name in (*ALLOWED, "harness/other.py"):
        (tmp_path / name).write_text("import time\nnow = time.monotonic()\n")
    assert [each.file for each in check(tmp_path).findings] == ["harness/other.py"]
    assert main(["--tests", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert shown.out == "clocks in tests: 1 found, 0 excepted by `# clock:` comments\n"
    assert shown.err.startswith("tests/harness/other.py:2: reads the clock time.monotonic")
    (tmp_path / "harness" / "other.py").unlink()
    assert main(["--tests", str(tmp_path)]) == 0
