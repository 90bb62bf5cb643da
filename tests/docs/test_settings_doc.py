"""The settings in docs/guide.md are generated from `Config`: `python tests/docs/test_settings_doc.py --write`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tabhub.config.settings import Config

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"
BEGIN, END = "<!-- settings: begin -->", "<!-- settings: end -->"


def default(key: str, values: Any) -> str:
    """A key's default as in the file; keys with `<…>` have none."""
    for step in key.split("."):
        if not isinstance(values, dict) or step not in values:
            return ""
        values = values[step]
    return "" if values is None else f"`{json.dumps(values)}`"


def table() -> str:
    """One row per key; the limits have their own page."""
    lines = ["| key | default | meaning |", "|---|---|---|"]
    values = Config().values()
    for key, meaning in Config.known_keys().items():
        if not key.startswith("limits."):
            lines.append(f"| `{key}` | {default(key, values)} | {meaning} |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page with its table regenerated."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}{END}{after}"


def test_the_table_of_settings_equals_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/docs/test_settings_doc.py --write"


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(page(), encoding="utf-8")
