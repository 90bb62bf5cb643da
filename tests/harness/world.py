"""The engine, its calls and real links without sockets, in virtual time: for simulations."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tabhub.calls.approvals.permission import Permission
from tabhub.calls.engine import Answers, Engine, Questions
from tabhub.core.calls import Calls
from tabhub.core.registry import Entry, Registry
from tabhub.core.sessions import Session, Sessions
from tabhub.core.tools import CallContext, Source, Tool, ToolResult
from tabhub.errors import CommandFailed, TabhubError
from tabhub.limits import Limits
from tabhub.links.browsers import Browsers
from tabhub.links.extension import ExtensionLink
from tabhub.store.audit import AuditLog
from tabhub.store.results import ResultStore
from tests.harness.fake_extension import tab
from tests.harness.results import both_forms
from tests.harness.virtual_time import VirtualLoop

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"tabId": {"type": "integer"}, "token": {"type": "integer"}},
    "required": ["tabId", "token"],
}


@dataclass(eq=False)
class Asked:
    """One command as the browser received it."""

    number: int
    token: int
    at: float
    replies: int = 0


class Connection:
    """One connection of a fake browser: the messages it received, and those it sends."""

    def __init__(self, world: World, browser_id: str, tabs: list[int]) -> None:
        self._world = world
        self.browser_id = browser_id
        self.asked: list[Asked] = []
        self.cancelled: list[int] = []
        self.closed: tuple[int, str] | None = None
        self.link = ExtensionLink(browser_id, self._sent, self._close, world.limits, world.loop)
        world.loop.act(lambda: world.browsers.attach(self.link))
        self.sync(tabs)

    def sync(self, tabs: list[int]) -> None:
        """Report the open tabs."""
        self.say("tab.syncAll", {"tabs": [tab(each) for each in tabs], "plugins": {}, "debugger": {"attached": []}})

    def _sent(self, data: bytes) -> None:
        message = json.loads(data)
        if "id" in message:
            self.asked.append(Asked(message["id"], message["params"]["token"], self._world.loop.now))
        elif message["method"] == "cancel":
            self.cancelled.append(message["params"]["id"])

    def _close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)

    def feed(self, message: Any) -> None:
        text = json.dumps({"jsonrpc": "2.0", **message})
        self._world.loop.act(lambda: self.link.feed(text))

    def say(self, method: str, params: dict[str, Any]) -> None:
        self.feed({"method": method, "params": params})

    def reply(self, asked: Asked, **outcome: Any) -> None:
        asked.replies += 1
        self.feed({"id": asked.number, **(outcome or {"result": {"token": asked.token}})})

    def lose(self) -> None:
        self._world.loop.act(lambda: self._world.browsers.detach(self.link))


class TestCaller:
    """The caller of one call, and the progress it received."""

    __test__ = False

    def __init__(self, session: Session) -> None:
        self.session = session
        self.via = "test"
        self.structured = True
        self.answers: Answers | None = None
        self.reported: list[float] = []
        self.params: Mapping[str, Any] = {}
        self.structured = True

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.reported.append(progress)

    def log(self, level: str, logger: str, data: Any) -> None:
        raise AssertionError("nothing is logged here")

    async def ask(self, tool: str, questions: Questions) -> Answers:
        raise AssertionError("no questions are expected here")

    def can(self, capability: str) -> bool:
        return False


@dataclass(eq=False)
class Started:
    """A call that was made."""

    token: int
    tool: Tool
    tab_id: int
    caller: TestCaller
    task: asyncio.Task[ToolResult]
    opened: float
    causes: set[str] = field(default_factory=set)

    @property
    def error(self) -> TabhubError:
        """The error that it failed with."""
        failed = self.task.exception()
        assert isinstance(failed, TabhubError), failed
        return failed


class World:
    """A hub's engine with fake browsers around it."""

    def __init__(self, folder: Path, limits: Limits, permission: Permission | None = None) -> None:
        self.loop = VirtualLoop()
        self.limits = limits
        self.wall = 1_800_000_000.0
        self.sessions = Sessions(limits)
        self.browsers = Browsers(limits, wall=lambda: self.wall)
        self.engine = Engine(
            registry=Registry(),
            sessions=self.sessions,
            limits=limits,
            permission=permission or Permission(),
            audit=AuditLog(folder / "audit.log", limits, clock=lambda: self.wall),
            results=ResultStore(folder / "results", limits, clock=lambda: self.wall),
            clock=self.loop.time,
            wall=lambda: self.wall,
            calls=Calls(limits),
        )
        self.contexts: dict[int, CallContext] = {}
        self._tokens = 0
        self._sessions = 0

    def tool(self, name: str, source: Source, **annotations: bool) -> Tool:
        """Register one more tool, which sends one command to its tab and returns the reply."""
        made = Tool(name, source, name, SCHEMA, annotations=annotations)
        there = [self.engine.registry.by_name.get(t.name) for t in self.engine.registry.tools() if t.source == source]
        entries = [entry for entry in there if entry is not None]
        assert self.engine.registry.replace(source, [*entries, Entry(made, self._run)]) == []
        return made

    async def _run(self, ctx: CallContext, arguments: dict[str, Any]) -> ToolResult:
        self.contexts[arguments["token"]] = ctx
        ref = self.browsers.tab(arguments["tabId"])
        ctx.tab, ctx.origin = ref.tab.tab_id, ref.tab.origin
        ctx.sent = True
        params = {"tabId": ref.tab.chrome_id, "token": arguments["token"]}
        answer = await ref.link.request("forwardCDPCommand", params)
        if not isinstance(answer, dict):
            raise CommandFailed("The browser answered with something else.")
        return both_forms(answer)

    def session(self) -> Session:
        self._sessions += 1
        return self.sessions.open(f"session-{self._sessions}", "mcp", "test", self.loop.now)

    def call(self, session: Session, tool: Tool, tab_id: int) -> Started:
        """Make a call and let it proceed until it has to wait."""
        self._tokens += 1
        caller, token = TestCaller(session), self._tokens
        arguments = {"tabId": tab_id, "token": token}
        begun = self.loop.now
        task = self.loop.act(
            lambda: self.loop.create_task(self.engine.call(caller, tool.name, arguments), name=f"call {token}")
        )
        return Started(token, tool, tab_id, caller, task, begun)

    def close(self) -> None:
        """Close the loop and the files."""
        self.loop.run_for()
        self.engine.audit.close()
        self.loop.close()
