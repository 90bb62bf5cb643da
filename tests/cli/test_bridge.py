"""The stdio bridge in trouble: bad input, bad answers, a hub that goes and comes back, secrets that change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.agent import Agent, greet, result, sessions
from tests.cli.conftest import announce
from tests.cli.fakehub import Asked, FakeHub, Reply, running


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
