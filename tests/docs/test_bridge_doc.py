"""The protocol page names every message of the bridge socket, and no other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec

from tabhub.wire import bridge

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"


def test_the_messages_in_the_page_are_those_in_the_code() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## The bridge socket")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([A-Z]+)` \|", section, re.MULTILINE)
    assert rows == [tag(kind) for kind in get_args(bridge.Message)]
    documented = set(re.findall(r"`([A-Z]+(?:_OK)?)`", section)) - set(rows)
    assert documented == {tag(kind) for kind in bridge.FROM_HUB} - set(rows)


def tag(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)
