"""The results of built-in tools: structured facts, text for clients that read only text, and notes in both."""

from __future__ import annotations

from typing import Any

import orjson

from tabhub.browser.tool_spec import content_result, data_result, text_result
from tabhub.core.results.rest import take_rest
from tabhub.core.tools import ToolResult


def parts(result: ToolResult) -> tuple[Any, str]:
    """What programs get, and what agents read."""
    data = orjson.loads(result.form(structured=True).payload)
    assert data["content"] == []
    read = orjson.loads(result.form(structured=False).payload)
    assert read.keys() == {"content"}
    (block,) = read["content"]
    return data["structuredContent"], block["text"]


def test_facts_are_data_for_programs_and_their_json_for_agents() -> None:
    structured, text = parts(data_result({"a": [1], "b": 'ü"'}))
    assert structured == orjson.loads(text) == {"a": [1], "b": 'ü"'}


def test_an_image_comes_with_its_facts_for_programs_only() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    made = content_result([image], {"bytes": 1})
    assert orjson.loads(made.form(structured=True).payload) == {"content": [image], "structuredContent": {"bytes": 1}}
    assert orjson.loads(made.form(structured=False).payload) == {"content": [image]}


def test_what_was_left_out_travels_with_either_form() -> None:
    for structured in (True, False):
        made = text_result("Read me", {"a": 1}, rest="the rest").form(structured=structured)
        assert made.has_rest
        assert take_rest(made.payload)[1] == "the rest"


def test_notes_that_are_not_empty_become_one_text() -> None:
    structured, text = parts(data_result({"a": 1}, "One.", "", "Two."))
    assert structured == orjson.loads(text) == {"a": 1, "note": "One. Two."}
    assert parts(data_result({"a": 1}, ""))[0] == {"a": 1}


def test_a_text_is_followed_by_its_notes() -> None:
    assert parts(text_result("Read me", {"a": 1}, "But.")) == ({"a": 1, "note": "But."}, "Read me\n\n[But.]")
