"""Links in the documentation work, and the commands in it exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tabhub.cli import TABHUB
from tabhub.cli.command import Command, Group, LazyCommand, Parser

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


def command_lines(page: Path) -> list[str]:
    """The lines of a page's code blocks that run `tabhub`, without their comments."""
    blocks = re.findall(r"^ *```[a-z]*\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.replace("\\\n", " ").split("\n")]
    return [re.sub(r"\s+#.*", "", line) for line in lines if line.startswith("tabhub ")]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_every_command_in_a_code_block_is_understood(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in command_lines(page):
        assert understood(shlex.split(line)[1:]), f"{line}: {capsys.readouterr().err}"


def understood(words: list[str]) -> bool:
    """Whether the command line accepts these words."""
    command: Command | Group | LazyCommand = TABHUB
    while not isinstance(command, Command):
        if isinstance(command, LazyCommand):
            command = command.load()
        elif words and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        else:
            return False
    parser = Parser(allow_abbrev=False)
    for add in command.options:
        add(parser)
    try:
        parser.parse_args(words)
    except SystemExit:
        return False
    return True


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    for decision in folder.glob("[0-9]*.md"):
        assert f"({decision.name})" in index, decision.name
