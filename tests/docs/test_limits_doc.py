"""The table in docs/limits.md is generated from `Limits`: `python tests/docs/test_limits_doc.py --write`."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from tabhub.limits import MB, Limits

PAGE = Path(__file__).resolve().parents[2] / "docs" / "limits.md"
BEGIN, END = "<!-- limits: begin -->", "<!-- limits: end -->"
_LINE = re.compile(r"^    (?:# (?P<group>.+)|(?P<name>[a-z_]+): )", re.MULTILINE)


def shown(value: Any) -> str:
    """A default as the page shows it: floats are seconds, whole megabytes are sizes."""
    if isinstance(value, float):
        return f"{value:g} s"
    return f"{value // MB} MB" if value >= MB and value % MB == 0 else f"{value:,}"


def table() -> str:
    """The limits in the order and under the headings of the source."""
    known = {f.name: f for f in fields(Limits)}
    lines: list[str] = []
    seen: list[str] = []
    for match in _LINE.finditer(inspect.getsource(Limits)):
        if match["group"]:
            heading = match["group"]
            lines += ["", f"## {heading[0].upper()}{heading[1:]}", "", "| name | default | meaning |", "|---|---|---|"]
        elif match["name"] in known:
            limit = known[match["name"]]
            seen.append(limit.name)
            lines.append(f"| `{limit.name}` | {shown(limit.default)} | {limit.metadata['doc']} |")
    assert seen == list(known), "a limit stands outside the pattern this page is made from"
    return "\n".join(lines).strip() + "\n"


def page() -> str:
    """The page with its table regenerated."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}{END}{after}"


def test_the_page_of_limits_equals_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/docs/test_limits_doc.py --write"


def test_every_limit_says_what_it_bounds() -> None:
    assert all(f.metadata.get("doc") for f in fields(Limits))


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(page(), encoding="utf-8")
