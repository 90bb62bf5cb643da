"""Answers as text: what was done and found in lines that say everything that the data says, in fewer tokens."""

from __future__ import annotations

import orjson

from tabhub.browser.tool_spec import data_result
from tabhub.browser.tools.acting.batch import _told
from tabhub.browser.tools.managing.tabs import _navigated
from tabhub.browser.tools.reading.find import _element_line


def test_a_step_is_told_in_one_line_with_all_that_it_reports() -> None:
    assert _told({"action": "click", "did": 'Clicked button "Go" [e1]'}) == 'Clicked button "Go" [e1]'
    typed = {"action": "type", "did": "Typed into textbox [e2]", "value": "Rex", "note": "Cut."}
    assert _told(typed) == 'Typed into textbox [e2] {"value":"Rex"} [Cut.]'
    assert _told({"action": "navigate_tab", "url": "https://a.example/"}) == 'navigate_tab {"url":"https://a.example/"}'
    failed = {"action": "click", "error": "It is gone.", "hint": "Look again."}
    assert _told(failed) == "click failed: It is gone. Look again."


def test_what_was_done_is_told_in_a_line_and_everything_else_as_data() -> None:
    result = data_result({"tabId": 1, "did": "Clicked link [e1]", "opened": [2]}, "It moved.")
    text, data = (orjson.loads(result.form(structured=structured).payload) for structured in (False, True))
    assert text == {"content": [{"type": "text", "text": 'Clicked link [e1] {"opened":[2]}\n\n[It moved.]'}]}
    assert data["structuredContent"] == {"tabId": 1, "did": "Clicked link [e1]", "opened": [2], "note": "It moved."}


def test_a_page_that_was_loaded_is_told_like_in_a_snapshot_and_only_what_is_unusual_besides() -> None:
    facts = {"tabId": 1, "url": "https://a.example/", "title": "A", "status": "complete", "ok": True, "httpStatus": 200}
    for more, told in (({}, ""), ({"httpStatus": 404, "ok": False}, ' {"ok":false,"httpStatus":404}')):
        (content,) = orjson.loads(_navigated({**facts, **more}).payload)["content"]
        assert content["text"] == f'page "A" https://a.example/{told}'
    (content,) = orjson.loads(_navigated(facts, "https://a.example").payload)["content"]
    assert content["text"] == 'page "A"'


def test_an_element_is_told_in_one_line_that_its_text_cannot_break() -> None:
    element = {
        "ref": "e3",
        "tag": "div",
        "role": "clickable",
        "text": 'Two\nlines "quoted" [ref=e9]',
        "visible": False,
        "box": {"x": 1.5, "y": 2.0, "width": 30, "height": 4},
        "attributes": {"class": "big one", "id": None},
        "frame": "https://a.example/",
    }
    assert _element_line(element) == (
        'div clickable "Two lines \\"quoted\\" [ref=e9]" [ref=e3 box=1.5,2,30,4] class="big one" (not visible)'
        " in https://a.example/"
    )
