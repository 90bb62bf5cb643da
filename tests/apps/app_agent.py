"""An agent that works over /mcp as a client does: it knows only what the tools answer.

Every answer is kept, so that a failed test shows what the agent saw.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.harness.agent import Agent
from tests.harness.waiting import eventually

_SHOWN = 1500
_REF = re.compile(r"\[ref=([a-z0-9]+)")


class AppAgent:
    """One session. `do` calls a tool that must succeed and returns its structured content."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._seen: list[str] = []

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the whole result."""
        reply = await self._agent.call(name, arguments)
        result: dict[str, Any] = reply.get("result") or {"isError": True, "content": [{"text": str(reply["error"])}]}
        texts = "\n".join(str(part.get("text", part.get("type"))) for part in result["content"])
        self._seen.append(f"{name} {arguments}\n{texts[:_SHOWN]}")
        return result

    async def do(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        result = await self.call(name, **arguments)
        if result.get("isError"):
            pytest.fail("\n\n".join(self._seen[-6:]))
        facts: dict[str, Any] = result["structuredContent"]
        return facts

    async def act(self, *actions: dict[str, Any]) -> dict[str, Any]:
        return await self.do("browser_act", actions=list(actions))

    async def click(self, **target: Any) -> dict[str, Any]:
        return await self.do("browser_click_element", **target)

    async def wait(self, **condition: Any) -> dict[str, Any]:
        return await self.do("browser_wait_for", **condition)

    async def find(self, **wanted: Any) -> list[dict[str, Any]]:
        """What browser_find lists, best first."""
        found: list[dict[str, Any]] = (await self.do("browser_find", **wanted))["elements"]
        return found

    async def find_one(self, **wanted: Any) -> dict[str, Any]:
        """The one visible element that matches."""
        found = [each for each in await self.find(**wanted) if each["visible"]]
        if len(found) != 1:
            pytest.fail(f"{len(found)} elements match {wanted}\n\n" + "\n\n".join(self._seen[-4:]))
        return found[0]

    async def snapshot(self, **options: Any) -> str:
        text: str = (await self.do("browser_snapshot", **options))["snapshot"]
        return text

    async def lines(self, part: str, **options: Any) -> list[str]:
        """The lines of a snapshot that contain a text."""
        return [line.strip() for line in (await self.snapshot(**options)).split("\n") if part in line]

    async def ref(self, part: str, **options: Any) -> str:
        """The ref on the first line of a snapshot that contains a text."""
        found = [match[1] for line in await self.lines(part, **options) if (match := _REF.search(line))]
        if not found:
            pytest.fail(f"no ref beside {part!r}\n\n" + "\n\n".join(self._seen[-3:]))
        return found[0]

    async def downloaded(self, name: str) -> str:
        """The path of a file that the page has begun to download, once it is complete."""

        async def complete() -> str | None:
            listed = (await self.do("browser_list_downloads", query=name))["downloads"]
            return next((each["path"] for each in listed if each["state"] == "complete"), None)

        return await eventually(complete)
