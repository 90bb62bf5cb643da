"""Reading a server's lists of resources, templates and prompts: bounds, prefixes, and hidden characters."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tabhub.core.resources import ListName
from tabhub.limits import Limits
from tabhub.trust.hidden_text import find_hidden
from tabhub.upstream.resources import read_items

LIMITS = Limits(upstream_offers=3)


def read(shelf: ListName, *entries: Any) -> tuple[list[dict[str, Any]], list[str]]:
    found, problems = read_items("my server", shelf, entries, LIMITS)
    return [orjson.loads(each.wire) for each in found], problems


def test_an_entry_is_passed_on_under_its_prefixed_name() -> None:
    entry = {"uri": "a:1", "name": "one", "mimeType": "text/plain", "size": 3, "vendor": {"x": 1}, "_meta": {"y": 2}}
    found, problems = read("resources", entry)
    assert found == [
        {"uri": "tabhub+mcp://my%20server/a:1", "name": "one", "mimeType": "text/plain", "size": 3, "_meta": {"y": 2}}
    ]
    assert problems == []
    found, _ = read("templates", {"uriTemplate": "a:{x}", "name": "any"})
    assert found[0]["uriTemplate"] == "tabhub+mcp://my%20server/a:{x}"
    found, _ = read("prompts", {"name": "plan", "arguments": [{"name": "day", "required": True}]})
    assert found[0]["name"].startswith("mcp__my_server__plan_h")


def test_required_arguments_of_a_prompt_are_known() -> None:
    arguments = [{"name": "a", "required": True}, {"name": "b"}, {"name": "c", "required": "yes"}, 7]
    (offer,), _ = read_items("s", "prompts", [{"name": "plan", "arguments": arguments}], LIMITS)
    assert offer.needs == ("a",)


@pytest.mark.req("B28")
def test_hidden_characters_of_texts_are_written_out() -> None:
    hidden, written = "do\u200bthis\u202e", "do\\u{200B}this\\u{202E}"
    more = {"icons": [{"src": hidden}], "_meta": {"a": [hidden]}, "annotations": {"x": hidden}}
    given = {"name": "p", "title": hidden, "description": hidden, "arguments": [{"name": "a", "description": hidden}]}
    found, _ = read("prompts", {**given, **more})
    (prompt,) = found
    assert (prompt["title"], prompt["description"]) == (written, written)
    assert prompt["arguments"] == [{"name": "a", "description": written}]
    assert (prompt["icons"], prompt["_meta"]) == ([{"src": written}], {"a": [written]})
    found, problems = read("resources", {"uri": "a:1", "name": hidden, "mimeType": hidden, **more})
    assert find_hidden(orjson.dumps(found).decode()) is None
    assert (found[0]["name"], problems) == (written, [])


@pytest.mark.req("B28")
@pytest.mark.parametrize(
    ("kind", "entry"),
    [
        ("resources", {"uri": "a:\U000e0041", "name": "n"}),
        ("templates", {"uriTemplate": "a:{x}\u200b", "name": "n"}),
        ("prompts", {"name": "p\u202e"}),
        ("prompts", {"name": "p", "arguments": [{"name": "a\u2066"}]}),
        ("prompts", {"name": "p", "_meta": {"k\u200b": 1}}),
    ],
)
def test_an_entry_whose_name_has_hidden_characters_is_skipped(kind: ListName, entry: dict[str, Any]) -> None:
    found, problems = read(kind, entry)
    assert found == []
    assert "contains a hidden character" in problems[0]


@pytest.mark.parametrize("bad", [7, {}, {"uri": 7}, {"uri": ""}, {"uri": "x" * 9000}, {"name": "no uri"}])
def test_an_entry_without_a_usable_uri_is_skipped_and_reported(bad: Any) -> None:
    found, problems = read("resources", bad, {"uri": "a:1", "name": "good"})
    assert len(found) == 1
    assert problems == ["One of its resources has no usable uri and was skipped."]


def test_an_entry_that_cannot_be_encoded_or_is_too_large_is_skipped() -> None:
    large = {"uri": "a:1", "name": "large", "_meta": {"x": "y" * 40_000}}
    found, problems = read(
        "resources", large, {"uri": "a:2", "name": "odd", "size": 2**70}, {"uri": "a:3", "name": "3"}
    )
    assert [each["name"] for each in found] == ["3"]
    assert "larger than 32000 bytes" in problems[0]
    assert "'a:2' in its resources was skipped" in problems[1]


def test_duplicate_names_and_entries_beyond_the_maximum_are_skipped() -> None:
    entries = [{"uri": f"a:{number}", "name": str(place)} for place, number in enumerate((1, 1, 2, 3, 4, 5))]
    found, problems = read("resources", *entries)
    assert [each["name"] for each in found] == ["0", "2", "3"]
    assert problems == ["It lists more resources than the maximum; only 3 are used."]
