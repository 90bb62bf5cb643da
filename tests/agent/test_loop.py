"""The loop: turns and calls in order, results for the model, limits, and stopping at any time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import pytest

from tabhub.agent.loop import Ended, Event, Finished, Loop, Started, Text
from tabhub.agent.prompt import FIND
from tabhub.agent.turns import Model, ModelRequest, Piece, TokenUsage, Toolbox, Truncated
from tabhub.config.agent import AgentSettings
from tabhub.config.settings import Config
from tabhub.core.tools import BROWSER, Tool
from tabhub.errors import ModelError, PermissionDenied
from tabhub.limits import Limits
from tabhub.store.conversations import Call, Conversation, Message

READ = {"readOnlyHint": True}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
LOOK = Tool("look", BROWSER, "Look at something.", SCHEMA, annotations=READ)
ACT = Tool("act", BROWSER, "Do something.", SCHEMA)
OFF = Tool("off", BROWSER, "[Disabled] Switched off.", SCHEMA)


class FakeModel:
    """Streams prepared turns."""

    def __init__(self, *turns: list[Piece | asyncio.Event | Exception]) -> None:
        self._turns = list(turns)
        self.requests: list[ModelRequest] = []
        self.closed = 0

    async def turn(self, request: ModelRequest) -> AsyncIterator[Piece]:
        self.requests.append(ModelRequest(request.system, list(request.messages), request.tools))
        try:
            for piece in self._turns.pop(0):
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                elif isinstance(piece, Exception):
                    raise piece
                else:
                    yield piece
        finally:
            self.closed += 1


class FakeTools:
    """Runs calls with the function of a test."""

    def __init__(self, run: Callable[[str, Mapping[str, Any]], Any] | None = None) -> None:
        self.run = run or (lambda name, arguments: f"{name} done")
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.cancelled: list[str] = []
        self.tools: list[Tool] = [LOOK, ACT, OFF]

    async def list_tools(self) -> Sequence[Tool]:
        return self.tools

    async def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self.calls.append((name, dict(arguments)))
        answer = self.run(name, arguments)
        try:
            answer = await answer if isinstance(answer, asyncio.Future) else answer
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        return answer if isinstance(answer, dict) else {"content": [{"type": "text", "text": answer}]}


def call(name: str, ident: str = "1", problem: str = "", **arguments: Any) -> Call:
    return Call(ident, name, arguments, problem)


def new() -> Conversation:
    return Conversation("0" * 12, 0.0, 0.0)


def loop_of(
    model: Model,
    tools: Toolbox,
    conversation: Conversation,
    config: Config | None = None,
    on_event: Callable[[Event], None] = lambda _event: None,
) -> Loop:
    return Loop(model, tools, conversation, config or Config(), on_event)


def results(conversation: Conversation) -> list[tuple[str, str, bool]]:
    return [(r.name, r.text, r.failed) for m in conversation.messages for r in m.results]


async def test_calls_run_until_the_model_is_done() -> None:
    model = FakeModel(
        ["I ", "look.", call("look", n=1), TokenUsage(10)],
        [call("act", "2", n=2), TokenUsage(20)],
        ["Done.", TokenUsage(30)],
    )
    tools, events = FakeTools(), list[Event]()
    loop = loop_of(model, tools, new(), on_event=events.append)
    ended = await loop.run("Do it")
    assert ended == Ended("done", "", 3, 60)
    assert tools.calls == [("look", {"n": 1}), ("act", {"n": 2})]
    assert [m.role for m in loop.conversation.messages] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert model.requests[2].messages[-1].results[0].text == "act done"
    assert [type(each) for each in events] == [Text, Text, Started, Finished, Started, Finished, Text, Ended]
    assert [tool.name for tool in model.requests[0].tools] == ["look", "act"]
    assert (loop.conversation.title, loop.conversation.tokens) == ("Do it", 60)


async def test_call_starts_while_the_model_is_streaming() -> None:
    speaking = asyncio.Event()

    def run(name: str, arguments: Mapping[str, Any]) -> str:
        speaking.set()
        return "early"

    model = FakeModel([call("look"), speaking, "and more"], ["Done."])
    loop = loop_of(model, FakeTools(run), new())
    async with asyncio.timeout(30):
        assert (await loop.run("Go")).why == "done"


async def test_calls_with_effects_run_in_order_and_reading_calls_in_parallel() -> None:
    gates = {n: asyncio.get_running_loop().create_future() for n in range(4)}
    tools = FakeTools(lambda name, arguments: gates[arguments["n"]])
    calls = [call("look", "a", n=0), call("look", "b", n=1), call("act", "c", n=2), call("act", "d", n=3)]
    loop = loop_of(FakeModel([*calls], ["ok"]), tools, new())
    work = asyncio.ensure_future(loop.run("Go"))

    async def settled() -> list[int]:
        for _ in range(20):
            await asyncio.sleep(0)
        return [arguments["n"] for _, arguments in tools.calls]

    assert await settled() == [0, 1]
    gates[1].set_result("b")
    assert await settled() == [0, 1]
    gates[0].set_result("a")
    assert await settled() == [0, 1, 2]
    gates[2].set_result("c")
    assert await settled() == [0, 1, 2, 3]
    gates[3].set_result("d")
    assert (await work).why == "done"
    assert [r[1] for r in results(loop.conversation)] == ["a", "b", "c", "d"]


async def test_failed_call_prevents_later_calls_with_effects() -> None:
    def run(name: str, arguments: Mapping[str, Any]) -> Any:
        if arguments.get("n") == 1:
            raise PermissionDenied("The person said no.", hint="Ask for something else.")
        return "ok"

    calls = [call("act", "a", n=1), call("act", "b", n=2), call("look", "c", n=3)]
    tools = FakeTools(run)
    loop = loop_of(FakeModel([*calls], [call("act", "d", n=4)], ["ok"]), tools, new())
    await loop.run("Go")
    outcomes = results(loop.conversation)
    assert outcomes[0] == ("act", "The person said no. (outcome: not_sent) Ask for something else.", True)
    assert outcomes[1][1].startswith("Not run: a call before it in the same answer failed.")
    assert outcomes[2:] == [("look", "ok", False), ("act", "ok", False)]
    assert [arguments["n"] for _, arguments in tools.calls] == [1, 3, 4]


async def test_failed_disabled_and_malformed_calls_are_reported_to_the_model() -> None:
    tools = FakeTools(lambda *_: {"content": [{"type": "text", "text": "boom"}], "isError": True})
    model = FakeModel(
        [call("act")], [call("off")], [call("act", problem="Its arguments are not valid JSON.")], ["I see."]
    )
    loop = loop_of(model, tools, new())
    await loop.run("Go")
    failed, off, malformed = results(loop.conversation)
    assert failed == ("act", "boom", True)
    assert "disabled by the person" in off[1]
    assert malformed[1] == "The call could not be read and was not run. Its arguments are not valid JSON."
    assert tools.calls == [("act", {})]


XML = 'Now:<tool_calls><invoke name="act"><parameter name="n">5</parameter></invoke></tool_calls>'


async def test_calls_in_the_text_are_run_with_typed_values_and_malformed_ones_answered() -> None:
    wrong = '<invoke name="act"><parameter name="n">five</parameter></invoke>'
    model = FakeModel(
        [*XML],
        [wrong],
        ['<invoke name="act">'],
        ["Done."],
    )
    tools, events = FakeTools(), list[Event]()
    loop = loop_of(model, tools, new(), config=Config(agent=AgentSettings(format="xml")), on_event=events.append)
    assert (await loop.run("Go")).why == "done"
    assert tools.calls == [("act", {"n": 5})]
    _, typed, unfinished = results(loop.conversation)
    assert typed[1].endswith("The parameter 'n' must be a whole number, not 'five'.")
    assert unfinished[1].endswith("The text ended before its `</invoke>`.")
    assert "".join(each.text for each in events if isinstance(each, Text)) == "Now:Done."
    assert loop.conversation.messages[1].raw == XML
    assert model.requests[0].tools == ()
    assert "### act" in model.requests[0].system


async def test_stop_during_a_call_cancels_it_and_the_conversation_can_continue() -> None:
    running: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    tools = FakeTools(lambda *_: running)
    model = FakeModel(["Wait.", call("act"), call("act", "2")], ["Ok, I stopped."])
    loop = loop_of(model, tools, new(), on_event=lambda each: loop.stop() if isinstance(each, Started) else None)
    ended = await loop.run("Go")
    assert ended.why == "stopped"
    assert tools.cancelled in ([], ["act"])
    assert len(tools.calls) <= 1
    assert [m.role for m in loop.conversation.messages] == ["user", "assistant", "tool"]
    assert all("stopped the work" in text for _, text, _ in results(loop.conversation))
    assert len(results(loop.conversation)) == 2
    assert (await loop.run("What now?")).why == "done"
    assert len(model.requests[1].messages) == 4


async def test_stop_during_streaming_keeps_the_text() -> None:
    model = FakeModel(["Once upon", asyncio.Event()])
    loop = loop_of(model, FakeTools(), new(), on_event=lambda each: loop.stop() if isinstance(each, Text) else None)
    assert (await loop.run("Tell me")).why == "stopped"
    assert [(m.role, m.text) for m in loop.conversation.messages] == [("user", "Tell me"), ("assistant", "Once upon")]
    assert model.closed == 1


async def test_stop_before_start_prevents_the_start() -> None:
    model = FakeModel(["Here I am."])
    loop = loop_of(model, FakeTools(), new())
    loop.stop()
    assert (await loop.run("Go")).why == "stopped"
    assert model.requests == []
    assert (await loop.run("Now go")).why == "done"


async def test_cancelling_the_task_cancels_its_work() -> None:
    model = FakeModel(["Hm", asyncio.Event()])
    loop = loop_of(model, FakeTools(), new())
    work = asyncio.ensure_future(loop.run("Go"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


async def test_steps_and_tokens_are_bounded() -> None:
    turns: list[list[Piece | asyncio.Event | Exception]] = [[call("look", str(n)), TokenUsage(10)] for n in range(9)]
    model = FakeModel(*turns)
    loop = loop_of(model, FakeTools(), new(), config=Config(agent=AgentSettings(steps=3)))
    ended = await loop.run("Go")
    assert (ended.why, ended.steps, ended.tokens) == ("steps", 3, 30)
    assert "It reached the limit of 3 steps" in ended.explanation
    loop = loop_of(model, FakeTools(), loop.conversation, config=Config(agent=AgentSettings(tokens=15)))
    ended = await loop.run("Go on")
    assert (ended.why, ended.steps, ended.tokens) == ("tokens", 2, 20)
    assert "20 tokens" in ended.explanation


async def test_unreported_tokens_are_estimated() -> None:
    loop = loop_of(FakeModel(["word " * 100]), FakeTools(), new())
    assert (await loop.run("Go")).tokens > 100


async def test_provider_error_ends_the_work_with_its_message() -> None:
    model = FakeModel(["Well", ModelError("It broke.", hint="Try again.")])
    loop = loop_of(model, FakeTools(), new())
    assert await loop.run("Go") == Ended("failed", "It broke. Try again.")
    assert loop.conversation.messages[-1] == Message("assistant", "Well")


async def test_truncated_response_is_marked() -> None:
    loop = loop_of(FakeModel(["A long", Truncated()]), FakeTools(), new())
    await loop.run("Go")
    assert loop.conversation.messages[-1].text == "A long\n[The answer was cut off: it was too long.]"


async def test_unlisted_tools_can_be_found_and_called() -> None:
    tools = FakeTools()
    tools.tools = [Tool(f"tool_{n}", BROWSER, f"Water the plant {'x' * n}.", SCHEMA) for n in range(60)]
    find = call(FIND, query="water the plant")
    model = FakeModel([find], [call("tool_59", "2", n=1)], ["Done."])
    loop = loop_of(model, tools, new(), config=Config(limits=Limits(agent_prompt=100)))
    await loop.run("Go")
    assert FIND in [tool.name for tool in model.requests[0].tools]
    found = results(loop.conversation)[0][1]
    assert "### tool_" in found
    assert tools.calls == [("tool_59", {"n": 1})]
    assert found.split("\n")[0].removeprefix("### ") in [tool.name for tool in model.requests[1].tools]
    later = FakeModel(["Hm."])
    await loop_of(later, tools, loop.conversation, config=Config(limits=Limits(agent_prompt=100))).run("Again")
    assert "tool_59" in [tool.name for tool in later.requests[0].tools], "it was used before"


async def test_pictures_and_resources_of_results_are_passed_on() -> None:
    content = [
        {"type": "text", "text": "Seen:"},
        {"type": "image", "mimeType": "image/png", "data": "QQ=="},
        {"type": "audio", "mimeType": "audio/wav", "data": "QQ=="},
        {"type": "resource_link", "uri": "file:///a"},
        {"type": "resource", "resource": {"uri": "x:1", "text": "inner"}},
    ]
    answers = iter([{"content": content}, {"content": [], "structuredContent": {"a": 1}}, {"content": []}])
    loop = loop_of(
        FakeModel([call("look")], [call("look")], [call("look")], []), FakeTools(lambda *_: next(answers)), new()
    )
    await loop.run("Go")
    assert [text for _, text, _ in results(loop.conversation)] == [
        "Seen:\n[audio: audio/wav]\n[resource: file:///a]\ninner",
        '{"a": 1}',
        "(no output)",
    ]
    assert loop.conversation.messages[2].results[0].pictures[0].mime == "image/png"
