"""The messages API of Anthropic and compatible servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson

from tabhub.agent.providers.stream import Endpoint, events, parse_call, sum_tokens
from tabhub.agent.turns import ModelRequest, Piece, TokenUsage, Truncated
from tabhub.store.conversations import Call, Message, Result

_VERSION = "2023-06-01"
_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class Anthropic:
    """A model behind the messages API."""

    def __init__(self, endpoint: Endpoint, model: str, answer_tokens: int, *, images: bool = True) -> None:
        self._endpoint = endpoint
        self._model = model
        self._answer_tokens = answer_tokens
        self._images = images

    async def turn(self, request: ModelRequest) -> AsyncIterator[Piece]:
        body: dict[str, Any] = {
            "model": self._model,
            "max_tokens": self._answer_tokens,
            "system": [{"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}],
            "messages": self._messages(request),
            "stream": True,
        }
        if request.tools:
            body["tools"] = [
                {"name": t.name, "description": t.description, "input_schema": dict(t.input_schema)}
                for t in request.tools
            ]
        headers = {"anthropic-version": _VERSION}
        if self._endpoint.key:
            headers["x-api-key"] = self._endpoint.key
        path = "/messages" if self._endpoint.base_url.endswith("/v1") else "/v1/messages"
        call: dict[str, Any] = {}
        deltas: list[str] = []
        read = 0
        async for event in events(self._endpoint, path, headers, body):
            kind = event.get("type")
            if kind == "message_start":
                usage = _dict(_dict(event.get("message")).get("usage"))
                read = sum_tokens(*(usage.get(key) for key in _USAGE))
            elif kind == "content_block_start":
                block = _dict(event.get("content_block"))
                call, deltas = block if block.get("type") == "tool_use" else {}, []
                if isinstance(block.get("text"), str) and block["text"]:
                    yield block["text"]
            elif kind == "content_block_delta":
                delta = _dict(event.get("delta"))
                if isinstance(delta.get("text"), str):
                    yield delta["text"]
                elif isinstance(delta.get("partial_json"), str):
                    deltas.append(delta["partial_json"])
            elif kind == "content_block_stop" and call:
                yield _call(call, deltas)
                call = {}
            elif kind == "message_delta":
                yield TokenUsage(read + sum_tokens(_dict(event.get("usage")).get("output_tokens")))
                if _dict(event.get("delta")).get("stop_reason") == "max_tokens":
                    yield Truncated()
        if call:  # the response ended inside of it
            yield _call(call, deltas)

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        for message in request.messages:
            role = "assistant" if message.role == "assistant" else "user"
            blocks = self._blocks(message)
            if sent and sent[-1]["role"] == role:  # two in a row are refused by some
                sent[-1]["content"] += blocks
            elif blocks:
                sent.append({"role": role, "content": blocks})
        return sent

    def _blocks(self, message: Message) -> list[dict[str, Any]]:
        if message.role == "assistant":
            return [*_texts(message.text), *map(_use, message.calls)]
        if message.text:
            return [*_texts(message.text), *self._images_of(message.results)]
        return [
            {
                "type": "tool_result",
                "tool_use_id": result.call,
                "content": [*_texts(result.text), *self._images_of([result])],
                **({"is_error": True} if result.failed else {}),
            }
            for result in message.results
        ]

    def _images_of(self, results: Sequence[Result]) -> list[dict[str, Any]]:
        pictures = [picture for result in results for picture in result.pictures] if self._images else []
        return [{"type": "image", "source": {"type": "base64", "media_type": p.mime, "data": p.data}} for p in pictures]


def _call(block: dict[str, Any], deltas: list[str]) -> Call:
    given = block.get("input")
    arguments = "".join(deltas) or (orjson.dumps(given).decode() if isinstance(given, dict) else "")
    return parse_call(str(block.get("id", "")), str(block.get("name", "")), arguments)


def _use(call: Call) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.name or "unknown", "input": call.arguments}


def _texts(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
