"""scripts/repeat: how it reads results, what it prints, and whole runs in a temporary repository."""

from __future__ import annotations

import importlib.util
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest

from tests.harness.waiting import wait_for

SCRIPT = Path(__file__).parents[2] / "scripts" / "repeat"
CASES = """<testsuites><testsuite time="12.5">
<testcase classname="tests.core.test_tabs" name="test_good[a.b]"/>
<testcase classname="tests.core.test_tabs" name="test_left_out"><skipped/></testcase>
<testcase classname="tests.core.test_tabs" name="test_bad"><failure message="assert 1 == 2&#10;more"/></testcase>
<testcase classname="tests.core.test_tabs" name="test_bad"><error message="teardown"/></testcase>
<testcase classname="tests.config.test_settings.TestOf" name="test_it"><error>no message attribute</error></testcase>
</testsuite></testsuites>"""
MAKEFILE = """test:
	@echo run >> $(COUNT)
	@if [ $$(wc -l < $(COUNT)) = 2 ]; then python3 write.py bad $(ARGS); exit 2; else python3 write.py good $(ARGS); fi
"""
WRITE = """import sys
how, path = sys.argv[1], next(word for word in sys.argv if word.startswith("--junitxml="))[11:]
inner = "<failure message='broken | here'/>" if how == "bad" else ""
case = f"<testcase classname='tests.test_one' name='test_sometimes'>{inner}</testcase>"
open(path, "w").write(f"<testsuites><testsuite time='1'>{case}<testcase classname='tests.test_one' name='test_ok'/>"
                      "</testsuite></testsuites>")
print("arguments:", sys.argv[1:])
"""


@pytest.fixture(scope="module")
def repeat() -> Any:
    loader = SourceFileLoader("repeat_script", str(SCRIPT))
    spec = importlib.util.spec_from_loader("repeat_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["repeat_script"] = module  # dataclasses look up their module
    try:
        loader.exec_module(module)
        yield module
    finally:
        del sys.modules["repeat_script"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose `make test` fails in its second run."""
    root = tmp_path / "repository"
    (root / "scripts").mkdir(parents=True)
    shutil.copy(SCRIPT, root / "scripts" / "repeat")
    (root / "scripts" / "setup").write_text("#!/bin/sh\necho set up\n")
    (root / "scripts" / "setup").chmod(0o755)
    (root / "Makefile").write_text(f"COUNT = {tmp_path}/count\n{MAKEFILE}")
    (root / "write.py").write_text(WRITE)
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], cwd=root, check=True)
    return root


def call(repository: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(repository / "scripts" / "repeat"), *words, "--logs", str(repository.parent / "logs")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def assert_ends(handle: int) -> None:
    """Wait for the end of a process, by a pidfd opened while it ran, because its pid may be reused."""
    try:
        assert select.select([handle], [], [], 30)[0], "the process still runs"
    finally:
        os.close(handle)


def test_results_count_each_test_once_and_name_it_as_pytest_does(repeat: Any, tmp_path: Path) -> None:
    (tmp_path / "run.xml").write_text(CASES)
    results = repeat.read_results(tmp_path / "run.xml")
    assert (results.passed, results.skipped, results.seconds) == (1, 1, 12.5)
    assert results.failed == {
        "tests/core/test_tabs.py::test_bad": "assert 1 == 2",
        "tests/config/test_settings.py::TestOf::test_it": "no message attribute",
    }


@pytest.mark.parametrize("text", [None, "", "<testsuites><testsuite>"])
def test_missing_and_truncated_results_are_none(repeat: Any, tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "run.xml").write_text(text)
    assert repeat.read_results(tmp_path / "run.xml") is None


def test_the_summary_lists_the_most_frequent_failure_first(repeat: Any) -> None:
    def run(number: int, *failed: str) -> Any:
        results = repeat.Results(passed=10, failed=dict.fromkeys(failed, "a | b"), seconds=3)
        return repeat.Run(number, 1 if failed else 0, 0.0, 5.0, Path("run.log"), results)

    text = repeat.summary([run(1), run(2, "a.py::test_a", "b.py::test_b"), run(3, "b.py::test_b")])
    runs, failures = text.split("\n\n")
    assert runs.splitlines()[2:] == [
        "| 1 | passed | 10 | 0 | 0 s | 5 s | 3 s |",
        "| 2 | failed (exit code 1) | 10 | 2 | 0 s | 5 s | 3 s |",
        "| 3 | failed (exit code 1) | 10 | 1 | 0 s | 5 s | 3 s |",
    ]
    assert failures.splitlines()[2:] == [
        "| 2 of 3 | 2, 3 | `b.py::test_b` | a \\| b |",
        "| 1 of 3 | 2 | `a.py::test_a` | a \\| b |",
    ]
    assert repeat.summary([run(1)]).endswith("No test failed in 1 runs.")


def test_a_run_that_ends_before_its_tests_counts_as_failed(repeat: Any) -> None:
    run = repeat.Run(1, 2, 0.0, 5.0, Path("run-1.log"), None)
    assert not run.ok
    assert "| 1 of 1 | 1 | `(before the tests)` | exit code 2, see run-1.log |" in repeat.summary([run])


def test_arguments_reach_pytest_through_make_and_the_shell(repeat: Any) -> None:
    options = repeat.read_options(["3", "--busy", "-k", "a or $b", "-x"])
    assert (options.runs, options.busy, options.pytest_args) == (3, True, ["-k", "a or $b", "-x"])
    assert repeat.make_command(Path("/x.xml"), options.pytest_args) == [
        "make", "test", "ARGS=--junitxml=/x.xml -k 'a or $$b' -x",
    ]  # fmt: skip


def test_runs_in_fresh_clones_are_counted_and_a_failure_is_named(repository: Path) -> None:
    (repository / "Makefile").write_text("test:\n\t@exit 9\n")  # not committed, so not in the clones
    done = call(repository, "3", "--busy", "-k", "two words")
    assert done.returncode == 1, done.stderr
    assert re.search(r"\| 1 \| passed \| 2 \| 0 \|", done.stdout)
    assert re.search(r"\| 2 \| failed \(exit code 2\) \| 1 \| 1 \|", done.stdout)
    assert r"| 1 of 3 | 2 | `tests/test_one.py::test_sometimes` | broken \| here |" in done.stdout
    assert "without the uncommitted changes" in done.stdout
    log = (repository.parent / "logs" / "run-3.log").read_text()
    assert "set up" in log
    assert "'-k', 'two words'" in log


def test_in_place_the_working_tree_is_used(repository: Path) -> None:
    done = call(repository, "1", "--in-place")
    assert done.returncode == 0, done.stderr
    assert "starts in " + str(repository) in done.stdout
    assert "set up" not in (repository.parent / "logs" / "run-1.log").read_text()


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_the_load_and_prints_the_summary(
    repository: Path, tmp_path: Path, sign: signal.Signals
) -> None:
    started = tmp_path / "started"
    (repository / "Makefile").write_text(f"test:\n\t@echo $$PPID > {started}; exec tail -f /dev/null\n")
    command = [str(repository / "scripts" / "repeat"), "2", "--in-place", "--busy", "--logs", str(tmp_path / "logs")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        wait_for(lambda: started.exists() and started.read_text().strip() != "")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(children) == (os.cpu_count() or 1) + 1
        handles = [os.pidfd_open(int(pid)) for pid in children]
        process.send_signal(sign)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in output
    for handle in handles:
        assert_ends(handle)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt orphans")
def test_what_a_run_leaves_running_is_ended(repository: Path) -> None:
    leave = "import subprocess, sys; print(subprocess.Popen(['sleep', '600'], start_new_session=True).pid)"
    (repository / "leave.py").write_text(leave)
    (repository / "Makefile").write_text("test:\n\t@python3 leave.py > pid; exit 2\n")
    assert call(repository, "1", "--in-place").returncode == 1
    pid = int((repository / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


def test_the_load_ends_with_the_process_that_made_it() -> None:
    program = f"""
import os
from importlib.machinery import SourceFileLoader
import importlib.util, sys
loader = SourceFileLoader("repeat_script", {str(SCRIPT)!r})
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("repeat_script", loader))
sys.modules["repeat_script"] = module
loader.exec_module(module)
with module.load(2) as pids:
    print(*pids, flush=True)
    sys.stdin.readline()
    os._exit(0)
"""
    command = [sys.executable, "-B", "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        handles = [os.pidfd_open(int(pid)) for pid in process.stdout.readline().split()]
        assert len(handles) == 2
        process.communicate("\n", timeout=30)
    for handle in handles:
        assert_ends(handle)


def test_a_signal_during_the_start_of_a_process_ends_that_process(repeat: Any, tmp_path: Path) -> None:
    """On a busy machine a process may run for a while before its parent knows of it."""
    started: list[int] = []

    class SlowStart(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(os.pidfd_open(self.pid))
            signal.raise_signal(signal.SIGTERM)

    before = {name: signal.signal(name, repeat.Interrupted.signalled) for name in (signal.SIGINT, signal.SIGTERM)}
    repeat.subprocess = types.SimpleNamespace(**{**vars(subprocess), "Popen": SlowStart})
    try:
        with pytest.raises(repeat.Interrupted):
            repeat.run_logged(["tail", "-f", "/dev/null"], tmp_path, tmp_path / "log")
    finally:
        repeat.subprocess = subprocess
        for name, handler in before.items():
            signal.signal(name, handler)
    (handle,) = started
    assert_ends(handle)
