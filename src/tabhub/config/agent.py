"""The `agent` section of the config file: which model `tabhub agent` uses, and its limits.

Owns the section's keys. There is no default URL: the person sets one. An API key is never written into the file, only
a reference to it.
"""

# ruff: noqa: RUF009 - the settings are dataclass fields

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tabhub.config.setting_types import setting

Provider = Literal["openai", "anthropic"]
CallFormat = Literal["native", "xml"]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Provider, model and limits of the agent."""

    provider: Provider = setting(
        "openai", "provider", "API of the agent's model: openai (and all compatible), anthropic"
    )
    base_url: str | None = setting(None, "address", "URL of the model's API; only the agent needs one")
    model: str | None = setting(None, "name", "name of the model")
    key: str | None = setting(
        None, "reference", "reference to its key: `${NAME}` of the environment or `${keyring:SERVICE/USER}`"
    )
    format: CallFormat = setting(
        "native", "format", "how the model calls tools: native (the provider's API) or xml (in its text)"
    )
    images: bool = setting(True, "bool", "send images to the model; switch off for models without vision")
    steps: int = setting(50, "count", "model responses per message of yours")
    tokens: int = setting(1_000_000, "count", "tokens it may use per message of yours")
    answer_tokens: int = setting(8_192, "count", "tokens of one response, where the provider requires a maximum")
