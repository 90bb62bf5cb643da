"""`tabhub start --stdio`: an MCP client's messages to the hub and back, in both eras, through every kind of trouble."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import announce
from tests.cli.fakehub import SECRET, Asked, FakeHub, Reply, running

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
HEALTH = {"status": "ok", "version": "0.1.0"}


class Agent:
    """An MCP client at the other end of the pipes."""

    def __init__(self, env: dict[str, str], *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tabhub", "start", "--stdio", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )

    def raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, method: str, ident: Any = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.raw(json.dumps(message if ident is None else {**message, "id": ident}).encode() + b"\n")

    def modern(self, method: str, ident: Any, **params: Any) -> None:
        self.send(method, ident, _meta={VERSION_KEY: "2026-07-28"}, **params)

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the bridge has ended"
        return json.loads(line)

    def leave(self) -> int:
        """Close stdin, as a client does, and see that nothing more was said."""
        rest, _ = self.process.communicate(timeout=20)
        assert rest == b""
        return self.process.returncode


@pytest.fixture
def agent(hub: FakeHub, env: dict[str, str]) -> Iterator[Agent]:
    made = Agent(env)
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.process.communicate()


def result(asked: Asked, **value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": asked.json["id"], "result": value}


def sessions(hub: FakeHub, session: str = "s1", notices: list[dict[str, Any]] | None = None) -> None:
    """Make the fake hub one of the 2025 eras: it knows one session and answers every request with its params."""

    def post(asked: Asked, reply: Reply) -> None:
        message = asked.json
        if message["method"] == "initialize":
            reply.json(result(asked, protocolVersion="2025-11-25"), Mcp_Session_Id=session)
        elif asked.headers.get("mcp-session-id") != session:
            reply.json({"jsonrpc": "2.0", "id": None, "error": {"code": -32012, "message": "no session"}}, 404)
        elif "id" in message and "method" in message:
            reply.json(result(asked, echo=message.get("params")))
        else:
            reply.send(202, b"")

    def get(asked: Asked, reply: Reply) -> None:
        if asked.headers.get("mcp-session-id") != session:
            reply.json({"error": {"message": "no session"}}, 404)
            return
        reply.events()
        for number, notice in enumerate(notices or [], 1):
            reply.event(notice, str(number))
        reply.wait_closed()

    hub.answer("GET /health", HEALTH)
    hub.on("POST /mcp", post)
    hub.on("GET /mcp", get)
    hub.on("DELETE /mcp", lambda _asked, reply: reply.send(204, b""))


def greet(agent: Agent) -> None:
    agent.send("initialize", 0, protocolVersion="2025-11-25")
    assert agent.read()["result"]["protocolVersion"] == "2025-11-25"
    agent.send("notifications/initialized")


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


@pytest.mark.req("B1")
def test_broken_json_is_answered_and_the_pipe_stays_usable(hub: FakeHub, agent: Agent) -> None:
    hub.on("POST /mcp", lambda asked, reply: reply.json(result(asked)))
    agent.raw(b"{broken\n\n\xff\xfe\n" + b"[" * 100_000 + b"\n")
    for _ in range(3):
        assert agent.read() == {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Not valid JSON."}}
    agent.modern("tools/list", 1)
    assert agent.read()["id"] == 1


def test_a_line_without_end_is_dropped_in_bounded_memory(hub: FakeHub, agent: Agent) -> None:
    hub.on("POST /mcp", lambda asked, reply: reply.json(result(asked)))
    for _ in range(20):
        agent.raw(b"x" * 1024 * 1024)
    agent.raw(b"\n")
    assert agent.read()["error"]["code"] == -32600
    agent.modern("tools/list", 1)
    assert agent.read()["id"] == 1


def test_a_refusal_of_the_hub_answers_the_request_that_was_refused(hub: FakeHub, agent: Agent) -> None:
    error = {"code": -32602, "message": "no such tool"}
    hub.answer("POST /mcp", {"jsonrpc": "2.0", "id": None, "error": error}, 400)
    agent.modern("tools/call", 7, name="x")
    assert agent.read() == {"jsonrpc": "2.0", "id": 7, "error": error}
    hub.answer("POST /mcp", {"error": {"message": "too many", "code": -32004, "retryAfter": 9}}, 429)
    agent.modern("tools/call", 8, name="x")
    assert agent.read()["error"] == {"code": -32004, "message": "too many", "data": {"retryAfter": 9}}
    hub.on("POST /mcp", lambda _asked, reply: reply.send(500, b"oops", "text/plain"))
    agent.modern("tools/call", 9, name="x")
    assert "500" in agent.read()["error"]["message"]


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n",
        b"",
    ],
)
def test_a_broken_answer_is_an_error_with_unknown_outcome(hub: FakeHub, agent: Agent, answer: bytes) -> None:
    hub.on("POST /mcp", lambda _asked, reply: reply.raw(answer))
    agent.modern("tools/call", 1, name="x")
    said = agent.read()
    assert (said["id"], said["error"]["data"]) == (1, {"outcome": "unknown"})


def test_a_batch_is_answered_or_each_of_it_refused(hub: FakeHub, agent: Agent) -> None:
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]\n'
    hub.answer("POST /mcp", [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 2, "result": {}}])
    agent.raw(batch)
    assert [answer["id"] for answer in agent.read()] == [1, 2]
    hub.answer("POST /mcp", {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batches"}}, 400)
    agent.raw(batch)
    assert [agent.read()["id"], agent.read()["id"]] == [1, 2]


def test_a_hub_that_dies_fails_what_runs_and_a_hub_that_is_back_is_greeted_again(
    home: Path, hub: FakeHub, agent: Agent
) -> None:
    sessions(hub)
    greet(agent)
    hub.wait_asked("GET", "/mcp")
    hub.on("POST /mcp", lambda _asked, reply: reply.wait_closed())
    agent.send("tools/call", 1, name="x")
    hub.wait_for(lambda: hub.asked[-1].method == "POST")
    hub.close()
    said = agent.read()
    assert (said["id"], said["error"]["data"]["outcome"]) == (1, "unknown")
    agent.send("tools/call", 2, name="x")
    said = agent.read()
    assert (said["id"], said["error"]["data"]["outcome"]) == (2, "not_sent")
    assert "tabhub start" in said["error"]["message"]
    with running() as back:
        sessions(back, "s2")
        announce(home, back.port)
        assert agent.read() == {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        agent.send("tools/call", 3, name="x")
        assert agent.read()["result"] == {"echo": {"name": "x"}}
        methods = [asked.json["method"] for asked in back.asked if asked.method == "POST"]
        assert methods == ["initialize", "notifications/initialized", "tools/call"]
        assert agent.leave() == 0


def test_an_expired_session_is_renewed_once_for_all_that_notice(hub: FakeHub, agent: Agent) -> None:
    sessions(hub)
    hub.on("GET /mcp", lambda _asked, reply: reply.send(405, b""))
    greet(agent)
    agent.send("ping", 1)
    agent.read()
    sessions(hub, "s2")
    for ident in (2, 3, 4):
        agent.send("ping", ident)
    heard = [agent.read() for _ in range(4)]
    assert sorted(m["id"] for m in heard if "id" in m) == [2, 3, 4]
    assert all("error" not in m for m in heard)
    starts = [asked for asked in hub.asked if asked.method == "POST" and asked.json["method"] == "initialize"]
    assert len(starts) == 2


def test_a_rotated_secret_is_read_anew(home: Path, hub: FakeHub, agent: Agent) -> None:
    new = "6" * 64

    def post(asked: Asked, reply: Reply) -> None:
        if asked.headers["authorization"] != f"Bearer {new}":
            reply.json({"error": {"message": "no"}}, 401)
        else:
            reply.json(result(asked))

    hub.on("POST /mcp", post)
    agent.modern("tools/list", 1)
    assert agent.read()["error"]["message"] == "no"
    (home / "extension" / "auth.json").write_text(json.dumps({"secret": new}))
    agent.modern("tools/list", 2)
    assert agent.read()["result"] == {}


def test_a_stream_that_breaks_is_taken_up_where_it_broke(hub: FakeHub, agent: Agent) -> None:
    sessions(hub)
    greet(agent)
    hub.wait_asked("GET", "/mcp")

    def get(asked: Asked, reply: Reply) -> None:
        reply.events()
        if asked.headers.get("last-event-id") == "7":
            reply.event({"jsonrpc": "2.0", "id": 1, "result": {"late": True}}, "8")
        else:
            reply.wait_closed()

    def post(_asked: Asked, reply: Reply) -> None:
        reply.events()
        reply.event({"jsonrpc": "2.0", "method": "notifications/progress"}, "7")

    hub.on("GET /mcp", get)
    hub.on("POST /mcp", post)
    agent.send("tools/call", 1, name="x")
    assert agent.read()["method"] == "notifications/progress"
    assert agent.read()["result"] == {"late": True}


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
