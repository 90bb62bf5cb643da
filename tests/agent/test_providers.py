"""Providers: what they are sent, how their streams are read however they are cut, and how they fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tabhub.agent.providers import model_of
from tabhub.agent.turns import ModelRequest, Piece, TokenUsage, Truncated
from tabhub.agent.xml import as_text
from tabhub.config.agent import AgentSettings, Provider
from tabhub.core.tools import BROWSER, Tool
from tabhub.errors import ModelError, SetupError
from tabhub.limits import Limits
from tabhub.store.conversations import Call, Message, Picture, Result
from tests.agent.scripted import KEY, Refusal, Scripted, Turn, scripted

PROVIDERS: tuple[Provider, ...] = ("openai", "anthropic")
TOOL = Tool("look", BROWSER, "Look at it.", {"type": "object", "properties": {"at": {"type": "string"}}})
LIMITS = Limits(agent_silence=5.0)


async def ask(
    server: Scripted, provider: Provider, messages: Sequence[Message] = (Message("user", "Hi"),), **more: Any
) -> list[Piece]:
    settings = AgentSettings(provider, server.url, "m1", "${SECRET}", **more)
    model = model_of(settings, LIMITS, {"SECRET": KEY})
    return [piece async for piece in model.turn(ModelRequest("Be good.", messages, (TOOL,)))]


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece for piece in pieces if isinstance(piece, str))


def calls_of(pieces: list[Piece]) -> list[tuple[str, dict[str, Any], str]]:
    return [(p.name, p.arguments, p.problem) for p in pieces if isinstance(p, Call)]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_text_calls_and_usage_are_parsed_from_any_chunks(provider: Provider) -> None:
    turn = Turn("Über 😀 all\n\nthings.", (("look", {"at": "the « moon »"}), ("look", {})))
    with scripted(turn) as server:
        pieces = await ask(server, provider)
    assert text_of(pieces) == "Über 😀 all\n\nthings."
    assert calls_of(pieces) == [("look", {"at": "the « moon »"}, ""), ("look", {}, "")]
    assert len({p.id for p in pieces if isinstance(p, Call)}) == 2
    assert [p.tokens for p in pieces if isinstance(p, TokenUsage)][-1] == 111
    assert not any(isinstance(p, Truncated) for p in pieces)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_key_and_the_tools_are_sent(provider: Provider) -> None:
    with scripted(Turn("Hi")) as server:
        await ask(server, provider)
    (body,), (headers,) = server.requests, server.headers
    assert KEY in (headers.get("authorization", "") + headers.get("x-api-key", ""))
    assert (body["model"], body["stream"]) == ("m1", True)
    tool = body["tools"][0]
    assert (tool.get("function") or tool)["name"] == "look"
    assert "Be good." in json.dumps(body)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_invalid_json_arguments_are_a_problem_of_that_call(provider: Provider) -> None:
    with scripted(Turn("", (("look", '{"at": "x'), ("look", "[1]"), ("look", {"at": "y"})), length=True)) as server:
        pieces = await ask(server, provider)
    first, second, third = calls_of(pieces)
    assert "not valid JSON" in first[2]
    assert "must be a JSON object" in second[2]
    assert third == ("look", {"at": "y"}, "")
    assert any(isinstance(p, Truncated) for p in pieces)


HISTORY = (
    Message("user", "Hi"),
    Message("assistant", "I look.", [Call("k1", "look", {"at": "it"})]),
    Message(
        "tool", results=[Result("k1", "look", "nothing there", failed=True, pictures=[Picture("image/png", "QQ==")])]
    ),
    Message("user", "Go on"),
)


async def test_conversation_in_openai_format() -> None:
    with scripted(Turn("Ok"), Turn("Ok")) as server:
        await ask(server, "openai", HISTORY)
        await ask(server, "openai", HISTORY, images=False)
    _, user, assistant, tool, picture, more = server.requests[0]["messages"]
    assert (user["content"], assistant["content"], more["content"]) == ("Hi", "I look.", "Go on")
    assert assistant["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at":"it"}'}
    assert (tool["tool_call_id"], tool["content"]) == ("k1", "nothing there")
    assert picture["content"][1]["image_url"]["url"] == "data:image/png;base64,QQ=="
    assert [m["role"] for m in server.requests[1]["messages"]] == ["system", "user", "assistant", "tool", "user"]


async def test_conversation_in_anthropic_format() -> None:
    with scripted(Turn("Ok")) as server:
        await ask(server, "anthropic", HISTORY)
    user, assistant, answer = server.requests[0]["messages"]
    assert user == {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
    assert assistant["content"][1] == {"type": "tool_use", "id": "k1", "name": "look", "input": {"at": "it"}}
    result, more = answer["content"]
    assert (result["tool_use_id"], result["is_error"]) == ("k1", True)
    assert [block["type"] for block in result["content"]] == ["text", "image"]
    assert more["text"] == "Go on"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_xml_calls_are_sent_as_text(provider: Provider) -> None:
    with scripted(Turn("Ok")) as server:
        settings = AgentSettings(provider, server.url, "m1", format="xml")
        model = model_of(settings, LIMITS, {})
        pieces = [piece async for piece in model.turn(ModelRequest("Be good.", [*map(as_text, HISTORY)]))]
    assert text_of(pieces) == "Ok"
    sent = json.dumps(server.requests[0], ensure_ascii=False)
    assert "tools" not in server.requests[0]
    assert "tool_use" not in sent
    assert '<invoke name=\\"look\\">' in sent
    assert '<tool_result call=\\"1\\" name=\\"look\\" status=\\"error\\">' in sent


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_busy_provider_is_retried(provider: Provider) -> None:
    busy = Refusal(429, {"error": {"message": "slow down"}}, {"retry-after": "0"})
    with scripted(busy, busy, Turn("Hi"), busy, busy, busy) as server:
        assert text_of(await ask(server, provider)) == "Hi"
        with pytest.raises(ModelError, match="answered 429: slow down"):
            await ask(server, provider)
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (Refusal(401, {"error": {"message": f"bad key {KEY}"}}), "answered 401: bad key … Check the key"),
        (Refusal(404, "nothing here"), "answered 404. Check agent.baseUrl and agent.model"),
        (Refusal(302, "", {"location": "http://127.0.0.1:1/"}), "with a redirect, which is not followed"),
        (Refusal(400, {"error": "no tools"}), "answered 400: no tools The model may not support"),
    ],
)
async def test_error_response_has_a_hint_and_never_the_key(refusal: Refusal, reason: str) -> None:
    with scripted(refusal) as server, pytest.raises(ModelError) as caught:
        await ask(server, "openai")
    assert reason in caught.value.text()
    assert KEY not in caught.value.text()


async def test_unreachable_provider_is_reported() -> None:
    model = model_of(AgentSettings("openai", "http://127.0.0.1:1/v1", "m1"), Limits(agent_tries=1), {})
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:1 cannot be reached"):
        _ = [piece async for piece in model.turn(ModelRequest("", (Message("user", "Hi"),)))]


async def _raw(data: bytes) -> list[Piece]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        model = model_of(AgentSettings("openai", url, "m1"), Limits(agent_tries=1, agent_answer=1000), {})
        return [piece async for piece in model.turn(ModelRequest("", (Message("user", "Hi"),)))]


OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "closed the connection without a response"),
        (b"SSH-2.0\r\n\r\n", "not valid HTTP"),
        (OK + b"transfer-encoding: chunked\r\n\r\nzz\r\n", "not valid HTTP"),
        (OK + b"transfer-encoding: chunked\r\n\r\n5\r\nda", "in the middle"),
        (OK + b"content-length: 50\r\n\r\ndata: 1", "in the middle"),
        (OK + b"\r\n" + b"x" * 2000, "larger than 1000 bytes"),
        (OK + b"\r\ndata: what\n\n", "not JSON"),
        (OK + b'\r\ndata: {"error": {"message": "overloaded"}}\n\n', "reported: overloaded"),
    ],
)
async def test_malformed_response_is_reported(data: bytes, reason: str) -> None:
    with pytest.raises(ModelError, match=reason):
        await _raw(data)


async def test_calls_without_index_or_id_are_separated() -> None:
    parts: list[dict[str, Any]] = [
        {"id": "a", "function": {"name": "look", "arguments": {"at": "1"}}},
        {"id": "b", "function": {"name": "look", "arguments": '{"at": "2"}'}},
    ]
    chunks = b"".join(
        b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [part]}}]}).encode() + b"\n\n" for part in parts
    )
    assert calls_of(await _raw(OK + b"\r\n" + chunks)) == [("look", {"at": "1"}, ""), ("look", {"at": "2"}, "")]


def test_without_a_provider_the_error_explains_how_to_set_one() -> None:
    with pytest.raises(SetupError) as caught:
        model_of(AgentSettings(), LIMITS, {})
    assert "not set: agent.baseUrl and agent.model" in caught.value.text()
    assert "tabhub config set agent.baseUrl" in caught.value.text()


def test_missing_key_is_named_and_never_shown() -> None:
    with pytest.raises(SetupError, match="NO_SUCH_KEY"):
        model_of(AgentSettings("openai", "http://127.0.0.1:1", "m", "${NO_SUCH_KEY}"), LIMITS, {})
    model = model_of(AgentSettings("openai", "http://127.0.0.1:1", "m", "${K}"), LIMITS, {"K": KEY})
    assert KEY not in repr(vars(model))
