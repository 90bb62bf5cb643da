"""The `agent` section of the settings: valid and invalid values."""

from __future__ import annotations

from typing import Any

import pytest

from tabhub.config.agent import AgentSettings
from tabhub.config.settings import Config, convert
from tabhub.errors import SetupError


def test_every_key_is_read() -> None:
    given = {
        "provider": "anthropic",
        "baseUrl": "https://models.example/v1",
        "model": "m-1",
        "key": "${MODEL_KEY}",
        "format": "xml",
        "images": False,
        "steps": 3,
        "tokens": 1000,
        "answerTokens": 500,
    }
    config = Config.parse({"agent": given})
    assert config.agent == AgentSettings(
        "anthropic", "https://models.example/v1", "m-1", "${MODEL_KEY}", "xml", False, 3, 1000, 500
    )
    assert config.values()["agent"] == given
    assert Config().agent.base_url is None, "no provider by default"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("provider", "other", "one of openai, anthropic"),
        ("baseUrl", "models.example", "must be a URL"),
        ("baseUrl", "https://user:pass@models.example", "must be a URL"),
        ("model", "", "a name"),
        ("model", "a\nb", "a name"),
        ("key", "sk-live-123", "a reference to the key"),
        ("key", 5, "a reference to the key"),
        ("format", "json", "one of native, xml"),
        ("steps", 0, "a whole number above 0"),
        ("tokens", True, "a whole number above 0"),
        ("answerTokens", 1.5, "a whole number above 0"),
    ],
)
def test_a_wrong_value_is_refused_with_its_key(key: str, value: Any, words: str) -> None:
    with pytest.raises(SetupError) as caught:
        Config.parse({"agent": {key: value}})
    assert f"agent.{key}" in caught.value.message
    assert words in caught.value.message
    assert "sk-live" not in caught.value.text()


def test_typed_text_is_converted_to_values() -> None:
    assert convert("agent.steps", "7") == (("agent", "steps"), 7)
    assert convert("agent.key", " ${K} ") == (("agent", "key"), "${K}")
    assert convert("agent.model", "") == (("agent", "model"), None)
    assert convert("agent.images", "no") == (("agent", "images"), False)
