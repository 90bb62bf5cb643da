"""The `agent` section of the config file: which model `tabhub agent` uses, and its limits.

Owns the section's keys. There is no default provider: the person names one. A key is never written into the file, only
a reference to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Provider = Literal["openai", "anthropic"]
CallFormat = Literal["native", "xml"]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Provider, model and limits of the agent."""

    provider: Provider = "openai"
    base_url: str | None = None
    model: str | None = None
    key: str | None = None
    format: CallFormat = "native"
    images: bool = True
    steps: int = 50
    tokens: int = 1_000_000
    answer_tokens: int = 8_192


AGENT: Mapping[str, tuple[str, str, str]] = {
    "provider": ("provider", "provider", "API of the agent's model: openai (and all compatible), anthropic"),
    "baseUrl": ("base_url", "address", "URL of the model's API; only the agent needs one"),
    "model": ("model", "name", "name of the model"),
    "key": ("key", "reference", "reference to its key: `${NAME}` of the environment or `${keyring:SERVICE/USER}`"),
    "format": ("format", "format", "how the model calls tools: native (the provider's API) or xml (in its text)"),
    "images": ("images", "bool", "send images to the model; switch off for models without vision"),
    "steps": ("steps", "count", "model responses per message of yours"),
    "tokens": ("tokens", "count", "tokens it may use per message of yours"),
    "answerTokens": ("answer_tokens", "count", "tokens of one response, where the provider requires a maximum"),
}
