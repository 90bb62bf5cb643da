"""Walks: which functions of the product one call passes, in the order of first entry.

A walk makes one kind of call to a hub in this process with a fake extension, several times. The first call is not
recorded, because it fills caches and opens connections that later calls reuse. A function belongs to the walk if every
recorded call enters it, so background work that happens to run in between does not appear; timers, which on a busy
machine run during every call, are left out by name.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2

import tabhub
from tests.harness.agent import Agent
from tests.harness.fake_extension import FakeExtension, tab
from tests.harness.hub import RunningHub, running_hub
from tests.harness.pages import ADD, Browser, tool
from tests.harness.panel import Panel
from tests.harness.raw import Wire, request, wire

SOURCE = Path(tabhub.__file__).resolve().parent
RECORDED_CALLS = 3
_SITE = "https://site.example/"
_TIMERS = frozenset({"Engine._tick", "Engine._begin_ticking", "Hub._keep"})
"""Where the product's own timers begin."""
_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
Call = Callable[[], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Step:
    """One function of a walk."""

    file: str
    """Relative to src/tabhub."""
    function: str


@dataclass(frozen=True, slots=True)
class Walk:
    """The functions one call passes, in order of first entry."""

    name: str
    steps: tuple[Step, ...]

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(step.file for step in self.steps))


class Recorder:
    """Records the product's functions that the current thread enters."""

    def __init__(self) -> None:
        self._steps: dict[Any, Step] = {}

    def __enter__(self) -> dict[Any, Step]:
        sys.setprofile(self._profile)
        return self._steps

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # Comprehensions are functions of their own only before Python 3.12.
        if event != "call" or code in self._steps or code.co_name in _COMPREHENSIONS:
            return
        path = Path(code.co_filename)
        if path.is_relative_to(SOURCE) and code.co_name != "<module>" and not _of_timer(frame):
            self._steps[code] = Step(path.relative_to(SOURCE).as_posix(), code.co_qualname)


def _of_timer(frame: FrameType | None) -> bool:
    """Whether a timer has called this."""
    while frame is not None:
        if frame.f_code.co_qualname in _TIMERS:
            return True
        frame = frame.f_back
    return False


class OneConnectionAgent(Agent):
    """An agent that sends each request in one piece, over one connection.

    What a request passes depends on how it arrives: one whose head and body come apart takes more steps.
    """

    def __init__(self, hub: RunningHub, connection: Wire) -> None:
        super().__init__(hub, "/mcp")
        self._connection = connection
        self._fixed = {"Host": f"127.0.0.1:{hub.port}", **hub.bearer}

    async def post(self, body: Any, **headers: str) -> httpx2.Response:
        content = json.dumps(body).encode()
        sent = self._fixed | self.headers | headers | {"Content-Length": str(len(content))}
        await self._connection.send(request("POST", self.path, sent.items(), content))
        answer = await self._connection.answer()
        kind = {"Content-Type": answer.headers.get("content-type", "")}
        return httpx2.Response(answer.status, headers=kind, content=answer.body)


def _tab_ids(listed: dict[str, Any]) -> list[int]:
    return [int(found) for found in re.findall(r"^(\d+) ", listed["result"]["content"][0]["text"], re.MULTILINE)]


@asynccontextmanager
async def _agent(hub: RunningHub) -> AsyncIterator[Agent]:
    async with wire(hub.port) as connection, OneConnectionAgent(hub, connection) as agent:
        yield agent


@asynccontextmanager
async def _list_tabs(folder: Path) -> AsyncIterator[Call]:
    async with running_hub(folder) as hub, FakeExtension(hub), _agent(hub) as agent:
        yield lambda: agent.call("browser_list_tabs")


@asynccontextmanager
async def _click(folder: Path) -> AsyncIterator[Call]:
    async with running_hub(folder) as hub, FakeExtension(hub, tabs=[tab(7, _SITE)]) as browser, _agent(hub) as agent:
        browser.has_frames = True
        browser.handlers["forwardCDPCommand"] = _answer_cdp
        listed = await agent.call("browser_list_tabs")
        tab_id = _tab_ids(listed)[0]
        yield _Click(agent, browser, tab_id)


@dataclass(frozen=True, slots=True)
class _Click:
    """A click in a page that has settled since the one before, so that it need not wait for that."""

    agent: Agent
    browser: FakeExtension
    tab_id: int

    async def __call__(self) -> dict[str, Any]:
        return await self.agent.call("browser_click_element", {"tabId": self.tab_id, "text": "Send"})

    async def rest(self) -> None:
        await self.browser.settle()  # by then it has replied to all commands
        await self.browser.settle()  # and the hub has received that


def _answer_cdp(params: dict[str, Any]) -> Any:
    """Answer as a page with one button does."""
    match params["method"]:
        case "Page.getFrameTree":
            return {"frameTree": {"frame": {"id": "F", "url": _SITE}}}
        case "Page.createIsolatedWorld":
            return {"executionContextId": 7}
        case "Runtime.evaluate":
            return {"result": {"value": _answer_script(params["params"]["expression"])}}
    return {}


def _answer_script(code: str) -> Any:
    button = {"ref": "e1", "label": 'button "Send"'}
    if "tabhubKit.begin(" in code:
        return ["token", "e"]
    if "kit.find(" in code:
        return {**button, "value": {"x": 10, "y": 20, "url": _SITE, "label": button["label"]}}
    return {"verdict": "hit", "url": _SITE}


@asynccontextmanager
async def _page_tool(folder: Path) -> AsyncIterator[Call]:
    async with running_hub(folder) as hub, Browser(hub) as browser, _agent(hub) as agent:
        await browser.offer(7, tool("add"))
        yield lambda: agent.call(ADD, {"id": "1"})


@asynccontextmanager
async def _approval(folder: Path) -> AsyncIterator[Call]:
    """Closing a tab, which the person allows once in the panel."""
    tabs = [tab(number, _SITE) for number in range(1, RECORDED_CALLS + 3)]
    async with running_hub(folder, permissions=None) as hub, Panel(hub, tabs=tabs) as panel, _agent(hub) as agent:
        panel.handlers["closeTab"] = lambda params: {"closed": True}
        listed = await agent.call("browser_list_tabs")
        ids = _tab_ids(listed)

        async def call() -> dict[str, Any]:
            calling = asyncio.create_task(agent.call("browser_close_tab", {"tabId": ids.pop()}))
            await panel.decide("allow_once")
            return await calling

        yield call


WALKS: dict[str, Callable[[Path], AbstractAsyncContextManager[Call]]] = {
    "list tabs": _list_tabs,
    "click": _click,
    "page tool": _page_tool,
    "approval": _approval,
}


async def record(name: str) -> Walk:
    """Run the calls of one walk and record them, from the request's first byte to the answer's last."""
    with tempfile.TemporaryDirectory() as folder:
        async with WALKS[name](Path(folder)) as call:
            _check(name, await call())
            recordings = []
            for _ in range(RECORDED_CALLS):
                if isinstance(call, _Click):
                    await call.rest()
                with Recorder() as steps:
                    answer = await call()
                _check(name, answer)
                recordings.append(steps)
    first, *others = recordings
    return Walk(name, tuple(step for code, step in first.items() if all(code in other for other in others)))


def _check(name: str, answer: dict[str, Any]) -> None:
    result = answer.get("result")
    if result is None or result.get("isError"):
        raise RuntimeError(f"the call of the walk {name!r} failed: {answer}")
