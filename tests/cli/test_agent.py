"""`tabhub agent` without a model, a hub or a task: its errors and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_missing_model_explains_how_to_set_one(tabhub: Run) -> None:
    done = tabhub("agent", "Do it")
    assert done.returncode == 1
    assert "The agent has no model yet; not set: agent.baseUrl and agent.model." in done.stderr
    assert "tabhub config set agent.baseUrl" in done.stderr


def test_a_key_is_never_written_into_the_settings(tabhub: Run, home: Path) -> None:
    done = tabhub("config", "set", "agent.key", "sk-secret")
    assert done.returncode == 2
    assert "must be a reference to the key" in done.stderr
    assert "sk-secret" not in done.stderr
    assert tabhub("config", "set", "agent.key", "${MODEL_KEY}").returncode == 0
    assert json.loads((home / "config.json").read_text())["agent"] == {"key": "${MODEL_KEY}"}


def test_missing_hub_explains_how_to_start_one(tabhub: Run, home: Path) -> None:
    (home / "config.json").write_text(
        '{"agent": {"baseUrl": "http://127.0.0.1:1", "model": "m", "key": "${NONE_SUCH}"}}'
    )
    missing = tabhub("agent", "Do it")
    assert missing.returncode == 1
    assert "NONE_SUCH" in missing.stderr
    done = tabhub("agent", "Do it", NONE_SUCH="x", TABHUB_PORT="1")
    assert done.returncode == 2
    assert "tabhub start --background" in done.stderr
    assert not (home / "conversations").exists()


def test_missing_task_wrong_number_and_unknown_conversation_are_errors(tabhub: Run) -> None:
    assert "No task was given." in tabhub("agent", input="").stderr
    wrong = tabhub("agent", "--steps", "0", "Do it")
    assert wrong.returncode == 2
    assert "'0' is not a whole number above 0" in wrong.stderr
    assert "No saved conversations." in tabhub("agent", "--resume", "--", "Go on").stderr
    assert tabhub("agent", "--list").stdout == "No saved conversations.\n"
    assert tabhub("agent", "--list", "--json").stdout == "[]\n"
