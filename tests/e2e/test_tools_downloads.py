"""The download tools in a real browser that downloads into the test's folder."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import live
from tests.e2e.live import Caller, LiveHub
from tests.e2e.site import Site
from tests.e2e.zoo import Zoo
from tests.harness.waiting import eventually


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="module")
def live_hub(folder: Path) -> Iterator[LiveHub]:
    """A browser whose home is the test's folder."""
    hub = live.start(folder, HOME=str(folder), XDG_CONFIG_HOME=str(folder / "config"))
    yield hub
    live.stop(hub)


@pytest.fixture
async def agent(live_hub: LiveHub, browser_ready: None) -> AsyncIterator[Caller]:
    async with live.caller(live_hub) as agent:
        yield agent


def content(download: dict[str, Any]) -> bytes:
    """The downloaded file."""
    return Path(download["filename"]).read_bytes()


async def finished(agent: Caller, download: dict[str, Any]) -> dict[str, Any]:
    """The completed download."""

    async def look() -> dict[str, Any] | None:
        now = await agent.get("browser_get_download_status", downloadId=download["downloadId"])
        return None if now["state"] == "in_progress" else now

    done = await eventually(look)
    assert done["state"] == "complete", done
    return done


async def test_a_download_uses_the_given_name_and_overwrites_nothing(agent: Caller, site: Site, folder: Path) -> None:
    wanted = {"url": f"{site.url}/file", "filename": "reports/june.txt"}
    first = await finished(agent, await agent.get("browser_download_file", **wanted))
    assert first["bytesReceived"] == 5
    place = Path(first["filename"])
    files = folder / "home" / "files"
    assert place.is_relative_to(files / "downloads")
    assert (place.name, place.parent.name, content(first)) == ("june.txt", "reports", b"bytes")
    # where an upload finds it
    await agent.open(f"{site.url}/")
    await agent.run("document.body.append(Object.assign(document.createElement('input'), {type: 'file'}))")
    await agent.get("browser_upload_file", selector="input", paths=[str(place.relative_to(files))])
    assert await agent.run("return document.querySelector('input[type=file]').files[0].name") == "june.txt"
    second = await finished(agent, await agent.get("browser_download_file", **wanted))
    assert Path(second["filename"]).name == "june (1).txt"
    listed = (await agent.get("browser_list_downloads", query="june", state="complete"))["downloads"]
    assert [item["downloadId"] for item in listed] == [second["downloadId"], first["downloadId"]]
    some = await agent.get("browser_list_downloads", limit=1)
    assert (len(some["downloads"]), some["cut"]) == (1, True)
    status = await agent.get("browser_get_download_status", downloadId=first["downloadId"])
    assert (status["state"], status["url"]) == ("complete", f"{site.url}/file")


@pytest.fixture
async def slow() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """A server that sends half a file, and the rest on demand; it never answers `/silent`."""
    rest = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1]
        if path != b"/silent":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: 70000\r\n\r\n")
            writer.write(b"a" * 69_995)  # a browser inspects the beginning before it reports that the download started
        await rest.wait()
        if path != b"/silent":
            writer.write(b"rest!")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", rest
    rest.set()
    server.close()


async def test_a_slow_download_reports_its_progress_and_can_be_polled(
    agent: Caller, slow: tuple[str, asyncio.Event]
) -> None:
    url, rest = slow
    begun = await agent.get("browser_download_file", url=f"{url}/half", filename="slow.bin")
    assert (begun["state"], begun["totalBytes"]) == ("in_progress", 70_000)
    assert 0 < begun["bytesReceived"] < 70_000
    running = await agent.get("browser_list_downloads", state="in_progress")
    assert [item["downloadId"] for item in running["downloads"]] == [begun["downloadId"]]
    rest.set()
    done = await finished(agent, begun)
    assert content(done).endswith(b"aarest!")


async def test_a_silent_server_does_not_block_until_the_deadline(
    agent: Caller, slow: tuple[str, asyncio.Event]
) -> None:
    url, rest = slow
    error = await agent.fail("browser_download_file", url=f"{url}/silent")
    assert "The server has not answered within 8 s." in error["text"]
    assert "browser_list_downloads" in error["text"]
    rest.set()

    async def none_left() -> bool:
        return not (await agent.get("browser_list_downloads", state="in_progress"))["downloads"]

    await eventually(none_left)  # the rest must not disturb the next test


async def test_a_failed_download_reports_the_reason(agent: Caller, site: Site) -> None:
    failed = await agent.fail("browser_download_file", url=f"{site.url}/missing", filename="x.html")
    assert "SERVER_BAD_CONTENT" in failed["text"]
    assert failed["outcome"] == "failed"
    for name in (".hidden", "end.", "con.txt"):
        refused = await agent.fail("browser_download_file", url=f"{site.url}/file", filename=name)
        assert f"rejects the file name '{name}'" in refused["text"]
        assert "begin or end with a dot" in refused["text"]
    error = await agent.fail("browser_get_download_status", downloadId=999_999)
    assert "There is no download 999999." in error["text"]
    assert "june" in error["text"]


@pytest.mark.parametrize(
    "filename", ["/etc/passwd", "../up.txt", "a/../../b", "~/x", "a\\b", "C:x", "a//b", "a/.", "ü" * 130]
)
async def test_a_path_outside_the_downloads_folder_is_refused(agent: Caller, site: Site, filename: str) -> None:
    error = await agent.fail("browser_download_file", url=f"{site.url}/file", filename=filename)
    assert "filename" in error["text"]
    assert error["outcome"] == "not_sent"


@pytest.mark.parametrize("url", ["file:///etc/hostname", "javascript:1", "chrome://settings", "about:blank"])
async def test_a_non_web_url_is_refused(agent: Caller, url: str) -> None:
    assert (await agent.fail("browser_download_file", url=url))["outcome"] == "not_sent"


async def reported(agent: Caller, name: str) -> dict[str, Any]:
    """The report of a finished download, from the answers of other calls in the tab."""

    async def look() -> dict[str, Any] | None:
        seen = await agent.get("browser_snapshot")
        files: list[dict[str, Any]] = seen.get("downloads", [])
        return next((file for file in files if file["state"] == "complete" and file["name"].startswith(name)), None)

    return await eventually(look)


async def clicked(agent: Caller, label: str, name: str) -> dict[str, Any]:
    """The report of a download that a click begins, from the click's answer or a later one."""
    answer = await agent.get("browser_click_element", text=label)
    done = [file for file in answer.get("downloads", []) if file["state"] == "complete"]
    return done[0] if done else await reported(agent, name)


@pytest.mark.req("A4")
async def test_a_file_that_a_page_downloads_is_reported_and_can_be_uploaded(
    agent: Caller, zoo: Zoo, folder: Path, subtests: pytest.Subtests
) -> None:
    await agent.open(zoo.at("downloads.html"))
    for label, name, size in (("Save report", "report.bin", 5), ("Export list", "list.csv", 8)):
        with subtests.test(label=label):
            report = await clicked(agent, label, name)
            assert (report["name"], report["bytes"]) == (name, size)
            assert (folder / "home" / "files" / report["path"]).stat().st_size == size
            listed = (await agent.get("browser_list_downloads", query=name))["downloads"]
            assert [each["path"] for each in listed] == [report["path"]]
            await agent.get("browser_upload_file", selector="input", paths=[report["path"]])
            assert await agent.run("return document.querySelector('input').files[0].name") == name
            assert "downloads" not in await agent.get("browser_snapshot")


async def test_a_window_that_becomes_a_download_is_reported(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("downloads.html"))
    report = await clicked(agent, "Open archive", "file")
    assert report["path"].startswith("downloads/")


@pytest.mark.req("A4")
async def test_a_download_that_ends_later_is_reported_by_a_later_answer(agent: Caller, zoo: Zoo) -> None:
    await agent.open(zoo.at("downloads.html"))
    answer = await agent.get("browser_click_element", text="Save later")
    assert "downloads" not in answer
    zoo.release.set()
    report = await reported(agent, "late.txt")
    zoo.release.clear()
    assert report["path"] == "downloads/late.txt"
