"""The results of built-in tools: structured facts, text for clients that read only text, and notes in both."""

from __future__ import annotations

from typing import Any

import orjson

from tabhub.browser.tool_spec import data_result, text_result
from tabhub.core.tools import ToolResult


def parts(result: ToolResult) -> tuple[Any, str]:
    body = orjson.loads(result.payload)
    (block,) = body["content"]
    return body["structuredContent"], block["text"]


def test_facts_are_sent_structured_and_as_the_same_json() -> None:
    structured, text = parts(data_result({"a": [1], "b": 'ü"'}))
    assert structured == orjson.loads(text) == {"a": [1], "b": 'ü"'}


def test_notes_that_are_not_empty_become_one_text() -> None:
    structured, text = parts(data_result({"a": 1}, "One.", "", "Two."))
    assert structured == orjson.loads(text) == {"a": 1, "note": "One. Two."}
    assert parts(data_result({"a": 1}, ""))[0] == {"a": 1}


def test_a_text_is_followed_by_its_notes() -> None:
    assert parts(text_result("Read me", {"a": 1}, "But.")) == ({"a": 1, "note": "But."}, "Read me\n\n[But.]")
