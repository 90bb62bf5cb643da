"""Screenshots: the commands, the results, and where files may be written."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from tabhub.errors import CommandFailed, InvalidArguments
from tests.browser.conftest import Bench
from tests.browser.fake_browser import NO_ANSWER, Failure, settle
from tests.browser.fake_page import document, element
from tests.harness.waiting import until

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (640).to_bytes(4, "big") + (480).to_bytes(4, "big") + b"\x08\x02" * 30


def pictures(bench: Bench, data: Any = None) -> None:
    shot = {"data": base64.b64encode(PNG).decode() if data is None else data}
    bench.browser.answers["Page.captureScreenshot"] = lambda _: shot
    bench.browser.answers["Page.startScreencast"] = bench.browser.answers["Page.stopScreencast"] = lambda _: {}
    document(bench, {})


async def test_a_screenshot_is_image_content(bench: Bench) -> None:
    pictures(bench)
    body = orjson.loads((await bench.result("browser_screenshot_tab", tabId=2)).payload)
    (image,) = body["content"]
    assert (image["type"], image["mimeType"]) == ("image", "image/png")
    assert base64.b64decode(image["data"]) == PNG
    facts = body["structuredContent"]
    assert (facts["width"], facts["height"], facts["bytes"]) == (640, 480, len(PNG))


async def test_a_background_tab_is_kept_painting_during_a_screenshot(bench: Bench) -> None:
    pictures(bench)
    await bench.call("browser_screenshot_tab", tabId=2)
    sent = [bench.browser.method_of(message) for message in bench.browser.sent]
    steps = [what for what in sent if "cast" in what or "capture" in what]
    assert steps == ["Page.startScreencast", "Page.captureScreenshot"]


async def test_screenshots_of_a_tab_are_serialized(bench: Bench) -> None:
    pictures(bench)
    del bench.browser.answers["Page.captureScreenshot"]
    tasks = [asyncio.ensure_future(bench.call("browser_screenshot_tab", tabId=2)) for _ in range(2)]
    await until(lambda: bool(bench.browser.commands("Page.captureScreenshot")))
    await settle()
    assert len(bench.browser.commands("Page.captureScreenshot")) == 1
    for number in range(2):
        shot = bench.browser.commands("Page.captureScreenshot")[number]
        bench.browser.reply(shot["id"], {"data": base64.b64encode(PNG).decode()})
        for _ in range(3):
            await settle()
    assert len(await asyncio.gather(*tasks)) == 2


def _checked(bench: Bench, *, covered: int = 0, frames: bool = False) -> list[str]:
    """A page in which something has to be covered, or nothing; returns what is sent to it from now on, in order."""
    steps: list[str] = []

    def answer(code: str) -> Any:
        steps.append("cover" if '\\"cover\\":true' in code else "uncover")
        return {"covered": covered, "frames": frames, "go": not covered and not frames}

    document(bench, answer)
    capture = bench.browser.answers["Page.captureScreenshot"]

    def shot(params: dict[str, Any]) -> Any:
        steps.append("capture")
        return capture(params)

    bench.browser.answers["Page.captureScreenshot"] = shot
    return steps


async def test_a_page_in_which_nothing_is_covered_is_captured_in_the_same_message(bench: Bench) -> None:
    pictures(bench)
    bench.browser.chains = True
    steps = _checked(bench)
    body = orjson.loads((await bench.result("browser_screenshot_tab", tabId=1)).payload)
    assert base64.b64decode(body["content"][0]["data"]) == PNG
    assert steps == ["cover", "capture"]
    assert not bench.browser.commands("Page.captureScreenshot")


@pytest.mark.parametrize("chains", [True, False])
async def test_a_page_with_secrets_is_captured_while_they_are_covered(bench: Bench, chains: bool) -> None:
    pictures(bench)
    bench.browser.chains = chains
    steps = _checked(bench, covered=1)
    await bench.call("browser_screenshot_tab", tabId=1)
    assert steps == ["cover", "cover", "capture", "uncover"]


async def test_a_page_with_frames_is_captured_after_they_are_checked(bench: Bench) -> None:
    pictures(bench)
    bench.browser.chains = True
    steps = _checked(bench, frames=True)
    await bench.call("browser_screenshot_tab", tabId=1)
    assert steps == ["cover", "cover", "capture"]
    assert len(bench.browser.commands("Page.captureScreenshot")) == 1


async def test_an_extension_that_does_not_chain_commands_gets_the_capture_alone(bench: Bench) -> None:
    pictures(bench)
    steps = _checked(bench)
    await bench.call("browser_screenshot_tab", tabId=1)
    assert steps == ["cover", "cover", "capture"]


async def test_a_capture_that_fails_with_its_check_says_why(bench: Bench) -> None:
    pictures(bench)
    bench.browser.chains = True
    bench.browser.answers["Page.captureScreenshot"] = _failing
    _checked(bench)
    with pytest.raises(CommandFailed, match="no picture today"):
        await bench.call("browser_screenshot_tab", tabId=1)


async def test_the_forced_repaint_is_removed_even_if_the_screenshot_finishes_first(bench: Bench) -> None:
    pictures(bench)
    shot = bench.browser.answers["Page.captureScreenshot"]
    bench.browser.answers["Page.captureScreenshot"] = lambda _: NO_ANSWER
    repaints: list[str] = []

    def answer(code: str) -> Any:
        if "repaintCanvas" not in code:
            return {}
        repaints.append(code[code.rindex("JSON.parse") :])
        if len(repaints) > 1:
            return {}
        capture = bench.browser.commands("Page.captureScreenshot")[-1]
        bench.browser.reply(capture["id"], shot({}))
        return NO_ANSWER

    document(bench, answer)
    await bench.call("browser_screenshot_tab", tabId=2)
    assert ["true" in call for call in repaints] == [True, False], repaints


async def test_full_page_and_element_screenshots_are_clipped_and_bounded(bench: Bench) -> None:
    pictures(bench)
    document(bench, element({"x": 5, "y": 6, "width": 70, "height": 80}))
    whole = await bench.call("browser_screenshot_tab", tabId=1, fullPage=True, format="jpeg")
    assert "99999" in whole["note"]
    await bench.call("browser_screenshot_tab", tabId=1, scale=2)
    await bench.call("browser_screenshot_tab", tabId=1, selector="#a")
    params = [shot["params"]["params"] for shot in bench.browser.commands("Page.captureScreenshot")]
    assert params[0]["clip"] == {"x": 0, "y": 0, "width": 800, "height": 16384, "scale": 1}
    assert (params[0]["format"], params[0]["quality"], params[0]["captureBeyondViewport"]) == ("jpeg", 80, True)
    assert params[1]["clip"] == {"x": 0, "y": 50, "width": 800, "height": 600, "scale": 2}
    assert params[2]["clip"] == {"x": 5, "y": 56, "width": 70, "height": 80, "scale": 1}


@pytest.mark.parametrize(
    ("arguments", "fast"),
    [
        ({}, True),
        ({"scale": 2}, True),
        ({"fullPage": True}, None),
        ({"filePath": "a.png"}, None),
        ({"format": "jpeg"}, None),
    ],
)
async def test_only_a_picture_that_an_agent_looks_at_at_once_is_encoded_for_speed(
    bench: Bench, arguments: dict[str, Any], fast: bool | None
) -> None:
    pictures(bench)
    await bench.call("browser_screenshot_tab", tabId=1, **arguments)
    (shot,) = bench.browser.commands("Page.captureScreenshot")
    assert shot["params"]["params"].get("optimizeForSpeed") is fast


async def test_an_element_without_size_and_conflicting_arguments_are_refused(bench: Bench) -> None:
    document(bench, element({"x": 0, "y": 0, "width": 0, "height": 0}))
    with pytest.raises(CommandFailed, match="has no size"):
        await bench.call("browser_screenshot_tab", tabId=1, selector="#a")
    with pytest.raises(InvalidArguments, match="cannot be combined"):
        await bench.call("browser_screenshot_tab", tabId=1, selector="#a", fullPage=True)


@pytest.mark.parametrize("data", ["", 5, None, {"x": 1}, 'a"b', "<svg>", "abc"])
async def test_invalid_image_data_is_rejected(bench: Bench, data: Any) -> None:
    pictures(bench)
    bench.browser.answers["Page.captureScreenshot"] = lambda _: {"data": data}
    with pytest.raises(CommandFailed, match="invalid response"):
        await bench.call("browser_screenshot_tab", tabId=1)


async def test_a_screenshot_is_saved_below_the_folder_without_overwriting(bench: Bench) -> None:
    pictures(bench)
    outcome = await bench.call("browser_screenshot_tab", tabId=1, filePath="shots/page.png")
    written = bench.files / "shots" / "page.png"
    assert Path(outcome["filePath"]) == written
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


async def test_marks_are_removed_when_the_screenshot_fails(bench: Bench) -> None:
    pictures(bench)
    codes: list[str] = []

    def answer(code: str) -> Any:
        codes.append(code)
        if "marks.push" in code:
            return [{"ref": "e1", "label": "button [e1]", "x": 1, "y": 2, "width": 30, "height": 20}]
        return {}

    document(bench, answer)
    answers = iter([bench.browser.answers["Page.captureScreenshot"], _failing])  # the first is without marks

    def second_fails(params: dict[str, Any]) -> Any:
        return next(answers)(params)

    bench.browser.answers["Page.captureScreenshot"] = second_fails
    with pytest.raises(CommandFailed, match="no picture today"):
        await bench.call("browser_screenshot_tab", tabId=1, annotate=True)
    painted = [code for code in codes if "kit.painted" in code]
    assert len(painted) == 2
    assert '\\"marks\\":[]' in painted[1]


def _failing(_: Any) -> None:
    raise Failure(-32000, "no picture today")
