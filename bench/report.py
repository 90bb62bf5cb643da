"""Tables, and their place in docs/performance.md: each benchmark owns the text between its two markers there."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence

from bench.processes import ROOT

PAGE = ROOT / "docs" / "performance.md"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, with columns aligned so that it is readable in a terminal too."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *rest = (
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return "| " + " | ".join([first, *rest]) + " |"

    rule = (
        "|"
        + "|".join("-" * (width + 2) if not at else "-" * (width + 1) + ":" for at, width in enumerate(widths))
        + "|"
    )
    return "\n".join([line(head), rule, *(line(row) for row in rows)])


def verdict(what: str, value: float, wanted: float, *, at_least: bool) -> str:
    """One line: the required value, the measured value, and whether it is met."""
    met = value >= wanted if at_least else value <= wanted
    bound = "at least" if at_least else "at most"
    return f"- {what}: required {bound} {wanted:,g}, measured {value:,.2f}: {'met' if met else 'NOT met'}"


def machine() -> str:
    """A description of the machine that was measured on."""
    return f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def write_section(name: str, text: str) -> None:
    """Replace the text between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`."""
    begin, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
    page = PAGE.read_text()
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"error: docs/performance.md lacks the markers {begin} and {end}")
    before, rest = page.split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{begin}\n{text.strip()}\n{end}{after}")
