"""The log of a managed browser: its bounds and what is left out."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tabhub.links.launch.browser_log import BrowserLog


def stream(*chunks: bytes) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return reader


async def test_the_log_and_its_predecessor_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "browser.log"
    log = BrowserLog(path, 20_000)
    for _ in range(5):
        await log.copy(stream(b"0123456789\n" * 1_000))
    assert 0 < path.stat().st_size <= 20_000
    assert 0 < path.with_name("browser.log.1").stat().st_size <= 20_000
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_flood_without_line_breaks_is_bounded(tmp_path: Path) -> None:
    log = BrowserLog(tmp_path / "browser.log", 20_000)
    await log.copy(stream(b"x" * 500_000))
    assert log.path.stat().st_size <= 20_000


async def test_messages_about_a_missing_desktop_session_are_left_out(tmp_path: Path) -> None:
    log = BrowserLog(tmp_path / "browser.log", 20_000)
    await log.copy(stream(b"ERROR:dbus/bus.cc Failed to connect\nreal trou", b"ble\nand \xff more"))
    assert log.path.read_bytes() == b"real trouble\nand \xff more\n"
    assert log.tail() == "real trouble\nand \ufffd more"


@pytest.mark.req("F11")
async def test_text_that_cannot_be_written_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    log = BrowserLog(tmp_path / "file" / "browser.log", 20_000)
    await log.copy(stream(b"lost\n"))
    assert log.tail() == "lost"
