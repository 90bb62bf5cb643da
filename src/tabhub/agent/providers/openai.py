"""The chat completions API of OpenAI and compatible servers. Missing ids and indexes are generated where possible."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson

from tabhub.agent.providers.stream import Endpoint, events, parse_call, sum_tokens
from tabhub.agent.turns import ModelRequest, Piece, TokenUsage, Truncated
from tabhub.store.conversations import Call, Message, Picture


class OpenAI:
    """A model behind chat completions."""

    def __init__(self, endpoint: Endpoint, model: str, *, images: bool = True) -> None:
        self._endpoint = endpoint
        self._model = model
        self._images = images

    async def turn(self, request: ModelRequest) -> AsyncIterator[Piece]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": self._messages(request),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": t.name, "description": t.description, "parameters": dict(t.input_schema)},
                }
                for t in request.tools
            ]
        key = self._endpoint.key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        calls = _Calls(len(request.messages))
        async for event in events(self._endpoint, "/chat/completions", headers, body):
            usage = event.get("usage")
            if isinstance(usage, dict):
                yield TokenUsage(sum_tokens(usage.get("prompt_tokens"), usage.get("completion_tokens")))
            for choice in _dicts(event.get("choices"))[:1]:
                delta = choice.get("delta")
                if isinstance(delta, dict):
                    if isinstance(text := delta.get("content"), str) and text:
                        yield text
                    for part in _dicts(delta.get("tool_calls")):
                        for call in calls.add(part):
                            yield call
                if choice.get("finish_reason"):
                    for call in calls.finish():
                        yield call
                if choice.get("finish_reason") == "length":
                    yield Truncated()
        for call in calls.finish():
            yield call

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = [{"role": "system", "content": request.system}]
        for message in request.messages:
            pictures = [picture for result in message.results for picture in result.pictures] if self._images else []
            if message.role == "assistant":
                sent.append(_assistant(message))
            elif message.text:
                sent.append(_user(message.text, pictures))
            else:
                sent += [
                    {"role": "tool", "tool_call_id": r.call, "content": r.text or "(a picture follows)"}
                    for r in message.results
                ]
                if pictures:  # the API accepts images only from the user
                    sent.append(_user("The pictures of these results:", pictures))
        return sent


class _Calls:
    """Assembles calls from deltas: one is complete when the next begins, or at the end."""

    def __init__(self, turn: int) -> None:
        self._turn = turn
        self._number = 0
        self._index: Any = None
        self._id = ""
        self._name = ""
        self._arguments: list[str] = []

    def add(self, part: dict[str, Any]) -> list[Call]:
        """Returns the previous call if this delta begins another."""
        index, ident = part.get("index"), part.get("id")
        fresh = index != self._index if index is not None else bool(ident) and ident != self._id
        done = self.finish() if fresh and self._name else []
        self._index = index
        if isinstance(ident, str) and ident:
            self._id = ident
        function = part.get("function")
        if isinstance(function, dict):
            self._name += function["name"] if isinstance(function.get("name"), str) else ""
            arguments = function.get("arguments")
            if arguments:
                self._arguments.append(arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode())
        return done

    def finish(self) -> list[Call]:
        """Complete the call that is being assembled, if any."""
        if not (self._name or self._id):
            return []
        self._number += 1
        call = parse_call(self._id or f"call_{self._turn}_{self._number}", self._name, "".join(self._arguments))
        self._index, self._id, self._name, self._arguments = None, "", "", []
        return [call]


def _assistant(message: Message) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if message.calls:
        sent["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name or "unknown", "arguments": orjson.dumps(call.arguments).decode()},
            }
            for call in message.calls
        ]
    return sent


def _user(text: str, pictures: list[Picture]) -> dict[str, Any]:
    urls = [{"type": "image_url", "image_url": {"url": f"data:{p.mime};base64,{p.data}"}} for p in pictures]
    return {"role": "user", "content": [{"type": "text", "text": text}, *urls] if urls else text}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
