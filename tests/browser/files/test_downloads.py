"""Reports of the files that pages download."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tabhub.browser.driver.page import Page
from tabhub.browser.driver.tab_watch import TabWatch
from tabhub.browser.files.downloads import Downloads, describe
from tabhub.browser.files.folder import Folder
from tabhub.links.browsers import Browsers
from tabhub.trust.visibility import EVERYTHING
from tests.browser.fake_browser import FakeBrowser, tab


class Downloading:
    """A tab whose page downloads, and the list of its browser."""

    def __init__(self, folder: Path) -> None:
        browsers = Browsers()
        self.browser = FakeBrowser().join(browsers, tab(1))
        watch = TabWatch(browsers)
        self.downloads = Downloads(browsers, watch, Folder(folder))
        self.key = Page(browsers, watch, browsers.tab(1), None).key
        self.rows: list[dict[str, Any]] = []
        self.browser.answers["getDownloads"] = lambda _: {"downloads": self.rows}

    def event(self, method: str, **params: Any) -> None:
        self.browser.notify("cdp.event", tabId=1, method=f"Page.{method}", params=params)

    def begin(self, name: str) -> None:
        self.event("downloadWillBegin", guid=name, url=f"https://a.example/{name}", suggestedFilename=name)

    def add(self, file: Path, state: str = "complete", **more: Any) -> None:
        row = {"downloadId": len(self.rows) + 1, "url": f"https://a.example/{file.name}", "filename": str(file)}
        started = datetime.now(UTC).isoformat()
        self.rows.insert(0, {**row, "state": state, "bytesReceived": 5, "startTime": started, **more})

    async def reports(self) -> list[dict[str, Any]]:
        return await self.downloads.reports(self.key, EVERYTHING) if self.downloads.may_have_news(self.key) else []


@pytest.fixture
async def downloading(tmp_path: Path) -> Downloading:
    return Downloading(tmp_path / "files")


async def test_a_file_in_the_folder_for_files_is_reported_once_with_its_path(
    downloading: Downloading, tmp_path: Path
) -> None:
    downloading.begin("a.txt")
    downloading.add(tmp_path / "files" / "downloads" / "a.txt")
    (report,) = await downloading.reports()
    facts = {"name": "a.txt", "state": "complete", "bytes": 5, "downloadId": 1, "path": "downloads/a.txt"}
    assert report == facts
    assert "downloads/a.txt, where browser_upload_file finds it" in describe(report)
    assert await downloading.reports() == []


async def test_a_file_that_the_persons_browser_saved_elsewhere_is_copied(
    downloading: Downloading, tmp_path: Path
) -> None:
    saved = tmp_path / "Downloads" / "a.txt"
    saved.parent.mkdir()
    saved.write_bytes(b"bytes")
    for number in (1, 2):
        downloading.begin("a.txt")
        downloading.add(saved)
        (report,) = await downloading.reports()
        assert (tmp_path / "files" / report["path"]).read_bytes() == b"bytes"
        assert downloading.downloads.path_of(downloading.key[0], downloading.rows[0]) == report["path"]
        assert report["path"] == f"downloads/a{f'-{number}' if number > 1 else ''}.txt"
    assert saved.exists()


async def test_a_download_is_reported_when_it_begins_and_when_it_ends(downloading: Downloading, tmp_path: Path) -> None:
    downloading.begin("a.txt")
    downloading.add(tmp_path / "files" / "a.txt", "in_progress")
    assert [report["state"] for report in await downloading.reports()] == ["in_progress"]
    assert await downloading.reports() == []
    downloading.rows[0]["state"] = "interrupted"
    downloading.rows[0]["error"] = "NETWORK_FAILED"
    (report,) = await downloading.reports()
    assert describe(report) == "The download of a.txt failed (NETWORK_FAILED)."


async def test_a_window_that_became_a_download_is_reported(downloading: Downloading, tmp_path: Path) -> None:
    downloading.event("windowOpen", url="https://a.example/export")
    assert await downloading.reports() == []
    downloading.add(tmp_path / "files" / "old.txt", startTime="2020-01-01T00:00:00Z")
    downloading.add(tmp_path / "files" / "other.txt", url="https://b.example/other.txt")
    downloading.add(tmp_path / "files" / "export.zip")
    assert [report["name"] for report in await downloading.reports()] == ["export.zip"]
    assert await downloading.reports() == []


async def test_a_browser_that_lists_no_downloads_still_reports_the_name(downloading: Downloading) -> None:
    downloading.begin("a.txt")
    downloading.event("downloadProgress", guid="a.txt", state="completed", receivedBytes=7)
    assert await downloading.reports() == [{"name": "a.txt", "state": "complete", "bytes": 7}]
