"""Models by configuration: which provider, where, and with which key; or an explanation when none is set."""

from __future__ import annotations

from collections.abc import Mapping

from tabhub.agent.providers.anthropic import Anthropic
from tabhub.agent.providers.openai import OpenAI
from tabhub.agent.providers.stream import Endpoint
from tabhub.agent.turns import Model
from tabhub.config.agent import AgentSettings
from tabhub.errors import SetupError
from tabhub.limits import Limits
from tabhub.net.async_http import Bounds
from tabhub.upstream.secrets import expand


def model_of(settings: AgentSettings, limits: Limits, env: Mapping[str, str]) -> Model:
    """The model the settings name, or SetupError saying how to name one."""
    if settings.base_url is None or settings.model is None:
        wanted = {"agent.baseUrl": settings.base_url, "agent.model": settings.model}
        missing = " and ".join(key for key, value in wanted.items() if value is None)
        raise SetupError(
            f"The agent has no model yet; not set: {missing}.",
            hint=(
                "Set the URL and the name of a model, for example one that runs on this machine: "
                "tabhub config set agent.baseUrl http://127.0.0.1:11434/v1; tabhub config set agent.model NAME. "
                "If it needs a key: tabhub config set agent.key '${NAME_OF_A_VARIABLE}'. "
                "For an API compatible with Anthropic's: tabhub config set agent.provider anthropic."
            ),
        )
    key = expand(settings.key, "agent.key", env) if settings.key else None
    endpoint = Endpoint(
        settings.base_url.rstrip("/"), key, Bounds(limits.agent_silence, limits.agent_answer), limits.agent_tries
    )
    if settings.provider == "anthropic":
        return Anthropic(endpoint, settings.model, settings.answer_tokens, images=settings.images)
    return OpenAI(endpoint, settings.model, images=settings.images)
