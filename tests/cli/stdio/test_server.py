"""`tabhub start --stdio`: each client's own MCP server, over the bridge socket of a real hub, in both eras."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp.client import Client, ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import ElicitRequestParams, ElicitResult

from tabhub.store import extension_key
from tabhub.store.home import Home
from tabhub.store.tokens import revoke
from tests.cli.stdio.stdio_agent import ENVELOPE, WORDS, Agent, stdio_agent, stopped
from tests.harness.agent import client as http_client
from tests.harness.fake_extension import FakeExtension, Silent, tab
from tests.harness.hub import AGENT, Address, RunningHub, agent_token, running_hub
from tests.harness.ports import free_port
from tests.harness.probe import Probe
from tests.harness.process import HubProcess, ask_nobody, environment, hub_process
from tests.harness.waiting import until
from tests.upstream.servers import python

Mode = Literal["legacy", "auto"]
MODES: list[Mode] = ["legacy", "auto"]
PROGRAM = ("--tools", "all,structured")
"""The options of programs: all tools in full, and answers as data."""
SPOKEN = {"legacy": "2025-11-25", "auto": "2026-07-28"}


def official(home: Path, mode: Mode, *words: str, **more: Any) -> Client:
    """The official SDK's client, which starts the stdio server itself."""
    server = StdioServerParameters(command=WORDS[0], args=[*WORDS[1:], *words], env=environment(home))
    return Client(stdio_client(server), mode=mode, **more)


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[RunningHub]:
    """A real hub in this process."""
    async with running_hub(tmp_path) as running:
        yield running


@pytest.fixture
async def agent(hub: RunningHub) -> AsyncIterator[Agent]:
    async with stdio_agent(hub.home.root) as made:
        yield made


# with the official client


@pytest.mark.req("S004-architecture-01", "S004-flow-03", "S002-modes-04")
@pytest.mark.parametrize("mode", MODES)
async def test_clients_share_one_hub_through_separate_servers(hub: RunningHub, mode: Mode) -> None:
    Probe(hub)
    async with (
        FakeExtension(hub, tabs=[tab(7), tab(8)]),
        official(hub.home.root, mode, *PROGRAM) as one,
        official(hub.home.root, mode, *PROGRAM) as two,
    ):
        for client, own in ((one, 7), (two, 8)):
            assert client.protocol_version == SPOKEN[mode]
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == [tool.name for tool in hub.hub.registry.tools()]
            result = await client.call_tool("browser_execute_script", {"tabId": own, "code": "return 1"})
            assert result.structured_content == {"value": "fake"}
        assert [session.kind for session in hub.hub.sessions.all()] == ["bridge", "bridge"]
        assert (await one.call_tool("probe_echo", {"value": 7})).is_error
    await until(lambda: len(hub.hub.sessions) == 0)


@pytest.mark.req("S004-status-03", "S004-status-04")
@pytest.mark.parametrize("mode", MODES)
async def test_connection_status_is_the_extensions(hub: RunningHub, mode: Mode) -> None:
    async with official(hub.home.root, mode) as client:

        async def is_connected() -> Any:
            result = await client.call_tool("browser_get_connection_status", {})
            return json.loads(result.content[0].text)["connected"]  # type: ignore[union-attr]

        assert await is_connected() is False
        async with FakeExtension(hub):
            assert await is_connected() is True
        await until(lambda: not hub.hub.browsers.links())
        assert await is_connected() is False


@pytest.mark.parametrize("mode", MODES)
async def test_progress_cancellation_and_elicitation_pass_through(hub: RunningHub, mode: Mode) -> None:
    probe = Probe(hub)
    received: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        received.append((progress, total, message))

    async def answer(_: ClientRequestContext, request: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"colour": "green"})

    async with official(hub.home.root, mode, elicitation_callback=answer) as client:
        await client.call_tool("probe_report", {}, progress_callback=report)
        assert received == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]
        request = await client.call_tool("probe_ask", {})
        assert request.structured_content is not None
        assert request.structured_content["answer"]["content"] == {"colour": "green"}
        waiting = asyncio.ensure_future(client.call_tool("probe_wait", {"who": "me"}))
        await probe.begun()
        waiting.cancel()
        assert await probe.cancelled() == {"who": "me"}
        echoed = await client.call_tool("probe_echo", {"value": "still here"})
        assert echoed.structured_content == {"value": "still here"}


async def test_gateway_option_lists_the_gateway_tools(hub: RunningHub) -> None:
    async with official(hub.home.root, "auto", "--gateway") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["tabhub_list_tools", "tabhub_call"]


@pytest.mark.parametrize("mode", MODES)
async def test_resources_and_prompts_of_external_servers_are_readable(hub: RunningHub, mode: Mode) -> None:
    await hub.hub.upstream.add({"lib": python("library")})
    life = hub.hub.upstream.pool.get("lib")
    await until(lambda: life is not None and bool(life.resources.current.prompts))
    async with official(hub.home.root, mode) as client:
        assert "tabhub+mcp://lib/notes://today" in [each.uri for each in (await client.list_resources()).resources]
        read = await client.read_resource("tabhub+mcp://lib/notes://today")
        assert read.contents[0].text == "buy bread"  # type: ignore[union-attr]
        got = await client.get_prompt("mcp__lib__review", {"code": "x"})
        assert got.messages[0].role == "user"


# the pipe itself


async def test_tool_changes_are_notified(hub: RunningHub, agent: Agent) -> None:
    probe = Probe(hub)
    await agent.greet()
    await agent.request("ping", 1)
    probe.change()
    assert (await agent.read())["method"] == "notifications/tools/list_changed"


async def test_large_result_arrives_complete_on_one_line(hub: RunningHub, agent: Agent) -> None:
    Probe(hub)
    value = 'ä\n"\\' + "plain words " * 3000
    agent.modern("tools/call", 1, name="probe_echo", arguments={"value": value})
    assert (await agent.read())["result"]["structuredContent"] == {"value": value}


@pytest.mark.req("B5", "B6")
@pytest.mark.parametrize(
    "params",
    [b'{"a":1,"a":2}', b'{"a":"\\ud800"}', b'{"a":' + b"[" * 80 + b"]" * 80 + b"}", b'{"a":' + b"9" * 500 + b"}"],
)
async def test_request_rejected_by_the_hub_fails_with_its_id(agent: Agent, params: bytes) -> None:
    agent.raw(b'{"jsonrpc":"2.0","id":"mine","method":"tools/list","params":%b}\n' % params)
    answer = await agent.read()
    assert (answer["id"], answer["error"]["code"]) == ("mine", -32700)
    agent.modern("tools/list", 2)
    assert (await agent.read())["id"] == 2


async def test_overlong_lines_are_dropped_with_an_error(agent: Agent) -> None:
    agent.raw(b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"x" * 5_000_000 + b'"}}\n')
    answer = await agent.read()
    assert (answer["id"], answer["error"]["code"]) == (1, -32600)
    for _ in range(20):
        agent.raw(b"x" * 1024 * 1024)
        await agent.stdin.drain()
    agent.raw(b"\n")
    answer = await agent.read()
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    agent.modern("tools/list", 2)
    assert (await agent.read())["id"] == 2


async def test_requests_before_stdin_closes_are_answered(agent: Agent) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
    async with asyncio.timeout(30):  # not even a line break at the end
        reply, _ = await agent.process.communicate(json.dumps(message).encode())
    assert json.loads(reply)["id"] == 1
    assert agent.process.returncode == 0


async def test_disconnected_client_ends_its_session_without_waiting(hub: RunningHub, agent: Agent) -> None:
    agent.modern("subscriptions/listen", 1, notifications={"toolsListChanged": True})
    assert "acknowledged" in (await agent.read())["method"]
    assert len(hub.hub.sessions) == 1
    assert await agent.leave() == 0
    await until(lambda: len(hub.hub.sessions) == 0)


async def test_sigterm_ends_the_session_and_the_server(hub: RunningHub, agent: Agent) -> None:
    probe = Probe(hub)
    await agent.greet()
    agent.send("tools/call", 1, name="probe_wait", arguments={})
    await probe.begun()
    agent.process.send_signal(signal.SIGTERM)
    assert await agent.process.wait() == 0
    await probe.cancelled()
    await until(lambda: len(hub.hub.sessions) == 0)


async def test_killed_server_leaves_no_running_call(hub: RunningHub, agent: Agent) -> None:
    probe = Probe(hub)
    agent.modern("tools/call", 1, name="probe_wait", arguments={})
    await probe.begun()
    agent.process.kill()
    await probe.cancelled()
    await until(lambda: len(hub.hub.engine.calls) == 0)


async def test_stdin_may_be_a_file(hub: RunningHub, tmp_path: Path) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": ENVELOPE}}
    (tmp_path / "in").write_text(json.dumps(message) + "\n")
    with (tmp_path / "in").open() as file:
        process = await asyncio.create_subprocess_exec(
            *WORDS, stdin=file, stdout=asyncio.subprocess.PIPE, env=environment(hub.home.root)
        )
    reply, _ = await process.communicate()
    assert json.loads(reply)["id"] == 1


async def test_server_exits_when_the_client_closes_stdout(hub: RunningHub) -> None:
    ours, theirs = os.pipe()
    process = await asyncio.create_subprocess_exec(
        *WORDS, stdin=asyncio.subprocess.PIPE, stdout=theirs, env=environment(hub.home.root)
    )
    os.close(theirs)
    os.close(ours)
    assert process.stdin is not None
    process.stdin.write(b"broken\n")
    async with asyncio.timeout(30):
        assert await process.wait() == 0


async def test_cancellation_reaches_the_hub_while_stdout_is_blocked(hub: RunningHub, agent: Agent) -> None:
    probe = Probe(hub)
    await agent.greet()
    params = {"name": "probe_flood", "arguments": {"times": 200}, "_meta": {"progressToken": 1}}
    for ident in range(1, 6):
        agent.send("tools/call", ident, **params)
    agent.send("tools/call", 9, name="probe_wait", arguments={"who": "me"})
    while (await probe.begun()).get("who") != "me":
        continue
    agent.send("notifications/cancelled", requestId=9)
    assert await probe.cancelled() == {"who": "me"}


async def test_loopback_port_works_without_unix_sockets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABHUB_SOCKET", "tcp")
    async with running_hub(tmp_path) as hub, stdio_agent(hub.home.root, TABHUB_SOCKET="tcp") as agent:
        assert (await agent.greet())["serverInfo"]["name"] == "tabhub"
        assert await agent.leave() == 0


# starting a hub


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "fresh"
    yield home
    stopped(home)


@pytest.mark.req("S002-stdio-04")
async def test_five_concurrent_servers_start_one_hub(fresh: Path) -> None:
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(stdio_agent(fresh, "--no-launch", "--port", "0")) for _ in range(5)]

        async def served(agent: Agent) -> int:
            assert (await agent.greet())["protocolVersion"] == "2025-11-25"
            assert "result" in await agent.request("ping", 1)
            return await agent.leave()

        assert await asyncio.gather(*map(served, agents)) == [0] * 5
    log = (fresh / "logs" / "hub.log").read_text()
    assert "Traceback" not in log
    assert "already" not in log


@pytest.mark.req("S002-stdio-02")
async def test_started_hub_uses_the_configured_port(fresh: Path) -> None:
    port = free_port()
    async with stdio_agent(fresh, "--no-launch", "--port", str(port)) as agent:
        await agent.greet()
        async with http_client(Address(port=port, token=Home(fresh).person_key.read_text())) as http:
            health = (await http.get("/health")).json()
        assert health["mcpClients"] == 1
        assert await agent.leave() == 0


async def test_impossible_socket_path_is_reported_at_once(tmp_path: Path) -> None:
    agent_token(Home(tmp_path / "home"))
    process = await asyncio.create_subprocess_exec(
        *WORDS,
        "--no-launch",
        "--port",
        "0",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**environment(tmp_path / "home"), "TABHUB_SOCKET": f"/{'x' * 200}"},
    )
    reply, problems = await process.communicate()
    assert (process.returncode, reply) == (1, b"")
    assert b"201 bytes" in problems
    assert b"TABHUB_SOCKET" in problems


# a hub that stops and restarts


async def kill(hub: HubProcess) -> None:
    hub.process.send_signal(signal.SIGKILL)
    await hub.process.wait()


@pytest.mark.parametrize("modern", [False, True])
async def test_killed_hub_fails_the_call_and_the_next_hub_continues(tmp_path: Path, modern: bool) -> None:
    home = tmp_path / "home"
    async with hub_process(home) as first, stdio_agent(home) as agent:
        if not modern:
            await agent.greet()
        async with FakeExtension(first) as browser:
            browser.handlers["forwardCDPCommand"] = lambda _params: Silent
            params: dict[str, Any] = {"name": "browser_execute_script", "arguments": {"tabId": 7, "code": "1"}}
            if modern:
                params["_meta"] = ENVELOPE
            agent.send("tools/call", 1, **params)
            await browser.next_request("forwardCDPCommand")
            await kill(first)
            reply = await agent.read(2.0)
            assert (reply["id"], reply["error"]["data"]) == (1, {"outcome": "unknown"})
        agent.send("tools/call", 2, **{**params, "name": "browser_get_connection_status", "arguments": {}})
        async with hub_process(home):
            received = [await agent.read() for _ in range(1 if modern else 2)]
            (answer,) = [message for message in received if "id" in message]
            status = json.loads(answer["result"]["content"][0]["text"])
            assert (answer["id"], status["connected"]) == (2, False)
            changed = [message["method"] for message in received if "method" in message]
            assert changed == ([] if modern else ["notifications/tools/list_changed"])
            assert await agent.leave() == 0


async def test_session_and_tab_survive_a_hub_restart(fresh: Path) -> None:
    home = fresh
    ask_nobody(home)
    async with stdio_agent(home, "--no-launch", "--port", "0") as agent:
        await agent.greet()
        key = extension_key.read(Home(home))

        async def bound(ident: int) -> Any:
            port = json.loads((home / "hub.json").read_text())["port"]
            async with FakeExtension(Address(port=port, token="", extension_key=key), tabs=[tab(7), tab(8)]) as browser:
                arguments = {"code": "1"} if ident > 1 else {"code": "1", "tabId": 8}
                agent.send("tools/call", ident, name="browser_execute_script", arguments=arguments)
                sent = await browser.next_request("forwardCDPCommand")
                while (answer := await agent.read()).get("id") != ident:
                    continue
                assert "error" not in answer
                return sent["params"]["tabId"]

        first = await bound(1)
        stop = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tabhub", "stop", env=environment(home), stdout=asyncio.subprocess.DEVNULL
        )
        assert await stop.wait() == 0
        async with hub_process(home):
            while (await agent.read()).get("method") != "notifications/tools/list_changed":
                continue
            assert await bound(2) == first
        assert await agent.leave() == 0


async def test_call_without_a_hub_fails_as_not_sent(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with hub_process(home) as hub, stdio_agent(home) as agent:
        await agent.greet()
        await kill(hub)
        agent.send("tools/call", 1, name="x", arguments={})
        reply = await agent.read()
        assert (reply["id"], reply["error"]["data"]) == (1, {"outcome": "not_sent"})
        assert "tabhub start" in reply["error"]["message"]


async def test_a_client_without_a_token_learns_how_to_get_one(hub: RunningHub) -> None:
    words = [word for word in WORDS if word not in ("--as", AGENT)]
    for argv, message in (
        (words, b"Agents need their own token here"),
        ([*words, "--as", "nobody"], b"no token for 'nobody'"),
    ):
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment(hub.home.root),
        )
        out, errors = await process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert message in errors
        assert b"result" not in out
    assert len(hub.hub.sessions) == 0


async def test_a_revoked_token_ends_the_session_of_its_client(hub: RunningHub, agent: Agent) -> None:
    await agent.greet()
    revoke(hub.home, AGENT)
    await until(lambda: len(hub.hub.sessions) == 0)
    agent.send("tools/list", 1)
    answer = await agent.read()
    while answer.get("id") != 1:
        answer = await agent.read()
    assert "token" in answer["error"]["message"]
