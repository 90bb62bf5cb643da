"""Cached page tools survive a restart, expire, and never prevent the hub from starting."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tabhub.core.pages.tool_cache import CachedTool
from tabhub.core.pages.tools import read_tool
from tabhub.store.page_tools import PageToolStore

TOOL = {"name": "find", "description": "finds", "inputSchema": {"type": "object"}, "annotations": {"cache": True}}


def cached(seen: float, name: str = "find") -> CachedTool:
    return CachedTool("https://shop.example", "https://shop.example/p", read_tool({**TOOL, "name": name}), seen)


@pytest.mark.req("S000-spec-cleanup-06", "S000-spec-architecture-05", "S000-spec-testing-01")
def test_tools_seen_within_the_hour_survive_a_restart(tmp_path: Path) -> None:
    store = PageToolStore(tmp_path / "t.json")
    assert store.load(0) == []
    assert store.save([cached(10_000.0), cached(5_000.0, "old")])
    back = PageToolStore(tmp_path / "t.json").load(10_100.0)
    assert [(c.origin, c.url, c.tool.name, c.seen) for c in back] == [
        ("https://shop.example", "https://shop.example/p", "find", 10_000.0)
    ]
    assert back[0].tool.wire == cached(1.0).tool.wire


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 2, "tools": []}', '{"version": 1, "tools": {}}', "\xff"])
def test_a_broken_file_is_logged_and_dropped(tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.json"
    path.write_text(text, encoding="latin-1")
    assert PageToolStore(path).load(0) == []
    assert len(caplog.records) == 1


def test_a_broken_entry_is_dropped_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "t.json"
    good = {"origin": "https://a.b", "url": "https://a.b/", "seen": 1, "tool": TOOL}
    bad = [7, {}, {**good, "seen": "x"}, {**good, "tool": {"name": ""}}, {**good, "tool": None}]
    path.write_text(json.dumps({"version": 1, "tools": [*bad, good]}))
    assert [c.origin for c in PageToolStore(path).load(2)] == ["https://a.b"]
    assert len(caplog.records) == len(bad)
