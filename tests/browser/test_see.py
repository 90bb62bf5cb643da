"""Content and screenshots: one picture, one text, and files only where they may be."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from tabhub.browser.files import Folder
from tabhub.errors import CommandFailed, InvalidArguments
from tests.browser.conftest import Bench
from tests.browser.fake_browser import settle

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (640).to_bytes(4, "big") + (480).to_bytes(4, "big") + b"\x08\x02" * 30


def pictures(bench: Bench, data: Any = None) -> None:
    shot = {"data": base64.b64encode(PNG).decode() if data is None else data}
    bench.browser.answers["Page.captureScreenshot"] = lambda _: shot
    bench.browser.answers["Page.startScreencast"] = bench.browser.answers["Page.stopScreencast"] = lambda _: {}


async def test_content_is_given_as_text_and_says_how_much_is_left(bench: Bench) -> None:
    bench.evaluates({"content": "abc😀", "length": 100, "url": "https://x.example/", "title": "T", "ready": "loading"})
    result = await bench.result("browser_get_tab_content", tabId=1, maxLength=5)
    body = orjson.loads(result.payload)
    assert body["structuredContent"]["remaining"] == 95
    assert body["content"][0]["text"].startswith("abc😀\n\n[95 of 100 characters left out")
    assert "still loading" in body["content"][0]["text"]
    assert bench.context.sends == 0


async def test_a_selector_that_finds_nothing_is_answered_with_what_is_near(bench: Bench) -> None:
    bench.evaluates({"missing": {"why": "absent", "nearest": ["#login-form"], "url": "https://x.example/"}})
    with pytest.raises(CommandFailed, match="No element matches '#loginform'") as caught:
        await bench.call("browser_get_tab_content", tabId=1, selector="#loginform")
    assert caught.value.hint == "Nearest there: #login-form."
    bench.evaluates({"missing": {"why": "invalid", "message": "not a selector"}})
    with pytest.raises(CommandFailed, match="is not valid CSS: not a selector"):
        await bench.call("browser_screenshot_tab", tabId=1, selector="##")


async def test_a_page_that_breaks_our_reader_is_told(bench: Bench) -> None:
    bench.browser.answers["Runtime.evaluate"] = lambda _: {
        "result": {"type": "object"},
        "exceptionDetails": {"exception": {"description": "TypeError: broken"}},
    }
    with pytest.raises(CommandFailed, match="could not be read: TypeError: broken"):
        await bench.call("browser_get_tab_content", tabId=1)


async def test_a_screenshot_is_image_content(bench: Bench) -> None:
    pictures(bench)
    body = orjson.loads((await bench.result("browser_screenshot_tab", tabId=2)).payload)
    (image,) = body["content"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]) == PNG
    facts = body["structuredContent"]
    assert (facts["width"], facts["height"], facts["bytes"]) == (640, 480, len(PNG))


async def test_a_background_tab_is_kept_drawing_while_its_picture_is_taken(bench: Bench) -> None:
    pictures(bench)
    await bench.call("browser_screenshot_tab", tabId=2)
    sent = [bench.browser.what(message) for message in bench.browser.sent]
    steps = [what for what in sent if "cast" in what or "capture" in what]
    assert steps == ["Page.startScreencast", "Page.captureScreenshot", "Page.stopScreencast"]


async def test_two_pictures_of_a_tab_are_taken_one_after_the_other(bench: Bench) -> None:
    pictures(bench)
    del bench.browser.answers["Page.captureScreenshot"]
    tasks = [asyncio.ensure_future(bench.call("browser_screenshot_tab", tabId=2)) for _ in range(2)]
    await settle()
    assert len(bench.browser.commands("Page.captureScreenshot")) == 1
    for number in range(2):
        shot = bench.browser.commands("Page.captureScreenshot")[number]
        bench.browser.reply(shot["id"], {"data": base64.b64encode(PNG).decode()})
        await settle()
    assert len(await asyncio.gather(*tasks)) == 2


async def test_the_whole_page_or_one_element_is_clipped_and_bounded(bench: Bench) -> None:
    pictures(bench)
    bench.browser.answers["Page.getLayoutMetrics"] = lambda _: {
        "cssContentSize": {"x": 0, "y": 0, "width": 800, "height": 99999},
        "cssVisualViewport": {"pageX": 0, "pageY": 50, "clientWidth": 800, "clientHeight": 600},
    }
    whole = await bench.call("browser_screenshot_tab", tabId=1, fullPage=True, format="jpeg")
    assert "99999" in whole["note"]
    await bench.call("browser_screenshot_tab", tabId=1, scale=2)
    bench.evaluates({"x": 5, "y": 6, "width": 70, "height": 80})
    await bench.call("browser_screenshot_tab", tabId=1, selector="#a")
    params = [shot["params"]["params"] for shot in bench.browser.commands("Page.captureScreenshot")]
    assert params[0]["clip"] == {"x": 0, "y": 0, "width": 800, "height": 16384, "scale": 1}
    assert (params[0]["format"], params[0]["quality"], params[0]["captureBeyondViewport"]) == ("jpeg", 80, True)
    assert params[1]["clip"] == {"x": 0, "y": 50, "width": 800, "height": 600, "scale": 2}
    assert params[2]["clip"] == {"x": 5, "y": 6, "width": 70, "height": 80, "scale": 1}


async def test_an_element_without_size_and_contradicting_arguments_are_refused(bench: Bench) -> None:
    bench.evaluates({"x": 0, "y": 0, "width": 0, "height": 0})
    with pytest.raises(CommandFailed, match="has no size"):
        await bench.call("browser_screenshot_tab", tabId=1, selector="#a")
    with pytest.raises(InvalidArguments, match="exclude each other"):
        await bench.call("browser_screenshot_tab", tabId=1, selector="#a", fullPage=True)


@pytest.mark.parametrize("data", ["", 5, None, {"x": 1}, 'a"b', "<svg>", "abc"])
async def test_what_is_no_picture_is_not_passed_on(bench: Bench, data: Any) -> None:
    pictures(bench)
    bench.browser.answers["Page.captureScreenshot"] = lambda _: {"data": data}
    with pytest.raises(CommandFailed, match="invalid response"):
        await bench.call("browser_screenshot_tab", tabId=1)


async def test_a_picture_goes_to_a_file_below_the_folder_and_over_nothing(bench: Bench) -> None:
    pictures(bench)
    told = await bench.call("browser_screenshot_tab", tabId=1, filePath="shots/page.png")
    written = bench.files / "shots" / "page.png"
    assert Path(told["filePath"]) == written
    assert written.read_bytes() == PNG
    written.write_bytes(b"mine")
    with pytest.raises(CommandFailed, match="exists already"):
        await bench.call("browser_screenshot_tab", tabId=1, filePath="shots/page.png")
    assert written.read_bytes() == b"mine"
    await bench.call("browser_screenshot_tab", tabId=1, filePath="shots/page.png", overwrite=True)
    assert written.read_bytes() == PNG
    assert [found.name for found in written.parent.iterdir()] == ["page.png"]


@pytest.mark.parametrize(
    "path",
    [
        "../a.png",
        "a/../../a.png",
        "/tmp/a.png",
        "~/a.png",
        "a.sh",
        "a",
        "a.png\0.png",
        "a\n.png",
        "x" * 2000 + ".png",
        "",
    ],
)
async def test_path_tricks_are_refused_before_anything_is_sent(bench: Bench, path: str) -> None:
    with pytest.raises(InvalidArguments, match="filePath"):
        await bench.call("browser_screenshot_tab", tabId=1, filePath=path)
    assert not bench.browser.sent


def test_links_out_of_the_folder_are_refused_and_a_link_at_the_place_is_never_followed(tmp_path: Path) -> None:
    root, outside = tmp_path / "files", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "way").symlink_to(outside)
    folder = Folder(root)
    with pytest.raises(InvalidArguments, match="through a link"):
        folder.place("way/a.png", (".png",))
    target = outside / "kept.png"
    target.write_bytes(b"kept")
    (root / "a.png").symlink_to(target)
    place = folder.place("a.png", (".png",))
    with pytest.raises(CommandFailed, match="exists already"):
        folder.write(place, b"new", overwrite=False)
    folder.write(place, b"new", overwrite=True)
    assert target.read_bytes() == b"kept"
    assert place.read_bytes() == b"new"


def test_an_absolute_path_is_taken_only_where_the_person_allowed_it(tmp_path: Path) -> None:
    given = str(tmp_path / "elsewhere" / "a.png")
    place = Folder(tmp_path / "files", anywhere=True).place(given, (".png",))
    assert str(place) == given


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("a file")
    folder = Folder(tmp_path / "files")
    with pytest.raises(CommandFailed, match="could not be written"):
        folder.write(tmp_path / "files" / "a" / "b.png", b"x", overwrite=False)
