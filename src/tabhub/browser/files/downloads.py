"""Files that pages download while agents use their tabs, and where tools find them.

Owns which downloads are still to be reported, and copies of files that a browser saved outside the folder for them.
Every report passes `reports`, with what the call may show.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tabhub.browser.driver.cdp_values import parse_int, parse_text
from tabhub.browser.driver.tab_watch import EventSubscription, TabWatch
from tabhub.browser.files.folder import Folder
from tabhub.core.origins import origin_of
from tabhub.errors import TabhubError
from tabhub.links.browsers import Browsers, TabKey
from tabhub.links.extension import ExtensionLink
from tabhub.store.home import DOWNLOADS
from tabhub.trust.visibility import View

BEGIN, PROGRESS, _WINDOW = "Page.downloadWillBegin", "Page.downloadProgress", "Page.windowOpen"
_STATES = {"inProgress": "in_progress", "completed": "complete", "canceled": "interrupted"}
_MAX_PENDING = 100
_LISTED = 50
_MAX_COPIES = 1_000
_WINDOW_SECONDS = 10.0
"""How long a window that a page opened may take to become a download."""
_CLOCK_SKEW = 1.0


@dataclass(slots=True, eq=False)
class _Download:
    """A download that a page has begun."""

    url: str
    name: str
    state: str = "in_progress"
    received: int = 0
    reported: str = ""
    """The state that an answer reported last."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A window that a page opened: its URL may be a download, which has no page to watch."""

    url: str
    opened: float


class Downloads:
    """The downloads of all tabs in use."""

    def __init__(self, browsers: Browsers, watch: TabWatch, folder: Folder) -> None:
        self._limits = browsers.limits
        self._folder = folder
        self._begun: dict[TabKey, dict[str, _Download]] = {}
        self._windows: dict[TabKey, list[_Window]] = {}
        self._judged: dict[str, asyncio.Task[bool | None]] = {}
        """By download: whether it is of a site that the agent is kept off is being found out. None if it is not."""
        self._reported: dict[tuple[str, int], str] = {}
        """The paths of reported downloads, by browser and download id; empty for a download without a file."""
        browsers.drop_with_tab(self._begun)
        browsers.drop_with_tab(self._windows)
        events = (BEGIN, PROGRESS, _WINDOW)
        watch.subscribe(EventSubscription(events, (("Page.enable", {}),), frames=True), self._on_event)

    def _on_event(self, key: TabKey, method: str, params: dict[str, Any], child: str | None) -> None:
        begun, guid = self._begun.setdefault(key, {}), parse_text(params.get("guid"), 100)
        if method == BEGIN and len(begun) < _MAX_PENDING:
            url = parse_text(params.get("url"), 8192)
            begun.setdefault(guid, _Download(url, parse_text(params.get("suggestedFilename"), 300) or url[:300]))
        elif method == PROGRESS and (download := begun.get(guid)) is not None:
            download.state = _STATES.get(str(params.get("state")), download.state)
            download.received = parse_int(params.get("receivedBytes"))
        elif method == _WINDOW:
            windows = self._windows.setdefault(key, [])
            windows[:] = [*windows[-9:], _Window(parse_text(params.get("url"), 8192), time.time())]

    def judge(self, guid: str, judging: asyncio.Task[bool | None]) -> None:
        """Do not report a download before it is known whether the agent may learn of it."""
        self._judged[guid[:100]] = judging

    def may_have_news(self, key: TabKey) -> bool:
        if self._begun.get(key):
            return True
        windows = self._windows.get(key)
        return windows is not None and any(time.time() - each.opened < _WINDOW_SECONDS for each in windows)

    async def reports(self, key: TabKey, view: View) -> list[dict[str, Any]]:
        """What became of the tab's downloads since the last report; of blocked sites only the number is noted."""
        link, begun = key[0], self._begun.setdefault(key, {})
        rows = [row for row in await self._rows(link) if self._is_new(link, row)]
        for row in self._of_windows(key, rows):
            url = str(row.get("url"))
            if all(download.url != url for download in begun.values()):
                begun[f"window {row.get('downloadId')}"] = _Download(url, str(row.get("filename") or url))
        news = []
        for guid, download in list(begun.items()):
            if (judging := self._judged.pop(guid, None)) is not None and await judging is not None:
                begun.pop(guid, None)
                continue
            found = next((row for row in rows if row.get("url") == download.url), None)
            if found is not None:
                rows.remove(found)  # of several with one URL, each is another one
                if found.get("state") in _STATES.values():
                    download.state = str(found["state"])
            if download.state != download.reported:
                download.reported = download.state
                news.append((download, found))
            if download.state != "in_progress":
                begun.pop(guid, None)
        shown = view.keep(news, lambda each: view.hides(each[0].url))
        return [await self._report(link, download, row) for download, row in shown]

    def path_of(self, link: ExtensionLink, row: Mapping[str, Any]) -> str | None:
        """The path by which tools read a file that a browser has downloaded; None if they cannot."""
        copied = self._reported.get((link.browser_id, parse_int(row.get("downloadId"))))
        return copied or self._path_inside(link, row)

    def _is_new(self, link: ExtensionLink, row: Mapping[str, Any]) -> bool:
        return (link.browser_id, parse_int(row.get("downloadId"))) not in self._reported

    def _of_windows(self, key: TabKey, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The downloads that windows of a page have become."""
        windows = [window for window in self._windows.get(key, ()) if time.time() - window.opened < _WINDOW_SECONDS]
        self._windows[key] = windows
        return [
            row
            for row in rows
            if any(
                origin_of(window.url) == origin_of(str(row.get("url"))) and _started(row) >= window.opened - _CLOCK_SKEW
                for window in windows
            )
        ]

    async def _rows(self, link: ExtensionLink) -> list[dict[str, Any]]:
        """The browser's downloads, newest first; none if it does not list them, as over a relay that forbids it."""
        try:
            async with asyncio.timeout(self._limits.browser_answer):
                answer = await link.request("getDownloads", {"limit": _LISTED})
        except (TabhubError, TimeoutError):
            return []
        found = answer.get("downloads") if isinstance(answer, dict) else None
        return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []

    async def _report(self, link: ExtensionLink, download: _Download, row: dict[str, Any] | None) -> dict[str, Any]:
        report: dict[str, Any] = {"name": Path(download.name).name, "state": download.state, "bytes": download.received}
        if row is not None:
            report |= {"name": Path(str(row.get("filename") or download.name)).name}
            report |= {"downloadId": row.get("downloadId"), "bytes": parse_int(row.get("bytesReceived"))}
            report |= {field: row[field] for field in ("error", "danger") if row.get(field)}
        if download.state == "complete" and row is not None:
            path = await asyncio.to_thread(self._readable_path, link, row)
            if path:
                report["path"] = path
            while len(self._reported) >= _MAX_COPIES:
                self._reported.pop(next(iter(self._reported)))
            self._reported[link.browser_id, parse_int(row.get("downloadId"))] = path or ""
        return report

    def _path_inside(self, link: ExtensionLink, row: Mapping[str, Any]) -> str | None:
        file, root = Path(str(row.get("filename"))), self._folder.path
        if not link.local or root is None or not file.is_absolute():
            return None
        return str(file.relative_to(root.resolve())) if file.is_relative_to(root.resolve()) else None

    def _readable_path(self, link: ExtensionLink, row: Mapping[str, Any]) -> str | None:
        """The path of a finished download below the folder for files, into which it is copied if it is elsewhere."""
        file, root = Path(str(row.get("filename"))), self._folder.path
        if (inside := self._path_inside(link, row)) is not None or not link.local or root is None:
            return inside
        try:
            if not file.is_absolute() or not file.is_file() or file.stat().st_size > self._limits.download_copy:
                return None
            folder = root / DOWNLOADS
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            place = Folder(folder).unused_path(file.stem, file.suffix)
            shutil.copyfile(file, place)
        except OSError:
            return None
        return str(place.resolve().relative_to(root.resolve()))


def _started(row: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(row.get("startTime"))).timestamp()
    except ValueError:
        return 0.0


def describe(report: Mapping[str, Any]) -> str:
    """A report as a sentence."""
    name = str(report["name"])[:200]
    if report.get("danger"):
        return f"The browser holds the download of {name} back as dangerous ({report['danger']}): the person decides."
    if report["state"] == "in_progress":
        return f"{name} is being downloaded; an answer in this tab, or browser_list_downloads, says when it is done."
    if report["state"] == "interrupted":
        return f"The download of {name} failed ({report.get('error') or 'cancelled'})."
    where = f"to {report['path']}, where browser_upload_file finds it" if report.get("path") else "by the browser"
    return f"{name} ({report['bytes']} bytes) was downloaded {where}."
