"""The loop: ask the model, run the calls it makes, tell it what came of them, and ask again.

Owns the order of things and the limits: steps, tokens, a stop at any time. A call is started as soon as it is complete,
while the model still speaks; calls that act run in the order they were made, and none of them runs after one that
failed, because it was made without knowing that. Every call gets a result, so that the conversation can always go on.
Knows no provider, no terminal and no hub: it is handed a model, a toolbox and someone to tell.
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
from tabhub.agent.prompt import FIND, FIND_TOOL, Shelf, found_text, shelve, system_prompt
from tabhub.agent.results import result_of
from tabhub.agent.turns import Asking, Called, Cut, Format, Model, Said, Spent, Toolbox
from tabhub.agent.xml import Written, XmlReader
from tabhub.core.results.budget import estimate_tokens
from tabhub.core.tools import Tool
from tabhub.errors import TabhubError
from tabhub.store.conversations import Call, Conversation, Message, Result

Why = Literal["done", "stopped", "steps", "tokens", "failed"]


@dataclass(frozen=True, slots=True)
class Spoke:
    """The model said a piece of text."""

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
    """The work on what the person said has ended, for now."""

    why: Why
    words: str = ""
    steps: int = 0
    tokens: int = 0


Event = Spoke | Started | Finished | Ended


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far the agent may go for one message of the person."""

    steps: int = 50
    tokens: int = 1_000_000
    prompt: int = 12_000
    """Tokens of tool definitions that are told ahead."""


@dataclass(slots=True)
class _Run:
    """A call and the task that runs it."""

    call: Call
    acts: bool
    task: asyncio.Task[Result]


class Loop:
    """One conversation at work."""

    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        conversation: Conversation,
        *,
        form: Format = "native",
        bounds: Bounds | None = None,
        first: frozenset[str] = frozenset(),
        tell: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        self._model = model
        self._toolbox = toolbox
        self.conversation = conversation
        self._xml = form == "xml"
        self._bounds = bounds or Bounds()
        self._first = first
        self._tell = tell
        self._found = {call.name for message in conversation.messages for call in message.calls}
        """Tools that are told even if there is little room: the model has found or used them."""
        self._shelf = Shelf(())
        self._ids = itertools.count(1)
        self._work: asyncio.Task[Ended] | None = None
        self._stopped = False

    def stop(self) -> None:
        """Stop the work, also work that is about to begin; running calls are cancelled."""
        if self._work is not None and not self._stopped:
            self._work.cancel()
        self._stopped = True

    async def run(self, text: str) -> Ended:
        """Work on a message of the person until it is done, stopped, or a limit is reached."""
        self.conversation.add(Message("user", text))
        self._work = asyncio.ensure_future(self._go())
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
        self._tell(ended)
        return ended

    async def _go(self) -> Ended:
        before = self.conversation.tokens
        for step in range(1, self._bounds.steps + 1):
            called = await self._turn()
            spent = self.conversation.tokens - before
            if not called:
                return Ended("done", "", step, spent)
            if spent >= self._bounds.tokens:
                words = f"It used {spent} tokens; the limit is {self._bounds.tokens} per message."
                return Ended("tokens", f"{words} Say `go on` to let it continue.", step, spent)
        words = f"It reached the limit of {self._bounds.steps} steps per message."
        spent = self.conversation.tokens - before
        return Ended("steps", f"{words} Say `go on` to let it continue.", self._bounds.steps, spent)

    async def _turn(self) -> bool:
        """One answer of the model with all its calls; whether there were any."""
        offers = await self._toolbox.offers()
        self._shelf = shelve(offers, self._bounds.prompt, first=self._first | self._found)
        tools = (*self._shelf.shown, *([FIND_TOOL] if self._shelf.rest else []))
        system = system_prompt(self._shelf, xml=self._xml)
        asking = Asking(system, self.conversation.messages, () if self._xml else tools)
        turn = _Turn(self)
        try:
            await turn.read(asking)
            await turn.settle()
        finally:
            # Also when stopped or failed: what was said and run is part of the conversation.
            await turn.end()
            self.conversation.tokens += turn.tokens or _estimate(asking, turn.raw)
        return bool(turn.runs)

    async def _run(self, call: Call, waits: list[_Run]) -> Result:
        """Run one call once those it has to wait for are done."""
        if waits:
            await asyncio.wait([run.task for run in waits])
        self._tell(Started(call))
        began = time.monotonic()
        words = self._refusal(call, waits)
        try:
            result = _failed(call, words) if words else result_of(call, await self._answer(call))
        except TabhubError as error:
            result = _failed(call, error.text())
        seconds = round(time.monotonic() - began, 3)
        self._tell(Finished(result, seconds))
        return replace(result, seconds=seconds)

    def _refusal(self, call: Call, waits: list[_Run]) -> str:
        """Why a call is not run; empty if it is."""
        tool = self._shelf.get(call.name)
        if call.problem:
            return f"The call could not be read and was not run. {call.problem}"
        if tool is not None and tool in self._shelf.disabled:
            return f"{call.name} is disabled by the person. Do not use it."
        if _acts(tool) and any(run.task.cancelled() or run.task.result().failed for run in waits if run.acts):
            return "Not run: a call before it in the same answer failed. Call it again if it is still right."
        return ""

    async def _answer(self, call: Call) -> dict[str, Any]:
        if call.name != FIND:
            return await self._toolbox.call(call.name, call.arguments)
        query = str(call.arguments.get("query", ""))
        found = self._shelf.find(query)
        self._found |= {tool.name for tool in found}
        return {"content": [{"type": "text", "text": found_text(query, found)}]}

    def _understood(self, wrote: Written) -> Call:
        """The call that the model wrote as text."""
        ident = f"c{len(self.conversation.messages)}_{next(self._ids)}"
        tool = self._shelf.get(wrote.name)
        arguments, problems = coerce(wrote.values, tool.input_schema if tool else {})
        problem = wrote.problem or " ".join(problems)
        return Call(ident, wrote.name, {} if problem else arguments, problem)


class _Turn:
    """One answer of the model, while it comes."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._reader = XmlReader() if loop._xml else None
        self.text = ""
        self.raw = ""
        self.tokens = 0
        self.runs: list[_Run] = []

    async def read(self, asking: Asking) -> None:
        """Read the response piece by piece, and start each call when it is complete."""
        async for piece in self._loop._model.turn(asking):
            if isinstance(piece, Said):
                self.raw += piece.text
                self._take(self._reader.feed(piece.text) if self._reader else [piece.text])
            elif isinstance(piece, Called):
                self._start(piece.call)
            elif isinstance(piece, Spent):
                self.tokens = piece.tokens
            elif isinstance(piece, Cut):
                self._take(["\n[The answer was cut off: it was too long.]"])
        if self._reader:
            self._take(self._reader.close())

    async def settle(self) -> None:
        if self.runs:
            await asyncio.wait([run.task for run in self.runs])

    async def end(self) -> None:
        """Add texts, calls and results to the conversation; running calls are cancelled."""
        for run in self.runs:
            run.task.cancel()
        if self.runs:
            await asyncio.wait([run.task for run in self.runs])
        if not (self.text or self.runs or self.raw):
            return
        calls = [run.call for run in self.runs]
        raw = self.raw if self._reader else ""
        self._loop.conversation.add(Message("assistant", self.text, calls=calls, raw=raw))
        if self.runs:
            self._loop.conversation.add(Message("tool", results=[_outcome(run) for run in self.runs]))

    def _take(self, found: list[str] | list[str | Written]) -> None:
        for each in found:
            if isinstance(each, Written):
                self._start(self._loop._understood(each))
            else:
                self.text += each
                self._loop._tell(Spoke(each))

    def _start(self, call: Call) -> None:
        acts = bool(call.problem) or _acts(self._loop._shelf.get(call.name))
        waits = [run for run in self.runs if acts or run.acts]
        task = asyncio.ensure_future(self._loop._run(call, waits))
        self.runs.append(_Run(call, acts, task))


def _acts(tool: Tool | None) -> bool:
    return tool is None or not tool.read_only


def _outcome(run: _Run) -> Result:
    if not run.task.cancelled():
        return run.task.result()
    return _failed(run.call, "The person stopped the work. Whether the call took effect is not known.")


def _failed(call: Call, words: str) -> Result:
    return Result(call.id, call.name, words, failed=True)


def _estimate(asking: Asking, said: str) -> int:
    """Estimated tokens of a step whose provider does not report them."""
    texts = [asking.system, said, *(tool.wire.decode() for tool in asking.tools)]
    for message in asking.messages:
        texts += [message.text, message.raw, *(result.text for result in message.results)]
    return sum(map(estimate_tokens, texts))
