"""One request to a model's API and the JSON events of its response.

Owns retries and error messages. The key never appears in a message: it is masked in what a provider answers. Knows no
field of a provider beyond the error that every API returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tabhub import __version__
from tabhub.client_errors import HttpError
from tabhub.errors import BadInput, ModelError
from tabhub.net.async_http import Bounds, Response, request
from tabhub.store.conversations import Call
from tabhub.wire.sse import EventReader

_RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 529)
_RETRY_DELAY, _MAX_RETRY_DELAY = 1.0, 30.0
_MAX_SHOWN = 500
_HINTS: Mapping[int, str] = {
    400: "The model may not support what it was sent: try `tabhub config set agent.format xml`, or agent.images false.",
    401: "Check the key: `tabhub config show` shows where agent.key comes from.",
    403: "Check the key, and whether it may use this model.",
    404: "Check agent.baseUrl and agent.model: `tabhub config show`.",
    429: "Wait a while: you reached the provider's rate limit or your quota.",
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model's API: its URL, its key and the limits of a request."""

    base_url: str
    key: str | None = field(repr=False)
    bounds: Bounds = field(default_factory=Bounds)
    tries: int = 3


async def events(
    endpoint: Endpoint, path: str, headers: Mapping[str, str], body: Mapping[str, Any]
) -> AsyncIterator[dict[str, Any]]:
    """The events of a response, each a JSON object. A request is retried only while no event has arrived."""
    data = orjson.dumps(body)
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        "User-Agent": f"tabhub/{__version__}",
        **headers,
    }
    for remaining in reversed(range(max(endpoint.tries, 1))):
        delay = _RETRY_DELAY
        begun = False
        try:
            async with request("POST", endpoint.base_url + path, headers, data, endpoint.bounds) as response:
                if response.status == 200:
                    begun = True
                    async for event in _event_data(response, endpoint.bounds.max_body):
                        if event.strip() == b"[DONE]":
                            return
                        yield _parse_event(event)
                    return
                if response.status not in _RETRIED or not remaining:
                    raise await _refused(endpoint, response)
                delay = _retry_after(response)
        except HttpError as error:
            if begun or not remaining:
                raise ModelError(
                    f"The request to the model's provider failed: {error}.",
                    hint=f"Check that {endpoint.base_url} (agent.baseUrl) is right and that the provider is up.",
                ) from None
        await asyncio.sleep(delay)


async def _event_data(response: Response, max_event: int) -> AsyncIterator[bytes]:
    reader = EventReader(max_event)
    async for chunk in response.chunks(max_event):
        try:
            found = reader.feed(chunk)
        except BadInput as error:
            raise HttpError(error.message.rstrip(".")) from None
        for event in found:
            yield event.data


def _parse_event(event: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(event)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ModelError(
            "The model's provider sent an event that is not JSON.", hint="Does agent.provider match agent.baseUrl?"
        )
    if isinstance(value.get("error"), dict | str):
        raise ModelError(f"The model's provider reported: {_error_text(value)}.", hint="Try again, or another model.")
    return value


async def _refused(endpoint: Endpoint, response: Response) -> ModelError:
    try:
        text = _error_text(orjson.loads(await response.body()))
    except (HttpError, ValueError):
        text = ""
    if endpoint.key:
        text = text.replace(endpoint.key, "…")
    status = "with a redirect, which is not followed" if 300 <= response.status < 400 else str(response.status)
    hint = _HINTS.get(response.status, "Check agent.baseUrl with `tabhub config show`, then try again.")
    return ModelError(f"The model's provider answered {status}{f': {text}' if text else '.'}", hint=hint)


def _error_text(value: Any) -> str:
    error = value.get("error", value) if isinstance(value, dict) else value
    text = error.get("message", "") if isinstance(error, dict) else error
    return " ".join(str(text).split())[:_MAX_SHOWN]


def _retry_after(response: Response) -> float:
    value = response.headers.get("retry-after", "")
    return min(float(value), _MAX_RETRY_DELAY) if value.isascii() and value.isdigit() else _RETRY_DELAY


def parse_call(ident: str, name: str, arguments: str) -> Call:
    """A call whose arguments are JSON."""
    value: Any = {}
    problem = "" if name else "It names no tool."
    try:
        value = orjson.loads(arguments or "{}")
    except ValueError as error:
        problem = f"Its arguments are not valid JSON: {error}."
    if not isinstance(value, dict):
        value, problem = {}, "Its arguments must be a JSON object."
    return Call(ident, name, value, problem)


def sum_tokens(*counts: Any) -> int:
    """The sum of the counts that a provider sent as positive whole numbers."""
    return sum(count for count in counts if isinstance(count, int) and count > 0)
