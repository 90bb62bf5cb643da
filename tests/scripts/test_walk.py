"""scripts/walk: what it records, and what it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tabhub.wire import strict_json
from tests.harness.walks import WALKS, Recorder, Step, Walk, record

SCRIPT = Path(__file__).parents[2] / "scripts" / "walk"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)


def test_the_recorder_records_functions_of_the_product_only() -> None:
    with Recorder() as steps:
        strict_json.decode(b'{"a": 1}')
        Path("x").with_suffix(".y")
    assert {step.file for step in steps.values()} == {"wire/strict_json.py"}
    assert next(iter(steps.values())) == Step("wire/strict_json.py", "decode")


def test_files_are_listed_once_in_the_order_of_their_first_function() -> None:
    walk = Walk("made up", (Step("a.py", "f"), Step("b.py", "g"), Step("a.py", "h")))
    assert walk.files == ("a.py", "b.py")


@pytest.mark.parametrize("name", WALKS)
async def test_a_walk_leads_from_the_socket_to_the_tool_and_back_to_the_audit_log(name: str) -> None:
    files = (await record(name)).files
    assert files[0].startswith("http/")
    order = [files.index(file) for file in ("wire/jsonrpc.py", "calls/engine.py", "store/audit.py")]
    assert order[:2] == sorted(order[:2])


async def test_two_recordings_of_a_walk_are_the_same() -> None:
    assert await record("list tabs") == await record("list tabs")


async def test_each_walk_reaches_what_it_is_named_for() -> None:
    passed = {name: " ".join((await record(name)).files) for name in WALKS}
    assert "browser/tools/managing/tabs.py" in passed["list tabs"]
    assert "browser/tools/acting/click.py" in passed["click"]
    assert "calls/sources/page_" in passed["page tool"]
    assert "trust/approvals.py" in passed["approval"]
    assert "trust/approvals.py" not in passed["list tabs"]


def test_the_script_prints_functions_with_their_files() -> None:
    lines = run("list tabs").stdout.splitlines()
    assert lines[0].startswith("list tabs: ")
    assert any(line.split() == ["calls/engine.py", "Engine.call"] for line in lines)
    assert len(lines) == 1 + int(lines[0].split()[2])


def test_the_script_counts_functions_and_files() -> None:
    (line,) = run("--count", "list tabs").stdout.splitlines()
    assert line.split()[3:] == ["functions", "in", line.split()[5], "files"]


def test_the_script_rejects_an_unknown_walk() -> None:
    finished = run("nowhere")
    assert finished.returncode == 2
    assert "unknown walk 'nowhere'. Use 'list tabs', " in finished.stderr
