"""The page as text: what is returned, what is left out, and failures."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tabhub.errors import CommandFailed
from tests.browser.conftest import Bench
from tests.browser.fake_page import document, element


async def test_content_is_text_and_reports_the_remainder(bench: Bench) -> None:
    document(bench, {"content": "abc😀", "length": 100, "url": "https://x.example/", "title": "T", "ready": "loading"})
    assert (await bench.call("browser_get_tab_content", tabId=1, maxLength=5))["remaining"] == 96
    bench.context.structured = False
    body = orjson.loads((await bench.result("browser_get_tab_content", tabId=1, maxLength=5)).payload)
    text = body["content"][0]["text"]
    assert text.startswith('abc😀\n\n[Characters 0-4 of 100: "offset": 4 reads on')
    assert "still loading" in body["content"][0]["text"]
    assert not bench.context.sent


async def test_an_unmatched_selector_lists_similar_elements(bench: Bench) -> None:
    document(bench, {"missing": {"why": "absent", "nearest": ["#login-form"]}})
    with pytest.raises(CommandFailed, match="No element matches '#loginform'") as caught:
        await bench.call("browser_get_tab_content", tabId=1, selector="#loginform")
    assert caught.value.hint == "Nearest matches: #login-form."
    document(bench, {"missing": {"why": "invalid", "message": "not a selector"}})
    with pytest.raises(CommandFailed, match="is not valid CSS: not a selector"):
        await bench.call("browser_get_page_html", tabId=1, selector="##")


async def test_a_page_script_failure_is_reported(bench: Bench) -> None:
    document(bench, {})
    broken = {"result": {"type": "object"}, "exceptionDetails": {"exception": {"description": "TypeError: broken"}}}
    bench.browser.answers["Runtime.evaluate"] = lambda _: broken
    with pytest.raises(CommandFailed, match="could not be read: TypeError: broken"):
        await bench.call("browser_get_tab_content", tabId=1)


@pytest.mark.parametrize("junk", [None, 5, "text", []])
async def test_invalid_content_is_rejected(bench: Bench, junk: Any) -> None:
    document(bench, junk)
    for name in ("browser_get_tab_content", "browser_get_page_html"):
        with pytest.raises(CommandFailed, match="invalid response"):
            await bench.call(name, tabId=1)


async def test_marks_of_frames_never_reach_the_agent(bench: Bench) -> None:
    document(bench, {"content": "before \x03e9\x03 after", "length": 17, "marks": 4, "url": "u"})
    answer = await bench.call("browser_get_tab_content", tabId=1)
    assert (answer["content"], answer["length"], answer["remaining"]) == ("before  after", 13, 0)


async def test_one_element_is_read_by_its_ref(bench: Bench) -> None:
    document(bench, element({"content": "Send", "length": 4, "url": "u"}))  # type: ignore[dict-item]
    assert (await bench.call("browser_get_tab_content", tabId=1, ref="e1"))["content"] == "Send"
