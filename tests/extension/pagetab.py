"""A tab with a page that offers tools, for the tests of page tools."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.extension.fakehub import Message, Wire
from tests.harness.waiting import LONG

LISTS = ("browser/registerTools", "browser/updateTools")


class PageTab:
    """One tab, the messages about it, and requests to it."""

    def __init__(self, wire: Wire, tab: int, since: int) -> None:
        self.wire = wire
        self.tab = tab
        self.since = since

    @classmethod
    async def open(cls, wire: Wire, url: str) -> PageTab:
        """Open a page in a new tab."""
        since = len(wire.seen)
        tab = (await wire.ask("createTab"))["tabId"]
        await wire.ask("browser_navigate", tabId=tab, url=url)
        return cls(wire, tab, since)

    async def reported(self, *names: str, frame: int | None = 0, within: float = LONG) -> Message:
        """The message that reports exactly these tools of the frame, not counting messages found by earlier calls."""

        def wanted(message: Message) -> bool:
            params = message.get("params", {})
            here = message.get("method") in LISTS and params["tabId"] == self.tab
            if not here or (frame is not None and params["frameId"] != frame):
                return False
            return {tool["name"] for tool in params["tools"]} == set(names)

        found = await self.wire.next(wanted, after=self.since, within=within)
        self.since = self.wire.seen.index(found) + 1
        params: Message = found["params"]
        return {**params, "method": found["method"]}

    def lists(self, *, since: int = 0) -> list[Message]:
        """All reported lists of this tab."""
        reported = [m for m in self.wire.seen[since:] if m.get("method") in LISTS]
        return [m for m in reported if m["params"]["tabId"] == self.tab]

    def params(self, name: str, frame: int = 0, args: Message | None = None, **more: Any) -> Message:
        """The parameters of a call."""
        return {"tabId": self.tab, "frameId": frame, "toolName": name, "args": args or {}, **more}

    async def call(self, name: str, frame: int = 0, **args: Any) -> Message:
        """Call a tool; returns {success, payload}."""
        answer: Message = await self.wire.ask("browser/executeTool", **self.params(name, frame, args))
        return answer

    async def text(self, name: str, frame: int = 0, **args: Any) -> str:
        """Call a tool that must succeed; returns its text."""
        answer = await self.call(name, frame, **args)
        assert answer["success"], answer
        return str(answer["payload"]["content"][0]["text"])

    async def start(self, name: str) -> tuple[int, asyncio.Future[Message]]:
        """Start a call; returns its id and the future of its reply."""
        return await self.wire.start("browser/executeTool", **self.params(name))

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.wire.cdp(
            self.tab, "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        await self.run(f"(async () => {{ while (!({condition})) await new Promise(next => setTimeout(next, 10)); }})()")
