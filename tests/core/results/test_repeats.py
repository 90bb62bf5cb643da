"""Structured content that a text repeats is left out for agents."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tabhub.core.results.repeats import without_repeats

FACTS = {"a": [1, "ü"]}


def result(text: str, structured: Any, *more: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}, *more], "structuredContent": structured, "_meta": {"x": 1}}


@pytest.mark.parametrize("structured", [FACTS, msgspec.Raw(b'{"a": [1, "\\u00fc"]}')])
def test_what_the_text_repeats_is_left_out(structured: Any) -> None:
    made = without_repeats(result('{ "a": [1, "ü"] }', structured))
    assert made == {"content": [{"type": "text", "text": '{ "a": [1, "ü"] }'}], "_meta": {"x": 1}}


@pytest.mark.parametrize("text", ["Done.", '{"a":[1]}', "{broken", ""])
def test_what_the_text_does_not_say_stays(text: str) -> None:
    given = result(text, FACTS)
    assert without_repeats(given) == given


def test_several_blocks_and_results_without_structured_content_stay() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    empty: dict[str, Any] = {"content": []}
    for given in (result('{"a":[1,"ü"]}', FACTS, image), empty, {"content": [1], "structuredContent": {}}):
        assert without_repeats(given) == given
