"""Contents and messages in the form of a tool's result: restored unchanged, or cut if too long."""

from __future__ import annotations

from typing import Any

import orjson

from tabhub.core.resources import GET, READ
from tabhub.core.results.budget import fit
from tabhub.core.results.resource_results import as_blocks, completions, from_blocks

READING: dict[str, Any] = {
    "contents": [
        {"uri": "a:1", "mimeType": "text/plain", "text": "words " * 1000},
        {"uri": "a:2", "mimeType": "image/png", "blob": "AAAA"},
    ],
    "_meta": {"mine": 1},
}
TALK: dict[str, Any] = {
    "description": "A talk",
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "question " * 300}},
        {"role": "assistant", "content": {"type": "text", "text": "answer " * 800}},
    ],
}


def test_results_within_the_budget_are_restored_unchanged() -> None:
    assert from_blocks(READ, as_blocks(READ, READING), "a:1") == READING
    assert from_blocks(GET, as_blocks(GET, TALK), "") == TALK


def cut(method: str, answer: dict[str, Any], tokens: int) -> dict[str, Any]:
    fitted = fit(orjson.dumps(as_blocks(method, answer)), tokens)
    assert fitted is not None
    return from_blocks(method, orjson.loads(fitted.render("r_1")), "a:1")


def test_long_contents_are_cut_with_a_note() -> None:
    answer = cut(READ, {"contents": READING["contents"][:1], "_meta": {"mine": 1}}, 600)
    first, note = answer["contents"]
    assert first["uri"] == "a:1"
    assert READING["contents"][0]["text"].startswith(first["text"])
    assert note == {"uri": "a:1", "mimeType": "text/plain", "text": note["text"]}
    assert 'tabhub_read_result {"handle": "r_1"' in note["text"]
    assert answer["_meta"]["tabhub/result"]["handle"] == "r_1"
    assert answer["_meta"]["mine"] == 1


def test_cut_json_is_not_labelled_json() -> None:
    text = orjson.dumps([{"n": number} for number in range(500)]).decode()
    answer = cut(READ, {"contents": [{"uri": "a:1", "mimeType": "application/json", "text": text}]}, 500)
    assert [content["mimeType"] for content in answer["contents"]] == ["text/plain", "text/plain"]


def test_long_messages_are_cut_and_keep_their_roles() -> None:
    answer = cut(GET, TALK, 1000)
    assert [message["role"] for message in answer["messages"]] == ["user", "assistant", "user"]
    assert "tabhub/role" not in orjson.dumps(answer).decode()
    assert answer["description"] == "A talk"
    assert "tabhub_read_result" in answer["messages"][-1]["content"]["text"]


def test_completions_are_bounded() -> None:
    given = {"completion": {"values": ["x" * 3000, *(str(number) for number in range(200))], "total": 201}}
    assert completions(given) == {"completion": {"values": [str(number) for number in range(99)], "total": 201}}
