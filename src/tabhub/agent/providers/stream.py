"""One request to a model's API and the JSON events of its answer.

Owns tries, refusals and their words. The key is in no message: what a provider says is shown without it. Knows no
provider's fields beyond the error every API gives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tabhub import __version__
from tabhub.agent.http import Answer, Patience, exchange
from tabhub.errors import HttpFailed, ModelError

_AGAIN = (408, 409, 425, 429, 500, 502, 503, 504, 529)
_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_SHOWN = 500
_HINTS: Mapping[int, str] = {
    400: "The model may not know what it was sent: try `tabhub config set agent.format xml`, or agent.images false.",
    401: "Check the key: `tabhub config show` tells where agent.key is looked for.",
    403: "Check the key, and whether it may use this model.",
    404: "Check agent.baseUrl and agent.model: `tabhub config show`.",
    429: "The provider wants you to wait, or your quota is used up.",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model's API is and what opens it."""

    base_url: str
    key: str | None = field(repr=False)
    wait: Patience = field(default_factory=Patience)
    tries: int = 3


async def events(
    endpoint: Endpoint, path: str, headers: Mapping[str, str], body: Mapping[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    """The events of an answer, each a JSON object; a provider that is busy, and has said nothing, is asked again."""
    data = orjson.dumps(body)
    sent = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "User-Agent": f"tabhub/{__version__}",
        **headers,
    }
    for left in reversed(range(max(endpoint.tries, 1))):
        pause = _PAUSE
        begun = False
        try:
            async with exchange("POST", endpoint.base_url + path, sent, data, endpoint.wait) as answer:
                if answer.status == 200:
                    begun = True
                    async for event in answer.events():
                        if event.strip() == "[DONE]":
                            return
                        yield _object(event)
                    return
                if answer.status not in _AGAIN or not left:
                    raise await _refused(endpoint, answer)
                pause = _after(answer)
        except HttpFailed as error:
            if begun or not left:
                raise ModelError(
                    f"The model's provider failed: {error}.",
                    hint=f"Is {endpoint.base_url} the right address, and up? `tabhub config show` tells agent.baseUrl.",
                ) from None
        await asyncio.sleep(pause)


def _object(event: str) -> dict[str, Any]:
    try:
        value = orjson.loads(event)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ModelError(
            "The model's provider sent something that is not JSON.", hint="Is agent.provider right for agent.baseUrl?"
        )
    if isinstance(value.get("error"), dict | str):
        raise ModelError(f"The model's provider says: {_said(value)}.", hint="Try again, or another model.")
    return value


async def _refused(endpoint: Endpoint, answer: Answer) -> ModelError:
    try:
        body = await answer.body()
        words = _said(orjson.loads(body))
    except (HttpFailed, ValueError):
        words = ""
    if endpoint.key:
        words = words.replace(endpoint.key, "…")
    said = f": {words}" if words else "."
    where = "somewhere else, and redirects are not followed" if 300 <= answer.status < 400 else str(answer.status)
    hint = _HINTS.get(answer.status, "Look at agent.baseUrl in `tabhub config show`, and try again.")
    return ModelError(f"The model's provider answered {where}{said}", hint=hint)


def _said(value: Any) -> str:
    error = value.get("error", value) if isinstance(value, dict) else value
    words = error.get("message", "") if isinstance(error, dict) else error
    return " ".join(str(words).split())[:_SHOWN]


def _after(answer: Answer) -> float:
    said = answer.headers.get("retry-after", "")
    return min(float(said), _LONGEST_PAUSE) if said.isascii() and said.isdigit() else _PAUSE


def parsed(text: str) -> tuple[dict[str, Any], str]:
    """The arguments of a call from their JSON, and what is wrong with it, if something is."""
    try:
        value = orjson.loads(text or "{}")
    except ValueError as error:
        return {}, f"Its arguments are not valid JSON: {error}."
    if not isinstance(value, dict):
        return {}, "Its arguments must be a JSON object."
    return value, ""


def spent(*counts: Any) -> int:
    """Tokens, as far as they were told."""
    return sum(count for count in counts if isinstance(count, int) and count > 0)
