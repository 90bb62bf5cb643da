"""docs/security.md names a test for each promise; each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_promise_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (?!promise|---)(.+) \| (`test_.+) \|$", page, re.MULTILINE)
    assert len(rows) >= 20
    named = {name for _, names in rows for name in re.findall(r"`(test_\w+)`", names)}
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert named - defined == set()
