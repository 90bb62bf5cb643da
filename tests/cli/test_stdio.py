"""`tabhub start --stdio`: an MCP client's messages to the hub and back, in both eras."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.agent import VERSION_KEY, Agent, greet, result, sessions
from tests.cli.fakehub import SECRET, Asked, FakeHub, Reply


@pytest.mark.req("S002-modes-04", "S002-stdio-02")
def test_a_session_of_2025_carries_its_headers_and_ends_with_stdin(hub: FakeHub, agent: Agent) -> None:
    sessions(hub)
    greet(agent)
    agent.send("tools/list", "a", cursor="x")
    assert agent.read() == {"jsonrpc": "2.0", "id": "a", "result": {"echo": {"cursor": "x"}}}
    hub.wait_asked("GET", "/mcp")
    assert agent.leave() == 0
    first, *_, call = [asked for asked in hub.asked if asked.method == "POST"]
    assert "mcp-session-id" not in first.headers
    assert "mcp-protocol-version" not in first.headers
    assert call.headers["mcp-session-id"] == "s1"
    assert call.headers["mcp-protocol-version"] == "2025-11-25"
    assert call.headers["authorization"] == f"Bearer {SECRET}"
    assert hub.asked[-1].method == "DELETE"
    assert hub.asked[-1].headers["mcp-session-id"] == "s1"


def test_a_message_of_2026_stands_for_itself(hub: FakeHub, agent: Agent) -> None:
    hub.on("POST /mcp", lambda asked, reply: reply.json(result(asked, ok=True)))
    agent.modern("tools/call", 1, name="browser_open_tab", arguments={})
    assert agent.read()["result"] == {"ok": True}
    headers = hub.asked[-1].headers
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert headers["mcp-method"] == "tools/call"
    assert headers["mcp-name"] == "browser_open_tab"
    assert "mcp-session-id" not in headers
    agent.modern("resources/read", 2, uri="file:///ü\r\nEvil: 1")
    agent.read()
    assert hub.asked[-1].headers["mcp-name"].startswith("=?base64?")
    assert "evil" not in hub.asked[-1].headers
    agent.modern("tools/list", 3)
    agent.read()
    assert "mcp-name" not in hub.asked[-1].headers
    assert agent.leave() == 0
    assert hub.asked[-1].method == "POST"  # there is no session to end


def test_the_gateway_is_another_path(hub: FakeHub, env: dict[str, str]) -> None:
    hub.on("POST /mcp/gateway", lambda asked, reply: reply.json(result(asked)))
    agent = Agent(env, "--gateway")
    agent.modern("tools/list", 1)
    assert agent.read()["id"] == 1
    assert agent.leave() == 0


def test_requests_run_beside_each_other(hub: FakeHub, agent: Agent) -> None:
    go = threading.Event()

    def post(asked: Asked, reply: Reply) -> None:
        if asked.json["id"] == 1:
            go.wait(10)
        reply.json(result(asked))

    hub.on("POST /mcp", post)
    agent.modern("tools/call", 1, name="slow")
    agent.modern("tools/call", "1", name="fast")
    assert agent.read()["id"] == "1"
    go.set()
    assert agent.read()["id"] == 1


def test_a_stream_is_relayed_line_by_line(hub: FakeHub, agent: Agent) -> None:
    progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
    seen = threading.Event()

    def post(asked: Asked, reply: Reply) -> None:
        reply.events()
        reply.raw(b": keep-alive\n\nid: 1\ndata:\n\n")
        reply.event(progress)
        seen.wait(10)
        text = json.dumps(result(asked, text="line\nbreak"), indent=1)
        reply.raw("".join(f"data: {row}\r\n" for row in text.split("\n")).encode() + b"\r\n")

    hub.on("POST /mcp", post)
    agent.modern("tools/call", 1, name="x")
    assert agent.read() == progress
    seen.set()
    assert agent.read()["result"] == {"text": "line\nbreak"}


def test_a_pretty_answer_becomes_one_line(hub: FakeHub, agent: Agent) -> None:
    hub.on("POST /mcp", lambda asked, reply: reply.send(200, json.dumps(result(asked, a=[1]), indent=2).encode()))
    agent.modern("tools/list", 1)
    assert agent.read()["result"] == {"a": [1]}


def test_a_cancel_of_2026_closes_the_request(hub: FakeHub, agent: Agent) -> None:
    closed = threading.Event()

    def post(asked: Asked, reply: Reply) -> None:
        if asked.json["id"] == 2:
            reply.json(result(asked))
            return
        reply.events()
        reply.wait_closed()
        closed.set()

    hub.on("POST /mcp", post)
    agent.modern("tools/call", 1, name="x")
    hub.wait_asked("POST", "/mcp")
    agent.send("notifications/cancelled", requestId=1)
    assert closed.wait(10)
    agent.modern("tools/list", 2)
    assert agent.read()["id"] == 2  # and nothing for the first
    assert agent.leave() == 0


def test_a_cancel_of_2025_is_passed_on(hub: FakeHub, agent: Agent) -> None:
    sessions(hub)
    greet(agent)
    agent.send("notifications/cancelled", requestId=99)
    hub.wait_for(lambda: any(a.method == "POST" and a.json["method"] == "notifications/cancelled" for a in hub.asked))


def test_notifications_of_the_hub_reach_the_client(hub: FakeHub, agent: Agent) -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    sessions(hub, notices=[notice])
    greet(agent)
    assert agent.read() == notice


def test_an_answer_of_the_client_is_passed_on_without_one_back(hub: FakeHub, agent: Agent) -> None:
    sessions(hub)
    hub.on("POST /mcp", lambda _asked, reply: reply.send(202, b""))
    agent.raw(b'{"jsonrpc": "2.0", "id": 5, "result": {}}\n')
    hub.wait_asked("POST", "/mcp")
    assert agent.leave() == 0


def test_what_was_asked_before_stdin_closed_is_still_answered(hub: FakeHub, agent: Agent) -> None:
    hub.on("POST /mcp", lambda asked, reply: reply.json(result(asked)))
    data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {VERSION_KEY: "2026-07-28"}}})
    answer, _ = agent.process.communicate(data.encode(), timeout=20)  # not even a line break at the end
    assert json.loads(answer)["id"] == 1
    assert agent.process.returncode == 0


def test_a_listening_client_that_leaves_is_not_waited_for(hub: FakeHub, agent: Agent) -> None:
    def post(_asked: Asked, reply: Reply) -> None:
        reply.events()
        reply.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"})
        reply.wait_closed()

    hub.on("POST /mcp", post)
    agent.modern("subscriptions/listen", 1)
    assert "acknowledged" in agent.read()["method"]
    assert agent.leave() == 0


def test_sigterm_ends_the_session_and_the_bridge(hub: FakeHub, agent: Agent) -> None:
    sessions(hub)
    greet(agent)
    hub.wait_asked("GET", "/mcp")
    agent.process.send_signal(signal.SIGTERM)
    assert agent.process.wait(10) == 0
    assert hub.asked[-1].method == "DELETE"


def test_stdin_may_be_a_file(hub: FakeHub, env: dict[str, str], tmp_path: Path) -> None:
    hub.on("POST /mcp", lambda asked, reply: reply.json(result(asked)))
    message = {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"_meta": {VERSION_KEY: "2026-07-28"}}}
    (tmp_path / "in").write_text(json.dumps(message) + "\n")
    with (tmp_path / "in").open() as file:
        done = subprocess.run(
            [sys.executable, "-m", "tabhub", "start", "--stdio"], stdin=file, capture_output=True, env=env, check=True
        )
    assert json.loads(done.stdout)["id"] == 1


def test_a_client_that_stops_listening_ends_the_bridge(hub: FakeHub, env: dict[str, str]) -> None:
    hub.on("POST /mcp", lambda asked, reply: reply.json(result(asked)))
    ours, theirs = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", "tabhub", "start", "--stdio"], stdin=subprocess.PIPE, stdout=theirs, env=env
    )
    os.close(theirs)
    os.close(ours)
    assert process.stdin is not None
    process.stdin.write(b"broken\n")
    process.stdin.flush()
    assert process.wait(10) == 0
    process.stdin.close()
