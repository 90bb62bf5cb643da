"""Servers that hang, crash, send invalid messages or answer late affect no other server (F14)."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tabhub.store.upstream_servers import Server
from tests.harness.agent import Agent
from tests.harness.hub import running_hub
from tests.harness.ports import free_port
from tests.harness.waiting import until
from tests.upstream.servers import FIXTURES, names, process, python, state, text

SHORT_BACKOFF = {"upstream_backoff": 0.05, "upstream_backoff_max": 0.2}


def broken(kind: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(FIXTURES / "broken.py"), kind]}


@pytest.mark.req("F14")
async def test_broken_servers_leave_a_good_one_alone(tmp_path: Path) -> None:
    kinds = ("crash", "hang", "flood", "junk", "late")
    async with running_hub(tmp_path, limits={**SHORT_BACKOFF, "call_timeout": 4}) as hub, Agent(hub) as agent:
        servers = {kind: broken(kind) for kind in kinds} | {"good": python("everything")}
        adding = asyncio.ensure_future(hub.hub.upstream.add(json.dumps(servers)))  # this also waits for those that hang
        for kind in ("good", "junk", "late"):
            await until(lambda kind=kind: state(hub, kind) == "ready")  # type: ignore[misc]
        adding.cancel()
        await until(lambda: "exit code 3" in str(hub.hub.upstream.describe(hub.hub.upstream.get("crash")).get("error")))
        facts = {each["name"]: each for each in hub.hub.upstream.all()}
        assert "no licence found" in facts["crash"]["error"]
        for kind in ("hang", "flood"):
            assert state(hub, kind) in ("waiting", "connecting")
        late = asyncio.ensure_future(agent.call("mcp__late__late", {"seconds": 5}))
        for _ in range(20):
            assert text((await agent.call("mcp__good__add", {"a": 1, "b": 1}))["result"]) == "2"
        assert text((await agent.call("mcp__junk__work"))["result"]) == "work done"
        answer = (await late)["result"]
        assert answer["isError"] is True
        assert "gave no answer within 4.0 s" in text(answer)
        # A late answer is dropped, and the server stays connected.
        await asyncio.sleep(0)
        await until(lambda: state(hub, "late") == "ready")


async def test_a_server_that_exits_during_a_call_fails_it_and_is_restarted(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits=SHORT_BACKOFF) as hub, Agent(hub) as agent:
        await hub.hub.upstream.add({"b": broken("plain")})
        answer = (await agent.call("mcp__b__die"))["result"]
        assert answer["isError"] is True
        assert "outcome: unknown" in text(answer)
        await until(lambda: hub.hub.upstream.pool.get("b").connects >= 2)  # type: ignore[union-attr]
        assert text((await agent.call("mcp__b__work"))["result"]) == "work done"


@pytest.mark.req("S001-transport-04")
async def test_an_older_protocol_version_is_used_and_invalid_answers_are_reported(tmp_path: Path) -> None:
    async with running_hub(tmp_path, limits=SHORT_BACKOFF) as hub, Agent(hub) as agent:
        (facts,) = await hub.hub.upstream.add({"b": broken("plain")})
        assert facts["protocol"] == "2025-03-26"
        assert "'unusable' was skipped" in facts["problems"][0]
        assert "mcp__b__unusable" not in names(hub)
        odd = (await agent.call("mcp__b__odd"))["result"]
        assert text(odd) == "not a list"
        wrong = (await agent.call("mcp__b__wrong"))["result"]
        assert "the printer is on fire" in text(wrong)
        whole = (await agent.call("mcp__b__work"))["result"]
        assert whole["vendor"] == {"big": 2**70}


_WEBSITE = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(int(sys.argv[2]))
        self.send_header("content-type", sys.argv[3])
        self.end_headers()
        self.wfile.write(b'{"detail": "Hello"}')
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.mark.req("S001-requirements-01")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("200", "text/html"),
        ("404", "text/html"),
        ("404", "application/json"),
        ("405", "text/html"),
        ("500", "text/html"),
    ],
)
async def test_a_server_that_does_not_speak_streamable_http_is_reported(tmp_path: Path, status: str, kind: str) -> None:
    port = free_port()
    async with running_hub(tmp_path, limits=SHORT_BACKOFF) as hub:
        async with process(sys.executable, "-c", _WEBSITE, str(port), status, kind, port=port) as url:
            (facts,) = await hub.hub.upstream.add({"site": {"url": url}})
        assert facts["state"] == "waiting"
        assert "does not speak Streamable HTTP" in facts["error"]
        assert f"status {status} and {kind}" in facts["error"]


@pytest.mark.req("F14")
async def test_a_crashing_server_is_restarted_until_the_hub_stops(tmp_path: Path) -> None:
    log = tmp_path / "starts"
    crashing = {"command": sys.executable, "args": [str(FIXTURES / "broken.py"), "crash", str(log)]}
    async with running_hub(tmp_path, limits=SHORT_BACKOFF) as hub:
        await hub.hub.upstream.add({"c": crashing})
        await until(lambda: len(log.read_text().split()) >= 4)
    facts = hub.hub.upstream.describe(hub.hub.upstream.get("c"))
    assert facts["state"] == "off"


async def test_a_disabled_server_is_not_started_and_its_tools_are_not_listed(tmp_path: Path) -> None:
    async with running_hub(tmp_path) as hub, Agent(hub) as agent:
        upstream = hub.hub.upstream
        await upstream.add({"b": broken("plain")})
        assert "mcp__b__work" in names(hub)
        await upstream.set("b", disabled=["work"])
        assert "mcp__b__work" not in names(hub)
        assert "mcp__b__late" in names(hub)
        await upstream.set("b", enabled=False)
        assert names(hub) == set()
        assert state(hub, "b") == "off"
        unknown = await agent.call("mcp__b__late")
        assert "no tool named" in json.dumps(unknown)
        await upstream.set("b", enabled=True, disabled=[])
        assert "mcp__b__work" in names(hub)
        await upstream.remove("b")
        assert names(hub) == set()
        assert upstream.all() == []


def test_a_record_describes_the_command_line() -> None:
    assert Server(id="1", name="a", enabled=True, command="npx", args=("-y", "x")).where == "npx -y x"
