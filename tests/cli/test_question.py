"""Elicitations answered at the terminal: a choice, yes or no, the fields of a form, or end of input."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tabhub.cli.question import ask_person

DECISION = {"type": "string", "title": "Decision", "enum": ["allow_once", "deny"], "enumNames": ["Allow once", "Deny"]}
APPROVAL = {
    "type": "object",
    "properties": {"decision": DECISION, "reason": {"type": "string", "title": "Reason"}},
    "required": ["decision"],
}
FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "sure": {"type": "boolean", "title": "Are you sure"},
        "note": {"type": "string"},
    },
    "required": ["name"],
}


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A terminal on standard input; what is written here is typed there."""
    master, slave = pty.openpty()
    with os.fdopen(slave) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        yield master
    os.close(master)


@pytest.mark.parametrize(
    ("schema", "typed", "result"),
    [
        (APPROVAL, "1\n", {"action": "accept", "content": {"decision": "allow_once"}}),
        (APPROVAL, "9\nx\n2\nno\n", {"action": "accept", "content": {"decision": "deny", "reason": "no"}}),
        (APPROVAL, "2\n\n", {"action": "accept", "content": {"decision": "deny"}}),
        (APPROVAL, "\x04", {"action": "decline"}),
        ({"type": "object", "properties": {}}, "y\n", {"action": "accept", "content": {}}),
        ({"type": "object", "properties": {}}, "\n", {"action": "decline"}),
        (None, "\x04", {"action": "decline"}),
        (FORM, "Ada\nold\n36\ny\n\n", {"action": "accept", "content": {"name": "Ada", "age": 36, "sure": True}}),
        (FORM, "\n", {"action": "decline"}),
    ],
)
async def test_typed_answer_is_returned(keyboard: int, schema: Any, typed: str, result: dict[str, Any]) -> None:
    os.write(keyboard, typed.encode())
    assert await ask_person({"message": "May it?", "requestedSchema": schema}) == result


async def test_question_and_choices_are_shown(keyboard: int, capsys: pytest.CaptureFixture[str]) -> None:
    os.write(keyboard, b"1\n")
    await ask_person({"message": "May it?", "requestedSchema": APPROVAL})
    shown = capsys.readouterr().err
    assert "The hub asks: May it?" in shown
    assert "Decision: [1] Allow once, [2] Deny: " in shown
