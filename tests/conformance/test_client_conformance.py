"""The official MCP conformance suite's client scenarios, with the hub as the client, for both eras."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conformance.client_scenarios import play
from tests.conformance.fixture_hub import NODE, ROOT
from tests.conformance.test_conformance import SUITE
from tests.harness.hub import RunningHub, running_hub

COMMAND = ROOT / "tests/conformance/client.py"
EXCEPTIONS = {
    "auth/basic-cimd": "the hub has no public address to publish its metadata at; it registers itself",
}
_LINE = re.compile(r"^([✓✗]) ([a-z0-9/_-]+): (\d+) passed, (\d+) failed", re.MULTILINE)


@asynccontextmanager
async def listening(hub: RunningHub) -> AsyncIterator[int]:
    """Accept scenarios from the suite's client command; returns the port."""

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        given = json.loads(await reader.readline())
        try:
            await play(hub, given)
            answer = {"done": given["scenario"]}
        except Exception as error:
            answer = {"problem": f"{type(error).__name__}: {error}"}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def run(port: int, revision: str, folder: Path) -> str:
    command = f"{sys.executable} -I -S {COMMAND} {port}"
    suite = await asyncio.create_subprocess_exec(
        str(NODE), str(SUITE), "client", "--command", command, "--requirements", revision, "--timeout", "120000",
        cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    async with asyncio.timeout(270):
        output, _ = await suite.communicate()
    return output.decode()


@pytest.mark.parametrize(("revision", "scored"), [("2025-11-25", 18), ("2026-07-28", 32)])
async def test_every_scored_client_scenario_passes(revision: str, scored: int, tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits={"upstream_backoff": 30, "session_rate": 0}) as hub, listening(hub) as port:
        output = await run(port, revision, tmp_path)
    not_scored = set(re.findall(r"^  [✓✗] ([a-z0-9/_-]+) \(", output, re.MULTILINE))
    judged = {name: mark == "✓" for mark, name, _, _ in _LINE.findall(output) if name not in not_scored}
    assert len(judged) == scored, output[-4000:]
    failed = {name for name, passed in judged.items() if not passed}
    assert failed <= EXCEPTIONS.keys(), f"failed: {sorted(failed - EXCEPTIONS.keys())}\n{output[-6000:]}"
    fixed = {name for name, passed in judged.items() if passed} & EXCEPTIONS.keys()
    assert not fixed, f"these pass now, remove them from the list: {sorted(fixed)}"
