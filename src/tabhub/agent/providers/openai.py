"""The chat completions API of OpenAI and compatible servers. Missing ids and indexes are generated where possible."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson

from tabhub.agent.coerce import plain
from tabhub.agent.providers.stream import Endpoint, events, parse_arguments, sum_tokens
from tabhub.agent.turns import CallComplete, ModelRequest, Piece, TextDelta, TokenUsage, Truncated
from tabhub.agent.xml import format_call, format_result
from tabhub.store.conversations import Call, Message, Picture, Result


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
                        yield TextDelta(text)
                    for part in _dicts(delta.get("tool_calls")):
                        for call in calls.add(part):
                            yield CallComplete(call)
                if choice.get("finish_reason"):
                    for call in calls.finish():
                        yield CallComplete(call)
                if choice.get("finish_reason") == "length":
                    yield Truncated()
        for call in calls.finish():
            yield CallComplete(call)

    def _messages(self, request: ModelRequest) -> list[dict[str, Any]]:
        native = bool(request.tools)
        sent: list[dict[str, Any]] = [{"role": "system", "content": request.system}]
        for message in request.messages:
            if message.role == "user":
                sent.append({"role": "user", "content": message.text})
            elif message.role == "assistant":
                sent.append(
                    _assistant(message) if native else {"role": "assistant", "content": message_as_text(message)}
                )
            else:
                sent += self._results(message.results, native=native)
        return sent

    def _results(self, results: Sequence[Result], *, native: bool) -> list[dict[str, Any]]:
        pictures = [picture for result in results for picture in result.pictures] if self._images else []
        if native:
            sent: list[dict[str, Any]] = [
                {"role": "tool", "tool_call_id": r.call, "content": r.text or "(a picture follows)"} for r in results
            ]
            if pictures:  # the API accepts images only from the user
                sent.append(
                    {"role": "user", "content": [_text("The pictures of these results:"), *map(_url, pictures)]}
                )
            return sent
        text = results_as_text(results)
        return [{"role": "user", "content": [_text(text), *map(_url, pictures)] if pictures else text}]


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
        arguments, problem = parse_arguments("".join(self._arguments))
        if not self._name:
            problem = "It names no tool."
        call = Call(self._id or f"call_{self._turn}_{self._number}", self._name, arguments, problem)
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


def message_as_text(message: Message) -> str:
    if message.raw:
        return message.raw
    calls = [format_call(call.name, [(k, plain(v)) for k, v in call.arguments.items()]) for call in message.calls]
    return "\n".join(part for part in (message.text, *calls) if part)


def results_as_text(results: Sequence[Result]) -> str:
    return "\n".join(format_result(r.name, n, r.text, failed=r.failed) for n, r in enumerate(results, 1))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _url(picture: Picture) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{picture.mime};base64,{picture.data}"}}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
