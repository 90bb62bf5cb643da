"""Logging in to a server behind the official SDK's example authorization server."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import httpx2

from tests.harness.agent import Agent
from tests.harness.hub import RunningHub, running_hub
from tests.harness.ports import free_port
from tests.harness.waiting import until
from tests.upstream.servers import EXAMPLES, NODE, process, python_http, ready, state, text


def guarded(port: int, auth_port: int) -> Any:
    example = str(EXAMPLES / "simpleStreamableHttp.js")
    return process(NODE, example, "--oauth", port=port, MCP_PORT=str(port), MCP_AUTH_PORT=str(auth_port))


async def test_a_person_logs_in_once_and_the_login_is_stored(tmp_path: Path) -> None:
    port = free_port()
    async with guarded(port, free_port()):
        url = f"http://localhost:{port}/mcp"
        async with running_hub(tmp_path) as hub, httpx2.AsyncClient(verify=False, follow_redirects=True) as person:
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


async def test_a_login_starts_only_when_a_person_asked_for_the_connection(tmp_path: Path) -> None:
    port = free_port()
    async with guarded(port, free_port()):
        url = f"http://localhost:{port}/mcp"
        async with running_hub(tmp_path) as hub:
            await hub.hub.upstream.add({"guarded": {"url": url}})
        async with running_hub(tmp_path) as hub:
            await until(lambda: state(hub, "guarded") == "login")
            (facts,) = hub.hub.upstream.all()
            assert "loginUrl" not in facts
            facts = await hub.hub.upstream.refresh("guarded")
            assert facts["loginUrl"].startswith("http://localhost")


async def logged_in(hub: RunningHub, url: str) -> None:
    (facts,) = await hub.hub.upstream.add({"guarded": {"url": url}})
    async with httpx2.AsyncClient(verify=False, follow_redirects=True) as person:
        assert "You are logged in" in (await person.get(facts["loginUrl"])).text
    await ready(hub, "guarded")


def kept(hub: RunningHub) -> dict[str, Any]:
    (file,) = (hub.home.root / "mcp-logins").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    value: dict[str, Any] = json.loads(file.read_text())
    return value


async def greeting(hub: RunningHub) -> str:
    async with Agent(hub) as agent:
        return text((await agent.call("mcp__guarded__greet", {"name": "Ada"}))["result"])


async def test_a_token_that_expired_while_the_hub_was_down_is_refreshed_at_start(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "grants"
    async with python_http("guarded", port, "3", str(log)):
        url = f"http://localhost:{port}/mcp"
        async with running_hub(tmp_path) as hub:
            await logged_in(hub, url)
            before = kept(hub)
        await until(lambda: time.time() > before["expires"])
        async with running_hub(tmp_path) as hub:  # on another port, where the stored login is valid, too
            await ready(hub, "guarded")
            assert await greeting(hub) == "Hello Ada"
            after = kept(hub)
        assert after["tokens"]["access_token"] != before["tokens"]["access_token"]
        assert after["tokens"]["refresh_token"] != before["tokens"]["refresh_token"]
        assert set(log.read_text().split()) == {"login", "refresh"}
        assert log.read_text().split().count("login") == 1


async def test_a_token_that_expires_during_a_connection_is_refreshed_by_the_next_call(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "grants"
    async with python_http("guarded", port, "3", str(log)), running_hub(tmp_path) as hub:
        await logged_in(hub, f"http://localhost:{port}/mcp")
        expires = kept(hub)["expires"]
        await until(lambda: time.time() > expires)
        assert await greeting(hub) == "Hello Ada"
        assert log.read_text().split()[0] == "login"
        assert set(log.read_text().split()[1:]) == {"refresh"}
        assert hub.hub.upstream.pool.get("guarded").connects == 1  # type: ignore[union-attr]


async def test_a_revoked_login_has_to_be_renewed_by_the_person(tmp_path: Path) -> None:
    port, log = free_port(), tmp_path / "grants"
    url = f"http://localhost:{port}/mcp"
    async with running_hub(tmp_path) as hub, python_http("guarded", port, "60", str(log)):
        await logged_in(hub, url)
    async with running_hub(tmp_path) as hub, python_http("guarded", port, "60", str(log)):
        await until(lambda: state(hub, "guarded") == "login")
        assert "requires the person to log in" in await greeting(hub)
