"""The protocol page names every message of the daemon's socket, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from tabhub.wire import bridge as daemon

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"


def test_the_messages_in_the_page_are_those_in_the_code() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## The daemon socket")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([A-Z]+)` \|", section, re.MULTILINE)
    assert rows == list(daemon._READERS)
    said = set(re.findall(r"`([A-Z]+(?:_OK)?)`", section)) - set(rows)
    source = Path(daemon.__file__).read_text(encoding="utf-8")
    written = set(re.findall(r'"type": ?"([A-Z_]+)"|"type":"([A-Z]+)"', source))
    assert said == {name for pair in written for name in pair if name} - set(rows)
