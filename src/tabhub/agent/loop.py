"""The agent loop: query the model, run its tool calls, send it the results, and repeat.

Owns the order of calls and the limits: steps, tokens, stop at any time. A call starts as soon as it is complete, while
the model is still streaming. Calls with side effects run in order, and none of them runs after one that failed, because
the model did not know of the failure. Every call gets a result, so the conversation can always continue. Knows no
provider, no terminal and no hub.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from msgspec.structs import replace

from tabhub.agent.coerce import coerce
from tabhub.agent.prompt import FIND, FIND_TOOL, ToolSelection, describe_found, select_tools, system_prompt
from tabhub.agent.results import result_of
from tabhub.agent.turns import Model, ModelRequest, TokenUsage, Toolbox, Truncated
from tabhub.agent.xml import XmlCall, XmlReader, as_text
from tabhub.browser.families import CORE
from tabhub.config.settings import Config
from tabhub.core.results.tokens import estimate_tokens
from tabhub.core.tools import Tool
from tabhub.errors import TabhubError
from tabhub.store.conversations import Call, Conversation, Message, Result

_CONTINUE = "Write `go on` to continue."
Why = Literal["done", "stopped", "steps", "tokens", "failed"]


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the model's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Started:
    """A call is being run."""

    call: Call


@dataclass(frozen=True, slots=True)
class Finished:
    """A call has its result."""

    result: Result
    seconds: float


@dataclass(frozen=True, slots=True)
class Ended:
    """The work on a message has ended."""

    why: Why
    explanation: str = ""
    steps: int = 0
    tokens: int = 0


Event = Text | Started | Finished | Ended


@dataclass(slots=True)
class _Run:
    """A call and the task that runs it."""

    call: Call
    has_effects: bool
    task: asyncio.Task[Result]


class Loop:
    """Runs one conversation."""

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        conversation: Conversation,
        config: Config,
        on_event: Callable[[Event], None],
    ) -> None:
        self._model = model
        self._toolbox = toolbox
        self.conversation = conversation
        self._settings = config.agent
        self._xml = config.agent.format == "xml"
        self._prompt_tokens = config.limits.agent_prompt
        """Tokens of tool definitions in the prompt."""
        self._on_event = on_event
        self._preferred = {*CORE, *(call.name for message in conversation.messages for call in message.calls)}
        """The core tools and those that the model has found or used; they take precedence in the prompt."""
        self._selection = ToolSelection(())
        self._ids = itertools.count(1)
        self._work: asyncio.Task[Ended] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Stop the work, also work that is about to begin; running calls are cancelled."""
        if self._work is not None and not self._stopped:
            self._work.cancel()
        self._stopped = True

    async def run(self, text: str) -> Ended:
        """Work on a message until it is done, stopped, or a limit is reached."""
        self.conversation.add(Message("user", text))
        self._work = asyncio.ensure_future(self._run_steps())
        if self._stopped:
            self._work.cancel()
        try:
            ended = await self._work
        except asyncio.CancelledError:
            if not self._stopped:
                self._work.cancel()
                await asyncio.gather(self._work, return_exceptions=True)
                raise
            ended = Ended("stopped", "Stopped.")
        except TabhubError as error:
            ended = Ended("failed", error.text())
        finally:
            self._work = None
            self._stopped = False
        self._on_event(ended)
        return ended

    async def _run_steps(self) -> Ended:
        steps, tokens = self._settings.steps, self._settings.tokens
        before, spent = self.conversation.tokens, 0
        for step in range(1, steps + 1):
            called = await self._run_turn()
            spent = self.conversation.tokens - before
            if not called:
                return Ended("done", "", step, spent)
            if spent >= tokens:
                text = f"It used {spent} tokens; the limit is {tokens} per message. {_CONTINUE}"
                return Ended("tokens", text, step, spent)
        return Ended("steps", f"It reached the limit of {steps} steps per message. {_CONTINUE}", steps, spent)

    async def _run_turn(self) -> bool:
        """Run one turn of the model with its calls; returns whether there were any."""
        self._selection = select_tools(await self._toolbox.list_tools(), self._prompt_tokens, first=self._preferred)
        find = [FIND_TOOL] if self._selection.rest else []
        tools = () if self._xml else (*self._selection.shown, *find)
        messages = self.conversation.messages
        system = system_prompt(self._selection, xml=self._xml)
        request = ModelRequest(system, messages if tools else [*map(as_text, messages)], tools)
        turn = _Turn(self)
        try:
            await turn.read(request)
            await turn.wait_for_calls()
        finally:
            # Also when stopped or failed: the text and the calls so far are part of the conversation.
            await turn.end()
            self.conversation.tokens += turn.tokens or _estimate(request, turn.raw)
        return bool(turn.runs)

    async def _run(self, call: Call, predecessors: list[_Run]) -> Result:
        """Run a call after those it has to wait for."""
        if predecessors:
            await asyncio.wait([run.task for run in predecessors])
        self._on_event(Started(call))
        began = time.monotonic()
        reason = self._reason_not_to_run(call, predecessors)
        try:
            result = _failed(call, reason) if reason else result_of(call, await self._call_tool(call))
        except TabhubError as error:
            result = _failed(call, error.text())
        seconds = round(time.monotonic() - began, 3)
        self._on_event(Finished(result, seconds))
        return replace(result, seconds=seconds)

    def _reason_not_to_run(self, call: Call, predecessors: list[_Run]) -> str:
        """Why a call must not run; empty if it may."""
        tool = self._selection.get(call.name)
        if call.problem:
            return f"The call could not be read and was not run. {call.problem}"
        if tool is not None and tool in self._selection.disabled:
            return f"{call.name} is disabled by the person. Do not use it."
        if _has_effects(tool) and any(
            run.task.cancelled() or run.task.result().failed for run in predecessors if run.has_effects
        ):
            return "Not run: a call before it in the same answer failed. Call it again if it is still right."
        return ""

    async def _call_tool(self, call: Call) -> dict[str, Any]:
        if call.name != FIND:
            return await self._toolbox.call(call.name, call.arguments)
        query = str(call.arguments.get("query", ""))
        found = self._selection.find(query)
        self._preferred |= {tool.name for tool in found}
        return {"content": [{"type": "text", "text": describe_found(query, found)}]}

    def _parse_xml_call(self, wrote: XmlCall) -> Call:
        ident = f"c{len(self.conversation.messages)}_{next(self._ids)}"
        tool = self._selection.get(wrote.name)
        arguments, problems = coerce(wrote.values, tool.input_schema if tool else {})
        problem = wrote.problem or " ".join(problems)
        return Call(ident, wrote.name, {} if problem else arguments, problem)


class _Turn:
    """One response of the model while it is streamed."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._reader = XmlReader() if loop._xml else None
        self.text = ""
        self.raw = ""
        self.tokens = 0
        self.runs: list[_Run] = []

    async def read(self, request: ModelRequest) -> None:
        """Read the response piece by piece, and start each call when it is complete."""
        async for piece in self._loop._model.turn(request):
            if isinstance(piece, str):
                self.raw += piece
                self._add(self._reader.feed(piece) if self._reader else [piece])
            elif isinstance(piece, Call):
                self._start(piece)
            elif isinstance(piece, TokenUsage):
                self.tokens = piece.tokens
            elif isinstance(piece, Truncated):
                self._add(["\n[The answer was cut off: it was too long.]"])
        if self._reader:
            self._add(self._reader.feed("", last=True))

    async def wait_for_calls(self) -> None:
        if self.runs:
            await asyncio.wait([run.task for run in self.runs])

    async def end(self) -> None:
        """Add texts, calls and results to the conversation; running calls are cancelled."""
        for run in self.runs:
            run.task.cancel()
        await self.wait_for_calls()
        if not (self.text or self.runs or self.raw):
            return
        calls = [run.call for run in self.runs]
        self._loop.conversation.add(Message("assistant", self.text, calls=calls, raw=self.raw if self._reader else ""))
        if self.runs:
            self._loop.conversation.add(Message("tool", results=[_result_of_run(run) for run in self.runs]))

    def _add(self, found: list[str] | list[str | XmlCall]) -> None:
        for each in found:
            if isinstance(each, XmlCall):
                self._start(self._loop._parse_xml_call(each))
            else:
                self.text += each
                self._loop._on_event(Text(each))

    def _start(self, call: Call) -> None:
        has_effects = bool(call.problem) or _has_effects(self._loop._selection.get(call.name))
        predecessors = [run for run in self.runs if has_effects or run.has_effects]
        self.runs.append(_Run(call, has_effects, asyncio.ensure_future(self._loop._run(call, predecessors))))


def _has_effects(tool: Tool | None) -> bool:
    return tool is None or not tool.read_only


def _result_of_run(run: _Run) -> Result:
    if not run.task.cancelled():
        return run.task.result()
    return _failed(run.call, "The person stopped the work. It is unknown whether the call took effect.")


def _failed(call: Call, text: str) -> Result:
    return Result(call.id, call.name, text, failed=True)


def _estimate(request: ModelRequest, response: str) -> int:
    """Estimated tokens of a step whose provider does not report them."""
    texts = [request.system, response, *(tool.wire.decode() for tool in request.tools)]
    for message in request.messages:
        texts += [message.text] if message.text else [result.text for result in message.results]
    return sum(map(estimate_tokens, texts))
