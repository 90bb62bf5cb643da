"""Scripted models: an OpenAI-compatible and an Anthropic API that stream prepared answers in uneven pieces."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CUTS = (1, 2, 3, 5, 8, 13, 40, 7)
KEY = "a-very-secret-key"


@dataclass(frozen=True)
class Turn:
    """One answer: a text, then calls; arguments given as a string are sent unchanged."""

    text: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    length: bool = False
    hold: threading.Event | None = None
    """The response is not completed before this event is set."""


@dataclass(frozen=True)
class Refusal:
    """An HTTP error."""

    status: int
    body: Any
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[dict[str, Any]], Turn | Refusal]


class Scripted:
    """A model server; each request gets the next response of the script."""

    def __init__(self, *answers: Turn | Refusal | Script) -> None:
        self._answers = iter(answers)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""

    def results(self, turn: int) -> list[str]:
        """The results of calls in a request of either API."""
        found = []
        for message in self.requests[turn]["messages"]:
            if message["role"] == "tool":
                found.append(message["content"])
            elif isinstance(message["content"], list):
                blocks = [block["content"] for block in message["content"] if block["type"] == "tool_result"]
                found += ["".join(part.get("text", "") for part in parts) for parts in blocks]
        return found

    def answer(
        self, path: str, body: dict[str, Any], headers: dict[str, str]
    ) -> tuple[Refusal | None, Iterator[bytes]]:
        self.requests.append(body)
        self.headers.append(headers)
        answer = next(self._answers)
        if callable(answer):
            answer = answer(body)
        if isinstance(answer, Refusal):
            return answer, iter(())
        return None, _openai(answer) if path.endswith("/chat/completions") else _anthropic(answer)


def _written(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def _openai(turn: Turn) -> Iterator[bytes]:
    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return b"data: %b\n\n" % json.dumps({"choices": [{"delta": delta, "finish_reason": finish}]}).encode()

    yield b": hello\n\n" + event({"role": "assistant", "content": ""})
    for piece in _pieces(turn.text):
        yield event({"content": piece})
    for index, (name, arguments) in enumerate(turn.calls):
        yield event({"tool_calls": [{"index": index, "id": f"id{index}", "function": {"name": name, "arguments": ""}}]})
        for piece in _pieces(_written(arguments)):
            yield event({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield from _held(turn)
    yield event({}, "length" if turn.length else "tool_calls" if turn.calls else "stop")
    yield b'data: {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 11}}\n\n'
    yield b"data: [DONE]\n\n"


def _anthropic(turn: Turn) -> Iterator[bytes]:
    def event(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\r\ndata: {json.dumps({'type': kind, **more})}\r\n\r\n".encode()

    yield event("message_start", message={"usage": {"input_tokens": 90, "cache_read_input_tokens": 10}})
    numbers = itertools.count()
    if turn.text:
        at = next(numbers)
        yield event("content_block_start", index=at, content_block={"type": "text", "text": ""})
        for piece in _pieces(turn.text):
            yield event("content_block_delta", index=at, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=at)
    yield event("ping")
    for name, arguments in turn.calls:
        at = next(numbers)
        block = {"type": "tool_use", "id": f"id{at}", "name": name, "input": {}}
        yield event("content_block_start", index=at, content_block=block)
        for piece in _pieces(_written(arguments)):
            yield event("content_block_delta", index=at, delta={"type": "input_json_delta", "partial_json": piece})
        yield event("content_block_stop", index=at)
    yield from _held(turn)
    reason = "max_tokens" if turn.length else "tool_use" if turn.calls else "end_turn"
    yield event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 11})
    yield event("message_stop")


def _held(turn: Turn) -> Iterator[bytes]:
    if turn.hold is not None:
        yield b": one moment\n\n"
        turn.hold.wait(60)


def _pieces(text: str) -> Iterator[str]:
    sizes = itertools.cycle(CUTS)
    at = 0
    while at < len(text):
        size = next(sizes)
        yield text[at : at + size]
        at += size


@contextmanager
def scripted(*answers: Turn | Refusal | Script) -> Iterator[Scripted]:
    """Run a scripted model server."""
    model = Scripted(*answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            refusal, events = model.answer(self.path, body, headers)
            try:
                if refusal is not None:
                    self._refuse(refusal)
                else:
                    self._stream(events)
            except OSError:
                self.close_connection = True  # the client disconnected

        def _refuse(self, refusal: Refusal) -> None:
            data = refusal.body.encode() if isinstance(refusal.body, str) else json.dumps(refusal.body).encode()
            self.send_response(refusal.status)
            for name, value in refusal.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, events: Iterator[bytes]) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            sizes = itertools.cycle(CUTS)
            for event in events:
                at = 0
                while at < len(event):
                    piece = event[at : at + next(sizes)]
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    at += len(piece)
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
