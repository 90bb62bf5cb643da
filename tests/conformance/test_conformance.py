"""The official MCP conformance suite against a hub, for both eras, alone and with an external server attached.

All runs share two hubs and run concurrently; each test waits for its own.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp.client import Client
from mcp_types import ResourceLink

from tests.conformance.fixture_hub import EVERYTHING, NODE, ROOT
from tests.conformance.token_proxy import with_token

SUITE = ROOT / "node_modules/@modelcontextprotocol/conformance/dist/index.js"

ORIGIN = "the hub refuses every Origin but its extension's; the scenario is for servers without authentication"
EXCEPTIONS: dict[str, str] = {
    "dns-rebinding-protection": ORIGIN,
}
ATTACHED = "with the everything-server"
HUBS: dict[str, list[str]] = {"alone": [], ATTACHED: ["--everything"]}
PREFIX = "mcp__everything__"
SCORED = {"2025-11-25": 30, "2026-07-28": 37}
_LINE = re.compile(r"^([✓✗]) ([a-z0-9-]+): (\d+) passed, (\d+) failed", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Runs:
    """The hubs' URLs, and the suite's output by hub and revision."""

    urls: dict[str, str]
    suites: dict[tuple[str, str], subprocess.Popen[str]]

    def output(self, hub: str, revision: str) -> str:
        return self.suites[hub, revision].communicate(timeout=240)[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Start the hubs, and the suite against each of them."""
    with contextlib.ExitStack() as stack:
        hubs = {name: stack.enter_context(fixture_hub(words)) for name, words in HUBS.items()}
        urls = {name: address(process) for name, process in hubs.items()}
        folder = tmp_path_factory.mktemp("suite")
        suites = {(name, rev): stack.enter_context(suite(urls[name], rev, folder)) for name in HUBS for rev in SCORED}
        yield Runs(urls, suites)


@contextlib.contextmanager
def fixture_hub(words: list[str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.conformance.fixture_hub", *words]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        try:
            yield process
        finally:
            process.stdin.close()  # it then ends
            process.wait(timeout=30)


def address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    assert port.isdecimal(), "the fixture hub did not start"
    return f"http://127.0.0.1:{port}/mcp"


@contextlib.contextmanager
def suite(url: str, revision: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [str(NODE), str(SUITE), "server", "--url", url, "--requirements", revision]
    with subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.req("S000-overview-01")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("revision", SCORED)
@pytest.mark.parametrize("hub", HUBS)
def test_every_scored_server_scenario_passes(runs: Runs, hub: str, revision: str) -> None:
    output = runs.output(hub, revision)
    passed = {name: mark == "✓" for mark, name, _, _ in _LINE.findall(output)}
    not_scored = set(re.findall(r"^  [✓✗] ([a-z0-9-]+) \(", output, re.MULTILINE))
    judged = {name: ok for name, ok in passed.items() if name not in not_scored}
    assert len(judged) == SCORED[revision], output[-3000:]
    failed = {name for name, ok in judged.items() if not ok}
    assert failed <= EXCEPTIONS.keys(), f"failed: {sorted(failed - EXCEPTIONS.keys())}\n{output[-6000:]}"
    fixed = {name for name, ok in judged.items() if ok} & EXCEPTIONS.keys()
    assert not fixed, f"these pass now, take them off the list: {sorted(fixed)}"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_tools_resources_and_prompts_of_the_everything_server_work_through_the_hub(runs: Runs, mode: str) -> None:
    async with Client(runs.urls[ATTACHED], mode=mode) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert listed >= {f"{PREFIX}{name}" for name in ("echo", "get-structured-content", "trigger-sampling-request")}
        echoed = await client.call_tool(f"{PREFIX}echo", {"message": "hello"})
        assert [block.model_dump(include={"text"}) for block in echoed.content] == [{"text": "Echo: hello"}]
        weather = await client.call_tool(f"{PREFIX}get-structured-content", {"location": "New York"})
        assert json.loads(weather.content[0].text).keys() == {"temperature", "conditions", "humidity"}  # type: ignore[union-attr]
        assert weather.structured_content is None
        linked = await client.call_tool(f"{PREFIX}get-resource-links", {"count": 2})
        links = [block.uri for block in linked.content if isinstance(block, ResourceLink)]
        assert len(links) == 2
        for uri in (*links, "tabhub+mcp://everything/demo://resource/static/document/features.md"):
            assert (await client.read_resource(uri)).contents
        asked = await client.get_prompt(f"{PREFIX}args-prompt", {"city": "Rome"})
        assert "Rome" in asked.messages[0].model_dump_json()


def test_the_proxy_adds_the_token_and_keeps_a_foreign_host() -> None:
    head = b"POST /mcp HTTP/1.1\r\nhost: %b\r\ncontent-length: 2\r\n\r\n"
    added = b"POST /mcp HTTP/1.1\r\nAuthorization: Bearer s\r\nhost: %b\r\ncontent-length: 2\r\n\r\n"
    for given, passed_on in [(b"127.0.0.1:1", b"127.0.0.1:2"), (b"localhost:1", b"localhost:2"), *[(b"evil:1",) * 2]]:
        assert with_token(head % given, 1, 2, "s") == added % passed_on


def test_the_suite_is_installed() -> None:
    assert SUITE.exists(), "run `make setup`: the conformance suite is not installed"
    assert EVERYTHING.exists()
    assert NODE.exists()
