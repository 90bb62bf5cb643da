"""Logging in at a server behind the official SDK's example authorization server."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import httpx2

from tests.harness.agent import Agent
from tests.harness.hub import running_hub, until
from tests.upstream.servers import EXAMPLES, NODE, free_port, process, ready, state, text


def guarded(port: int, auth_port: int) -> Any:
    example = str(EXAMPLES / "simpleStreamableHttp.js")
    return process(NODE, example, "--oauth", port=port, MCP_PORT=str(port), MCP_AUTH_PORT=str(auth_port))


async def test_a_person_logs_in_once_and_the_login_is_kept(tmp_path: Path) -> None:
    port = free_port()
    async with guarded(port, free_port()):
        url = f"http://localhost:{port}/mcp"
        async with running_hub(tmp_path) as hub, httpx2.AsyncClient(follow_redirects=True) as person:
            (facts,) = await hub.hub.upstream.add({"guarded": {"url": url}})
            assert facts["state"] == "login", facts
            strange = await person.get(f"{hub.url}/oauth/callback?state=made-up&code=x")
            assert strange.status_code == 400
            page = await person.get(facts["loginUrl"])
            assert "You are logged in" in page.text
            await ready(hub, "guarded")
            async with Agent(hub) as agent:
                assert "Ada" in text((await agent.call("mcp__guarded__greet", {"name": "Ada"}))["result"])
            (kept,) = (hub.home.root / "mcp-logins").iterdir()
            assert stat.S_IMODE(kept.stat().st_mode) == 0o600
            again = await person.get(str(page.url))
            assert again.status_code == 400
            await hub.hub.upstream.set("guarded", enabled=False)
            await hub.hub.upstream.set("guarded", enabled=True)
            assert state(hub, "guarded") == "ready"
            await hub.hub.upstream.remove("guarded")
            assert not kept.exists()


async def test_nobody_is_sent_to_log_in_who_did_not_ask(tmp_path: Path) -> None:
    port = free_port()
    async with guarded(port, free_port()):
        url = f"http://localhost:{port}/mcp"
        async with running_hub(tmp_path) as hub:
            await hub.hub.upstream.add({"guarded": {"url": url}})
        async with running_hub(tmp_path) as hub:
            await until(lambda: state(hub, "guarded") == "login", 20)
            (facts,) = hub.hub.upstream.all()
            assert "loginUrl" not in facts
            facts = await hub.hub.upstream.refresh("guarded")
            assert facts["loginUrl"].startswith("http://localhost")
