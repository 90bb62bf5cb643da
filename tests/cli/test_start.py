"""`tabhub start` with the real hub: in the background, in the foreground, twice, and by five bridges at once."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from tabhub.cli.hub.client import alive
from tabhub.store import extension_key
from tabhub.store.home import Home
from tests.cli.conftest import Run
from tests.harness.hub import AGENT, agent_token
from tests.harness.waiting import until


@pytest.fixture
def fresh(env: dict[str, str], tmp_path: Path, tabhub: Run) -> Iterator[Path]:
    """A home that has not been used yet; a hub left running in it is stopped."""
    folder = tmp_path / "fresh"
    env["TABHUB_HOME"] = str(folder)
    yield folder
    if (folder / "hub.json").exists():
        tabhub("stop", "--force")


@pytest.mark.req("F20")
def test_background_returns_when_the_hub_answers_and_a_second_start_fails(fresh: Path, tabhub: Run) -> None:
    done = tabhub("start", "--background", "--no-launch", "--port", "0", MAKELEVEL="1")
    assert done.returncode == 0, done.stderr
    assert "In this checkout, `tabhub` is " in done.stdout  # as `make run` starts it
    record = json.loads((fresh / "hub.json").read_text())
    assert f"is running on http://127.0.0.1:{record['port']}" in done.stdout
    assert f"choose {fresh}/extension" in done.stdout
    assert "tabhub setup claude-code" in done.stdout
    assert tabhub("status").returncode == 0
    for words in (["start"], ["start", "--background"], ["start", "--background", "--port", "0"]):
        second = tabhub(*words)
        assert second.returncode == 1
        assert f"A hub is already running on http://127.0.0.1:{record['port']} (pid {record['pid']}," in second.stderr
        assert "tabhub stop" in second.stderr
    assert tabhub("stop").returncode == 0
    assert tabhub("status").returncode == 2


@pytest.mark.req("F20")
def test_port_in_use_names_the_process(fresh: Path, tabhub: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for words in (["start", "--port", str(port)], ["start", "--background", "--port", str(port)]):
            done = tabhub(*words)
            assert done.returncode == 1
            assert f"Port {port} is in use by " in done.stderr
            assert "(pid " in done.stderr
        by_env = tabhub("start", PORT=str(port))
        assert f"Port {port} is in use by " in by_env.stderr


@pytest.mark.req("S002-endpoints-01")
def test_the_port_comes_from_the_option_or_the_environment(fresh: Path, tabhub: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    for words, env in (
        (["--port", str(port)], {}),
        ([], {"PORT": str(port)}),
        ([], {"TABHUB_PORT": str(port), "PORT": "1"}),
    ):
        done = tabhub("start", "--background", "--no-launch", *words, **env)
        assert f"is running on http://127.0.0.1:{port}\n" in done.stdout, done.stderr
        assert tabhub("stop").returncode == 0


def test_failed_start_shows_the_hubs_log(fresh: Path, tabhub: Run) -> None:
    fresh.mkdir(mode=0o700)
    (fresh / "hub.lock").mkdir()
    done = tabhub("start", "--background", "--port", "0")
    assert done.returncode == 1
    assert "The hub did not start (exit code 1)." in done.stderr
    assert "Its log:\n  error: " in done.stderr
    assert f"{fresh}/logs/hub.log" in done.stderr


async def test_ctrl_c_while_a_hub_starts_in_the_background_ends_it(
    fresh: Path, env: dict[str, str], tabhub: Run
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tabhub", "start", "--background", "--no-launch", "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=env,
    )
    await until(lambda: children(process.pid) != [], seconds=20.0)
    (child,) = children(process.pid)
    process.send_signal(signal.SIGINT)
    assert await process.communicate() == (b"", b"")
    assert process.returncode == 130
    assert not alive(child)
    assert tabhub("status").returncode == 2


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.req("S002-full-02")
def test_foreground_greets_and_ends_with_ctrl_c(fresh: Path, env: dict[str, str]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tabhub", "start", "--no-launch", "--port", "0", "--show-config"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )
    assert process.stdout is not None
    shown = ""
    while "Stop: Ctrl+C" not in shown:
        row = process.stdout.readline()
        assert row, process.communicate()[1]
        shown += row
    assert extension_key.read(Home(fresh)) not in shown
    assert "Bearer <the client's token>" in shown
    assert not (fresh / "tokens.json").exists()
    assert '"mcpServers"' in shown
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=20)
    assert process.returncode in (0, 130)
    assert "Traceback" not in output


@pytest.mark.req("S002-stdio-04")
def test_five_bridges_at_once_start_one_hub(fresh: Path, env: dict[str, str]) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    words = [sys.executable, "-m", "tabhub", "start", "--stdio", "--as", AGENT, "--no-launch", "--port", "0"]
    agent_token(Home(fresh))
    bridges = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        for _ in range(5)
    ]
    for bridge in bridges:
        answer, output = bridge.communicate(json.dumps(hello).encode() + b"\n", timeout=60)
        assert bridge.returncode == 0, output
        assert json.loads(answer)["result"]["protocolVersion"] == "2025-11-25"
    starts = (fresh / "logs" / "hub.log").read_text()
    assert "Traceback" not in starts
    assert "already" not in starts


@pytest.mark.req("S002-stdio-01")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_works_through_the_bridge_in_both_eras(
    fresh: Path, env: dict[str, str], mode: Literal["auto", "legacy"]
) -> None:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    words = ["-m", "tabhub", "start", "--stdio", "--as", AGENT, "--no-launch", "--port", "0"]
    agent_token(Home(fresh))
    server = StdioServerParameters(command=sys.executable, args=words, env=env)
    async with Client(stdio_client(server), mode=mode) as client:
        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        tools = await client.list_tools()
        assert "browser_get_connection_status" in [tool.name for tool in tools.tools]
        result = await client.call_tool("browser_get_connection_status", {})
        assert not result.is_error
