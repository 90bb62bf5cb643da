"""The pages keep together: links lead somewhere, and the commands they show exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tabhub.cli import TABHUB

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
_COMMAND = re.compile(r"(?:^|`|\$ )tabhub ([a-z][a-z-]*)", re.MULTILINE)


def anchor(heading: str) -> str:
    """The anchor a heading gets."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_heading_that_exist(page: Path) -> None:
    for target in _LINK.findall(page.read_text(encoding="utf-8")):
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} does not exist"
        if fragment:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert fragment in {anchor(h) for h in headings}, f"{target}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_command_shown_exists(page: Path) -> None:
    shown = set(_COMMAND.findall(page.read_text(encoding="utf-8")))
    assert shown <= set(TABHUB.commands), f"unknown: {shown - set(TABHUB.commands)}"


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for decision in folder.glob("[0-9]*.md"):
        assert f"({decision.name})" in index, decision.name
